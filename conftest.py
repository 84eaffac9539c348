# SPDX-License-Identifier: Apache-2.0
"""How hard properties are tried, in all tests, those beside the adapters too: the same examples each time, or many new ones by `make fuzz`."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", deadline=None, max_examples=3000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs behind it; the commands that tests start must hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def the_log_as_it_was() -> Iterator[None]:
    """What a test lets a server's process log must not silence the tests after it."""
    loggers = [logging.getLogger(name) for name in ("", "muster")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
