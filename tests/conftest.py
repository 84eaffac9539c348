# SPDX-License-Identifier: Apache-2.0
"""Where the corpus of recorded vendor output is; and that no process of a test outlives the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import keeper


def pytest_configure() -> None:
    """Before the first test."""
    keeper.guard()


def corpus_folder() -> Path | None:
    """The folder that MUSTER_CORPUS names, or the one beside this checkout; None where there is none."""
    named = os.environ.get("MUSTER_CORPUS")
    found = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "corpus"
    return found if found.is_dir() else None


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus; a test that needs it is skipped where there is none."""
    found = corpus_folder()
    if found is None:
        pytest.skip("corpus not present")
    return found
