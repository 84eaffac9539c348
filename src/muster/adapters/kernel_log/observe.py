# SPDX-License-Identifier: Apache-2.0
"""Log lines to events. The same thing said again within a capture is one event that counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from muster.adapters.kernel_log.parse_aer import AerParser
from muster.adapters.kernel_log.parse_lines import Said, parse_line
from muster.adapters.kernel_log.recognise import FORMAT
from muster.domain.model.attributes import Level
from muster.domain.model.names import names
from muster.domain.model.observation import Event, Interpretation, Subject
from muster.domain.model.source import Capture, Outcome
from muster.formats.kernel_log import Entry, entries
from muster.formats.shape import first_misfit, lacking
from muster.spi.adapter import Models

BOOTED = "booted_at"
"""Key of a capture's context: when the boot began, by which seconds since boot are dated."""

_TEXT_LIMIT = 1000
_VARYING = re.compile(r"0x[0-9a-f]+|\d+", re.IGNORECASE)
_PID = re.compile(r":\d+(?= (?:is )?blocked)|for more than \d+ seconds|\bpid[=: ]+\d+|\bseq[=: ]+\d+|\[[^\]]*:\d+\]|CPU#\d+|\d+s!")


def interpret(captures: Sequence[Capture], models: Models) -> Interpretation:
    """Events of the kernel's own sentences in the captures of one round; a log never lists cards."""
    del models
    told: list[Event] = []
    read = 0
    for capture in captures:
        found = entries(capture.payload)
        read += len(found)
        told.extend(_events(found, _time(capture.context.get(BOOTED, ""))))
    if not read and any(capture.payload for capture in captures):
        odd = (first_misfit(capture.payload) for capture in captures)
        return Interpretation(outcome=Outcome.UNREADABLE, format=FORMAT, detail=lacking("no line of a kernel log", next(filter(None, odd), "")))
    return Interpretation(outcome=Outcome.DEVICES, format=FORMAT, events=tuple(told))


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _events(lines: Iterable[Entry], booted: datetime | None) -> list[Event]:
    parser = AerParser()
    singles: list[tuple[Entry, Event]] = []
    for entry in lines:
        said = None if parser.take(entry) else parse_line(entry)
        if said is not None:
            singles.append((entry, _said(said, entry, booted)))
    found = [*singles, *_reports(parser, booted)]
    order = {id(entry): place for place, entry in enumerate(lines)}
    found.sort(key=lambda pair: order.get(id(pair[0]), 0))
    return _folded(event for _, event in found)


def _said(said: Said, entry: Entry, booted: datetime | None) -> Event:
    if said.address:
        subject = _card(said.address)
    elif said.slot:
        subject = Subject(level=Level.CARD, names=names(chassis_slot=said.slot))
    else:
        subject = Subject(level=Level.NODE)
    return Event(subject=subject, kind=said.kind, code=said.code, text=said.text[:_TEXT_LIMIT], at=entry.dated(booted))


def _reports(parser: AerParser, booted: datetime | None) -> Iterator[tuple[Entry, Event]]:
    for error in parser.errors:
        text = error.text[:_TEXT_LIMIT]
        yield error.entry, Event(subject=_card(error.address), kind="aer", code=error.severity, text=text, at=error.entry.dated(booted))
    for note in parser.notes:
        text = note.entry.text.strip()[:_TEXT_LIMIT]
        yield note.entry, Event(subject=_card(note.address), kind="aer", code=note.code, text=text, at=note.entry.dated(booted))


def _card(address: str) -> Subject:
    return Subject(level=Level.CARD, names=names(pci_address=address))


def _folded(events: Iterable[Event]) -> list[Event]:
    """Events in order of their first time, each with how often it was said. What varies by process, sequence or time does not make two of one."""
    folded: dict[tuple[object, ...], Event] = {}
    for event in events:
        key = (event.subject, event.kind, event.code, _form(event))
        first = folded.get(key)
        folded[key] = event if first is None else replace(first, repeats=first.repeats + 1)
    return list(folded.values())


def _form(event: Event) -> str:
    """The text without what varies: in a sentence about a task its number, in one about memory all numbers."""
    return _PID.sub("#", event.text) if event.kind in ("hung_task", "aer", "pci") else _VARYING.sub("#", event.text)
