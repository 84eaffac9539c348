# SPDX-License-Identifier: Apache-2.0
"""From the working state to the records that are stored and shown: rung, place, ids, what is set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.domain.decide.merge.state import Card, Node, Piece, Place, Sighting, Site, rank
from muster.domain.decide.merge.values import SERIAL, increase, operator_voice, two_serials, voices
from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.names import NameKind
from muster.domain.model.observation import Role
from muster.domain.model.policy import Policy
from muster.domain.model.roll import CardRecord, Claim, NodeRecord, PartRecord, Presence, Rung, SourceRecord, Voice, Word
from muster.domain.model.source import Channel, WitnessClass

STRUCTURE = frozenset({"partition.mode", "partition.mode.pending", "partition.memory_mode"})
"""Gauges that merge itself goes by; they stay with the record."""
_APART = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is not Kind.FACT and key not in STRUCTURE)
_NO_PLACE = frozenset({Presence.REMOVED, Presence.STORED, Presence.RETIRED})


def rung(card: Card) -> Rung:
    """By what the card is known: its strongest kind of name, contested ones left out."""
    if card.values(NameKind.VENDOR_UUID) and NameKind.VENDOR_UUID.value not in card.contested:
        return Rung.UUID
    serials = card.names.get(NameKind.SERIAL, {})
    own = [v for v, told in serials.items() if told.by and not told.board]
    slot = any(claim.slot for claim in card.claims.values())
    if own and NameKind.SERIAL.value not in card.contested:
        return Rung.SERIAL_MODEL
    if slot:
        return Rung.SERIAL_SLOT if any(told.by for told in serials.values()) else Rung.NODE_SLOT
    if any(claim.addresses for claim in card.claims.values()) or card.values(NameKind.PCI_ADDRESS):
        return Rung.NODE_ADDRESS
    return Rung.NODE_INDEX


def role(site: Site, card: Card) -> Role:
    """A driver's word on the role beats the bus."""
    if Role.DISPLAY not in card.roles.values():
        return Role.ACCELERATOR
    order = (WitnessClass.DRIVER, WitnessClass.EXPORTER, WitnessClass.BMC, WitnessClass.CLUSTER, WitnessClass.PCI)
    told = [(order.index(s.witness), place, r) for place, r in card.roles.items() if (s := site.speakers.get(place)) is not None and s.witness in order]
    return min(told)[2] if told else Role.ACCELERATOR


def lost_from_driver(site: Site, card: Card) -> bool:
    """True when a driver's confirmed denial stands."""
    return any(c.confirmed_at is not None and site.speakers[p].witness is WitnessClass.DRIVER for p, c in card.claims.items() if p in site.speakers)


def counted(site: Site, node: str, at: float) -> int:
    """Accelerators of a node that are present or unknown, no view of another, and not lost from their driver."""
    views = aside(site, at)
    return sum(
        1
        for card in site.cards.values()
        if card.node == node
        and card.presence in (Presence.PRESENT, Presence.UNKNOWN)
        and card.id not in views
        and role(site, card) is Role.ACCELERATOR
        and not lost_from_driver(site, card)
    )


def aside(site: Site, at: float) -> frozenset[str]:
    """Records that are views of a better named card of another channel on their node, one each: they are kept and not counted."""
    found: set[str] = set()
    for node in site.nodes:
        here = [c for c in site.cards.values() if c.node == node and c.presence not in _NO_PLACE and role(site, c) is Role.ACCELERATOR]
        if len(here) > 1:
            found |= _views(site, here, at)
    return frozenset(found)


def _views(site: Site, here: list[Card], at: float) -> set[str]:
    may = {card.id: channels for card in here if may_be_view(channels := channels_of(site, card), card)}
    if not may:
        return set()
    views: set[str] = set()
    used: set[str] = set()
    for card in sorted(here, key=lambda c: (-rank(rung(c)), c.created_at, c.created_n)):
        channels = may.get(card.id, set())
        if not channels:
            continue
        hearsay = channels == {Channel.CLUSTER}
        kinds = _kinds(card)
        for better in sorted(here, key=lambda c: (c.created_at, c.created_n)):
            if better is card or better.id in used or better.id in views or channels_of(site, better) <= channels or kinds & _kinds(better):
                continue
            if site.seen(better, at) if hearsay else rank(rung(better)) < rank(rung(card)):
                views.add(card.id)
                used.add(better.id)
                break
    return views


