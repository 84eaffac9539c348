# SPDX-License-Identifier: Apache-2.0
"""Records a machine: a reader that hands on what a real one brought and keeps it, and the folder it is written to (see `recorded`)."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from muster.domain.model.errors import Conflict
from muster.domain.model.source import Capture, Source
from muster.readers.recorded import MACHINE, RecordedNode
from muster.readers.redact import Redactor
from muster.spi.readers import Reader

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.]+")
_SUFFIXES = {"json": ".json", "xml": ".xml", "csv": ".csv", "yaml": ".yaml"}


class RecordingReader:
    """Reads through another reader, and keeps what it brought."""

    def __init__(self, inner: Reader, keep: Callable[[Capture], None]) -> None:
        self._inner = inner
        self._keep = keep

    def read(self, source: Source, deadline: timedelta) -> Iterable[Capture]:
        """What the inner reader brings."""
        for capture in self._inner.read(source, deadline):
            self._keep(capture)
            yield capture


class Recorder:
    """Keeps captures until they are written. With a redactor nothing that identifies the machine is written; without one all of it is."""

    def __init__(self, about: str, node: RecordedNode, redactor: Redactor | None) -> None:
        self._about = about
        self._node = node
        self._redactor = redactor
        self._lock = threading.Lock()
        self._captures: list[Capture] = []

    def keep(self, capture: Capture) -> None:
        """Adds a capture to the recording."""
        with self._lock:
            self._captures.append(capture)

    def write(self, folder: Path) -> None:
        """Writes ``machine.toml`` and the payloads. Raises `Conflict` when the folder holds a machine already."""
        if (folder / MACHINE).exists():
            raise Conflict(f"{folder} holds a recorded machine already", hint="name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        with self._lock:
            node, captures = self._told(tuple(self._captures))
        tables = [_line("about", self._about), "", "[node]", *(_line(key, value) for key, value in node.items())]
        for name, capture in zip(_names(captures), captures, strict=True):
            if capture.payload:
                (folder / name).write_bytes(capture.payload)
            tables += ["", "[[captures]]", *_fields(capture, name if capture.payload else "")]
        (folder / MACHINE).write_text("\n".join(tables) + "\n", encoding="utf-8")

    def _told(self, captures: tuple[Capture, ...]) -> tuple[dict[str, str], tuple[Capture, ...]]:
        node = {"name": self._node.name, "machine_id": self._node.machine_id, "system": self._node.system}
        redactor = self._redactor
        if redactor is None:
            return node, captures
        for capture in captures:
            redactor.learn(capture.payload)
            redactor.learn(capture.stderr)
        redactor.learn("".join(f"{key}: {value}\n" for key, value in node.items() if key == "machine_id").encode())
        redactor.learn(f"hostname: {node['name']}\n".encode())
        return {key: redactor.name(value) for key, value in node.items()}, tuple(_redacted(capture, redactor) for capture in captures)


def _redacted(capture: Capture, redactor: Redactor) -> Capture:
    return replace(
        capture,
        locator=tuple(redactor.text(part) for part in capture.locator),
        payload=redactor.apply(capture.payload),
        stderr=redactor.apply(capture.stderr),
        detail=redactor.text(capture.detail),
        context={key: redactor.name(text) for key, text in capture.context.items()},
    )


def _names(captures: Iterable[Capture]) -> Iterator[str]:
    """A file name for each payload: source and format, numbered where they repeat."""
    seen: dict[str, int] = {}
    for capture in captures:
        stem = _NOT_IN_NAMES.sub("-", f"{capture.source}.{capture.format}").strip("-.") or "capture"
        seen[stem] = seen.get(stem, 0) + 1
        suffix = next((suffix for word, suffix in _SUFFIXES.items() if capture.format.endswith(word)), ".txt")
        yield f"{stem}{f'-{seen[stem]}' if seen[stem] > 1 else ''}{suffix}"


def _fields(capture: Capture, file: str) -> list[str]:
    known: Mapping[str, Any] = {
        "source": capture.source,
        "locator": list(capture.locator),
        "format": capture.format,
        "file": file,
        "taken_at": capture.taken_at.isoformat() if capture.taken_at else "",
        "duration_s": round(capture.duration.total_seconds(), 6),
        "exit_status": capture.exit_status,
        "stderr": capture.stderr.decode("utf-8", "replace"),
        "cut": capture.cut,
        "failure": capture.failure.value if capture.failure else "",
        "detail": capture.detail,
        "context": dict(capture.context),
    }
    return [_line(key, value) for key, value in known.items() if value or key in ("source", "locator", "format") or (key == "exit_status" and value == 0)]


def _line(key: str, value: object) -> str:
    return f"{key} = {_value(value)}"


def _value(value: object) -> str:
    """A value as TOML writes it: texts as JSON does (TOML reads the same escapes), with DEL escaped."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_value(str(key))} = {_value(text)}" for key, text in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(part) for part in value) + "]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return json.dumps(str(value).encode("utf-8", "replace").decode(), ensure_ascii=False).replace("\x7f", "\\u007F")
