# SPDX-License-Identifier: Apache-2.0
"""The captures of one round of one source become one interpretation: which parser reads which text, and what became of the read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from muster.adapters.amd import (
    observe_exporter,
    observe_kfd,
    observe_metric,
    observe_npu,
    observe_rocm,
    observe_smi,
    observe_sysfs,
    parse_box,
    parse_detector,
    parse_kernel,
    parse_rocm,
    parse_smi,
    parse_tables,
    seen,
)
from muster.adapters.amd.parse_library import from_library
from muster.adapters.amd.parse_smi import Listing
from muster.adapters.amd.parse_sysfs import files
from muster.adapters.amd.recognise import recognise
from muster.adapters.amd.settle import settle
from muster.domain.model.attributes import Level
from muster.domain.model.gather import Gather, Thing
from muster.domain.model.names import NameKind, names
from muster.domain.model.observation import Event, Interpretation, Observation, Subject
from muster.domain.model.source import Capture, Outcome
from muster.formats.shape import lacking, sentences
from muster.formats.text import decode
from muster.spi.adapter import HEAD, Models

_CLOSED = re.compile(r"(?:\|\s*|\+|={8,})$")
_LAST_VALUE = re.compile(r"\S+(?:\s+(?:W|\S{0,2}C|%|MHz|GHz|MB|GB|KB|mV))?$")
_LAST_CELL = re.compile(r"[^,;\t|]*$")
_IDENTITY = {"list", "static"}
_NEEDED = _IDENTITY | {"metric"}
_FILTERS = ("-g", "--gpu", "-d", "--device")
_PARTS = re.compile(r"\bamd-smi\s+(?:monitor|topology|xgmi|process|bad-pages|partition|event|firmware)\b")
_FAILURES = (
    (re.compile(r"NOT_ENOUGH_PERM|NO_PERM|permission denied|missing the following required groups", re.IGNORECASE), Outcome.NOT_PERMITTED),
    (re.compile(r"command not found|No such file or directory|No module named", re.IGNORECASE), Outcome.TOOL_MISSING),
    (
        re.compile(
            r"DRIVER_NOT_LOADED|NOT_INIT|not found in modules|Driver not initialized|check amdgpu version|driver not (?:loaded|found)|INIT_ERROR", re.IGNORECASE
        ),
        Outcome.DRIVER_UNUSABLE,
    ),
    (re.compile(r"No AMD GPUs|no GPUs? (?:was |were )?(?:found|detected)|Unable to detect any GPU|NOT_FOUND", re.IGNORECASE), Outcome.NO_DEVICES),
)


@dataclass(slots=True)
class _Round:
    """What is collected while the captures are read."""

    models: Models
    gather: Gather = field(default_factory=Gather)
    formats: list[str] = field(default_factory=list)
    whole: bool = False
    cut: bool = False
    empty: bool = False
    version: str = ""
    mixed: bool = False
    """A number stands for cards of several hosts."""
    news: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    node: dict[str, str] = field(default_factory=dict)
    """Versions told once for all cards of the host, by attribute key."""


def interpret(captures: Sequence[Capture], models: Models) -> Interpretation:
    """What the captures of one round say. Bad input gives fewer readings or ``unreadable``, never an exception."""
    told = _Round(models)
    for capture in captures:
        if capture.failure is None:
            _read(told, capture)
    for card in told.gather.cards:
        for key in ("driver.version", "runtime.version"):
            card.value(key, told.node.get(key))
    cards = _named(settle(told.gather, models, cut=told.cut), told.cut and any(_IDENTITY & set(capture.locator) for capture in captures))
    observations: list[Observation] = []
    if told.gather.node.readings:
        observations.extend(told.gather.node.observations(0))
    for ordinal, card in enumerate(cards):
        if not card.names and card.key is not None and isinstance(card.key, int):
            card.named(index=card.key)
        observations.extend(card.observations(ordinal))
    outcome, detail = _outcome(told, captures, bool(cards))
    if outcome is Outcome.UNREADABLE:
        detail = _misfit(told, [capture.payload for capture in captures if capture.failure is None], detail)
    return Interpretation(
        outcome=outcome,
        complete=outcome is Outcome.DEVICES and told.whole and not told.cut and not told.mixed,
        format=told.formats[0] if told.formats else "",
        detail=detail,
        tool_version=told.version,
        unknown_shape=sentences(*told.news),
        observations=tuple(observations),
        events=tuple(told.events),
    )


def _misfit(told: _Round, payloads: Sequence[bytes], detail: str) -> str:
    """What a person needs to know of texts that no parser fits: their version, and where they leave what is known."""
    if not told.version:
        told.version = seen.printed(payloads)
        told.news.append(seen.of_tool(told.version))
    return lacking(detail, seen.misfit(payloads))


def _named(cards: list[Thing], short: bool) -> list[Thing]:
    """Cards that can be told from each other: one without any name is a stump of another; in a round whose listing is cut an index names nobody."""
    weak = {NameKind.INDEX} if short else set()
    kept = [card for card in cards if {n.kind for n in card.names} - weak or any(card.parts(Level.DEVICE))]
    return kept if kept or short else cards


def _outcome(told: _Round, captures: Sequence[Capture], cards: bool) -> tuple[Outcome, str]:
    if told.events and not cards:
        return Outcome.DEVICES, ""
    if cards:
        mixed = "a number stands for several cards: this is no listing of one host" if told.mixed else ""
        return (Outcome.PARTIAL if told.cut else Outcome.DEVICES), mixed
    failed = next((c for c in captures if c.failure is not None), None)
    for capture in captures:
        text = decode(capture.payload[:HEAD]) + "\n" + decode(capture.stderr[:HEAD])
        for pattern, outcome in _FAILURES:
            match = pattern.search(text)
            if match:
                return outcome, _line(text, match.start())
    if failed is not None and failed.failure is not None:
        return failed.failure, failed.detail
    if told.empty:
        return Outcome.NO_DEVICES, "the listing is empty"
    return Outcome.UNREADABLE, "no card could be read"


def _line(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start : end if end >= 0 else len(text)].strip()[:200]


def _read(told: _Round, capture: Capture) -> None:
    name = recognise(capture.payload[:HEAD]) or capture.format
    reader = _READERS.get(name)
    if reader is None:
        return
    told.formats.append(name)
    told.cut = told.cut or capture.cut
    if not name.endswith("-json") and not _ended(capture.payload):
        told.cut = True
        capture = replace(capture, payload=_settled(capture.payload, name))
    reader(told, capture)


def _ended(payload: bytes) -> bool:
    """True when a line end or a closing frame stands at the end of the text: tools end their last line."""
    text = payload[-4096:].rstrip(b"\x00")
    return text[-1:] in (b"\n", b"\r", b"") or _CLOSED.search(decode(text).rpartition("\n")[2]) is not None


def _settled(payload: bytes, name: str) -> bytes:
    """The text with its last value struck out: where no line end follows it, it may go on."""
    text = decode(payload)
    start = text.rfind("\n") + 1
    last = text[start:].rstrip()
    if name == "sysfs-tree":
        head, colon, _ = last.partition(": ")
        if colon and "/" in head:
            return (text[:start] + f"{head}: !unreadable\n").encode()
        above = text[:start].rstrip("\n").rpartition("\n")[2]
        return (text[:start] + ("" if last[:1] in ("/", "=") and not above.startswith(last) else "!unreadable\n")).encode()
    if ": " in last:
        return (text[:start] + last[: last.rfind(": ") + 2] + "N/A\n").encode()
    kept, tail = last[:-200], last[-200:]
    return (text[:start] + kept + (_LAST_CELL if name.endswith("-csv") else _LAST_VALUE).sub("N/A", tail, count=1) + "\n").encode()


def _smi_json(told: _Round, capture: Capture) -> None:
    found = parse_smi.from_json(capture.payload)
    told.cut = told.cut or ((found is None or not found.records) and bool(_NEEDED & set(capture.locator)))
    if found is not None:
        _listing(told, capture, found, whole=True)


def _smi_text(told: _Round, capture: Capture) -> None:
    for reader in (parse_box.box, parse_tables.xgmi, parse_tables.topology, parse_tables.partition, parse_tables.monitor):
        found = reader(capture.payload)
        if found is not None:
            _listing(told, capture, found, whole=reader is parse_box.box)
            return
    found = parse_smi.from_text(capture.payload, cut=told.cut)
    first = decode(capture.payload[:400])
    _listing(told, capture, found, whole=not _PARTS.search(first))


def _listing(told: _Round, capture: Capture, found: Listing, *, whole: bool) -> None:
    for key, record in _keyed(told, found):
        card = told.gather.card(key)
        observe_smi.observe(card, record)
        observe_metric.observe(card, record)
    told.node.update(found.node)
    version = found.node.get("tool.version", "")
    told.version = told.version or version
    told.news.append(seen.news(version, replace(found, cut=found.cut or told.cut)))
    _mark(told, capture, whole=whole and bool(found.records) and not found.short, cut=found.cut)
    told.empty = told.empty or found.empty


def _keyed(told: _Round, found: Listing) -> Iterator[tuple[object, Mapping[str, Any]]]:
    """Each row with the key of its card.

    A number that comes again in one text with another address, UUID and serial is another host's card; after it, rows of that number without any of these are
    nobody's.
    """
    seen_of: dict[object, list[Mapping[NameKind, str]]] = {}
    for record in found.records:
        number = record["gpu"] if record.get("gpu") is not None else record.get("bdf")
        own = observe_smi.strong_names(record)
        before = seen_of.setdefault(number, [])
        place = next((n for n, other in enumerate(before) if not _other(own, other)), len(before))
        if not own and len(before) > 1:
            continue
        if place == len(before):
            before.append(own)
        elif own:
            before[place] = {**own, **before[place]}
        told.mixed = told.mixed or len(before) > 1
        yield (number if not place else (number, place)), record


def _other(own: Mapping[NameKind, str], other: Mapping[NameKind, str]) -> bool:
    """True when two rows have strong names of a kind in common and none of these agrees."""
    both = own.keys() & other.keys()
    return bool(both) and all(own[kind] != other[kind] for kind in both)


def _mark(told: _Round, capture: Capture, *, whole: bool, cut: bool) -> None:
    filtered = any(word in _FILTERS or word.startswith("--gpu=") for word in capture.locator)
    told.whole = told.whole or (whole and not filtered)
    told.cut = told.cut or cut


def _rocm(read: Callable[[bytes], parse_rocm.RocmListing | None]) -> Callable[[_Round, Capture], None]:
    def reader(told: _Round, capture: Capture) -> None:
        found = read(capture.payload)
        if found is None:
            return
        observe_rocm.observe(told.gather, found)
        _mark(told, capture, whole=bool(found.cards), cut=found.cut)
        told.empty = told.empty or not found.cards

    return reader


def _library(told: _Round, capture: Capture) -> None:
    found = from_library(capture.payload)
    if found is not None:
        _listing(told, capture, found, whole=True)


def _detector(told: _Round, capture: Capture) -> None:
    found = parse_detector.from_json(capture.payload)
    if found is not None:
        _listing(told, capture, found, whole=False)


def _tree(told: _Round, capture: Capture) -> None:
    found = files(capture.payload)
    observe_sysfs.observe(told.gather, found, cut=told.cut)
    whole = observe_kfd.observe(told.gather, found)
    _mark(told, capture, whole=bool(told.gather.cards), cut=not whole)
    told.empty = told.empty or bool(found)


def _firmware(told: _Round, capture: Capture) -> None:
    rows = decode(capture.payload).split("\n")
    found = observe_sysfs.components(rows)
    if found:
        told.gather.card("").value("firmware.components", found)
    _mark(told, capture, whole=False, cut=False)


def _exporter(told: _Round, capture: Capture) -> None:
    observe_exporter.observe(told.gather, capture.payload)
    if not told.gather.cards:
        told.news.append(seen.of_page(capture.payload))


def _kernel(told: _Round, capture: Capture) -> None:
    try:
        booted = datetime.fromisoformat(capture.context.get("booted_at", ""))
    except ValueError:
        booted = None
    for line in parse_kernel.parse(capture.payload, booted):
        subject = Subject(level=Level.CARD, names=names(pci_address=line.address))
        told.events.append(Event(subject=subject, code=line.code, text=line.text, at=line.at, repeats=line.repeats, kind=line.kind))
    told.empty = True


def _npu(told: _Round, capture: Capture) -> None:
    observe_npu.observe(told.gather, capture.payload)


_READERS: dict[str, Callable[[_Round, Capture], None]] = {
    "amdsmi-json": _library,
    "amd-smi-json": _smi_json,
    "amd-smi-text": _smi_text,
    "rocm-smi-json": _rocm(parse_rocm.from_json),
    "rocm-smi-csv": _rocm(parse_rocm.from_csv),
    "rocm-smi-text": _rocm(parse_rocm.from_text),
    "gpustack-detect-json": _detector,
    "sysfs-tree": _tree,
    "amdgpu-firmware-info": _firmware,
    "prometheus-text": _exporter,
    "xrt-smi-text": _npu,
    "kernel-log": _kernel,
}
