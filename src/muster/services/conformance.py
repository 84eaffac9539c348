# SPDX-License-Identifier: Apache-2.0
"""The conformance suite: what every adapter must keep, checked from its tables, its code and its recorded machines. It is handed the adapter it checks.

It needs no test tool: `muster adapter check` runs it, and so do the adapters' own tests. One `Result` says how one promise stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from muster.domain.decide.fold import FoldedCard
from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.gather import plausible
from muster.domain.model.names import NameKind, names_nothing
from muster.domain.model.observation import Interpretation, Role
from muster.domain.model.reading import Absent, Known, Reading
from muster.domain.model.source import Capture, Outcome, ReaderKind, Source, SourceId
from muster.domain.model.units import Unit
from muster.services.damage import mutated, on_strangers
from muster.services.hearing import Heard, Raised, hear
from muster.spi.adapter import HEAD, Adapter, Models

TIERS = ("seen", "measured", "judged", "proven")
WORDS: Mapping[str, frozenset[str]] = {
    "health.reported": frozenset({"ok", "warning", "critical", "unknown"}),
    "recovery.action": frozenset({"none", "reset", "reboot", "drain", "drain_and_reset", "other"}),
}
_FORMAT = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_HEX16 = re.compile(r"^[0-9a-f]{4}$")
_SHOWN = 3
"""Problems told per promise; the rest are counted."""

Document: TypeAlias = Callable[[Interpretation, str], dict[str, Any]]
"""An interpretation and its format as the document of `muster interpret`."""


@dataclass(frozen=True, slots=True)
class Result:
    """How one promise stands for one subject (the adapter, a source, a recorded machine). ``detail`` says what is wrong."""

    promise: str
    subject: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A recorded machine: the captures of each source's round, and the documents that a person has checked (None when there are none)."""

    name: str
    rounds: Mapping[SourceId, Sequence[Capture]]
    expected: Sequence[Mapping[str, Any]] | None


def check(adapter: Adapter, machines: Sequence[Machine], document: Document, models: Models | None = None) -> list[Result]:
    """How the adapter stands with each promise. ``models`` are its table of products where it has one."""
    heard = [hear(adapter, machine.name, source, captures) for machine in machines for source, captures in machine.rounds.items()]
    results = [
        _result("manifest", adapter.manifest.name or "(no name)", _manifest(adapter)),
        *(_result("source", str(source.id), _source(adapter, source)) for source in adapter.sources),
        _result("models", adapter.manifest.name, _models(models or {})),
        _result("machines", adapter.manifest.name, [] if machines else ["no recorded machine: one folder under machines/ is needed"]),
    ]
    for machine in machines:
        mine = [each for each in heard if each.machine == machine.name]
        results.append(_result("interprets", machine.name, _expected(machine, mine, document)))
        results.append(_result("dictionary", machine.name, [p for each in mine for p in _dictionary(each)]))
        results.append(_result("recognises", machine.name, [p for each in mine for p in _recognised(adapter, each)]))
        results.append(_result("pure", machine.name, [p for each in mine for p in _pure(adapter, each)]))
        results.append(_result("mutations", machine.name, [p for each in mine for p in mutated(adapter, each)]))
    results.append(_result("strangers", adapter.manifest.name, list(on_strangers(adapter))))
    results.append(_result("tier", adapter.manifest.tier, _tier(adapter, heard)))
    return results


def _result(promise: str, subject: str, problems: Iterable[str]) -> Result:
    found = list(dict.fromkeys(problems))
    rest = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return Result(promise, subject, not found, "; ".join(found[:_SHOWN]) + rest)


# ---- tables


def _manifest(adapter: Adapter) -> Iterator[str]:
    told = adapter.manifest
    if not _NAME.match(told.name):
        yield f"name {told.name!r} is not a lower-case word"
    if not told.title.strip():
        yield "the title is empty"
    if told.tier not in TIERS:
        yield f"tier {told.tier!r} is none of {', '.join(TIERS)}"
    if not told.owners:
        yield "no owners"
    if not told.formats:
        yield "no formats"
    yield from (f"format {name!r} is not lower-case words with dashes" for name in told.formats if not _FORMAT.match(name))
    yield from (f"format {name!r} is not described" for name, about in told.formats.items() if not str(about).strip())
    yield from (f"PCI vendor {each!r} is not 4 hex digits in lower case" for each in told.pci_vendors if not _HEX16.match(each))
    yield from (f"word {each!r} is not in lower case" for each in told.words if each != each.lower() or not each.strip())
    ids = [source.id for source in adapter.sources]
    yield from (f"source id {each!r} stands twice" for each in sorted({each for each in ids if ids.count(each) > 1}))


