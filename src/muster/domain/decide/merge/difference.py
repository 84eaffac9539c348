# SPDX-License-Identifier: Apache-2.0
"""What one step changed: records, history, findings and samples, from the states before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from muster.domain.decide.merge.findings import findings
from muster.domain.decide.merge.match import Point
from muster.domain.decide.merge.news import differ
from muster.domain.decide.merge.record import aside, card_record, measured_words, node_record, source_record
from muster.domain.decide.merge.region import Merged, Roll
from muster.domain.decide.merge.state import Card, Place, Site, Speaker
from muster.domain.decide.merge.words import said_at
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Act, Again, CardRecord, Change, Listing, Sample, SourceRecord, Word


def difference(
    old: Site, new: Site, policy: Policy, now: float, *, whole: bool, rewrite: bool, known: Mapping[str, CardRecord] | None
) -> tuple[Merged, dict[str, CardRecord]]:
    """What changed, and the records of all cards. ``known`` are those of ``old`` where they are at hand."""
    was: Mapping[str, CardRecord] = {}
    if not whole:
        set_aside = aside(old, now) if known is None else frozenset()
        was = known if known is not None else {i: card_record(old, c, policy, now, set_aside) for i, c in old.cards.items()}
    views = aside(new, now)
    is_now = {i: card_record(new, c, policy, now, views) for i, c in new.cards.items()}
    cards = tuple(r for i, r in is_now.items() if was.get(i) != r)
    changes, superseded = _history(old, new, now)
    fresh = tuple(sorted(changes, key=lambda c: (c.at, c.subject)))
    vanished = tuple(sorted(i for i in old.cards if i not in new.cards and i not in new.gone))
    gone = {i: new.gone[i] for i in new.gone if old.gone.get(i) != new.gone[i]}
    rebound = tuple(r.id for r in cards) if rewrite else ()
    merged = Merged(
        roll=Roll(),
        cards=cards,
        gone=gone,
        nodes=tuple(
            r for i, n in new.nodes.items() if (r := node_record(n, new)) != (node_record(old.nodes[i], old) if i in old.nodes and not whole else None)
        ),
        sources=tuple(sources({} if whole else old.speakers, old, new)),
        samples=tuple(each for i in rebound for each in _all_samples(new, new.cards[i])),
        rebound=rebound,
        nodes_gone=tuple(sorted(old.nodes.keys() - new.nodes.keys())),
        sources_gone=tuple(sorted(old.speakers.keys() - new.speakers.keys())),
        vanished=vanished,
        changes=fresh,
        superseded=superseded,
        findings=tuple(findings(new, now, policy)),
        news=bool(rewrite or fresh or superseded or vanished or gone) or any(c.id not in was or differ(was[c.id], c) for c in cards),
    )
    return merged, is_now


def sources(before: Mapping[Place, Speaker], old: Site, new: Site) -> Iterator[SourceRecord]:
    """Records of the sources that changed; one that is as it was, on a node of the same name, needs no record to tell."""
    for place, speaker in new.speakers.items():
        known = before.get(place)
        name, known_name = new.nodes.get(place[0]), old.nodes.get(place[0])
        if known is not None and (known is speaker or known == speaker) and (name.name if name else "") == (known_name.name if known_name else ""):
            continue
        record = source_record(new, place)
        if known is None or known.last_at != speaker.last_at or record != source_record(old, place):
            yield record


def _history(old: Site, new: Site, now: float) -> tuple[list[Change], tuple[str, ...]]:
    """Entries that are new, and ids of those that are untrue. One that a late word only corrected is both: it is learnt now, in the place of the old one."""
    before = {c.id: c for card in old.cards.values() for c in card.history}
    after = {c.id: c for card in new.cards.values() for c in card.history}
    corrected = {i for i, c in after.items() if i in before and before[i] is not c and before[i].detail != c.detail}
    fresh = [replace(c, learnt_at=now) if i in corrected else c for i, c in after.items() if i not in before or i in corrected]
    return fresh, tuple(sorted((before.keys() - after.keys()) | corrected))


def samples(site: Site, points: Sequence[Point], said: Listing | Act | Again) -> tuple[Sample, ...]:
    """What one listing measured, bound to its subjects, late or not."""
    cards = {piece.id: card.id for card in site.cards.values() for piece in (*card.devices, *card.partitions)} | {i: i for i in site.cards}
    found: list[Sample] = []
    for point in points:
        card = cards.get(point.owner.id)
        if card is None:
            continue
        number = float(point.value) if isinstance(point.value, int | float) and not isinstance(point.value, bool) else None
        word = point.owner.voices.get(point.place, {}).get(point.key) or Word(value=point.value, at=said.at)
        node, source = point.place
        found.append(
            Sample(subject=point.owner.id, card=card, node=node, source=source, key=point.key, at=said.at, value=number, word=word, reading=point.reading)
        )
    return tuple(found)


def _all_samples(site: Site, card: Card) -> list[Sample]:
    """The current gauges and counters of a card, to be written anew; they are no new points of the roll-ups."""
    return [
        Sample(subject=subject, card=card.id, node=node, source=source, key=key, at=said_at(word), value=None, word=word, rollup=False)
        for (subject, node, source, key), word in measured_words(site, card).items()
    ]
