# SPDX-License-Identifier: Apache-2.0
"""What adapters make of captured output, without a server: `muster interpret`, `muster scan --machine`, and the conformance suite stand on this."""

from __future__ import annotations

import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from muster.domain.decide.fold import FoldedCard, Part, fold, ids
from muster.domain.model.attributes import ATTRIBUTES, Level
from muster.domain.model.errors import InputError
from muster.domain.model.observation import Interpretation, Role
from muster.domain.model.reading import Known, Reading
from muster.domain.model.source import CAPTURE_LIMIT, Capture, Outcome, SourceId
from muster.formats.shape import first_misfit, lacking, printed_version
from muster.formats.text import decode
from muster.readers.recorded import load_machine
from muster.spi.adapter import HEAD, Adapter
from muster.wiring.adapters import adapter, adapters, claims, known_vendors, unread

OFFLINE = SourceId("offline")


def capture_file(path: Path, format_: str = "") -> Capture:
    """A file as the capture it once was. Raises InputError when it cannot be read, or is a pipe or device, which would be waited for without end."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path} is no regular file", hint="name a file with a tool's output, or a folder of them; `COMMAND > FILE` makes one")
        with path.open("rb") as stream:
            payload = stream.read(CAPTURE_LIMIT + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", hint="name a file with a tool's output, or a folder of them") from error
    cut = len(payload) > CAPTURE_LIMIT
    return Capture(source=OFFLINE, locator=(path.name,), format=format_, payload=payload[:CAPTURE_LIMIT], cut=cut, context=_context())


def _context() -> dict[str, str]:
    return {"known_vendors": ",".join(known_vendors(adapters()))}


def interpret_file(path: Path, name: str | None, format_: str | None) -> dict[str, Any]:
    """The document of one file: with the adapter and format that are named, or the first that recognises it."""
    capture = capture_file(path, format_ or "")
    chosen: Adapter | None = adapter(name) if name else None
    if format_ is None:
        found = claims([chosen] if chosen else adapters(), capture.payload[:HEAD])
        if found:
            answers = [(each, form, each.interpret([replace(capture, format=form)])) for each, form in found]
            best = max(answers, key=lambda a: (len(a[2].observations), len(a[2].events)))
            return document(best[0].manifest.name, best[2], best[1])
        return document(name or "", _nothing_fits([capture]), "")
    able = [chosen] if chosen else [each for each in adapters() if format_ in each.manifest.formats]
    if not able:
        raise InputError(f"no adapter knows the format {format_!r}", hint="`muster adapter list -o wide` shows the formats")
    claiming = [each for each in able if each.recognise(capture.payload[:HEAD]) == format_]
    name, told = _fullest([(each.manifest.name, each.interpret([capture])) for each in claiming or able])
    return document(name, told, format_)


def _fullest(answers: Sequence[tuple[str, Interpretation]]) -> tuple[str, Interpretation]:
    """Of several adapters' answers on one text the one that read the most; one that could not read it only where all could not."""
    return max(answers, key=lambda a: (a[1].outcome is not Outcome.UNREADABLE, len(a[1].observations), len(a[1].events)))


def interpret_folder(path: Path, name: str | None) -> list[dict[str, Any]]:
    """One document per adapter and source that has something to say of a recorded machine, or of a folder of one round's captures."""
    found = [document(each.manifest.name, told, told.format) for each, _source, told in read_folder(path, name)]
    if found or (path / "machine.toml").exists():
        return found
    files = [capture_file(file) for file in sorted(path.rglob("*")) if file.is_file()]
    if not files:
        raise InputError(f"{path}: there is no file in the folder", hint="name a recorded machine, or a folder of a tool's outputs")
    return [document(name or "", _nothing_fits(files), "")]


def read_folder(path: Path, name: str | None) -> Iterator[tuple[Adapter, SourceId, Interpretation]]:
    """Adapter, source and interpretation for each round in the folder; sources of a chain that stood by are not there."""
    chosen = [adapter(name)] if name else list(adapters())
    if (path / "machine.toml").exists():
        yield from _machine(path, chosen)
        return
    rounds: dict[str, list[Capture]] = defaultdict(list)
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        capture = capture_file(file)
        for each, form in claims(chosen, capture.payload[:HEAD]):
            rounds[each.manifest.name].append(replace(capture, format=form))
    for each in chosen:
        if each.manifest.name in rounds:
            yield each, OFFLINE, each.interpret(rounds[each.manifest.name])


