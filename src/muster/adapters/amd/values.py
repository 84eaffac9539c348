# SPDX-License-Identifier: Apache-2.0
"""One value of any AMD tool, however it is wrapped: a number, "171 W", {"value", "unit"}, "N/A" in place of an object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.units import Unit, scaled
from muster.formats.numbers import SENTINELS, marker, quantity

# sizes of these tools are counted in powers of two under decimal names; rates in powers of ten, small b for bits
_FACTORS: dict[Unit, dict[str, float]] = {
    Unit.BYTES: {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4},
    Unit.BYTES_PER_SECOND: {"B/s": 1, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "Kb/s": 125, "Mb/s": 125_000, "Gb/s": 125_000_000},
    Unit.RATIO: {"": 0.01},
    Unit.HERTZ: {"": 1e6, "Mhz": 1e6},
}
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
_NUMBER_UNIT = re.compile(r"^\s*\(?\s*([+-]?[\d.,]+(?:[eE][+-]?\d+)?)\s*([^\s)]*)\s*\)?\s*$")
_NOT_ASCII = re.compile(r"[^\x20-\x7e]|_(?=[Cc]$)")
_HUGE = 1e30
"""No quantity of a card is larger, in whatever unit."""
_WIDE = (2**64 - 1, 2**32 - 1, 2**63 - 1)


class Same(dict[str, Any]):
    """A block that the tool replaced by one word ("N/A"): every value in it is that word."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    def get(self, _key: str, _default: Any = None) -> Any:
        """The word, whatever the key."""
        return self.word


def block(record: Mapping[str, Any], *names: str) -> Mapping[str, Any] | None:
    """The first of the blocks ``names`` that the record has, as a mapping; None when it speaks of none of them."""
    for name in names:
        value = record.get(name)
        if isinstance(value, Mapping) and "value" not in value:
            return value
        if isinstance(value, str) and marker(value) is not None and not isinstance(record, Same):
            return Same(value)
    return None


def pick(source: Mapping[str, Any], *names: str) -> Any:
    """The value under the first of ``names`` that is not a marker; else the first marker; else None."""
    found = [value for name in names if (value := source.get(name)) is not None]
    return next((value for value in found if not is_marker(value)), found[0] if found else None)


def plain(value: Any) -> Any:
    """The number or text inside {"value", "unit"}, else the value as it is."""
    return value.get("value") if isinstance(value, Mapping) and "value" in value else value


def is_marker(value: Any) -> bool:
    """True when the value is one of the spellings of "no value"."""
    inner = plain(value)
    return inner is None or (isinstance(inner, str) and marker(inner) is not None)


def word(value: Any) -> str | None:
    """The text of a value; None when there is none or it says nothing."""
    inner = plain(value)
    if is_marker(value) or isinstance(inner, bool | list | Mapping) or (isinstance(inner, float) and inner - inner != 0):
        return None
    return str(inner).strip() or None


def whole(value: Any) -> int | None:
    """The whole number in a value, decimal or ``0x``; None where there is none."""
    text = word(value)
    if text is None or len(text) > 40:
        return None
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
        return int(text, 16)
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else None


def ordinal(text: str) -> int | None:
    """The place in a listing that a cell names, or None."""
    return int(text) if re.fullmatch(r"[0-9]{1,4}", text) else None


def text_reading(value: Any, *, lower: bool = False) -> Reading | None:
    """A text attribute: None where the source does not speak of it, an absence where it has no value."""
    if value is None:
        return None
    inner = plain(value)
    text = word(value)
    if text is None:
        return Absent(marker(inner) or Why.NOT_SAMPLED, inner) if isinstance(inner, str) else Absent(Why.UNREADABLE, repr(inner)[:60])
    return Known(text.lower() if lower else text)


def measure(key: str, value: Any, unit: str = "") -> Reading | None:
    """The reading of attribute ``key`` in a value of any wrapping, in the dictionary's unit; ``unit`` is what the tool means where it prints none."""
    found = _measure(key, value, unit)
    if isinstance(found, Known) and isinstance(found.value, float) and ATTRIBUTES[key].unit is Unit.BYTES:
        return Known(round(found.value))
    return found


