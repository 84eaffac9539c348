# SPDX-License-Identifier: Apache-2.0
"""What a person should know of one part of the site at a moment: a pure reading of its state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from muster.domain.decide.merge.calm import Still
from muster.domain.decide.merge.record import aside, role
from muster.domain.decide.merge.sight import crowded
from muster.domain.decide.merge.state import STRONG, Card, Place, Site, Speaker, digest
from muster.domain.decide.merge.values import SERIAL
from muster.domain.model.names import NameKind
from muster.domain.model.observation import Role
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Finding, FindingKind, Happening, Presence
from muster.domain.model.source import Outcome, WitnessClass

K = FindingKind
_FAILED = frozenset({Outcome.DRIVER_UNUSABLE, Outcome.NOT_PERMITTED, Outcome.TIMED_OUT, Outcome.UNREACHABLE, Outcome.UNREADABLE, Outcome.PARTIAL})


def findings(site: Site, now: float, policy: Policy, calm: Mapping[str, Still] | None = None) -> list[Finding]:
    """Everything open at ``now``. ``calm`` is what is known of a calm part's cards: there no two have one name or place, and nobody denies one."""
    found: list[Finding] = []
    for i, card in site.cards.items():
        about = calm.get(i) if calm is not None else None
        if (about.restless or about.bus) if about is not None else not _plain(site, card):
            found.extend(_of_card(site, card, now, policy))
    if calm is None:
        found.extend(_of_ids(site, now, policy))
        found.extend(_of_places(site, now))
    for place, speaker in site.speakers.items():
        found.extend(_of_source(site, place, speaker, now, policy))
    found.extend(_of_drift(site))
    found.extend(_of_nodes(site, now, policy))
    return found


def make(kind: FindingKind, subject: str, about: str, at: float, *, part: str = "", **more: object) -> Finding:
    """A finding whose id follows from what it is about and since when."""
    return Finding(id="f-" + digest(kind.value, subject, part), kind=kind, subject=subject, about=about, opened_at=at, **more)  # type: ignore[arg-type]  # fields by name


class _Name:
    """What a card is called in a sentence, found when it is needed."""

    __slots__ = ("_card", "_site")

    def __init__(self, site: Site, card: Card) -> None:
        self._site, self._card = site, card

    def __str__(self) -> str:
        card = self._card
        node = self._site.nodes.get(card.node or "")
        where = next((c.slot or (c.addresses[0] if c.addresses else "") for c in card.claims.values() if c.slot or c.addresses), "")
        return " · ".join(part for part in (node.name if node else "", where) if part) or card.id


def _plain(site: Site, card: Card) -> bool:
    """True for a card that is there, of which nobody denies or disputes anything: nothing is to be told of it."""
    if card.presence is not Presence.PRESENT or card.dissent or card.cut_lost_at is not None or card.shelf is not None:
        return False
    known = False
    for place, claim in card.claims.items():
        if claim.confirmed_at is not None:
            return False
        speaker = site.speakers.get(place)
        known = known or (speaker is not None and speaker.witness is not WitnessClass.PCI)
    return known


def _of_card(site: Site, card: Card, now: float, policy: Policy) -> Iterator[Finding]:
    node, cards, who = card.node or "", (card.id,), _Name(site, card)
    if card.presence is Presence.MISSING:
        about = f"{who}: no source sees the card any more; look whether it was pulled, or say `store` or `retire`"
        yield make(K.CARD_MISSING, card.id, about, card.presence_at, cards=cards, node=node)
    elif card.presence is Presence.PRESENT:
        for (where, source), claim in card.claims.items():
            if claim.confirmed_at is not None and where == card.node:
                about = f"{who}: {source} lists others but not this card, which is still seen"
                yield make(K.MISSING_FROM_SOURCE, card.id, about, claim.confirmed_at, part=source, cards=cards, node=node, source=source)
    for key, since in card.dissent.items():
        if now - since >= policy.settle:
            kind = SERIAL if key == SERIAL else key
            yield make(K.VALUES_DISAGREE, card.id, f"{who}: witnesses differ in {kind}", since + policy.settle, part=key, cards=cards, node=node, attribute=key)
    if card.cut_lost_at is not None and now - card.cut_lost_at >= policy.settle:
        about = f"{who}: partition mode {card.cut_mode} is on and no partition is left; cut the card again or switch the mode off"
        yield make(K.PARTITIONS_LOST, card.id, about, card.cut_lost_at + policy.settle, cards=cards, node=node)
    vendor = _nobody_speaks_for(site, card, now, policy)
    if vendor:
        about = f"{who}: only the bus sees it; no adapter speaks for PCI vendor {vendor}"
        yield make(K.NO_ADAPTER, card.id, about, card.created_at, cards=cards, node=node, attribute="pci.vendor_id", evidence={"pci.vendor_id": vendor})
    if card.shelf is not None and not card.shelf.left and now - card.shelf.at >= policy.settle and site.seen(card, now):
        about = f"{who}: said to be {card.shelf.presence}, but it is still seen in its place"
        yield make(K.OPERATOR_CONTRADICTED, card.id, about, card.shelf.at + policy.settle, cards=cards, node=node)


