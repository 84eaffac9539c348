# SPDX-License-Identifier: Apache-2.0
"""Documents of several rounds of one adapter become one document: what its sources say of one card stands together, the leader's word first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muster.domain.model.names import NameKind, canonical, names_nothing
from muster.domain.model.source import Outcome

_STRONG = (NameKind.VENDOR_UUID, NameKind.SERIAL, NameKind.PCI_ADDRESS)
_PARTS = ("devices", "partitions")


def together(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One document per adapter, in order of appearance."""
    by: dict[str, dict[str, Any]] = {}
    for each in documents:
        name = str(each["adapter"])
        if name not in by:
            by[name] = {**each, "cards": [_copy(card) for card in each["cards"]], "node": {"readings": dict(each["node"]["readings"])}}
        else:
            _add(by[name], each)
    return list(by.values())


def _copy(card: Mapping[str, Any]) -> dict[str, Any]:
    return {**card, "ids": dict(card["ids"]), "readings": dict(card["readings"]), **{kind: list(card[kind]) for kind in _PARTS if kind in card}}


def _add(kept: dict[str, Any], other: Mapping[str, Any]) -> None:
    """Takes a further round in: unknown cards are added, known ones told more of, and nothing that is known is wiped out."""
    if other["format"] != kept["format"]:
        kept["formats"] = list(dict.fromkeys([*kept.get("formats", [kept["format"]]), *other.get("formats", [other["format"]])]))
    if not kept["cards"] and (other["cards"] or kept["outcome"] == Outcome.NO_DEVICES):
        kept["outcome"], kept["complete"] = other["outcome"], other["complete"]
    _fill(kept["node"]["readings"], other["node"]["readings"])
    for card in other["cards"]:
        mine = _same(kept["cards"], card)
        if mine is None:
            kept["cards"].append(_copy(card))
        else:
            _tell(mine, card)
    if other.get("events"):
        kept["events"] = [*kept.get("events", []), *other["events"]]
    for key in ("detail", "tool_version", "unknown_shape"):
        if other.get(key) and not kept.get(key):
            kept[key] = other[key]


def _tell(card: dict[str, Any], other: Mapping[str, Any]) -> None:
    card["ids"] = {**other["ids"], **card["ids"]}
    _fill(card["readings"], other["readings"])
    card["vendor"] = {**other.get("vendor", {}), **card.get("vendor", {})}
    card["processes"] = card.get("processes") or other.get("processes", [])
    for kind in _PARTS:
        if not card.get(kind) and other.get(kind):
            card[kind] = list(other[kind])


def _fill(readings: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, reading in more.items():
        if key not in readings or ("value" not in readings[key] and "value" in reading):
            readings[key] = reading


def _same(cards: list[dict[str, Any]], card: Mapping[str, Any]) -> dict[str, Any] | None:
    wanted = _names(card)
    for kind in _STRONG:
        for each in cards:
            mine, theirs = _names(each).get(kind, set()), wanted.get(kind, set())
            if mine & theirs:
                return each
    return None


def _names(card: Mapping[str, Any]) -> dict[NameKind, set[str]]:
    """Strong names of a card and its devices, in the form in which they are compared."""
    found: dict[NameKind, set[str]] = {}
    for part in (card, *(card.get("devices") or ())):
        for kind in _STRONG:
            told = part["ids"].get(kind.value, ())
            for value in [told] if isinstance(told, str) else told:
                if not names_nothing(kind, value):
                    found.setdefault(kind, set()).add(canonical(kind, value))
    return found
