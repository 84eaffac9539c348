# SPDX-License-Identifier: Apache-2.0
"""Values to the text of a cell or line: units for people, ages, and device strings with their control characters made visible.

What a device says is untrusted in every form of output, so `safe` stands between it and the terminal. An unknown value is a `Missing`, never a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]")
"""Control characters, and those that reorder or hide text."""

_SMALL = 10


@dataclass(frozen=True, slots=True)
class Missing:
    """A value that is not known, and why; the reason may be empty."""

    why: str = ""
    detail: str = ""


def safe(text: str) -> str:
    """``text`` with every control or reordering character written as an escape (``\\x1b``, ``\\u202e``)."""
    return UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    point = ord(match.group())
    named = {9: "\\t", 10: "\\n", 13: "\\r"}.get(point)
    return named or (f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}")


def missing(value: Any) -> bool:
    """True when there is nothing to show."""
    return value is None or value == "" or isinstance(value, Missing)


def plain(value: Any) -> str:
    """Any value as text: lists with commas, maps as ``key=value``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{plain(key)}={plain(each)}" for key, each in value.items()) or "none"
    if isinstance(value, Sequence):
        return ", ".join(plain(each) for each in value) or "none"
    return safe(str(value))


def figure(value: float) -> str:
    """Three figures at most, without an exponent: ``1.41``, ``64.5``, ``312``."""
    if value == int(value):
        return str(int(value))
    return f"{value:.2f}" if abs(value) < _SMALL else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


_STEPS: dict[str, tuple[int, tuple[str, ...]]] = {
    "bytes": (1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB")),
    "bytes_per_second": (1000, ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")),
    "hertz": (1000, ("Hz", "kHz", "MHz", "GHz")),
    "joule": (1000, ("J", "kJ", "MJ", "GJ")),
    "watt": (1_000_000, ("W",)),
}
_SIGNS = {"celsius": "°C", "kelvin": "K", "rpm": "rpm", "volt": "V"}


def quantity(value: Any, unit: str) -> str:
    """A reading's value with its unit, for people."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return plain(value)
    if unit == "ratio":
        return f"{figure(round(value * 100, 1))} %"
    if unit in _STEPS:
        base, names = _STEPS[unit]
        return _stepped(value, base, names)
    return f"{figure(value)} {_SIGNS[unit]}" if unit in _SIGNS else figure(value)


def _stepped(value: float, base: int, names: Sequence[str]) -> str:
    number, place = float(value), 0
    while abs(number) >= base and place < len(names) - 1:
        number, place = number / base, place + 1
    return f"{figure(number)} {names[place]}"


def span(seconds: float) -> str:
    """A length of time in its two largest units: ``45s``, ``3m``, ``2h10m``, ``5d3h``."""
    whole = max(0, int(seconds))
    for size, letter, below, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size}{letter}" + (f"{rest}{small}" if rest and whole < size * 10 else "")
    return f"{whole // 60}m" if whole >= 60 else f"{whole}s"


def moment(value: Any) -> datetime | None:
    """A time of the API (RFC 3339, or seconds since the epoch), or None when it is none."""
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def rfc3339(value: Any) -> str:
    """A time of the API as RFC 3339 in UTC; other text as it is."""
    found = moment(value)
    if found is None:
        return safe(str(value))
    text = found.astimezone(UTC).isoformat(timespec="milliseconds" if found.microsecond else "seconds")
    return text.replace("+00:00", "Z")


def age(value: Any, now: float) -> str:
    """How long ago a time of the API was; a time ahead of ours is told as ``in``."""
    found = moment(value)
    if found is None:
        return safe(str(value))
    seconds = now - found.timestamp()
    return span(seconds) if seconds > -1 else f"in {span(-seconds)}"


def counted(number: int, what: str) -> str:
    """``1 card``, ``2 cards``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def word(text: str) -> str:
    """A word of ours (``not_supported``) as people write it."""
    return safe(text.replace("_", " "))
