# SPDX-License-Identifier: Apache-2.0
"""Records this machine: every source once, written as a folder that replays, with what identifies the machine and its users replaced."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from muster.collect.collector import Round
from muster.collect.privacy import process_names, redacted
from muster.domain.model.errors import Conflict, Unavailable
from muster.domain.model.source import Capture
from muster.readers.recorded import MACHINE, RecordedNode
from muster.readers.recording import Recorder
from muster.readers.redact import Redactor
from muster.wiring.survey import survey


def record(folder: Path, about: str, outside: Sequence[str] = (), *, root: str = "/", keep_names: bool = False, heard: Callable[[Round], None]) -> int:
    """Writes the machine to ``folder`` and gives the number of captures.

    Raises Conflict when it holds a machine already, Unavailable when it cannot be written.
    """
    if (folder / MACHINE).exists():
        raise Conflict(f"{folder} holds a recorded machine already", hint="name another folder")
    found = survey(None, outside, root=root, every=True, streams=True, heard=heard)
    node = found.eyes.node
    redactor = None if keep_names else Redactor(secrets.token_bytes(16), [node.name])
    recorder = Recorder(about, RecordedNode(name=node.name, machine_id=node.machine_id, system=node.system), redactor)
    captures = [capture for each in found.rounds if found.here(each) for capture in (each.captures if keep_names else _nameless(each))]
    for capture in captures:
        recorder.keep(capture)
    try:
        recorder.write(folder)
    except OSError as error:
        raise Unavailable(f"{folder}: {error.strerror}", hint="name a folder that can be written") from error
    return len(captures)


def _nameless(each: Round) -> list[Capture]:
    names = frozenset[str]().union(*(process_names(routed.told) for routed in each.routed))
    log = any(routed.told.events for routed in each.routed)
    return [redacted(capture, names, log=log) for capture in each.captures]
