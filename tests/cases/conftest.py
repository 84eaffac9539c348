# SPDX-License-Identifier: Apache-2.0
"""`pytest tests/cases --cases FILE`: the cases of the roll, from any file of that form."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).resolve().parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --cases."""
    parser.addoption("--cases", metavar="FILE", default=None, help="run the cases of FILE instead of ours and the shared ones")


def case_files(config: pytest.Config) -> list[Path]:
    """Our own cases, then the given file or the shared one where it is present."""
    own = sorted(HERE.glob("*.yaml"))
    given = config.getoption("--cases", default=None)
    if given:
        return [Path(given)]
    corpus = os.environ.get("MUSTER_CORPUS")
    shared = Path(corpus).parent / "cases" / "roll.yaml" if corpus else HERE.parents[2] / "shared" / "cases" / "roll.yaml"
    return own + ([shared] if shared.exists() else [])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per case of each file."""
    if "case" not in metafunc.fixturenames:
        return
    found: list[Any] = []
    for path in case_files(metafunc.config):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        found += [pytest.param((document["defaults"], each), id=f"{path.stem}:{each['name']}") for each in document["cases"]]
    metafunc.parametrize("case", found)
