# SPDX-License-Identifier: Apache-2.0
"""The journal form of what was said, and how it becomes a word for merge again: the same way for what just came and for what a starting server reads."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from muster.domain.decide.merge import Entry
from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.errors import InputError
from muster.domain.model.roll import Act, ActKind, Again, Listing, NodeNames, Same, Witness
from muster.domain.model.source import Channel, Outcome, WitnessClass
from muster.services.operator import typed
from muster.spi.store import Said
from muster.wire import report as wire
from muster.wire.mapping import to_known, to_observation_doc
from muster.wire.report import ActDoc, HeardDoc, ListingDoc, ReportDoc

LONGEST_CADENCE = 7 * 86400.0
"""Seconds; a source that speaks less often promises nothing worth waiting for."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The journal form of a word."""

    listing: ListingDoc | None
    act: ActDoc | None
    node: wire.NodeDoc | None
    reporter: str
    incarnation: str
    sequence: int
    at: float
    received_at: float
    again: tuple[tuple[wire.NodeDoc, str, float], ...] = ()
    """Nodes and sources that said the same again, each until when."""
    since: tuple[float, ...] = ()
    """From when on each of them did; empty in words of before that was told."""

    def packed(self) -> bytes:
        """As the store keeps it: msgpack, compressed."""
        return zlib.compress(msgspec.msgpack.encode(self), 1)


def listing(doc: ReportDoc, each: ListingDoc, skew: float, now: float) -> tuple[Listing, ListingDoc]:
    """A listing with its corrected time: by monotonic age where the boot is the same, else by the wall clock."""
    at = seen_at(doc, each, skew, now)
    return _domain(doc.node, doc.reporter, doc.incarnation, doc.sequence, each, at, now), each


def seen_at(doc: ReportDoc, each: ListingDoc | HeardDoc, skew: float, now: float) -> float:
    """The corrected time of seeing, never later than ``now``."""
    if not (math.isfinite(each.observed_mono) and math.isfinite(doc.sent_mono)):
        raise InputError(f"listing of {each.source}: its monotonic time is no number", hint="seconds of the reporter's monotonic clock")
    if each.boot_id == doc.boot_id and (each.observed_mono or doc.sent_mono):
        return min(doc.sent_at - max(0.0, doc.sent_mono - each.observed_mono) + skew, now)
    return min(each.observed_at + skew, now)


def _domain(node: wire.NodeDoc, reporter: str, incarnation: str, sequence: int, each: ListingDoc, at: float, received_at: float) -> Listing:
    try:
        channel, witness, outcome = Channel(each.channel), WitnessClass(each.witness), Outcome(each.outcome)
    except ValueError as wrong:
        raise InputError(f"listing of {each.source}: {wrong}", hint="is the agent newer than the server? Upgrade the server first") from wrong
    if channel is Channel.OPERATOR or witness is WitnessClass.OPERATOR:
        raise InputError(f"listing of {each.source}: a reporter cannot speak as the operator", hint="operators speak by acts")
    if not 0 <= each.cadence <= LONGEST_CADENCE:
        raise InputError(f"listing of {each.source}: a cadence of {each.cadence:g} s", hint=f"at most {LONGEST_CADENCE:g} s")
    return Listing(
        node=NodeNames(name=node.name, machine_id=node.machine_id, system=node.system),
        witness=Witness(source=each.source, channel=channel, witness=witness, cadence=each.cadence),
        reporter=reporter,
        incarnation=incarnation,
        sequence=sequence,
        at=at,
        received_at=received_at,
        complete=each.complete,
        outcome=outcome,
        counts=_counts(each.counts),
        observations=to_known(each),
        capture=each.capture,
        detail=each.detail,
        unknown_shape=each.unknown_shape,
        stuck=each.stuck,
        standing_by=each.standing_by,
    )


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by plural; a level's own word is taken too."""
    return {(k if k.endswith("s") else k + "s"): v for k, v in counts.items()}


def entry(said: Said) -> Entry:
    """A journal entry as merge takes it. Raises InputError when the store holds something else there."""
    stored = msgspec.msgpack.decode(zlib.decompress(said.body), type=Stored)
    if stored.act is not None:
        doc = stored.act
        act = Act(
            what=ActKind(doc.what),
            by=doc.by or "operator",
            at=stored.at,
            received_at=stored.received_at,
            card=doc.card,
            other=doc.other,
            node=doc.node,
            source=doc.source,
            values={k: typed(k, v) for k, v in doc.values.items()},
            place=doc.place,
            reason=doc.reason,
        )
        return Entry(stored.at, said.order, act)
    if stored.again:
        return Entry(stored.at, said.order, _again(stored))
    if stored.listing is None or stored.node is None:
        raise InputError(f"journal entry {said.order} is neither listing nor act", hint="the store is damaged: restore a backup")
    return Entry(
        stored.at,
        said.order,
        _domain(stored.node, stored.reporter, stored.incarnation, stored.sequence, stored.listing, stored.at, stored.received_at),
    )


def restated(word: Listing, at: float, now: float) -> tuple[Listing, Stored]:
    """The facts of an old listing, told once more at ``at``, and their journal form. Numbers that move are left out: they were others by then."""
    rows = tuple(replace(row, readings={key: told for key, told in row.readings.items() if ATTRIBUTES[key].kind is Kind.FACT}) for row in word.observations)
    made = replace(word, at=at, received_at=now, observations=rows, capture="")
    doc = ListingDoc(
        source=made.witness.source,
        channel=made.witness.channel.value,
        witness=made.witness.witness.value,
        cadence=made.witness.cadence,
        outcome=made.outcome.value,
        complete=made.complete,
        observed_at=at,
        counts=dict(made.counts),
        observations=[to_observation_doc(row) for row in rows],
        detail=made.detail,
        unknown_shape=made.unknown_shape,
        stuck=made.stuck,
        standing_by=made.standing_by,
    )
    node = wire.NodeDoc(name=word.node.name, machine_id=word.node.machine_id, system=word.node.system)
    return made, Stored(doc, None, node, word.reporter, word.incarnation, word.sequence, at, now)


def keep_again(word: Again) -> Stored:
    """The journal form of what sources said again."""
    told = tuple((wire.NodeDoc(name=s.node.name, machine_id=s.node.machine_id, system=s.node.system), s.source, s.at) for s in word.same)
    return Stored(None, None, None, "", "", 0, word.at, word.received_at, told, tuple(s.since for s in word.same))


def _again(stored: Stored) -> Again:
    since = stored.since or (0.0,) * len(stored.again)
    told = tuple(
        Same(node=NodeNames(name=n.name, machine_id=n.machine_id, system=n.system), source=source, since=begun, at=at)
        for (n, source, at), begun in zip(stored.again, since, strict=True)
    )
    return Again(at=stored.at, received_at=stored.received_at, same=told)


def keep_listing(doc: ReportDoc, each: ListingDoc, word: Listing) -> Stored:
    """The journal form of a listing."""
    return Stored(each, None, doc.node, doc.reporter, doc.incarnation, doc.sequence, word.at, word.received_at)


def keep_act(doc: ActDoc, said: Act) -> Stored:
    """The journal form of an operator's word, with the ids that it was found to mean."""
    return Stored(None, msgspec.structs.replace(doc, card=dict(said.card), other=dict(said.other)), None, doc.by, "", 0, said.at, said.received_at)
