# SPDX-License-Identifier: Apache-2.0
"""The house as the guards see it: its source files, read and parsed once."""

from __future__ import annotations

import ast
import statistics
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "muster"
ADAPTERS = SRC / "adapters"
CODE = ("src", "tests", "tools", "bench")


@dataclass(frozen=True, slots=True)
class Function:
    """A function and the lines that its body takes, its docstring apart."""

    where: str
    name: str
    lines: int


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project that git holds or would hold."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    return tuple(sorted(path for name in listed if name and (path := ROOT / name).is_file()))


def modules(*folders: str) -> list[Path]:
    """Python files under the folders, by path from the root."""
    return [path for path in files() if path.suffix == ".py" and str(path.relative_to(ROOT)).startswith(tuple(f"{folder}/" for folder in folders))]


def shipped() -> list[Path]:
    """Python files of the product itself: no tests of adapters."""
    return [path for path in modules("src") if "tests" not in path.relative_to(SRC).parts]


def nothing(found: Iterable[str]) -> None:
    """Fails with every line of what was found."""
    lines = sorted(found)

    assert not lines, "\n" + "\n".join(lines)


def where(path: Path, line: int | None = None) -> str:
    """The file by its path from the root, and the line."""
    return f"{path.relative_to(ROOT)}:{line}" if line else str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    """The file as a syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(path: Path) -> Iterator[Function]:
    """Every function of a file, those within others too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(where(path, node.lineno), node.name, _lines(node))


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
    return (node.end_lineno or node.lineno) - body[0].lineno + 1


def median(numbers: list[int]) -> float:
    """The middle one."""
    return statistics.median(numbers) if numbers else 0.0


@cache
def manifests() -> dict[str, dict[str, Any]]:
    """Every adapter's manifest by its folder."""
    return {path.parent.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(ADAPTERS.glob("*/manifest.toml"))}
