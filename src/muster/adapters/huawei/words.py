# SPDX-License-Identifier: Apache-2.0
"""The vendor's words and numbers, put into readings: one table of fields for every text, so that a view and a listing say the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.units import from_mib
from muster.formats.numbers import marker, quantity

MHZ = 1_000_000.0
PERCENT = 0.01

# field as the tools print it (lower case, no blank before a bracket) to attribute and factor; the first of several that has a value wins
FIELDS: dict[str, tuple[str, float]] = {
    "aicore(%)": ("utilization.core", PERCENT),
    "aicore usage rate(%)": ("utilization.core", PERCENT),
    "aivector usage rate(%)": ("utilization.vector", PERCENT),
    "aicube usage rate(%)": ("utilization.tensor", PERCENT),
    "temp(c)": ("temperature.core", 1),
    "temperature(c)": ("temperature.core", 1),
    "npu temperature(c)": ("temperature.core", 1),
    "chip temperature(c)": ("temperature.core", 1),
    "hbm temperature(c)": ("temperature.memory", 1),
    "aicore curfreq(mhz)": ("clock.core", MHZ),
    "aicore freq(mhz)": ("clock.core.max", MHZ),
    "aicore count": ("compute.units", 1),
}
# what belongs to the board even when a chip's block says it
POWER = ("power(w)", "npu real-time power(w)", "power dissipation(w)", "chip power(w)")
HEX = {
    "pci vendor id": "pci.vendor_id",
    "pci device id": "pci.device_id",
    "subsystem vendor id": "pci.subsystem_vendor_id",
    "subsystem device id": "pci.subsystem_device_id",
}
HEALTH = {"ok": "ok", "warning": "warning", "alarm": "critical", "critical": "critical", "unknown": "unknown"}
_FIGURE = re.compile(r"^[+-]?\d[\d.,]*\s*(?:%|W|C|°C|℃|MB|MHz|MHZ)?$")
_COMMA = re.compile(r"^\d+,\d{1,2}$")
_CODE = re.compile(r"^(?:0x)?[0-9A-Fa-f]{6,9}$")


_UNIT = re.compile(r"^(.+)\(([^()]{1,12})\)$")
_MEMORY_COLUMNS = ("hbm-usage(mb)", "memory-usage(mb)", "hbm capacity(mb)", "ddr capacity(mb)", "memory capacity(mb)", "capacity(mb)")


def _stem(key: str) -> str:
    match = _UNIT.match(key)
    return match.group(1) if match else ""


def other_unit(key: str) -> tuple[str, ...]:
    """The attributes that a folded field speaks of when its name is known with another unit (``power(mw)``, ``temp(f)``); none for any other field."""
    stem = _stem(key)
    if not stem or key in FIELDS or key in POWER or key in _MEMORY_COLUMNS:
        return ()
    if stem in map(_stem, _MEMORY_COLUMNS):
        return ("memory.total",) if stem.endswith("capacity") else ("memory.used", "memory.total")
    if stem in map(_stem, POWER):
        return ("power.draw",)
    return next(((attribute,) for known, (attribute, _) in FIELDS.items() if _stem(known) == stem), ())


def fold(key: str) -> str:
    """One spelling per field name: lower case, single blanks, none before a bracket."""
    return " ".join(key.lower().split()).replace(" (", "(")


def read(key: str, text: str, factor: float) -> Reading:
    """The reading of attribute ``key``; ``91,3`` is a decimal comma (a group has three digits). What follows the number must be its unit."""
    if marker(text) is None and not _FIGURE.match(text.strip()):
        return Absent(Why.UNREADABLE, text.strip()[:80])
    return quantity(key, text, factor=factor, comma=_COMMA.match(text.strip()) is not None)


def power(text: str) -> Reading:
    """Watts. A chip that answers draws some, so 0 is what a board without a sensor prints."""
    reading = read("power.draw", text, 1)
    return Absent(Why.IMPLAUSIBLE, f"{text.strip()} as printed") if isinstance(reading, Known) and reading.value == 0 else reading


def hex16(text: str) -> Reading:
    """Four hex digits, or why not."""
    bare = text.strip().lower().removeprefix("0x")
    if re.fullmatch(r"[0-9a-f]{1,4}", bare):
        return Known(bare.rjust(4, "0"))
    why = marker(text)
    return Absent(why or Why.UNREADABLE, text[:80])


def health(text: str) -> dict[str, Reading]:
    """The vendor's word, and what it means."""
    word = text.strip()
    why = marker(word)
    if why is not None and word.lower() not in HEALTH:
        return {"health.vendor": Absent(why, word), "health.reported": Absent(why, word)}
    return {"health.vendor": Known(word), "health.reported": Known(HEALTH.get(word.lower(), "unknown"))}


def codes(text: str) -> Reading:
    """Fault codes standing now: ``NA`` in a health answer means none; words that are no codes are said to be unreadable."""
    if marker(text) is not None:
        return Known([])
    found = text.replace(",", " ").split()
    if all(_CODE.match(code) for code in found):
        return Known(sorted(set(found)))
    return Absent(Why.UNREADABLE, text[:80])


def pages(text: str) -> tuple[Reading, Reading] | None:
    """Used and total of ``3411/65536`` (MiB) in bytes, or None when the pair says that there is no such memory (``0/0``)."""
    used, slash, total = (part.strip() for part in text.partition("/"))
    if not slash:
        why = marker(text) or Why.UNREADABLE
        return Absent(why, text[:40]), Absent(why, text[:40])
    pair = mib("memory.used", used), mib("memory.total", total)
    if pair == (Known(0), Known(0)):
        return None
    if isinstance(pair[1], Known) and pair[1].value == 0:
        return pair[0], Absent(Why.IMPLAUSIBLE, text[:40])
    return pair


def mib(key: str, text: str) -> Reading:
    """Bytes of a number that the tools call MB and mean as MiB."""
    reading = read(key, text, 1)
    return Known(from_mib(reading.value)) if isinstance(reading, Known) else reading


def total(texts: Iterable[str]) -> Reading | None:
    """Sum of counters; None when there is none. One that cannot be read makes the sum unreadable; one that is not there adds nothing."""
    found = [read("errors.memory.corrected", text, 1) for text in texts]
    bad = [r for r in found if isinstance(r, Absent) and r.why is Why.UNREADABLE]
    values = [r.value for r in found if isinstance(r, Known)]
    if bad:
        return bad[0]
    if values:
        return Known(sum(values))
    return found[0] if found else None


def first(fields: Mapping[str, str], keys: Iterable[str]) -> str | None:
    """The first of ``keys`` that has a value; failing that, the first that is there at all."""
    there = [fields[key] for key in keys if key in fields]
    return next((text for text in there if marker(text) is None), there[0] if there else None)
