# SPDX-License-Identifier: Apache-2.0
"""Times as people and programs write them: RFC 3339 and "-10m" in, RFC 3339 UTC out. Inside, seconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from muster.domain.model.errors import InputError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_AGO = re.compile(r"^-(\d{1,9}(?:\.\d{1,6})?)([smhdw])$")
_FULL = re.compile(r"^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)([Zz]|[+\- ]\d{2}:\d{2})$")
LATEST = 253402300799.0
"""The last second of the year 9999."""


@lru_cache(maxsize=65_536)
def rfc3339(at: float) -> str:
    """Seconds since the epoch as ``2026-08-01T12:00:00Z``, with milliseconds where there are any; beyond the calendar the nearest moment in it."""
    millis = round(min(max(at, 0.0), LATEST) * 1000)
    whole, rest = divmod(millis, 1000)
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:03d}Z" if rest else f"{text}Z"


def moment(text: str, now: float) -> float:
    """Seconds since the epoch of RFC 3339 text with a zone, or of a time before ``now`` ("-10m", "-2h", "now"). Raises InputError."""
    word = text.strip()
    if word == "now":
        return now
    ago = _AGO.match(word)
    if ago is not None:
        return max(0.0, now - float(ago[1]) * _SECONDS[ago[2]])
    full = _FULL.match(word)
    if full is not None:
        day, clock, zone = full.groups()
        zone = "+00:00" if zone in "Zz" else zone.replace(" ", "+")
        try:
            return max(0.0, datetime.fromisoformat(f"{day}T{clock[:15]}{zone}").timestamp())
        except (ValueError, OverflowError):
            pass
    raise InputError(f"{text!r} is no time", hint="write it like 2026-08-01T12:00:00Z, or as a time ago like -10m, -2h, -7d")