def may_be_view(channels: set[Channel], card: Card) -> bool:
    """True for a card that one channel alone shows, by hearsay or by no name of its own."""
    return len(channels) == 1 and (channels == {Channel.CLUSTER} or rank(rung(card)) >= rank(Rung.SERIAL_SLOT))


def channels_of(site: Site, card: Card) -> set[Channel]:
    """Channels by which a card is told."""
    return {site.speakers[p].channel for p in card.claims if p in site.speakers}


def _kinds(card: Card) -> set[NameKind]:
    kinds: set[NameKind] = {kind for kind, told in card.names.items() if kind is not NameKind.INDEX and any(t.by for t in told.values())}
    if any(claim.slot for claim in card.claims.values()):
        kinds.add(NameKind.CHASSIS_SLOT)
    return kinds


def card_record(site: Site, card: Card, policy: Policy, now: float, views: frozenset[str]) -> CardRecord:
    """The card as it is stored."""
    node = site.nodes.get(card.node or "") if card.presence not in _NO_PLACE else None
    here = {p: c for p, c in card.claims.items() if node is not None and p[0] == node.id and not c.void}
    used = increase(site, card, policy, now)
    ids, former = _ids(card)
    return CardRecord(
        id=card.id,
        role=role(site, card),
        created_at=card.created_at,
        rung=rung(card),
        presence=card.presence,
        presence_at=card.presence_at,
        node=node.id if node else None,
        node_name=node.name if node else "",
        system=node.shown_system if node else "",
        slot=_slot(site, here, policy),
        address=_address(site, here),
        index=next((c.index for _, c in _by_class(site, {p: c for p, c in here.items() if c.index and not c.index.startswith("#")})), ""),
        ids=ids,
        former_ids=former,
        conflicts=tuple(sorted(card.contested | ({SERIAL} if two_serials(site, card) else set()))),
        aside=card.id in views,
        claims=tuple(_claim(site, p, c) for p, c in sorted(card.claims.items())),
        voices=(*_kept(site, card.voices, policy), *operator_voice(card.operator)),
        node_voices=tuple(operator_voice(node.operator, node.id)) if node else (),
        devices=tuple(_part(site, p, policy) for p in card.devices),
        partitions=tuple(_part(site, p, policy) for p in card.partitions),
        increase={key: use.total for key, use in used.items()},
        counted={key: use.last for key, use in used.items()},
        disagree=tuple(sorted(key for key, apart in card.near.items() if apart)),
        place=card.shelf.place if card.shelf else "",
        details=told_details(site, card),
    )


def told_details(site: Site, card: Card) -> dict[str, Mapping[str, Any]]:
    """The tools' own names and text, by source."""
    return {"/".join(place): told for place, told in sorted(card.details.items()) if place in site.speakers and not site.speakers[place].removed}


_CLASSES = tuple(WitnessClass)


def _by_class(site: Site, claims: Mapping[Place, Sighting], order: Sequence[WitnessClass] = _CLASSES) -> list[tuple[Place, Sighting]]:
    """Claims by class of source, standing ones before denied ones, the newest of a class first."""

    def key(pair: tuple[Place, Sighting]) -> tuple[bool, int, tuple[float, int]]:
        place, claim = pair
        witness = site.speakers[place].witness if place in site.speakers else WitnessClass.OPERATOR
        return claim.denied_at is not None, order.index(witness) if witness in order else len(order), (-claim.n[0], -claim.n[1])

    return sorted(claims.items(), key=key) if len(claims) > 1 else list(claims.items())


def _slot(site: Site, claims: Mapping[Place, Sighting], policy: Policy) -> str:
    told = {place: claim for place, claim in claims.items() if claim.slot}
    for _, claim in _by_class(site, told, policy.order("platform.slot")):
        if claim.slot:
            return next(iter(claim.ids.get(NameKind.CHASSIS_SLOT.value, (claim.slot,))))
    return ""


