# SPDX-License-Identifier: Apache-2.0
"""From the domain to the documents of the API: the one mapping, used by the server and by what runs without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muster.domain.decide.choose import Shown
from muster.domain.decide.view import CardView, PartView, Together, grown, together
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.moments import rfc3339
from muster.domain.model.reading import Known
from muster.domain.model.roll import CardRecord, Claim, Finding, NodeRecord, Presence, SourceRecord
from muster.wire import documents as d


def card(shown: CardView, vendor: str | None, findings: Sequence[Finding], nodes: Mapping[str, str]) -> d.Card:
    """A card's document. ``findings`` are the open ones about it, ``nodes`` names of nodes by id."""
    record = shown.record
    name = card_name(record, model(shown))
    return d.Card(
        id=record.id,
        name=name,
        vendor=vendor,
        model=model(shown),
        presence=record.presence.value,
        presence_since=rfc3339(record.presence_at),
        created_at=rfc3339(record.created_at),
        rung=record.rung.value,
        role=record.role.value,
        aside=record.aside,
        node=record.node_name or None if record.node else None,
        node_id=record.node,
        slot=record.slot or None,
        address=record.address or None,
        index=record.index or None,
        ids=ids(record.ids),
        former_ids=ids(record.former_ids),
        conflicts=list(record.conflicts),
        seen_by=list(shown.seen_by),
        place=record.place or None,
        findings=[d.FindingRef(id=each.id, kind=each.kind.value) for each in findings],
        readings=readings(shown.readings, shown.now),
        together={key: _together(key, told) for key, told in together(shown).items()},
        devices=[device(shown, part, name) for part in shown.devices],
        partitions=[partition(shown, part, name) for part in shown.partitions],
        claims=[_claim(each, nodes, shown.now) for each in record.claims],
        increase=grown(shown),
        details={_told_by(place, nodes): dict(told) for place, told in record.details.items()},
    )


def _together(key: str, told: Together) -> d.Together:
    return d.Together(value=told.value, unit=ATTRIBUTES[key].unit.value, how=told.how.value)


def _told_by(place: str, nodes: Mapping[str, str]) -> str:
    node, _, source = place.partition("/")
    return f"{nodes.get(node, node)}/{source}"


def card_name(record: CardRecord, product: str | None) -> str:
    """ "node · slot · model", with what there is: never a bare index."""
    place = record.slot or record.address or (f"index {record.index}" if record.index else next(iter(_first_names(record)), record.id))
    home = record.node_name if record.node and record.node_name else record.place or record.presence.value
    return " · ".join((home, place, product or "unknown model"))


def _first_names(record: CardRecord) -> list[str]:
    return [value for kind in ("serial", "vendor_uuid", "k8s_device") for value in record.ids.get(kind, ())]


def model(shown: CardView) -> str | None:
    """The product name, where it is known."""
    found = shown.readings.get("product.name")
    return str(found.reading.value) if found is not None and isinstance(found.reading, Known) else None


def device(shown: CardView, part: PartView, name: str) -> d.Device:
    """A device's document; ``name`` is its card's."""
    record = part.record
    return d.Device(
        id=record.id,
        card=shown.record.id,
        name=f"{name} · device {record.ordinal}",
        ordinal=record.ordinal,
        ids=ids(record.ids),
        presence=shown.record.presence.value,
        readings=readings(part.readings, shown.now),
    )


def partition(shown: CardView, part: PartView, name: str) -> d.Partition:
    """A partition's document; ``name`` is its card's."""
    record = part.record
    return d.Partition(
        id=record.id,
        card=shown.record.id,
        name=f"{name} · partition {record.ordinal}",
        ordinal=record.ordinal,
        ids=ids(record.ids),
        presence=shown.record.presence.value,
        under=record.under or None,
        readings=readings(part.readings, shown.now),
    )