def _measure(key: str, value: Any, unit: str) -> Reading | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        if "value" not in value:
            return None
        if "unit" not in value and len(value) > 1:
            return Absent(Why.UNREADABLE, repr(dict(value))[:80])
        unit = str(value.get("unit") or unit)
        value = value["value"]
    if value is None or isinstance(value, bool | list | Mapping):
        return Absent(Why.UNREADABLE, repr(value)[:60])
    if isinstance(value, int | float):
        return _number(key, value, unit)
    return _text(key, str(value), unit)


def _number(key: str, value: float, unit: str) -> Reading:
    if value != value or value in (float("inf"), float("-inf")):
        return Absent(Why.UNREADABLE, str(value))
    if isinstance(value, int) and (value in SENTINELS or value in _WIDE):
        return Absent(SENTINELS.get(value, Why.NOT_SUPPORTED), str(value))
    if abs(value) > _HUGE:
        return Absent(Why.IMPLAUSIBLE, repr(value)[:80])
    if value == -1 and (ATTRIBUTES[key].low or 0) >= 0:
        return Absent(Why.NOT_SAMPLED, str(value))
    return quantity(key, repr(value), unit=_ascii(unit), factor=_factor(key, unit))


def _text(key: str, text: str, unit: str) -> Reading:
    why = marker(text)
    if why is not None:
        return Absent(why, text.strip())
    clean = _ascii(text[:200])
    match = _NUMBER_UNIT.match(clean)
    if match is None:
        return Absent(Why.UNREADABLE, text.strip()[:80])
    digits, suffix = match.group(1), match.group(2) or unit
    if re.search(r"[eE]", digits) or len(digits) > 30:
        return Absent(Why.UNREADABLE, text.strip()[:80])
    if digits.isdigit() and int(digits[:24]) in _WIDE:
        return Absent(Why.NOT_SUPPORTED, text.strip()[:80])
    return quantity(key, digits, unit=suffix, factor=_factor(key, suffix), point=False)


def _factor(key: str, unit: str) -> float | None:
    return _FACTORS.get(ATTRIBUTES[key].unit, {}).get(_ascii(unit))


def _ascii(text: str) -> str:
    return _NOT_ASCII.sub("", text).strip()


def percent(key: str, value: Any) -> Reading | None:
    """A share printed as percent, with or without its sign."""
    return measure(key, value, "%")


def hex_id(value: Any) -> Reading | None:
    """A PCI id as four lower-case hex digits without ``0x``."""
    if value is None:
        return None
    text = word(value)
    if text is None:
        return text_reading(value)
    bare = text.lower().removeprefix("0x")
    if re.fullmatch(r"[0-9a-f]{1,4}", bare):
        return Known(f"{int(bare, 16):04x}")
    if re.fullmatch(r"[0-9a-f]{8}", bare):
        return Known(bare[:4] if bare.endswith("1002") else bare[-4:])
    return Absent(Why.UNREADABLE, text[:40])


def generation(value: Any) -> Reading | None:
    """The PCI Express generation of a speed in GT/s ("16.0 GT/s PCIe") or of a word ("Gen 4")."""
    if value is None:
        return None
    text = word(value)
    if text is None:
        return text_reading(value)
    match = re.match(r"(?:pcie\s*)?gen\s*(\d)$", text.lower())
    if match:
        return Known(int(match.group(1)))
    match = re.match(r"(\d+(?:\.\d+)?)", text)
    found = _GENERATIONS.get(float(match.group(1))) if match else None
    return Known(found) if found is not None else Absent(Why.UNREADABLE, text[:40])


def rows(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a list, or of a mapping of numbered objects, or the one object itself."""
    if isinstance(value, list):
        for each in value:
            if isinstance(each, Mapping):
                yield each
    elif isinstance(value, Mapping) and not isinstance(value, Same):
        inner = [each for each in value.values() if isinstance(each, Mapping)]
        if inner and len(inner) == len(value):
            yield from inner
        else:
            yield value


def scale(reading: Reading | None, factor: float) -> Reading | None:
    """The reading times ``factor`` where it is known."""
    if not isinstance(reading, Known) or isinstance(reading.value, bool) or not isinstance(reading.value, int | float):
        return reading
    return Known(scaled(reading.value, factor))