def _machine(path: Path, chosen: Sequence[Adapter]) -> Iterator[tuple[Adapter, SourceId, Interpretation]]:
    captures = load_machine(path).captures
    by: dict[SourceId, list[Capture]] = defaultdict(list)
    for capture in captures:
        by[capture.source].append(replace(capture, context={**capture.context, **_context()}))
    for each in chosen:
        own = {source.id for source in each.sources}
        for source, told in by.items():
            if source in own or (each.manifest.pci_vendors and told[0].format == "kernel-log" and each.recognise(told[0].payload[:HEAD])):
                yield each, source, each.interpret(told)


def _nothing_fits(captures: Sequence[Capture]) -> Interpretation:
    """What is said of files that no adapter recognises: the version one of them prints, and the first line of the first that has words."""
    odd = next((odd for capture in captures if (odd := first_misfit(capture.payload))), "")
    what = "no format fits" if any(capture.payload.strip() for capture in captures) else "nothing is in it"
    version = next((told for capture in captures if (told := printed_version(decode(capture.payload[:HEAD])))), "")
    return replace(unread("", lacking(what, odd)), tool_version=version)


def why_unreadable(told: Mapping[str, Any]) -> str:
    """Why a document could not be read, for a person: the tool's version as printed, the first that did not fit, and the formats that are known."""
    own = [each for each in adapters() if each.manifest.name == told["adapter"]]
    formats = (f"{each.manifest.name}: {', '.join(sorted(each.manifest.formats))}" for each in own or adapters())
    version = f"tool version {told['tool_version']}" if told.get("tool_version") else "no tool version printed"
    return f"unreadable ({version}): {told.get('detail') or 'nothing fits'}; formats known: {'; '.join(formats)}"


def document(name: str, told: Interpretation, form: str) -> dict[str, Any]:
    """An interpretation as the JSON document of `muster interpret`."""
    cards = fold(told.observations)
    body: dict[str, Any] = {
        "adapter": name,
        "format": told.format or form,
        "outcome": told.outcome.value,
        "complete": told.complete,
        "node": {"readings": _node(told)},
        "cards": [_card(card) for card in cards],
    }
    if told.events:
        body["events"] = [
            {
                "ids": ids(e.subject.names),
                "level": e.subject.level.value,
                "kind": e.kind,
                "code": e.code,
                "text": e.text,
                "at": e.at.isoformat() if e.at else None,
                "repeats": e.repeats,
            }
            for e in told.events
        ]
    body.update({key: text for key in ("detail", "tool_version", "unknown_shape") if (text := getattr(told, key))})
    if told.counts:
        body["counts"] = {level.value: count for level, count in told.counts.items()}
    return body


def _node(told: Interpretation) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for observation in told.observations:
        if observation.subject.level in (Level.NODE, Level.SERVER):
            merged.update(readings(observation.readings))
    return merged


def _card(card: FoldedCard) -> dict[str, Any]:
    top = [p for p in card.partitions if p.under is None]
    body: dict[str, Any] = {
        "ids": ids(card.names),
        "readings": readings(card.readings),
        "devices": [{**_part(d), "partitions": [_part(p) for p in card.partitions if p.under == d.ordinal]} for d in card.devices],
        "partitions": [_part(p) for p in top],
        "processes": processes(card.readings),
        "vendor": dict(card.vendor),
    }
    if card.role is Role.DISPLAY:
        body["role"] = card.role.value
    return body


def _part(part: Part) -> dict[str, Any]:
    return {"ids": ids(part.names), "readings": readings(part.readings), "processes": processes(part.readings), "vendor": dict(part.vendor)}


def readings(these: Any) -> dict[str, Any]:
    """Readings as ``{key: {"value", "unit"}}`` or ``{key: {"absent", "detail"}}``; processes stand apart."""
    return {key: reading(key, each) for key, each in these.items() if key != "processes"}


def reading(key: str, each: Reading) -> dict[str, Any]:
    """One reading in the form of the API."""
    if isinstance(each, Known):
        entry = ATTRIBUTES.get(key)
        value = sorted(each.value) if isinstance(each.value, set | frozenset) else each.value
        return {"value": value, "unit": entry.unit.value if entry else "text"}
    return {"absent": each.why.value, "detail": each.detail}


def processes(these: Any) -> list[Any]:
    """The process rows of a card or partition."""
    found = these.get("processes")
    return list(found.value) if isinstance(found, Known) else []


def unreadable(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those documents that could not be read."""
    return [each for each in documents if each["outcome"] == Outcome.UNREADABLE]