def _address(site: Site, claims: Mapping[Place, Sighting]) -> str:
    """The address when the card has exactly one by the best source that tells any."""
    for _, claim in _by_class(site, {place: claim for place, claim in claims.items() if claim.addresses}):
        if claim.addresses:
            return claim.addresses[0] if len(claim.addresses) == 1 else ""
    return ""


def _ids(card: Card) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Names by kind that are told now, and those that are told no more."""
    told: dict[str, tuple[str, ...]] = {}
    former: dict[str, tuple[str, ...]] = {}
    for kind, by in card.names.items():
        now = [each.printed for each in by.values() if each.by]
        if now:
            told[kind.value] = tuple(now)
        if len(now) < len(by):
            former[kind.value] = tuple(each.printed for each in by.values() if not each.by)
    return told, former


def _claim(site: Site, place: Place, claim: Sighting) -> Claim:
    return Claim(
        node=place[0],
        source=place[1],
        channel=site.speakers[place].channel,
        ids=claim.ids,
        slot=claim.slot,
        addresses=claim.addresses,
        index=claim.index,
        first_at=claim.first_at,
        at=claim.at,
        promise=site.promise(place),
        denied_at=claim.denied_at,
        confirmed_at=claim.confirmed_at,
        void=claim.void,
    )


def apart(key: str, policy: Policy) -> bool:
    """True for gauges and counters that are kept apart from the record."""
    entry = ATTRIBUTES.get(key)
    return entry is not None and entry.kind is not Kind.FACT and key not in policy.compare and key not in STRUCTURE


def _kept(site: Site, said: Mapping[Place, Mapping[str, Word]], policy: Policy) -> list[Voice]:
    """Voices without what is kept apart."""
    kept = {
        place: words if words.keys().isdisjoint(_APART) else {k: w for k, w in words.items() if k not in _APART or not apart(k, policy)}
        for place, words in said.items()
    }
    return voices(site, kept)


def _part(site: Site, piece: Piece, policy: Policy) -> PartRecord:
    told = tuple(_kept(site, piece.voices, policy))
    return PartRecord(id=piece.id, level=piece.level, ordinal=piece.ordinal, ids=dict(piece.ids), under=piece.under, voices=told)


def measured_words(site: Site, card: Card) -> dict[tuple[str, str, str, str], Word]:
    """Gauges and counters by (subject, node, source, attribute)."""
    found: dict[tuple[str, str, str, str], Word] = {}
    for subject, said in ((card.id, card.voices), *((p.id, p.voices) for p in (*card.devices, *card.partitions))):
        for place, words in said.items():
            speaker = site.speakers.get(place)
            if speaker is not None and not speaker.removed:
                found.update({(subject, *place, key): word for key, word in words.items() if measured(key)})
    return found


def measured(key: str) -> bool:
    """True for gauges and counters."""
    entry = ATTRIBUTES.get(key)
    return entry is not None and entry.kind is not Kind.FACT


def node_record(node: Node, site: Site) -> NodeRecord:
    """The node as it is stored."""
    said = {(node.id, source): words for source, words in node.voices.items()}
    return NodeRecord(
        id=node.id,
        name=node.name,
        machine_id=node.machine_id,
        system=node.shown_system,
        former_names=tuple(sorted(node.former)),
        created_at=node.created_at,
        last_at=node.last_at,
        voices=(*voices(site, said), *operator_voice(node.operator, node.id)),
    )


def source_record(site: Site, place: Place) -> SourceRecord:
    """The source as it is stored."""
    s = site.speakers[place]
    node = site.nodes.get(place[0])
    return SourceRecord(
        node=place[0],
        node_name=node.name if node else "",
        source=place[1],
        channel=s.channel,
        witness=s.witness,
        cadence=s.cadence,
        promise=s.promise,
        reporter=s.reporter,
        first_at=s.first_at,
        last_at=s.last_at,
        listed_at=s.listed_at,
        outcome=s.outcome,
        detail=s.detail,
        cards=s.cards,
        silent=s.silent,
        removed=s.removed,
        stuck=s.stuck,
        standing_by=s.standing_by,
        unknown_shape=s.unknown_shape,
    )
