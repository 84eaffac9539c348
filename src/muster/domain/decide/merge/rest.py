# SPDX-License-Identifier: Apache-2.0
"""When a part of the site is at rest: nothing in it waits for time or for a second look, so that a source which says the same again changes nothing but times.

Then such words need not be folded one by one: the last of a run stands for all.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from muster.domain.decide.merge.state import Card, Node, Place, Site, Speaker
from muster.domain.model.policy import Policy

NEVER = float("inf")
AFTER = 0.002
"""Seconds after a promise ran out at which it is surely so."""


def at_rest(site: Site, now: float, policy: Policy) -> bool:
    """True when no timer runs that is not run out, and no absence waits for a second look."""
    return (
        all(_speaker(each, now, policy) for each in site.speakers.values())
        and all(_card(each, now, policy) for each in site.cards.values())
        and all(_node(each, now, policy) for each in site.nodes.values())
    )


def _speaker(speaker: Speaker, now: float, policy: Policy) -> bool:
    return speaker.removed or (not speaker.stuck and _ran_out(speaker.unjoined_at, now, policy))


def _card(card: Card, now: float, policy: Policy) -> bool:
    if card.contested or any(claim.denied_at is not None and claim.confirmed_at is None for claim in card.claims.values()):
        return False
    shelved = card.shelf is None or card.shelf.left or _ran_out(card.shelf.at, now, policy)
    return shelved and _ran_out(card.cut_lost_at, now, policy) and all(_ran_out(since, now, policy) for since in card.dissent.values())


def _node(node: Node, now: float, policy: Policy) -> bool:
    return _ran_out(node.more_since, now, policy)


def _ran_out(since: float | None, now: float, policy: Policy) -> bool:
    return since is None or now - since > policy.settle


def next_due(site: Site, running: Container[Place], now: float, policy: Policy) -> float:
    """When time alone changes something next: a promise or a timer runs out. Promises of ``running`` sources are left aside: their runs go on elsewhere."""
    due = min((since + policy.settle for since in _timers(site) if now - since < policy.settle), default=NEVER)
    for place, speaker in site.speakers.items():
        if not (speaker.silent or speaker.removed or speaker.standing_by or place in running):
            due = min(due, speaker.last_at + speaker.promise + AFTER)
    for card in site.cards.values():
        for place, claim in card.claims.items():
            if not claim.expired and not (place in running and _told_last(site, place, claim.at)):
                due = min(due, claim.at + site.promise(place) + AFTER)
    for kind, value in site.shared:
        live = (at + promise + AFTER for at, promise in site.claimed.get((str(kind), value), {}).values() if now - at <= promise)
        due = min(due, min(live, default=NEVER))
    return due


def _timers(site: Site) -> Iterator[float]:
    """Since when things last that are told once they have lasted."""
    found: list[float | None] = [speaker.unjoined_at for speaker in site.speakers.values()]
    found += [node.more_since for node in site.nodes.values()]
    for card in site.cards.values():
        found += [card.cut_lost_at, card.shelf.at if card.shelf is not None else None, *card.dissent.values()]
    return (since for since in found if since is not None)


def _told_last(site: Site, place: Place, at: float) -> bool:
    """True when the claim was in the source's last listing, so that its run carries it on."""
    speaker = site.speakers.get(place)
    return speaker is not None and speaker.listed_at is not None and at >= speaker.listed_at
