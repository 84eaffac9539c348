# SPDX-License-Identifier: Apache-2.0
"""The clocks that collection goes by; whoever starts it hands them in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """``wall`` gives seconds since the epoch (UTC), ``mono`` seconds that only grow within a boot."""

    wall: Callable[[], float]
    mono: Callable[[], float]
