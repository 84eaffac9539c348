# SPDX-License-Identifier: Apache-2.0
"""What a quick step changed: records of which only times moved are made from those before, the others as ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.domain.decide.merge.calm import Still
from muster.domain.decide.merge.difference import sources
from muster.domain.decide.merge.findings import findings
from muster.domain.decide.merge.news import differ, words
from muster.domain.decide.merge.quick import Step
from muster.domain.decide.merge.record import apart, card_record, node_record, told_details
from muster.domain.decide.merge.state import Card, Site
from muster.domain.decide.merge.values import increase
from muster.domain.model.policy import Policy
from muster.domain.model.roll import CardRecord, Change, Claim, Finding, NodeRecord, SourceRecord, Voice

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Moves:
    """What a quick step changed, and the records of all cards after it."""

    records: dict[str, CardRecord]
    cards: tuple[CardRecord, ...]
    nodes: tuple[NodeRecord, ...]
    sources: tuple[SourceRecord, ...]
    changes: tuple[Change, ...]
    findings: tuple[Finding, ...]
    news: bool


def moves(old: Site, step: Step, known: Mapping[str, CardRecord], policy: Policy, now: float) -> Moves:
    """What changed, and the records of all cards; the same as `difference` finds."""
    site, is_now = step.site, dict(known)
    cards: list[CardRecord] = []
    changes: list[Change] = []
    news = False
    for i, card in site.cards.items():
        before, was = old.cards[i], known[i]
        about = step.stills.get(i)
        if about is None or (card is before and not about.meters):
            continue
        made, moved = _record(step, card, before, was, about, policy, now)
        is_now[i] = made
        if not moved and made == was:
            continue
        cards.append(made)
        if card.history is not before.history:
            changes.extend(card.history[len(before.history) :])
        news = news or _news(step, was, made, about)
    changes.sort(key=lambda c: (c.at, c.subject))
    return Moves(
        records=is_now,
        cards=tuple(cards),
        nodes=tuple(r for i, n in site.nodes.items() if (r := node_record(n, site)).last_at != old.nodes[i].last_at or r != node_record(old.nodes[i], old)),
        sources=tuple(sources(old.speakers, old, site)),
        changes=tuple(changes),
        findings=tuple(findings(site, now, policy, step.stills if step.after is not None else None)),
        news=news or bool(changes),
    )


def _news(step: Step, was: CardRecord, made: CardRecord, about: Still) -> bool:
    """True when more than times and moving numbers changed."""
    if about.alike:
        return differ(was, made)
    if made.disagree != was.disagree:
        return True
    if made.id not in step.anew:
        return False
    if len(was.voices) != len(made.voices):
        return True
    return not all(one is two or words(one, two) for one, two in zip(was.voices, made.voices, strict=True))


def _record(step: Step, card: Card, before: Card, was: CardRecord, about: Still, policy: Policy, now: float) -> tuple[CardRecord, bool]:
    """The card's record, and whether it is surely another than before."""
    if about.alike:
        return card_record(step.site, card, policy, now, NOBODY), False
    claims, moved = _claims(was, before, card)
    voices = was.voices if card.voices is before.voices else _voices(step, was, before, card, policy)
    increased, counted = was.increase, was.counted
    if about.meters or card.uses is not before.uses:
        used = increase(step.site, card, policy, now)
        increased, counted = {key: use.total for key, use in used.items()}, {key: use.last for key, use in used.items()}
    details = was.details if card.details is before.details else told_details(step.site, card)
    disagree = was.disagree if card.near is before.near else tuple(sorted(key for key, apart in card.near.items() if apart))
    made = CardRecord(
        id=was.id,
        role=was.role,
        created_at=was.created_at,
        rung=was.rung,
        presence=was.presence,
        presence_at=was.presence_at,
        node=was.node,
        node_name=was.node_name,
        system=was.system,
        slot=was.slot,
        address=was.address,
        index=was.index,
        ids=was.ids,
        former_ids=was.former_ids,
        conflicts=was.conflicts,
        aside=was.aside,
        claims=claims,
        voices=voices,
        node_voices=was.node_voices,
        devices=was.devices,
        partitions=was.partitions,
        increase=increased,
        counted=counted,
        disagree=disagree,
        place=was.place,
        details=details,
    )
    return made, moved


def _claims(was: CardRecord, before: Card, card: Card) -> tuple[tuple[Claim, ...], bool]:
    """The claims, and whether one of them is of another time."""
    if card.claims is before.claims:
        return was.claims, False
    found, moved = list(was.claims), False
    for i, each in enumerate(found):
        place = (each.node, each.source)
        claim = card.claims[place]
        if claim is before.claims[place] or claim.at == each.at:
            continue
        moved = True
        found[i] = Claim(
            node=each.node,
            source=each.source,
            channel=each.channel,
            ids=each.ids,
            slot=each.slot,
            addresses=each.addresses,
            index=each.index,
            first_at=each.first_at,
            at=claim.at,
            promise=each.promise,
            denied_at=None,
            confirmed_at=None,
            void=False,
        )
    return tuple(found), moved


def _voices(step: Step, was: CardRecord, before: Card, card: Card, policy: Policy) -> tuple[Voice, ...]:
    found = list(was.voices)
    for i, each in enumerate(found):
        place = (each.node, each.source)
        said = card.voices.get(place)
        if said is None or said is before.voices[place]:
            continue
        made = step.voices.get(id(said))
        if made is None:
            same = step.anew.get(card.id, ()) is not None and len(said) == len(each.words)
            told = said if same else {key: word for key, word in said.items() if not apart(key, policy)}
            made = Voice(node=each.node, source=each.source, channel=each.channel, witness=each.witness, promise=each.promise, words=told)
            step.voices[id(said)] = made
        found[i] = made
    return tuple(found)