def readings(these: Mapping[str, Shown], now: float) -> dict[str, Any]:
    """Readings by key, each a value or an absence with its reason."""
    return {key: reading(key, each, now) for key, each in these.items()}


def reading(key: str, shown: Shown, now: float) -> d.ValueReading | d.AbsentReading:
    """One reading with its unit, source and age."""
    seen, age = rfc3339(shown.observed_at), seconds(shown.age(now))
    if not isinstance(shown.reading, Known):
        why = shown.reading
        return d.AbsentReading(absent=why.why.value, detail=why.detail, observed_at=seen, source=shown.source, age=age, capture=shown.capture)
    entry = ATTRIBUTES.get(key)
    return d.ValueReading(
        value=plain(shown.reading.value),
        unit=entry.unit.value if entry else "text",
        observed_at=seen,
        source=shown.source,
        age=age,
        stale=shown.stale,
        dissent={source: plain(value) for source, value in shown.dissent.items()},
        absent={source: why.value for source, why in shown.absent.items()},
        capture=shown.capture,
    )


def plain(value: Any) -> Any:
    """A value as JSON can say it: sets in order, mappings as objects."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def seconds(age: float) -> float:
    """An age in whole milliseconds."""
    return round(max(age, 0.0), 3)


def ids(these: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Names by kind, kinds without one left out."""
    return {str(kind): list(values) for kind, values in these.items() if values}


def _claim(claim: Claim, nodes: Mapping[str, str], now: float) -> d.Claim:
    return d.Claim(
        node=nodes.get(claim.node, claim.node),
        node_id=claim.node,
        source=claim.source,
        channel=claim.channel.value,
        ids=ids(claim.ids),
        slot=claim.slot or None,
        addresses=list(claim.addresses),
        index=claim.index or None,
        first_at=rfc3339(claim.first_at),
        last_at=rfc3339(claim.at),
        denied_at=perhaps(claim.denied_at),
        sees=claim.sees(now),
    )


def perhaps(at: float | None) -> str | None:
    """A time as the API writes it, where there is one."""
    return None if at is None else rfc3339(at)


def node(record: NodeRecord, shown: Mapping[str, Shown], presences: Iterable[Presence], agents: list[d.Agent], now: float) -> d.Node:
    """A node's document, with what is shown of it, the presences of its accelerators, and who reports of it."""
    return d.Node(
        id=record.id,
        name=record.name,
        machine_id=record.machine_id or None,
        system=record.system or None,
        former_names=list(record.former_names),
        created_at=rfc3339(record.created_at),
        last_at=rfc3339(record.last_at),
        age=seconds(now - record.last_at),
        cards=dict(sorted(Counter(each.value for each in presences).items())),
        agents=agents,
        readings=readings(shown, now),
    )


def source_state(record: SourceRecord) -> str:
    """One word for a source, the most telling first."""
    states = {"removed": record.removed, "hung": record.stuck, "standing_by": record.standing_by, "silent": record.silent, "failed": record.outcome.failed}
    return next((word for word, holds in states.items() if holds), "ok")


def source(record: SourceRecord, adapter: str | None, cost: float | None, worker: str | None, now: float) -> d.Source:
    """A source's document; ``cost`` and ``worker`` as its reporter told of them."""
    return d.Source(
        id=f"{record.node}/{record.source}",
        node=record.node_name,
        node_id=record.node,
        source=record.source,
        adapter=adapter,
        channel=record.channel.value,
        witness=record.witness.value,
        cadence=record.cadence,
        promise=record.promise,
        reporter=record.reporter,
        state=source_state(record),
        outcome=record.outcome.value,
        detail=record.detail,
        cards=record.cards,
        first_at=rfc3339(record.first_at),
        last_at=rfc3339(record.last_at),
        listed_at=perhaps(record.listed_at),
        age=seconds(now - record.last_at),
        unknown_shape=record.unknown_shape,
        cost=cost,
        worker=worker,
    )
