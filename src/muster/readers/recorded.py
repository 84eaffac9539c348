# SPDX-License-Identifier: Apache-2.0
"""Recorded machines: a folder with ``machine.toml`` and payload files, loaded whole, and a reader that answers from it as the live machine would.

A folder without ``machine.toml`` is taken as a pile of captures: each file is one, its format still to be recognised.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from muster.domain.model.errors import InputError, NotFound
from muster.domain.model.source import CAPTURE_LIMIT, Capture, Outcome, Read, ReaderKind, Source, SourceId

MACHINE = "machine.toml"
EXPECTED = "expected.json"
FILE_CONTEXT = "file"
"""Key of `Capture.context` under which the name of the payload file stands."""

_NOT_CAPTURES = frozenset({MACHINE, EXPECTED, "README.md"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedNode:
    """The node a machine was recorded on; empty where the recording does not say."""

    name: str = ""
    machine_id: str = ""
    system: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMachine:
    """All captures of one recorded node, in the order they were read. ``path`` is the folder."""

    path: Path
    about: str = ""
    node: RecordedNode = field(default_factory=RecordedNode)
    captures: tuple[Capture, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)


def load_machine(path: Path) -> RecordedMachine:
    """The machine in folder ``path``.

    Raises `NotFound` when there is no such folder, `InputError` when its ``machine.toml`` or a payload cannot be used; the message names the file and the key.
    """
    if not path.is_dir():
        raise NotFound(f"{path} is no folder", hint="give the folder of a recorded machine")
    if not (path / MACHINE).is_file():
        return RecordedMachine(path=path, captures=tuple(_loose(file) for file in _files(path)))
    table = _toml(path / MACHINE)
    context = _texts(table.get("context"))
    node = {key: str(value) for key, value in _table(table, "node", path).items() if key in ("name", "machine_id", "system")}
    entries = table.get("captures", [])
    if not isinstance(entries, list):
        raise InputError(f"{path / MACHINE}: captures is not a list of tables")
    captures = tuple(_capture(path, place, entry, context) for place, entry in enumerate(entries))
    return RecordedMachine(path=path, about=str(table.get("about", "")), node=RecordedNode(**node), captures=captures, context=context)


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{file}: {error}") from error


def _table(table: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"{path / MACHINE}: {key} is not a table")
    return value


def _texts(value: object) -> dict[str, str]:
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, dict) else {}


def _files(path: Path) -> Iterable[Path]:
    found = (file for file in path.iterdir() if file.is_file() and not file.name.startswith(".") and file.name not in _NOT_CAPTURES)
    return sorted(found, key=lambda file: file.name)


def _loose(file: Path) -> Capture:
    payload = _payload(file)
    cut = len(payload) > CAPTURE_LIMIT
    return Capture(source=SourceId(""), locator=(file.name,), format="", payload=payload[:CAPTURE_LIMIT], cut=cut, context={FILE_CONTEXT: file.name})


def _payload(file: Path) -> bytes:
    try:
        if file.exists() and not file.is_file():
            raise InputError(f"{file} is no regular file")
        with file.open("rb") as opened:
            return opened.read(CAPTURE_LIMIT + 1)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error


def _capture(path: Path, place: int, entry: object, context: Mapping[str, str]) -> Capture:
    where = f"{path / MACHINE}: captures[{place}]"
    if not isinstance(entry, dict):
        raise InputError(f"{where} is not a table")
    name = str(entry.get("file", ""))
    if name and (path / name).resolve().parent != path.resolve() and path.resolve() not in (path / name).resolve().parents:
        raise InputError(f"{where}: file {name} lies outside the folder")
    payload = _payload(path / name) if name else b""
    known = {FILE_CONTEXT: name} if name else {}
    return Capture(
        source=SourceId(str(entry.get("source", ""))),
        locator=_locator(entry.get("locator", []), where),
        format=str(entry.get("format", "")),
        taken_at=_time(entry.get("taken_at"), where),
        duration=timedelta(seconds=_number(entry.get("duration_s", 0), where, "duration_s")),
        exit_status=None if "exit_status" not in entry else int(_number(entry["exit_status"], where, "exit_status")),
        stderr=str(entry.get("stderr", "")).encode(),
        cut=bool(entry.get("cut", False)) or len(payload) > CAPTURE_LIMIT,
        payload=payload[:CAPTURE_LIMIT],
        failure=_outcome(entry.get("failure"), where),
        detail=str(entry.get("detail", "")),
        context={**known, **context, **_texts(entry.get("context"))},
    )


def _locator(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise InputError(f"{where}: locator is not a list of texts")
    return tuple(str(part) for part in value)


def _number(value: object, where: str, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{where}: {key} is not a number")
    return value


def _time(value: object, where: str) -> datetime | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise InputError(f"{where}: taken_at: {error}") from error
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InputError(f"{where}: taken_at is not a time with its offset")
    return value


def _outcome(value: object, where: str) -> Outcome | None:
    if value is None or value == "":
        return None
    try:
        return Outcome(str(value))
    except ValueError as error:
        raise InputError(f"{where}: failure {value!r} is none of {', '.join(Outcome)}") from error


class RecordedReader:
    """Replays a machine for any source: what was recorded under the same locator, else under the same source and format, else that the thing is not there."""

    def __init__(self, machine: RecordedMachine) -> None:
        self._machine = machine

    def read(self, source: Source, deadline: timedelta) -> Iterable[Capture]:
        """One capture per read of the source, in order, and of a repeated one all that were recorded; the deadline plays no part."""
        del deadline
        for read in source.reads:
            yield from self._of(source, read)

    def _of(self, source: Source, read: Read) -> list[Capture]:
        mine = [capture for capture in self._machine.captures if capture.source == source.id and capture.format == read.format]
        exact = [capture for capture in mine if read.answered_by(capture.locator)]
        if read.each is not None:
            return exact
        others = [other for other in source.reads if other is not read]
        return exact or [c for c in mine if not any(other.answered_by(c.locator) for other in others)] or [_nothing(source, read)]


_WHEN_NOT_RECORDED: Mapping[ReaderKind, Outcome | None] = {
    ReaderKind.FILES: None,
    ReaderKind.TOOL: Outcome.TOOL_MISSING,
    ReaderKind.LIBRARY: Outcome.TOOL_MISSING,
    ReaderKind.HTTP: Outcome.UNREACHABLE,
    ReaderKind.STREAM: Outcome.UNREACHABLE,
}


def _nothing(source: Source, read: Read) -> Capture:
    failure = _WHEN_NOT_RECORDED[source.reader]
    return Capture(source=source.id, locator=read.locator, format=read.format, failure=failure, detail="not recorded on this machine")
