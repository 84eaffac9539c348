# SPDX-License-Identifier: Apache-2.0
"""An operator's word as it comes in becomes an act: who is meant, whether that can be said, and of which kind each value is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from muster.domain.decide.merge import Roll
from muster.domain.model.attributes import ATTRIBUTES, Attribute
from muster.domain.model.errors import Ambiguous, Conflict, InputError, NotFound
from muster.domain.model.gather import plausible
from muster.domain.model.names import NameKind, canonical, names_nothing
from muster.domain.model.near import near
from muster.domain.model.reading import Absent, Known
from muster.domain.model.roll import Act, ActKind, CardRecord, Presence
from muster.domain.model.units import Unit
from muster.formats.numbers import quantity
from muster.wire.report import ActDoc


def understand(roll: Roll, doc: ActDoc, now: float) -> Act:
    """The act that the document asks for. Raises InputError, NotFound, Ambiguous or Conflict."""
    try:
        what = ActKind(doc.what)
    except ValueError:
        raise InputError(f"nothing called {doc.what!r} can be said", hint=f"one of {', '.join(ActKind)}") from None
    card = _resolve(roll, doc.card, what) if doc.card else {}
    other = _resolve(roll, doc.other, ActKind.SAME) if doc.other else {}
    if what in (ActKind.SAME, ActKind.NOT_SAME) and not (card and other):
        raise InputError("two cards are needed", hint="name both by UUID, serial or id")
    if what is ActKind.SAME:
        _not_side_by_side(roll, card, other)
    if what is ActKind.REMOVE_SOURCE:
        _known_source(roll, doc)
    if what is ActKind.SET and not doc.values:
        raise InputError("nothing to set", hint="give at least one key=value; key= takes a word back")
    if what is ActKind.SET and not (card or doc.node):
        raise InputError("nothing named to set it on", hint="name a card or a node")
    if what in (ActKind.STORE, ActKind.RETIRE) and not card:
        raise InputError("no card named", hint="name it by UUID, serial or id")
    return Act(
        what=what,
        by=doc.by or "operator",
        at=now,
        received_at=now,
        card=card,
        other=other,
        node=doc.node,
        source=doc.source,
        values={k: typed(k, v) for k, v in doc.values.items()},
        place=doc.place,
        reason=doc.reason,
    )


def _resolve(roll: Roll, ids: Mapping[str, str], what: ActKind) -> dict[str, str]:
    """The ids with our own card id beside them; unknown strong ids are kept for a card that only the operator knows."""
    unknown = set(ids) - {"id", *NameKind}
    if unknown:
        raise InputError(f"{', '.join(sorted(unknown))}: no kind of id", hint=f"one of id, {', '.join(NameKind)}")
    empty = [f"{k}={v}" for k, v in ids.items() if k != "id" and names_nothing(NameKind(k), v)]
    if empty:
        raise InputError(f"{', '.join(empty)} names nothing", hint="a UUID, a serial, or our id of the card")
    found: dict[str, CardRecord | None] = {}
    for region in roll.regions.values():
        for card in region.site.cards.values():
            if "id" in ids:
                wanted = region.site.gone.get(ids["id"], ids["id"])
                if card.id == wanted and all(canonical(NameKind(k), v) in card.names.get(NameKind(k), {}) for k, v in ids.items() if k != "id"):
                    found[card.id] = None
            elif all(canonical(NameKind(k), v) in card.names.get(NameKind(k), {}) for k, v in ids.items()):
                found[card.id] = None
    if len(found) > 1:
        raise Ambiguous(f"{len(found)} cards fit {dict(ids)}", hint="name one by its id: " + ", ".join(sorted(found)))
    if found:
        return {"id": next(iter(found))} | {k: v for k, v in ids.items() if k != "id"}
    may_be_new = what in (ActKind.STORE, ActKind.SET, ActKind.RETIRE) and any(k in ids for k in (NameKind.SERIAL.value, NameKind.VENDOR_UUID.value))
    if not may_be_new:
        raise NotFound(f"no card {dict(ids)}", hint="`muster get cards -o wide` lists them")
    return dict(ids)


def _not_side_by_side(roll: Roll, card: Mapping[str, str], other: Mapping[str, str]) -> None:
    """Two cards that one source shows in one listing are two: no word makes them one."""
    if card.get("id") == other.get("id"):
        raise Conflict("both names are of one card already")
    cards = {i: c for region in roll.regions.values() for i, c in region.site.cards.items()}
    one, two = cards.get(card.get("id", "")), cards.get(other.get("id", ""))
    if one is None or two is None:
        return
    if one.node != two.node and one.presence is Presence.PRESENT and two.presence is Presence.PRESENT:
        raise Conflict("both cards are seen now, on two nodes", hint="compare the labels; `muster describe card` shows who sees what")
    for place, claim in one.claims.items():
        theirs = two.claims.get(place)
        if theirs is not None and theirs.n == claim.n and not (claim.void or theirs.void):
            raise Conflict(
                f"{place[1]} shows both cards side by side in one listing", hint="`muster describe card` shows who sees what; a source that errs can be removed"
            )


def _known_source(roll: Roll, doc: ActDoc) -> None:
    for region in roll.regions.values():
        for (node, source), speaker in region.site.speakers.items():
            names = {node, canonical(NameKind.HOSTNAME, region.site.nodes[node].name)} if node in region.site.nodes else {node}
            if source == doc.source and ({doc.node, canonical(NameKind.HOSTNAME, doc.node)} & names):
                if speaker.removed:
                    raise Conflict(f"{doc.node}/{doc.source} is removed already")
                return
    raise NotFound(f"no source {doc.source} on {doc.node}", hint="`muster get sources` lists them")


def typed(key: str, value: Any) -> Any:
    """An operator's value as its attribute has it. Raises InputError for a key that is not in the dictionary, or a value that is not of its kind."""
    entry = ATTRIBUTES.get(key)
    if entry is None:
        raise InputError(f"no attribute {key!r}", hint=_near(key))
    if value is None or value == "":
        return None
    if entry.numeric:
        reading = plausible(key, quantity(key, value) if isinstance(value, str) else Known(value))
        if isinstance(reading, Absent):
            raise InputError(f"{key}={value}: {_number(entry)}", hint=entry.about)
        return reading.value
    if isinstance(value, list | dict) and entry.unit not in (Unit.LIST, Unit.MAP, Unit.SET):
        raise InputError(f"{key}: one value is needed, not {type(value).__name__}", hint="write key=value")
    if entry.unit is Unit.BOOL and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if entry.unit is Unit.DATE:
        try:
            date.fromisoformat(str(value))
        except ValueError:
            raise InputError(f"{key}={value}: no date", hint="write YYYY-MM-DD") from None
    return value


def _near(key: str) -> str:
    own = [each for each in ATTRIBUTES if each.startswith("asset.")]
    meant = [each for each in own if each.endswith(f".{key}")]
    return f"near it: {', '.join(meant)}" if meant else near(key, ATTRIBUTES) or f"words of yours are {', '.join(own)}"


def _number(entry: Attribute) -> str:
    """What is wanted of an attribute that is a number."""
    bounds = [f"{word} {limit:g}" for word, limit in (("from", entry.low), ("to", entry.high)) if limit is not None]
    unit = ', or one with its unit like "80 GiB"' if entry.unit == Unit.BYTES else ""
    return f"{' '.join(['a number in', str(entry.unit), *bounds])} is wanted{unit}"
