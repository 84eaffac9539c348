# SPDX-License-Identifier: Apache-2.0
"""What is damaged: every round of the recorded machines, every text of ours under `texts`, and, where it is present, every file of the corpus that is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from muster.domain.model.source import Capture, SourceId
from muster.readers.recorded import load_machine
from muster.services.hearing import Heard, hear
from muster.spi.adapter import HEAD
from muster.wiring.adapters import FolderAdapter, adapter, adapters, claims, known_vendors
from muster.wiring.conformance import machine_folders
from tests.conftest import corpus_folder

TEXTS = Path(__file__).resolve().parent / "texts"
LARGEST = 256 * 1024
"""Bytes of a corpus file that is still tried; what larger ones show, smaller ones show as well."""
_ANSWERS = {"truth", "sealed"}


def rounds() -> dict[str, Heard]:
    """Every round of ours by a name for reports: ``adapter/machine/source`` and ``adapter/file``."""
    return {**dict(_machines()), **dict(_texts())}


def corpus_rounds() -> dict[str, Heard]:
    """Every corpus file that an adapter claims, as a round of one capture; empty where there is no corpus."""
    folder = corpus_folder()
    if folder is None:
        return {}
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and _ANSWERS.isdisjoint(p.parts) and p.stat().st_size <= LARGEST)
    return {f"{name}/{path.relative_to(folder)}": told for path in files for name, told in _loose(path)}


def _machines() -> Iterator[tuple[str, Heard]]:
    for each in adapters():
        for folder in machine_folders(each):
            told: dict[SourceId, list[Capture]] = defaultdict(list)
            for capture in load_machine(folder).captures:
                if capture.failure is None and capture.payload:
                    told[capture.source].append(_known(capture))
            own = {source.id for source in each.sources}
            for source, captures in told.items():
                if source in own:
                    yield f"{each.manifest.name}/{folder.name}/{source}", hear(each, folder.name, source, captures)


def _texts() -> Iterator[tuple[str, Heard]]:
    for path in sorted(p for p in TEXTS.rglob("*") if p.is_file()):
        yield from ((f"{name}/{path.name}", told) for name, told in _loose(path))


def _loose(path: Path) -> Iterator[tuple[str, Heard]]:
    payload = path.read_bytes()
    for each, form in claims(adapters(), payload[:HEAD]):
        yield each.manifest.name, heard(each.manifest.name, form, payload)


def heard(name: str, form: str, payload: bytes) -> Heard:
    """What the adapter ``name`` says of one text."""
    capture = Capture(source=SourceId("offline"), locator=("file",), format=form, payload=payload)
    return hear(adapter(name), "", SourceId("offline"), [_known(capture)])


def again(
    before: Heard, name: str, place: int, *, payload: bytes | None = None, cut: bool = False, exit_status: int | None = None, stderr: bytes = b""
) -> Heard:
    """The round once more, with the capture at ``place`` changed."""
    old = before.captures[place]
    new = replace(
        old,
        payload=old.payload if payload is None else payload,
        cut=cut,
        exit_status=old.exit_status if exit_status is None else exit_status,
        stderr=stderr or old.stderr,
    )
    captures = [new if n == place else each for n, each in enumerate(before.captures)]
    return hear(_adapter(name), before.machine, before.source, captures)


@cache
def _adapter(name: str) -> FolderAdapter:
    return adapter(name.partition("/")[0])


def _known(capture: Capture) -> Capture:
    return replace(capture, context={**capture.context, "known_vendors": ",".join(known_vendors(adapters()))})