def _nobody_speaks_for(site: Site, card: Card, now: float, policy: Policy) -> str:
    """The PCI vendor id of an accelerator that only the bus sees and no adapter knows; empty otherwise."""
    if card.presence is not Presence.PRESENT or role(site, card) is not Role.ACCELERATOR:
        return ""
    if any(s.witness is not WitnessClass.PCI for p in card.claims if (s := site.speakers.get(p)) is not None):
        return ""
    seeing = {site.speakers[p].witness for p, c in card.claims.items() if site.sees(p, c, now)}
    if seeing != {WitnessClass.PCI}:
        return ""
    for words in card.voices.values():
        word = words.get("pci.vendor_id")
        if word is not None and word.at is not None:
            vendor = str(word.value).lower()
            return "" if vendor in policy.known_vendors else vendor
    return ""


def _of_ids(site: Site, now: float, policy: Policy) -> Iterator[Finding]:
    told: dict[tuple[NameKind, str], list[Card]] = defaultdict(list)
    for card in site.cards.values():
        for kind in STRONG:
            if kind.value in card.contested:
                for value in card.values(kind):
                    told[kind, value].append(card)
    for (kind, value), cards in sorted(told.items()):
        if len(cards) > 1 and len({c.node for c in cards}) > 1:
            since = max((c.at for card in cards for c in card.history if c.kind is Happening.IDENTITY_CONFLICT), default=now)
            about = f"{kind.value} {value} is told of cards on {len({c.node for c in cards})} nodes at once; one of them lies: compare the labels"
            yield make(K.IDENTITY_CONFLICT, f"{kind}={value}", about, since, cards=tuple(sorted(c.id for c in cards)))
    for kind_, value in sorted((k, v) for k, v in site.shared):
        nodes = site.claimed.get((str(kind_), value), {})
        live = [n for n, (at, promise) in nodes.items() if now - at <= promise]
        if len(live) >= policy.placeholder_nodes:
            about = f"{kind_} {value!r} is told by {len(live)} nodes: it names nothing; add it to the placeholders"
            yield make(K.PLACEHOLDER_ID, f"{kind_}={value}", about, min(nodes[n][0] for n in live), evidence={"nodes": sorted(live)})


def _of_places(site: Site, now: float) -> Iterator[Finding]:
    if not any(crowded(site, node) for node in {place[0] for card in site.cards.values() for place in card.claims}):
        return
    standing: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for card in site.cards.values():
        for place, claim in card.claims.items():
            if site.sees(place, claim, now):
                for spot in (*claim.addresses, *([f"slot {claim.slot}"] if claim.slot else [])):
                    standing[place[0], spot][card.id].add(place[1])
    told: set[tuple[str, frozenset[str]]] = set()
    for (node, spot), cards in sorted(standing.items()):
        if len(cards) > 1 and len(set().union(*cards.values())) > 1 and (node, frozenset(cards)) not in told:
            told.add((node, frozenset(cards)))
            name = site.nodes[node].name if node in site.nodes else node
            about = f"{name} {spot}: two sources tell two cards in one place"
            yield make(K.PLACE_CONFLICT, f"{node}/{spot}", about, now, cards=tuple(sorted(cards)), node=node)


def _speaks(speaker: Speaker, now: float) -> bool:
    """True for a source of which there is nothing to tell."""
    odd = speaker.stuck or speaker.unknown_shape or speaker.unjoined_at is not None or speaker.outcome in _FAILED or speaker.outcome is Outcome.TOOL_MISSING
    return not odd and (speaker.standing_by or now - speaker.last_at <= speaker.promise)


