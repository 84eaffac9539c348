# SPDX-License-Identifier: Apache-2.0
"""Fields whose words are all known. A filter that asks for another word would find nothing, and say nothing: it is refused instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muster.domain.model.errors import InputError
from muster.domain.model.filters import And, Compare, Contains, In, Not, Or, Scalar, Tree
from muster.domain.model.near import near
from muster.domain.model.observation import Role
from muster.domain.model.roll import FindingKind, Happening, Presence, Rung
from muster.domain.model.source import Channel, Outcome, WitnessClass

STATES = ("ok", "failed", "silent", "standing_by", "hung", "removed")
"""Of a source."""
_OF_PARTS: Mapping[str, tuple[str, ...]] = {"presence": tuple(Presence), "role": tuple(Role)}
WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "cards": {**_OF_PARTS, "rung": tuple(Rung), "findings": tuple(FindingKind)},
    "devices": _OF_PARTS,
    "partitions": _OF_PARTS,
    "sources": {"state": STATES, "outcome": tuple(Outcome), "channel": tuple(Channel), "witness": tuple(WitnessClass)},
    "findings": {"kind": tuple(FindingKind)},
    "changes": {"kind": tuple(Happening)},
}
"""List to field to its words."""


def check(name: str, tree: Tree) -> None:
    """Raises InputError for a filter of the list ``name`` that asks a field for a word that it never has."""
    closed = WORDS.get(name, {})
    for path, value in _asked(tree):
        words = closed.get(path)
        if words is None or value in words:
            continue
        told = (f"filter: {path} is never {str(value)[:100]!r}", near(str(value), words))
        raise InputError("; ".join(filter(None, told)), hint=f"its words are {', '.join(words)}")


def _asked(tree: Tree) -> Iterator[tuple[str, Scalar]]:
    """Every path with a value that it is compared to."""
    match tree:
        case Compare(path=path, value=value) | Contains(path=path, value=value):
            yield path, value
        case In(path=path, values=values):
            yield from ((path, value) for value in values)
        case Not(one=one):
            yield from _asked(one)
        case And(left=left, right=right) | Or(left=left, right=right):
            yield from _asked(left)
            yield from _asked(right)
        case _:
            return
