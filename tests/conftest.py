# SPDX-License-Identifier: Apache-2.0
"""What all tests share: where the corpus is, and how hard properties are tried."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", deadline=None, max_examples=3000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def corpus_folder() -> Path | None:
    """The folder of recorded vendor output: MUSTER_CORPUS, or the one beside this checkout; None where there is none."""
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
