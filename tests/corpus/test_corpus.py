# SPDX-License-Identifier: Apache-2.0
"""Real output of every vendor's tools: whatever an adapter claims it reads without an exception, whole and cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.domain.model.source import Capture, Outcome, SourceId
from muster.spi.adapter import HEAD, Adapter
from muster.wiring.adapters import adapter, folders

TRUTH = {"truth", "sealed"}
"""Folders that hold answers, not output."""
LARGEST = 2 * 1024 * 1024


def _payloads(folder: Path) -> list[tuple[Path, bytes]]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and TRUTH.isdisjoint(path.relative_to(folder).parts))
    return [(path, path.read_bytes()) for path in files if path.stat().st_size <= LARGEST]


def _read(each: Adapter, form: str, payload: bytes) -> Outcome:
    capture = Capture(source=SourceId("offline"), locator=("file",), format=form, payload=payload)
    return each.interpret([capture]).outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(folders()))
def test_what_is_claimed_is_read(name: str, corpus: Path) -> None:
    each, claimed = adapter(name), 0
    for path, payload in _payloads(corpus):
        form = each.recognise(payload[:HEAD])
        if form is None:
            continue
        claimed += 1
        assert form in each.manifest.formats, f"{path}: {form} stands in no manifest"
        assert isinstance(_read(each, form, payload), Outcome)
        assert isinstance(_read(each, form, payload[: len(payload) // 2]), Outcome)

    assert claimed > 0
