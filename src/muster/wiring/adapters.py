# SPDX-License-Identifier: Apache-2.0
"""Finds adapters by their manifests and loads them: the ones in the tree, and those from outside that the configuration names."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from muster.domain.model.errors import InputError, NotFound
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, Channel, Each, Outcome, Read, ReaderKind, Source, SourceId, WitnessClass
from muster.spi.adapter import HEAD, Adapter, Interpret, Manifest, Model, Models, Recognise

TREE = Path(__file__).resolve().parent.parent / "adapters"
GROUP = "muster.adapters"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderAdapter:
    """An adapter made of a folder: its three tables and its two functions."""

    manifest: Manifest
    sources: Sequence[Source]
    models: Models
    folder: Path
    recognise_head: Recognise
    interpret_captures: Interpret

    def recognise(self, head: bytes) -> str | None:
        """Which of the adapter's formats this is."""
        return self.recognise_head(head[:HEAD])

    def interpret(self, captures: Sequence[Capture]) -> Interpretation:
        """What the captures say; a read that failed in the reader is told as that failure."""
        failed = [c.failure for c in captures if c.failure is not None]
        if captures and len(failed) == len(captures):
            return Interpretation(outcome=failed[0], format=captures[0].format, detail=captures[0].detail)
        return self.interpret_captures([c for c in captures if c.failure is None], self.models)


def load_folder(folder: Path, package: str) -> FolderAdapter:
    """The adapter in ``folder``, whose code is the importable ``package``.

    Raises InputError when a table or function is missing or wrong, naming it.
    """
    manifest = read_manifest(folder)
    module = importlib.import_module(package)
    for function in ("recognise", "interpret"):
        if not callable(getattr(module, function, None)):
            raise InputError(f"adapter {manifest.name}: {package} has no function {function}", hint="see CONTRIBUTING.md, How to add a vendor")
    return FolderAdapter(
        manifest=manifest,
        sources=read_sources(folder, manifest.name),
        models=read_models(folder),
        folder=folder,
        recognise_head=module.recognise,
        interpret_captures=module.interpret,
    )


@cache
def folders() -> Mapping[str, tuple[Path, str]]:
    """Name to folder and package of every adapter in the tree."""
    return {path.parent.name: (path.parent, f"muster.adapters.{path.parent.name}") for path in sorted(TREE.glob("*/manifest.toml"))}


@cache
def adapter(name: str) -> FolderAdapter:
    """The adapter called ``name`` from the tree or from an installed package. Raises NotFound with the names there are."""
    if name in folders():
        return load_folder(*folders()[name])
    from importlib.metadata import entry_points  # here, because it takes more memory than all adapters of the tree

    for entry in entry_points(group=GROUP):
        if entry.name == name:
            module = entry.load()
            return load_folder(Path(module.__file__).resolve().parent, module.__name__)
    raise NotFound(f"no adapter {name!r}", hint=f"adapters here: {', '.join(folders())}")


def adapters(outside: Iterable[str] | None = None) -> tuple[FolderAdapter, ...]:
    """All adapters of the tree, then those from outside that the configuration names (``MUSTER_ADAPTERS``, words apart by blanks, unless given)."""
    outside = os.environ.get("MUSTER_ADAPTERS", "").split() if outside is None else outside
    return tuple(adapter(name) for name in (*folders(), *(n for n in outside if n not in folders())))


def read_manifest(folder: Path) -> Manifest:
    """`manifest.toml` of a folder."""
    table = _toml(folder / "manifest.toml")
    try:
        return Manifest(
            name=table["name"],
            title=table["title"],
            tier=table["tier"],
            owners=tuple(table.get("owners", ())),
            pci_vendors=tuple(table.get("pci_vendors", ())),
            words=tuple(table.get("words", ())),
            formats=dict(table.get("formats", {})),
            later=tuple(table.get("later", ())),
        )
    except KeyError as missing:
        raise InputError(f"{folder / 'manifest.toml'}: no {missing}", hint="name, title and tier are needed") from missing


def read_sources(folder: Path, name: str) -> tuple[Source, ...]:
    """`sources.toml` of a folder; an adapter that only reads what others capture has none."""
    path = folder / "sources.toml"
    rows = _toml(path).get("source", []) if path.exists() else []
    try:
        return tuple(_source(row, name) for row in rows)
    except (KeyError, ValueError) as wrong:
        raise InputError(f"{path}: {wrong}", hint="see docs/reference/adapters.md for the keys of a source") from wrong


def _source(row: Mapping[str, Any], name: str) -> Source:
    return Source(
        id=SourceId(row["id"]),
        adapter=name,
        reader=ReaderKind(row["reader"]),
        reads=_reads(row["reads"]),
        channel=Channel(row.get("channel", Channel.IN_BAND)),
        witness=WitnessClass(row.get("witness", WitnessClass.DRIVER)),
        cadence=timedelta(seconds=row.get("cadence_s", 60)),
        deadline=timedelta(seconds=row.get("deadline_s", 20)),
        provides=tuple(row.get("provides", ())),
        after=SourceId(row["after"]) if "after" in row else None,
        cost=row.get("cost", ""),
        search=tuple(row.get("search", ())),
        install=row.get("install", ""),
    )


def _reads(rows: Sequence[Mapping[str, Any]]) -> tuple[Read, ...]:
    """The reads of a source; those that are repeated stand last, and each names the format of one before it."""
    found: list[Read] = []
    for row in rows:
        each = Each(of=row["each"]["of"], find=row["each"]["find"]) if "each" in row else None
        if each is not None and each.of not in {read.format for read in found}:
            raise ValueError(f"each: no earlier read brings {each.of!r}")
        if each is None and any(read.each for read in found):
            raise ValueError("reads with each stand last")
        found.append(Read(locator=tuple(row["locator"]), format=row["format"], each=each))
    return tuple(found)


def read_models(folder: Path) -> dict[str, Model]:
    """`models.toml` of a folder, by lower-case key."""
    path = folder / "models.toml"
    rows = _toml(path).get("model", []) if path.exists() else []
    return {
        row["key"].lower(): Model(key=row["key"].lower(), name=row["name"], facts=row.get("facts", {}), source=row["source"], confidence=row["confidence"])
        for row in rows
    }


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as missing:
        raise InputError(f"{path} is missing") from missing
    except tomllib.TOMLDecodeError as wrong:
        raise InputError(f"{path}: {wrong}") from wrong


def known_vendors(these: Iterable[Adapter]) -> tuple[str, ...]:
    """PCI vendor ids that some adapter speaks for."""
    return tuple(sorted({vendor for each in these for vendor in each.manifest.pci_vendors}))


def claims(these: Iterable[Adapter], head: bytes) -> list[tuple[Adapter, str]]:
    """Adapters that know this text, each with the format it sees in it; vendors before the vendor-neutral ones."""
    found = [(each, form) for each in these if (form := each.recognise(head[:HEAD])) is not None]
    return sorted(found, key=lambda pair: not pair[0].manifest.pci_vendors)


def unread(format_: str, detail: str) -> Interpretation:
    """What is said of a text that no adapter knows."""
    return Interpretation(outcome=Outcome.UNREADABLE, format=format_, detail=detail)