def _of_source(site: Site, place: Place, speaker: Speaker, now: float, policy: Policy) -> Iterator[Finding]:
    if speaker.removed or _speaks(speaker, now):
        return
    node, source = place
    name = f"{site.nodes[node].name if node in site.nodes else node}/{source}"
    subject = f"{node}/{source}"
    if not speaker.standing_by and now - speaker.last_at > speaker.promise:
        about = f"{name}: silent; it promised a word every {speaker.cadence:g} s; look at the agent, or `muster source remove {name}`"
        yield make(K.SOURCE_SILENT, subject, about, speaker.last_at + speaker.promise, node=node, source=source)
    missing_tool = speaker.outcome is Outcome.TOOL_MISSING and speaker.listed_at is not None
    if missing_tool or (speaker.outcome in _FAILED and not speaker.standing_by):
        about = f"{name}: {speaker.outcome.value}" + (f": {speaker.detail}" if speaker.detail else "")
        yield make(K.SOURCE_FAILED, subject, about, speaker.failed_at or speaker.last_at, node=node, source=source, evidence={"outcome": speaker.outcome.value})
    if speaker.stuck:
        about = f"{name}: a read hangs in a call that does not return; nothing more is read from it until that worker ends"
        yield make(K.SOURCE_HUNG, subject, about, speaker.stuck_at, node=node, source=source)
    if speaker.unknown_shape:
        about = f"{name}: a tool version or layout never seen: {speaker.unknown_shape}; send a recording (`muster record`)"
        yield make(K.SHAPE_UNKNOWN, subject, about, speaker.shape_at, node=node, source=source, evidence={"shape": speaker.unknown_shape})
    if speaker.unjoined_at is not None and now - speaker.unjoined_at >= policy.settle:
        about = f"{name}: its cards cannot be joined with those of another witness; they are kept aside, not counted"
        yield make(K.UNJOINED_VIEW, subject, about, speaker.unjoined_at + policy.settle, node=node, source=source, cards=_views(site, place, now))


def _views(site: Site, place: Place, now: float) -> tuple[str, ...]:
    return tuple(sorted(card for card in aside(site, now) if place in site.cards[card].claims))


def _of_drift(site: Site) -> Iterator[Finding]:
    for (node, source, key), cards in sorted(site.drift.items()):
        speaker = site.speakers.get((node, source))
        if not cards or speaker is None or speaker.removed:
            continue
        name = site.nodes[node].name if node in site.nodes else node
        versions = _versions(site, list(cards))
        about = (
            f"{name}/{source}: {key} was known and is asked for in vain now" + (f" ({versions})" if versions else "") + "; the tool renamed it, or dropped it"
        )
        yield make(
            K.ADAPTER_DRIFT,
            f"{node}/{source}",
            about,
            min(cards.values()),
            part=key,
            node=node,
            source=source,
            attribute=key,
            cards=tuple(sorted(cards)),
            evidence={"driver": versions},
        )


def _versions(site: Site, cards: list[str]) -> str:
    for card in cards:
        changes = [c for c in site.cards[card].history if c.kind is Happening.DRIVER_CHANGED] if card in site.cards else []
        if changes:
            return f"driver {changes[-1].detail.get('was')} to {changes[-1].detail.get('now')}"
    return ""


def _of_nodes(site: Site, now: float, policy: Policy) -> Iterator[Finding]:
    machines: dict[str, list[str]] = defaultdict(list)
    for node in site.nodes.values():
        if node.machine_id:
            machines[node.machine_id].append(node.id)
        if node.more_since is not None and now - node.more_since >= policy.settle:
            about = f"{node.name}: the cluster counts more cards than are usable here"
            yield make(K.COUNT_MISMATCH, node.id, about, node.more_since + policy.settle, node=node.id)
    for machine, nodes in sorted(machines.items()):
        if len(nodes) > 1:
            names = ", ".join(f"{site.nodes[n].name} ({site.nodes[n].shown_system})" for n in sorted(nodes))
            since = max(site.nodes[n].created_at for n in nodes)
            yield make(
                K.NODE_CLONED,
                machine,
                f"machine id {machine} is that of {len(nodes)} nodes: {names}; the image was cloned: give each its own",
                since,
                evidence={"nodes": sorted(nodes)},
            )
