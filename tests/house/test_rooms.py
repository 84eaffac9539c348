# SPDX-License-Identifier: Apache-2.0
"""The project file knows every room, and everything that is imported stands in it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.house.tree import ROOT, SRC, files, modules, nothing, shipped, tree, where

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAMES = {"pydantic_core": "pydantic", "yaml": "pyyaml", "pynvml": "nvidia-ml-py", "_pytest": "pytest"}
"""Import names that are not the distribution's."""
PLATFORMS = {"amdsmi"}
"""Modules that a vendor installs with its driver: the library reader finds them by declared folders, in its worker only."""
FLOOR = ("services", "adapters", "readers", "collect", "store", "cluster", "export")
SPEAKS_SQL = {"store"}


def _contract(name: str) -> dict[str, Any]:
    return next(each for each in PROJECT["tool"]["importlinter"]["contracts"] if each["name"] == name)


def test_every_room_without_sql_is_held_to_it() -> None:
    rooms = {f"muster.{room}" for room in (*FLOOR, "domain", "formats", "spi") if (SRC / room / "__init__.py").exists() and room not in SPEAKS_SQL}

    assert rooms <= set(_contract("Only the store speaks SQL")["source_modules"])


def test_the_agent_is_held_to_be_light_wherever_it_stands() -> None:
    held = set(_contract("The agent stays light")["source_modules"])
    stands = {f"muster.{'.'.join(path.relative_to(SRC).with_suffix('').parts)}" for path in [SRC / "wiring" / "agent.py"] if path.exists()}

    assert stands | {"muster.collect"} <= held


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    ours = {"muster", "tests", *(each.stem for each in path.parent.glob("*.py"))}
    return found - ours - sys.stdlib_module_names


def _distributions(requirements: list[Any]) -> set[str]:
    return {re.split(r"[\[<>=~! ]", each)[0].lower() for each in requirements if isinstance(each, str)}


def _not_among(asked: set[str], paths: list[Path]) -> dict[str, str]:
    return {name: where(path) for path in paths for name in _imports(path) - PLATFORMS if NAMES.get(name, name).replace("_", "-") not in asked}


def test_everything_the_product_imports_is_asked_for() -> None:
    asked = _distributions(PROJECT["project"]["dependencies"]) | {
        name for extra in PROJECT["project"]["optional-dependencies"].values() for name in _distributions(extra)
    }

    nothing(f"{each}: {found}" for each, found in (_not_among(asked, shipped())).items())


def test_everything_that_is_asked_for_is_imported() -> None:
    used = {NAMES.get(name, name).replace("_", "-") for path in shipped() for name in _imports(path)}

    assert _distributions(PROJECT["project"]["dependencies"]) - used == set()


def test_everything_the_tests_import_is_asked_for() -> None:
    groups = PROJECT["dependency-groups"]
    asked = _distributions(PROJECT["project"]["dependencies"]) | {name for group in groups.values() for name in _distributions(group)}
    missing = {
        name: where(path) for path in modules("tests", "tools", "bench") for name in _imports(path) if NAMES.get(name, name).replace("_", "-") not in asked
    }

    nothing(f"{each}: {found}" for each, found in (missing).items())


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_the_locks_hold_everything_by_its_digest(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    pinned = re.findall(r"^([a-z0-9-]+)==\S+(.*?)(?=^[a-z0-9-]+==|\Z)", text, re.MULTILINE | re.DOTALL)
    asked = _distributions(PROJECT["project"]["dependencies"])
    if lock.startswith("requirements-dev"):
        asked |= {name for group in PROJECT["dependency-groups"].values() for name in _distributions(group)}

    assert asked - {name for name, _ in pinned} == set()
    nothing([name for name, rest in pinned if "--hash=sha256:" not in rest])


def test_every_package_is_marked_as_typed_and_shipped() -> None:
    assert (SRC / "py.typed").exists()
    folders = {path.parent for path in files() if path.suffix == ".py" and path.is_relative_to(SRC) and "tests" not in path.relative_to(SRC).parts}

    nothing([where(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists() and "machines" not in folder.parts])
