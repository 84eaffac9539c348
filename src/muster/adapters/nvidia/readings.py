# SPDX-License-Identifier: Apache-2.0
"""One field to one reading: words, numbers with units, yes and no, as this vendor's tools spell them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from muster.adapters.nvidia.board import Board
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.gather import plausible
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.units import Unit
from muster.formats.csvtext import Sign, sign_of
from muster.formats.numbers import SENTINELS, marker, quantity, sentinel

LARGEST = 0x7FFFFFFF
"""The largest signed number of 32 bits, which is no count."""
NARROW = 0xFFFF
"""The one "no value" of 16 bits, which wider counters pass as an ordinary count."""
_TRAILER = re.compile(r"\s*(?:x|bank\(s\))$", re.IGNORECASE)
_ZEROS = re.compile(r"^(?:gpu-)?[0\-.\s]+$", re.IGNORECASE)
_YES = {"yes": True, "enabled": True, "active": True, "true": True, "on": True, "1": True}
_NO = {"no": False, "disabled": False, "not active": False, "false": False, "off": False, "0": False}


def missing(text: str) -> Absent | None:
    """The absence that ``text`` spells, or None when it may be a value. A sentence in place of a value ("Not available in WDDM driver model") is one too."""
    bare = text.strip().strip("[]").strip().lower()
    why = marker(text)
    if why is None and bare.startswith(("not available", "not supported")):
        why = Why.NOT_SUPPORTED
    if why is None and (bare.startswith(("gpu is lost", "gpu requires reset")) or "is lost" in bare):
        why = Why.DEVICE_LOST
    return Absent(why, text.strip()) if why is not None else None


def words(text: str | Absent | None, *, lower: bool = False) -> Reading | None:
    """A text field; rows of zeros are masks and no value. None where the listing does not speak of it."""
    if text is None or isinstance(text, Absent):
        return text
    text = " ".join(text.split())
    absent = missing(text)
    if absent is not None:
        return absent
    if len(text) > 1 and _ZEROS.match(text):
        return Absent(Why.WITHHELD, text)
    return Known(text.lower() if lower else text)


def flag(text: str | Absent | None) -> Reading | None:
    """Yes or no in any of the tool's spellings."""
    if text is None or isinstance(text, Absent):
        return text
    bare = text.strip().lower()
    for table in (_YES, _NO):
        if bare in table:
            return Known(table[bare])
    return missing(text) or Absent(Why.UNREADABLE, text.strip()[:80])


def choice(text: str | Absent | None, table: Mapping[str, str], other: str | None = None) -> Reading | None:
    """The word that ``table`` gives for ``text`` (without case), ``other`` for a word it does not know, None where the listing does not speak of it."""
    if text is None or isinstance(text, Absent):
        return text
    bare = " ".join(text.lower().split())
    if bare in table:
        return Known(table[bare])
    return missing(text) or (Known(other) if other is not None else Absent(Why.UNREADABLE, text.strip()[:80]))


def measure(board: Board, key: str, name: str, unit: str) -> Reading | None:
    """The number in field ``name`` as attribute ``key``; None where the listing does not speak of it."""
    text = board.fields.get(name)
    if text is None or isinstance(text, Absent):
        return text
    absent = missing(text)
    if absent is not None:
        return absent
    bare = _TRAILER.sub("", text) if ATTRIBUTES[key].unit is Unit.COUNT else text
    sign = sign_of(bare)
    sign = board.sign if sign is Sign.UNKNOWN else sign
    comma, point = sign is Sign.COMMA, sign is Sign.POINT
    found = quantity(key, bare, unit=unit, comma=comma, point=point)
    raw = quantity(key, bare, factor=1, comma=comma, point=point)
    if not isinstance(found, Known) or not isinstance(raw, Known):
        return found
    if ATTRIBUTES[key].unit is Unit.COUNT and isinstance(found.value, float):
        return Absent(Why.UNREADABLE, text.strip()[:80])
    if ATTRIBUTES[key].unit is Unit.COUNT and raw.value == LARGEST:
        return Absent(Why.NOT_SUPPORTED, text.strip()[:80])
    none = no_value(key, raw.value)
    return Absent(none, text.strip()[:80]) if none is not None else plausible(key, found)


def no_value(key: str, number: float) -> Why | None:
    """Why a number printed for attribute ``key`` is no value; None when it is a count or an amount. 65535 may be one."""
    if number in SENTINELS and number > NARROW:
        return SENTINELS[number]
    told = sentinel(key, number) if number == -1 else None
    return told.why if isinstance(told, Absent) else None


def first(readings: Iterable[Reading | None]) -> Reading | None:
    """The first value, else the first absence, else None."""
    absent: Reading | None = None
    for reading in readings:
        if isinstance(reading, Known):
            return reading
        absent = absent if absent is not None else reading
    return absent


def total(readings: Iterable[Reading | None]) -> Reading | None:
    """The sum where every part is known; an absence of a part is the sum's."""
    parts = list(readings)
    if not parts or any(part is None for part in parts):
        return None
    for part in parts:
        if isinstance(part, Absent):
            return part
    return Known(sum(part.value for part in parts if isinstance(part, Known)))
