# SPDX-License-Identifier: Apache-2.0
"""Hands an adapter and its recorded machines to the conformance suite: by name, or by the folder it lies in, installed or not."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from muster.domain.model.errors import InputError, NotFound
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, SourceId
from muster.readers.recorded import EXPECTED, load_machine
from muster.services.conformance import Machine, Result
from muster.services.conformance import check as promises
from muster.spi.adapter import HEAD
from muster.wiring.adapters import GROUP, TREE, FolderAdapter, adapter, adapters, folders, known_vendors, load_folder
from muster.wiring.offline import document


def check(name: str) -> tuple[FolderAdapter, list[Result]]:
    """The adapter called ``name``, or in the folder ``name``, and how it stands with each promise. Raises NotFound and InputError."""
    return check_adapter(find(name))


def check_adapter(found: FolderAdapter) -> tuple[FolderAdapter, list[Result]]:
    """How an adapter that is loaded stands with each promise."""
    machines = [_machine(found, folder) for folder in machine_folders(found)]

    def told(interpretation: Interpretation, form: str) -> dict[str, Any]:
        return document(found.manifest.name, interpretation, form)

    return found, promises(found, machines, told, found.models)


def find(name: str) -> FolderAdapter:
    """The adapter ``name``: of the tree, installed, or in a folder of that path. Raises NotFound with the names there are."""
    if name in folders() or name in outside():
        return adapter(name)
    folder = _folder(Path(name))
    if folder is None:
        there = ", ".join((*folders(), *outside()))
        raise NotFound(f"no adapter {name!r}, and no folder of that name with a manifest.toml", hint=f"adapters here: {there}")
    if folder.parent == TREE:
        return load_folder(folder, f"muster.adapters.{folder.name}")
    return load_from(folder)


def outside() -> tuple[str, ...]:
    """Names of adapters that installed packages offer."""
    return tuple(sorted({entry.name for entry in importlib.metadata.entry_points(group=GROUP)}))


def _folder(path: Path) -> Path | None:
    """The folder with the manifest: ``path`` itself, or the package inside a project of its own."""
    if not path.is_dir():
        return None
    found = [path / "manifest.toml", *sorted(path.glob("*/manifest.toml")), *sorted(path.glob("src/*/manifest.toml"))]
    return next((file.parent.resolve() for file in found if file.is_file()), None)


def load_from(folder: Path) -> FolderAdapter:
    """The adapter whose package is ``folder``, imported from where it lies. Raises InputError."""
    if not folder.name.isidentifier():
        raise InputError(f"{folder.name!r} cannot be imported", hint="the folder with the manifest is a Python package: letters, digits and underscores")
    sys.path.insert(0, str(folder.parent))
    try:
        return load_folder(folder, folder.name)
    except (ImportError, SyntaxError) as wrong:
        raise InputError(f"{folder}: cannot be imported: {wrong}") from wrong


def machine_folders(found: FolderAdapter) -> list[Path]:
    """Folders of the recorded machines."""
    return sorted(file.parent for file in (found.folder / "machines").glob("*/machine.toml"))


def _machine(found: FolderAdapter, folder: Path) -> Machine:
    own = {source.id for source in found.sources}
    rounds: dict[SourceId, list[Capture]] = defaultdict(list)
    vendors = ",".join(sorted({*known_vendors(adapters()), *found.manifest.pci_vendors}))
    for capture in load_machine(folder).captures:
        rounds[capture.source].append(replace(capture, context={**capture.context, "known_vendors": vendors}))
    mine = {source: told for source, told in rounds.items() if source in own or _shared(found, told)}
    return Machine(name=folder.name, rounds=mine, expected=_expected(folder / EXPECTED, found.manifest.name))


def _shared(found: FolderAdapter, told: Sequence[Capture]) -> bool:
    """A kernel log is read by one adapter and understood by several."""
    return bool(found.manifest.pci_vendors) and told[0].format == "kernel-log" and found.recognise(told[0].payload[:HEAD]) is not None


def _expected(file: Path, name: str) -> list[Mapping[str, Any]] | None:
    if not file.is_file():
        return None
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as wrong:
        raise InputError(f"{file}: {wrong}", hint="it holds the output of `muster interpret DIR --by-source -o json`") from wrong
    return [each for each in (kept if isinstance(kept, list) else [kept]) if isinstance(each, dict) and each.get("adapter") == name]