def _source(adapter: Adapter, source: Source) -> Iterator[str]:
    if not source.id.startswith(f"{adapter.manifest.name}."):
        yield f"the id does not begin with {adapter.manifest.name}."
    if not source.reads:
        yield "it reads nothing"
    for read in source.reads:
        if read.format not in adapter.manifest.formats:
            yield f"format {read.format!r} is not in the manifest"
        if not read.locator or not all(read.locator):
            yield "a locator is empty"
        elif read.each is not None and source.reader is not ReaderKind.TOOL:
            yield "only the reads of a tool are repeated"
        elif source.reader is ReaderKind.LIBRARY and ":" not in read.locator[0]:
            yield f"locator {read.locator[0]!r} is not module:function"
    if source.cadence.total_seconds() <= 0 or source.deadline.total_seconds() <= 0:
        yield "cadence and deadline must be above zero"
    yield from (f"provides {key!r}, which the dictionary lacks" for key in source.provides if key not in ATTRIBUTES)
    yield from _chain(source, {each.id: each for each in adapter.sources})


def _chain(source: Source, by_id: Mapping[SourceId, Source]) -> Iterator[str]:
    seen, leader = {source.id}, source.after
    while leader is not None:
        if leader not in by_id:
            yield f"follows {leader!r}, which is no source of this adapter"
            return
        if leader in seen:
            yield "follows itself"
            return
        seen.add(leader)
        leader = by_id[leader].after


def _models(models: Models) -> Iterator[str]:
    for key, model in models.items():
        if not model.name.strip() or not model.source.strip():
            yield f"{key}: name and source are needed"
        if model.confidence not in ("high", "medium", "low"):
            yield f"{key}: confidence {model.confidence!r} is none of high, medium, low"
        yield from (f"{key}: {problem}" for name, value in model.facts.items() for problem in _value(name, Known(value)))


# ---- recorded machines


def _expected(machine: Machine, heard: Sequence[Heard], document: Document) -> Iterator[str]:
    if not heard:
        yield "none of its captures is of a source of this adapter"
    yield from (each.problem for each in heard if each.problem)
    if machine.expected is None:
        yield "no expected.json: keep the checked output of `muster interpret DIR --by-source -o json`"
        return
    told = [json.loads(json.dumps(document(each.told, each.told.format), default=repr)) for each in heard if each.told is not None]
    if len(told) != len(machine.expected):
        yield f"{len(told)} documents, {len(machine.expected)} expected"
    for place, (mine, wanted) in enumerate(zip(told, machine.expected, strict=False)):
        yield from differences(wanted, mine, f"[{place}]")


