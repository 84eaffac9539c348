# SPDX-License-Identifier: Apache-2.0
"""The readings of one chip from all fields that the texts of one round say about it."""

from __future__ import annotations

from collections.abc import Mapping

from muster.adapters.huawei import words
from muster.adapters.huawei.names import die
from muster.domain.model.gather import Thing
from muster.domain.model.names import pci_address
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.formats.numbers import marker

Fields = dict[str, tuple[str, str]]
"""Folded field name to (name as printed, text)."""

_ECC = {
    "errors.memory.corrected": "single bit error count",
    "errors.memory.uncorrected": "double bit error count",
    "errors.memory.corrected.lifetime": "single bit aggregate total err cnt",
    "errors.memory.uncorrected.lifetime": "double bit aggregate total err cnt",
}
_PAGES = {"memory.pages_retired": "isolated pages count", "memory.pages_retired.next": "next-isolated pages count"}
_NAMES = {"serial number", "vdie id", "pcie bus info", "bus-id", "npu", "npu id"}
_DDR = {
    "memory-usage(mb)",
    "ddr capacity(mb)",
    "ddr usage rate(%)",
    "ddr bandwidth usage rate(%)",
    "ddr clock speed(mhz)",
    "memory usage rate(%)",
    "capacity(mb)",
}
_PLAIN = {"software version": "driver.version", "firmware version": "firmware.version"}


def fill(thing: Thing, fields: Fields, cut: frozenset[str] = frozenset(), *, hbm: bool = False) -> None:
    """Puts names, readings and the vendor's own words of ``fields`` on ``thing``.

    ``cut`` names fields whose value was cut off (folded). ``hbm`` says that the product has HBM, so that a DDR is never taken for the chip's memory.
    """
    texts = {key: text for key, (_, text) in fields.items()}
    hbm = hbm or any(key.startswith("hbm") and words.other_unit(key) for key in texts)
    used: set[str] = set()
    _identity(thing, texts, used)
    _plain(thing, texts, used)
    for readings in (
        _memory({k: t for k, t in texts.items() if not hbm or k not in _DDR}, used),
        _rates(texts, used),
        _errors(texts, used),
        _health(texts, used),
    ):
        for key, reading in readings.items():
            thing.put(key, reading)
    for key, (printed, _) in fields.items():
        for attribute in (each for each in words.other_unit(key) if each != "power.draw"):
            thing.absent(attribute, Why.UNREADABLE, f"unit not known: {printed}")
    for key in cut:
        if key in words.FIELDS:
            thing.absent(words.FIELDS[key][0], Why.UNREADABLE, "the line was cut")
        elif key.endswith("usage(mb)") and "memory.total" not in thing.readings:
            thing.absent("memory.total", Why.UNREADABLE, "the line was cut")
    for key, (printed, text) in fields.items():
        if key not in used and text and key not in words.POWER:
            thing.tell(printed, text)


def _identity(thing: Thing, texts: Mapping[str, str], used: set[str]) -> None:
    used.update(_NAMES & texts.keys())
    thing.named(serial=texts.get("serial number"), vendor_uuid=die(texts.get("vdie id")))
    for key in ("bus-id", "pcie bus info"):
        thing.named(pci_address=pci_address(texts.get(key, "")))


def _plain(thing: Thing, texts: Mapping[str, str], used: set[str]) -> None:
    for key, attribute in _PLAIN.items():
        if key in texts:
            used.add(key)
            why = marker(texts[key])
            thing.put(attribute, Known(texts[key]) if why is None else Absent(why, texts[key]))
    for key, attribute in words.HEX.items():
        if key in texts:
            used.add(key)
            thing.put(attribute, words.hex16(texts[key]))
    if marker(texts.get("slot id", "")) is None:
        used.add("slot id")
        thing.value("platform.slot", texts["slot id"])


def _rates(texts: Mapping[str, str], used: set[str]) -> dict[str, Reading]:
    found: dict[str, Reading] = {}
    for key, (attribute, factor) in words.FIELDS.items():
        if key in texts:
            used.add(key)
            reading = words.read(attribute, texts[key], factor)
            if attribute not in found or isinstance(found[attribute], Absent):
                found[attribute] = reading
    return found


