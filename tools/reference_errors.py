# SPDX-License-Identifier: Apache-2.0
"""Codes of errors as the source spells them: each that the code can answer is found, with the statuses it is answered with."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src" / "muster"
TELLING = frozenset({"problem", "answer", "_problem", "WebError"})
"""What makes a problem: its status and its code stand among the arguments."""


def sources() -> Iterator[str]:
    """The code that answers."""
    for room in ("interfaces/api", "interfaces/ingest", "services"):
        for path in sorted((SRC / room).rglob("*.py")):
            yield path.read_text(encoding="utf-8")


def spoken(texts: Iterable[str]) -> dict[str, set[int]]:
    """Codes that are spelt out in calls that make a problem, with the statuses that stand beside them."""
    found: dict[str, set[int]] = defaultdict(set)
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and _name(node.func) in TELLING:
                for code in _codes(node):
                    found[code] |= _statuses(node)
    return dict(found)


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _codes(call: ast.Call) -> list[str]:
    """The second argument, or the one named ``code``, where it is a word."""
    second = [] if _name(call.func) == "WebError" else call.args[1:2]
    given = [*second, *(each.value for each in call.keywords if each.arg == "code")]
    return [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value]


def _statuses(call: ast.Call) -> set[int]:
    return {each.value for each in call.args[:1] if isinstance(each, ast.Constant) and isinstance(each.value, int)}
