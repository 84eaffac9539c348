#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of what is supported into README.md from manifests, sources and recorded machines, so that it never says more than there is.

usage: python tools/gen_support.py [--check]
--check writes nothing, and fails when the table is not what the adapters say.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TypeAlias

from muster.domain.model.source import Source
from muster.readers.recorded import load_machine
from muster.wiring.adapters import FolderAdapter, adapter, folders
from muster.wiring.conformance import machine_folders

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN = "<!-- support: begin. Written by tools/gen_support.py: change the adapters, then run `make docs`. -->"
END = "<!-- support: end -->"
HEAD = ("made by", "tier", "source", "read by", "formats", "recorded machines")
NONE = "-"

Recorded: TypeAlias = Mapping[tuple[str, str], tuple[str, ...]]
"""Source and format of a capture to the recorded machines that hold one, as ``adapter/machine``."""


def recorded(known: Iterable[FolderAdapter]) -> Recorded:
    """The recorded machines of all adapters, by what was recorded. A capture without a payload and without an exit status counts for nothing."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in known:
        for folder in machine_folders(each):
            name = f"{each.manifest.name}/{folder.name}"
            for capture in load_machine(folder).captures:
                mine = found[str(capture.source), capture.format]
                if name not in mine and (capture.payload or capture.exit_status is not None):
                    mine.append(name)
    return {key: tuple(sorted(names)) for key, names in found.items() if names}


def rows(each: FolderAdapter, machines: Recorded, known: Sequence[FolderAdapter]) -> Iterator[tuple[str, ...]]:
    """A row for each source, one for what the sources of others bring to this adapter, and one for the formats that are only read from files."""
    title, tier = f"**{each.manifest.title}**", each.manifest.tier
    live = {read.format for source in each.sources for read in source.reads}
    for source in each.sources:
        formats = tuple(dict.fromkeys(read.format for read in source.reads))
        yield title, tier, f"`{source.id}`", _reader(source), _code(formats), _machines(each, machines, (str(source.id),), formats)
        title = tier = ""
    brought = _brought(each, known, live)
    for form, ids in brought.items():
        yield title, tier, _code(ids), "the sources of another adapter", _code((form,)), _machines(each, machines, ids, (form,), own=True)
        title = tier = ""
    rest = tuple(form for form in each.manifest.formats if form not in live and form not in brought)
    if rest:
        mine = {source for source, _ in machines if source.startswith(f"{each.manifest.name}.")}
        yield title, tier, "from files only", NONE, _code(rest), _machines(each, machines, mine, rest)


def _brought(each: FolderAdapter, known: Sequence[FolderAdapter], live: Set[str]) -> dict[str, tuple[str, ...]]:
    """Formats that vendor-neutral sources read, and this adapter understands: by format the sources."""
    shared = [source for other in known if not other.manifest.pci_vendors and other is not each for source in other.sources]
    found = {form: tuple(str(s.id) for s in shared if any(read.format == form for read in s.reads)) for form in each.manifest.formats if form not in live}
    return {form: ids for form, ids in found.items() if ids}


def _reader(source: Source) -> str:
    return f"{source.reader}, only when `{source.after}` is absent or lacks something" if source.after else str(source.reader)


def _machines(each: FolderAdapter, machines: Recorded, sources: Iterable[str], formats: Iterable[str], *, own: bool = False) -> str:
    """Names of recorded machines, those of other adapters with the adapter before them; ``own`` leaves these out."""
    found = {name for source in sources for form in formats for name in machines.get((source, form), ())}
    names = {name for name in found if not own or name.startswith(f"{each.manifest.name}/")}
    return _code(sorted(name.removeprefix(f"{each.manifest.name}/") for name in names))


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or NONE


def table() -> str:
    """The table in Markdown."""
    known = [adapter(name) for name in folders()]
    machines = recorded(known)
    lines = [HEAD, tuple("---" for _ in HEAD), *(row for each in sorted(known, key=_order) for row in rows(each, machines, known))]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _order(each: FolderAdapter) -> tuple[bool, str]:
    """Makers of cards first, then what is read whoever made the card."""
    return not each.manifest.pci_vendors, each.manifest.name


def filled(text: str) -> str:
    """The page with the table between its marks. Raises ValueError when a mark is not there."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{README.name} lacks the line {END if begin else BEGIN}")
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Writes or checks the table; returns the exit code."""
    old = README.read_text(encoding="utf-8")
    new = filled(old)
    if old == new:
        return 0
    if "--check" in arguments:
        print(f"the table in {README.name} is not what the adapters say: run `make docs`", file=sys.stderr)
        return 1
    README.write_text(new, encoding="utf-8")
    print(f"wrote {README.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
