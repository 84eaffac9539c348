# SPDX-License-Identifier: Apache-2.0
"""What an agent says at a terminal never ends it, and is one line each time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from muster.domain.model.errors import NotAllowed, Unavailable
from muster.wiring.agent import CLOCK
from muster.wiring.aloud import Aloud, waiting

NOBODY: Any = None


class Gone(io.StringIO):
    """A terminal that was closed."""

    def write(self, _: str, /) -> int:
        raise OSError(5, "Input/output error")


def test_a_terminal_that_is_gone() -> None:
    Aloud(to=Gone(), clock=CLOCK, collector=NOBODY, delivery=NOBODY).begin("n1", "http://x", Path("/state"), once=True)


def test_a_name_of_another_stays_in_its_line() -> None:
    screen = io.StringIO()
    Aloud(to=screen, clock=CLOCK, collector=NOBODY, delivery=NOBODY).begin("n1\x1b[2J\nforged", "http://x", Path("/state"), once=True)
    assert screen.getvalue().count("\n") == 1
    assert "\x1b" not in screen.getvalue()


@pytest.mark.parametrize(
    ("trouble", "kind", "hint"),
    [
        ("HTTP 401: who are you?", NotAllowed, "muster agent join"),
        ("HTTP 503: the disk is full", Unavailable, "cannot take them now"),
        ("HTTP 502: bad gateway", Unavailable, "somebody answers there"),
        ("http://x: it speaks TLS; use https://", Unavailable, "name it so: --server https://"),
        ("no server is running here", Unavailable, "`muster server` starts one"),
        ("https://x: Connection refused", Unavailable, "`muster server` starts one"),
    ],
)
def test_what_to_do_where_reports_wait(trouble: str, kind: type[Exception], hint: str) -> None:
    found = waiting(Path("/state/spool"), trouble, None)
    assert isinstance(found, kind)
    assert hint in found.hint
    assert trouble in found.message
