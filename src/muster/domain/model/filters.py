# SPDX-License-Identifier: Apache-2.0
"""The filter of the API and the command line: a small subset of CEL's syntax as a tree of ours.

Comparisons, ``in``, ``has()``, ``startsWith()``, ``&&``, ``||``, ``!``, parentheses; what is not understood is refused, with its position.
The tree knows no rows: `muster.domain.decide.select` says what it selects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Shape(StrEnum):
    """What kind of value a path holds, and so what may be asked of it."""

    TEXT = "text"
    NUMBER = "number"
    BOOL = "bool"
    TIME = "time"
    DATE = "date"
    LIST = "list"
    MAP = "map"


Fields: TypeAlias = Mapping[str, Shape]
"""The paths that a filter may name, each with its shape."""
Scalar: TypeAlias = "str | bool | int | float"


@dataclass(frozen=True, slots=True)
class Compare:
    """``path op value``; ``op`` is one of == != < <= > >=. A time is held as seconds since the epoch."""

    path: str
    op: str
    value: Scalar

    def __str__(self) -> str:
        return f"{spelt(self.path)} {self.op} {_literal(self.value)}"


@dataclass(frozen=True, slots=True)
class In:
    """``path in [values]``."""

    path: str
    values: tuple[Scalar, ...]

    def __str__(self) -> str:
        return f"{spelt(self.path)} in [{', '.join(map(_literal, self.values))}]"


@dataclass(frozen=True, slots=True)
class Contains:
    """``value in path``, where the path holds a list."""

    value: Scalar
    path: str

    def __str__(self) -> str:
        return f"{_literal(self.value)} in {spelt(self.path)}"


@dataclass(frozen=True, slots=True)
class Has:
    """``has(path)``: there is a value. Never unknown."""

    path: str

    def __str__(self) -> str:
        return f"has({spelt(self.path)})"


@dataclass(frozen=True, slots=True)
class StartsWith:
    """``path.startsWith("text")``."""

    path: str
    prefix: str

    def __str__(self) -> str:
        return f"{spelt(self.path)}.startsWith({_literal(self.prefix)})"


@dataclass(frozen=True, slots=True)
class Not:
    """``!one``."""

    one: Tree

    def __str__(self) -> str:
        return f"!({self.one})"


@dataclass(frozen=True, slots=True)
class And:
    """Both sides."""

    left: Tree
    right: Tree

    def __str__(self) -> str:
        return f"({self.left}) && ({self.right})"


@dataclass(frozen=True, slots=True)
class Or:
    """Either side."""

    left: Tree
    right: Tree

    def __str__(self) -> str:
        return f"({self.left}) || ({self.right})"


@dataclass(frozen=True, slots=True)
class Always:
    """``true`` or ``false`` on its own."""

    value: bool

    def __str__(self) -> str:
        return _literal(self.value)


Tree: TypeAlias = Compare | In | Contains | Has | StartsWith | Not | And | Or | Always


def paths(tree: Tree) -> Iterator[str]:
    """Every path that the filter asks for."""
    match tree:
        case Compare(path=path) | In(path=path) | Contains(path=path) | Has(path=path) | StartsWith(path=path):
            yield path
        case Not(one=one):
            yield from paths(one)
        case And(left=left, right=right) | Or(left=left, right=right):
            yield from paths(left)
            yield from paths(right)
        case Always():
            return


def spelt(path: str) -> str:
    """A path as it is written in a filter."""
    return path if all(part.replace("_", "a").isalnum() and not part[0].isdigit() for part in path.split(".")) else f"readings[{json.dumps(path)}]"


def _literal(value: Scalar) -> str:
    return json.dumps(value, ensure_ascii=False)
