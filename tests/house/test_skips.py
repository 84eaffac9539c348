# SPDX-License-Identifier: Apache-2.0
"""A test that cannot be made fails in CI: whatever skips goes by `tests.needs`, but for the few that are named here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.needs import lacks, program

TESTS = Path(__file__).resolve().parents[1]
SKIPS = re.compile(r"pytest\.skip\(|mark\.skip|importorskip|pytest\.xfail\(|mark\.xfail")
ALLOWED = {
    "needs.py": "this is what the others go by",
    "on_postgres.py": "the same, for a whole run",
    "conftest.py": "the corpus is not part of the project",
    "corpus/test_attributes.py": "the corpus is not part of the project",
    "corpus/test_truth.py": "the corpus is not part of the project, and some of its truths are disputed",
    "fuzz/conftest.py": "the long part is by hand",
    "interfaces/api/test_matrix.py": "routes that are of no matter to a row of the matrix",
    "store/test_audit.py": "of two databases, the one that it is about",
    "store/test_gauges_shared.py": "of two stores, the one that it is about",
}


def test_no_other_test_skips() -> None:
    found = {str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py") if SKIPS.search(path.read_text(encoding="utf-8"))}

    assert found - {"house/test_skips.py"} <= set(ALLOWED)


def test_what_is_lacking_fails_in_ci_and_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no disk"):
        lacks("no disk")
    with pytest.raises(pytest.fail.Exception, match="no-such-program"):
        program("no-such-program")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no disk"):
        lacks("no disk")
