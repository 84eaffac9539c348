# SPDX-License-Identifier: Apache-2.0
"""A reading is a known value or an absence with its reason; nothing else stands for "not known"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar

T_co = TypeVar("T_co", covariant=True)

Value: TypeAlias = "str | int | float | bool | Sequence[Any] | Mapping[str, Any]"


class Why(StrEnum):
    """Why a value is not known. The list is closed."""

    NOT_SUPPORTED = "not_supported"
    NOT_PERMITTED = "not_permitted"
    NOT_PRESENT = "not_present"
    NOT_REPORTED = "not_reported"
    MOVED = "moved"
    WITHHELD = "withheld"
    NOT_SAMPLED = "not_sampled"
    ERROR = "error"
    DEVICE_LOST = "device_lost"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    IMPLAUSIBLE = "implausible"
    UNREADABLE = "unreadable"

    @property
    def passing(self) -> bool:
        """True when an older value stays, with its age; False when this absence replaces it."""
        return self in _PASSING


_PASSING = frozenset(
    {
        Why.NOT_SAMPLED,
        Why.ERROR,
        Why.DEVICE_LOST,
        Why.UNREACHABLE,
        Why.TIMED_OUT,
        Why.IMPLAUSIBLE,
        Why.UNREADABLE,
    }
)


@dataclass(frozen=True, slots=True)
class Known(Generic[T_co]):
    """A value that was read. Zero is a real zero."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Absent:
    """No value, and why. ``detail`` is the tool's own text or what stood there."""

    why: Why
    detail: str = ""


Reading: TypeAlias = "Known[Any] | Absent"


def better(old: Reading | None, new: Reading) -> Reading:
    """The one of two readings of the same thing in the same round that says more: a value beats an absence, the first of equals stays."""
    if old is None or (isinstance(old, Absent) and isinstance(new, Known)):
        return new
    return old