def _memory(texts: Mapping[str, str], used: set[str]) -> dict[str, Reading]:
    """Memory of the chip: HBM where it has any, else DDR. The DDR beside an HBM belongs to the control processors and is left to the vendor's words."""
    found = _columns(texts, used)
    kind = _kind(texts)
    capacity = words.first(texts, (f"{kind} capacity(mb)", "memory capacity(mb)", "capacity(mb)"))
    if capacity is not None:
        used.update((f"{kind} capacity(mb)", "capacity(mb)"))
        reading = words.mib("memory.total", capacity)
        if reading == Known(0):
            reading = Absent(Why.IMPLAUSIBLE, "0 as printed")
        found.setdefault("memory.total", reading)
    pairs = {
        "memory.used.ratio": (f"{kind} usage rate(%)", "memory usage rate(%)"),
        "utilization.memory_bandwidth": (f"{kind} bandwidth usage rate(%)", "memory bandwidth usage rate(%)"),
    }
    for attribute, keys in pairs.items():
        text = words.first(texts, keys if kind == "ddr" else keys[:1])
        if text is not None:
            used.update(keys if kind == "ddr" else keys[:1])
            found[attribute] = words.read(attribute, text, words.PERCENT)
    speed = words.first(texts, (f"{kind} clock speed(mhz)", "clock speed(mhz)"))
    if speed is not None and speed != "0":
        used.update((f"{kind} clock speed(mhz)", "clock speed(mhz)"))
        found["clock.memory"] = words.read("clock.memory", speed, words.MHZ)
    return found


def _kind(texts: Mapping[str, str]) -> str:
    """Which memory is the chip's: "hbm" or "ddr"."""
    has = texts.get("hbm capacity(mb)", texts.get("hbm usage rate(%)", "NA"))
    if "hbm capacity(mb)" not in texts and texts.get("hbm-usage(mb)", "0/0").replace(" ", "") != "0/0":
        return "hbm"
    return "hbm" if marker(has) is None and has.strip() != "0" else "hbm" if "hbm usage rate(%)" in texts and "hbm capacity(mb)" not in texts else "ddr"


def _columns(texts: Mapping[str, str], used: set[str]) -> dict[str, Reading]:
    """Used and total from the summary table's columns."""
    there = [key for key in ("hbm-usage(mb)", "memory-usage(mb)") if texts.get(key)]
    for key in there:
        pair = words.pages(texts[key])
        if pair is not None:
            used.add(key)
            return {"memory.used": pair[0], "memory.total": pair[1]}
    if there:
        return {"memory.total": Absent(Why.NOT_SAMPLED, texts[there[0]]), "memory.used": Absent(Why.NOT_SAMPLED, texts[there[0]])}
    return {}


def _errors(texts: Mapping[str, str], used: set[str]) -> dict[str, Reading]:
    found: dict[str, Reading] = {}
    for attribute, ending in _ECC.items():
        keys = [f"{kind} {ending}" for kind in ("ddr", "hbm") if f"{kind} {ending}" in texts]
        used.update(keys)
        reading = words.total(texts[key] for key in keys)
        if reading is not None:
            found[attribute] = reading
    for attribute, ending in _PAGES.items():
        keys = [key for key in texts if key.endswith(f"bit {ending}")]
        used.update(keys)
        reading = words.total(texts[key] for key in keys)
        if reading is not None:
            found[attribute] = reading
    pending = found.get("memory.pages_retired.next")
    if isinstance(pending, Known):
        found["memory.pages_retired.pending"] = Known(pending.value > 0)
    return found


def _health(texts: Mapping[str, str], used: set[str]) -> dict[str, Reading]:
    found: dict[str, Reading] = {}
    text = words.first(texts, ("health", "health status"))
    if text is not None:
        used.update(("health", "health status"))
        found.update(words.health(text))
    if "error code" in texts:
        used.add("error code")
        found["fault.codes"] = words.codes(texts["error code"])
    return found