def differences(wanted: Any, found: Any, path: str) -> Iterator[str]:
    """Where two JSON values differ, with the path to each place."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for key in dict.fromkeys((*wanted, *found)):
            if key not in found:
                yield f"{path}.{key} is gone"
            elif key not in wanted:
                yield f"{path}.{key} is new"
            else:
                yield from differences(wanted[key], found[key], f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            yield f"{path} has {len(found)} entries, {len(wanted)} expected"
        for place, (one, other) in enumerate(zip(wanted, found, strict=False)):
            yield from differences(one, other, f"{path}[{place}]")
    elif wanted != found or isinstance(wanted, bool) is not isinstance(found, bool):
        yield f"{path} is {found!r}, expected {wanted!r}"


def _dictionary(heard: Heard) -> Iterator[str]:
    told = heard.told
    if told is None:
        return
    if told.complete and told.outcome.failed:
        yield f"{heard.source}: complete with outcome {told.outcome}"
    counted = [card for card in heard.cards if card.role is not Role.DISPLAY]
    if told.outcome is Outcome.NO_DEVICES and counted:
        yield f"{heard.source}: outcome no_devices with {len(counted)} cards"
    for each in told.observations:
        where = f"{heard.source} {each.subject.level} {each.subject.ordinal}"
        yield from (f"{where}: {problem}" for key, reading in each.readings.items() for problem in _value(key, reading))
        yield from (f"{where}: {n.kind} {n.value!r} names nothing" for n in each.subject.names if names_nothing(n.kind, n.value))
        with Raised() as raised:
            json.dumps(dict(each.vendor))
        if raised.error:
            yield f"{where}: vendor values are no JSON ({raised.error})"


def _value(key: str, reading: Reading) -> Iterator[str]:
    """What is wrong with a reading: its key, its type, its range, its reason."""
    entry = ATTRIBUTES.get(key)
    if entry is None:
        if not key.startswith("asset."):
            yield f"{key} is not in the dictionary"
    elif isinstance(reading, Absent):
        if not isinstance(reading.detail, str):
            yield f"{key}: the detail of an absence is text"
    elif not _of_unit(entry.unit, reading.value):
        yield f"{key}: {reading.value!r} is no {entry.unit}"
    elif entry.numeric and plausible(key, reading) is not reading:
        yield f"{key}: {reading.value!r} is outside {entry.low} to {entry.high}"
    elif key in WORDS and reading.value not in WORDS[key]:
        yield f"{key}: {reading.value!r} is none of {', '.join(sorted(WORDS[key]))}"


def _of_unit(unit: Unit, value: Any) -> bool:
    if unit is Unit.BOOL:
        return isinstance(value, bool)
    if unit in (Unit.TEXT, Unit.ENUM, Unit.DATE):
        return isinstance(value, str) and bool(value.strip())
    if unit is Unit.HEX16:
        return isinstance(value, str) and bool(_HEX16.match(value))
    if unit is Unit.MAP:
        return isinstance(value, Mapping)
    if unit in (Unit.SET, Unit.LIST):
        return isinstance(value, list | tuple | set | frozenset)
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _recognised(adapter: Adapter, heard: Heard) -> Iterator[str]:
    for capture in heard.captures:
        if capture.failure is not None or not capture.payload.strip():
            continue
        with Raised() as raised:
            form = adapter.recognise(capture.payload[:HEAD])
            if form != capture.format and _speaks(adapter, capture):
                yield f"{heard.source}: {' '.join(capture.locator)} is {capture.format}, recognised as {form}"
        if raised.error:
            yield f"{heard.source}: recognise raised {raised.error}"


def _speaks(adapter: Adapter, capture: Capture) -> bool:
    """True when the capture says something of cards on its own."""
    told = adapter.interpret([capture])
    return bool(told.observations or told.events)


def _pure(adapter: Adapter, heard: Heard) -> Iterator[str]:
    with Raised():
        if heard.told is not None and adapter.interpret(heard.captures) != heard.told:
            yield f"{heard.source}: a second reading of the same captures says something else"


# ---- tier


def _tier(adapter: Adapter, heard: Sequence[Heard]) -> Iterator[str]:
    cards = [card for each in heard for card in each.cards]
    told = {key for card in cards for key, reading in _all_readings(card) if isinstance(reading, Known)}
    speaks_of_others = not adapter.manifest.pci_vendors and any(each.told is not None and each.told.events for each in heard)
    lasting = {NameKind.SERIAL, NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS, NameKind.CHASSIS_SLOT}
    if not speaks_of_others and not any(name.kind in lasting for card in cards for name in card.names):
        yield "seen needs identity: no recorded card has a serial, UUID, PCI address or slot"
    if adapter.manifest.tier in TIERS[1:] and not speaks_of_others and not any(ATTRIBUTES[key].kind is Kind.GAUGE for key in told if key in ATTRIBUTES):
        yield "measured needs telemetry: no recorded card has a gauge"
    if adapter.manifest.tier in TIERS[2:] and "health.reported" not in told:
        yield "judged needs health: no recorded card has health.reported"


def _all_readings(card: FoldedCard) -> Iterator[tuple[str, Reading]]:
    yield from card.readings.items()
    for part in (*card.devices, *card.partitions):
        yield from part.readings.items()
