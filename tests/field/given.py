# SPDX-License-Identifier: Apache-2.0
"""Inputs of the field cases: ours beside this page, and those of the shared pages where they are present. Both have one form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import corpus_folder

OURS = Path(__file__).resolve().parent / "inputs"


def given(name: str, ours: Any, shared: Any) -> pytest.MarkDecorator:
    """Runs a test with ``path`` and ``right``: our input with ``ours``, and the shared one, where it is there, with ``shared``."""
    found = [pytest.param(OURS / name, ours, id="ours")]
    corpus = corpus_folder()
    other = corpus.parent / "cases" / "field-inputs" / name if corpus else None
    if other is not None and other.is_file():
        found.append(pytest.param(other, shared, id="shared"))
    return pytest.mark.parametrize(("path", "right"), found)


def rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a file with one JSON document per line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
