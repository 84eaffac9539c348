# SPDX-License-Identifier: Apache-2.0
"""The operator's words: they do not age, they win for what is theirs to say, and they can say same, not the same, stored, retired."""

from __future__ import annotations

from muster.domain.decide.merge.join import join, take
from muster.domain.decide.merge.match import Moment, named
from muster.domain.decide.merge.nodes import keys, resolve
from muster.domain.decide.merge.state import Card, Place, Shelf, Site, Told, digest
from muster.domain.decide.merge.words import heard
from muster.domain.model.names import NameKind, canonical
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known
from muster.domain.model.roll import Act, ActKind, Happening, NodeNames, Presence, Rung, Word


def act(site: Site, said: Act, moment: Moment, policy: Policy) -> None:
    """Applies one word of the operator."""
    if said.what is ActKind.REMOVE_SOURCE:
        _remove_source(site, said, moment, policy)
        return
    if said.what is ActKind.SET and said.node and not said.card:
        node = resolve(site, NodeNames(name=said.node), moment.at, policy)
        _put(node.operator, said, moment)
        return
    card = pick(site, said.card) or (_unseen(site, said, moment) if said.what in (ActKind.STORE, ActKind.SET, ActKind.RETIRE) else None)
    if card is None:
        return
    if said.what is ActKind.SAME:
        _same(site, card, said, moment)
    elif said.what is ActKind.NOT_SAME:
        _not_same(site, card, said, moment)
    else:
        _say(site, card, said, moment)


def _say(site: Site, card: Card, said: Act, moment: Moment) -> None:
    if said.what in (ActKind.STORE, ActKind.RETIRE):
        presence = Presence.STORED if said.what is ActKind.STORE else Presence.RETIRED
        nodes = tuple(sorted({p[0] for p, c in card.claims.items() if site.sees(p, c, moment.at)}))
        card.shelf = Shelf(presence=presence, at=moment.at, place=said.place, nodes=nodes, left=not nodes)
        card.became(presence, moment.at)
        kind = Happening.STORED if said.what is ActKind.STORE else Happening.RETIRED
        card.note(kind, moment.at, moment.learnt, by=said.by, place=said.place, reason=said.reason)
    if said.values:
        _put(card.operator, said, moment)
        card.note(Happening.OPERATOR_CHANGED, moment.at, moment.learnt, by=said.by, values=dict(said.values), reason=said.reason)


def _put(words: dict[str, Word], said: Act, moment: Moment) -> None:
    for key, value in said.values.items():
        if value is None:
            words.pop(key, None)
        else:
            words[key] = heard(words.get(key), Known(value), moment.at)


def pick(site: Site, ids: object) -> Card | None:
    """The card with these ids, by the strongest kind that is given; None when there is none or several."""
    given = dict(ids) if isinstance(ids, dict) else {}
    own = given.get("id", "")
    own = site.gone.get(own, own)
    if own in site.cards:
        return site.cards[own]
    for kind in NameKind:
        if kind.value in given:
            value = canonical(kind, str(given[kind.value]))
            found = [c for c in site.cards.values() if value in c.names.get(kind, {})]
            told = [c for c in found if c.names[kind][value].by] or found
            return told[0] if len(told) == 1 else None
    return None


def _unseen(site: Site, said: Act, moment: Moment) -> Card | None:
    """A card that no machine has shown yet: it exists by the operator's word."""
    given = {kind: canonical(kind, str(said.card[kind.value])) for kind in NameKind if kind.value in said.card}
    if not given or any(value in c.names.get(kind, {}) for c in site.cards.values() for kind, value in given.items()):
        return None
    card = Card(id="c-" + digest("operator", f"{moment.at:.3f}", *sorted(given.values())), created_at=moment.at, created_n=moment.n, presence_at=moment.at)
    card.best = Rung.UUID if NameKind.VENDOR_UUID in given else Rung.SERIAL_MODEL if NameKind.SERIAL in given else Rung.NODE_INDEX
    operator: Place = ("", "operator")
    for kind, value in given.items():
        card.names[kind] = {value: Told(str(said.card[kind.value]), {operator})}
    site.cards[card.id] = card
    return card


def _remove_source(site: Site, said: Act, moment: Moment, policy: Policy) -> None:
    system, machine, name = keys(NodeNames(name=said.node), policy)
    del system, machine
    nodes = {n.id for n in site.nodes.values() if n.id == said.node or canonical(NameKind.HOSTNAME, n.name) == name or name in n.former}
    for place, speaker in site.speakers.items():
        if place[0] in nodes and place[1] == said.source and not speaker.removed:
            speaker.removed = True
            for card in site.cards.values():
                if place in card.claims:
                    del card.claims[place]
                    card.note(Happening.SOURCE_REMOVED, moment.at, moment.learnt, source=place[1], node=place[0], by=said.by)
                card.lost_at.pop(place, None)
    for spot in [s for s in site.drift if s[0] in nodes and s[1] == said.source]:
        del site.drift[spot]


def _same(site: Site, card: Card, said: Act, moment: Moment) -> None:
    """The two records are one card, whatever their names say; later words on either name mean that card."""
    other = pick(site, said.other)
    if other is None or other is card:
        return
    site.apart = {p for p in site.apart if not (set(p) & named(card) and set(p) & named(other))}
    kept, _ = join(site, card, other, moment.at, moment.learnt)
    kept.note(Happening.OPERATOR_CHANGED, moment.at, moment.learnt, by=said.by, same=dict(said.other), reason=said.reason)
    for kind in (NameKind.VENDOR_UUID, NameKind.SERIAL):
        values = sorted(kept.names.get(kind, {}), key=lambda v: (not kept.names[kind][v].by, v))
        for value in values[1:]:
            site.together[f"{kind}={value}"] = values[0]


def _not_same(site: Site, card: Card, said: Act, moment: Moment) -> None:
    """The two are never one card. Where one record holds both, what was told under the other name becomes a record of its own."""
    other = pick(site, said.other)
    one, two = _best(said.card, card), _best(said.other, other or card)
    if not one or not two or one == two:
        return
    site.apart.add((one, two))
    for name in (one, two):
        site.together.pop(name, None)
    if other is None or other.id != card.id:
        for each in (card, other):
            if each is not None:
                each.note(Happening.OPERATOR_CHANGED, moment.at, moment.learnt, by=said.by, not_same=two, reason=said.reason)
        return
    kind, _, value = two.partition("=")
    told = card.names.get(NameKind(kind), {}).get(value) if kind != "id" else None
    places = set(told.by) if told else set()
    keep = {p for p in card.claims if p not in places}
    if told is None or not places or not keep:
        return
    first = min((card.claims[p].first_at for p in places if p in card.claims), default=moment.at)
    made = Card(id="c-" + digest("apart", card.id, two), created_at=first, created_n=moment.n, presence_at=moment.at, node=card.node, best=card.best)
    made.installed, made.presence = card.installed, card.presence
    take(card, made, places)
    site.cards[made.id] = made
    if made.installed:
        made.note(Happening.INSTALLED, first, moment.learnt)
    for each in (card, made):
        each.note(Happening.OPERATOR_CHANGED, moment.at, moment.learnt, by=said.by, not_same=two, reason=said.reason)


def _best(given: object, card: Card) -> str:
    """The strongest name given, as ``kind=value``; our own id stands for the card's best name."""
    ids = dict(given) if isinstance(given, dict) else {}
    for kind in NameKind:
        if kind.value in ids:
            return f"{kind}={canonical(kind, str(ids[kind.value]))}"
    for kind in (NameKind.VENDOR_UUID, NameKind.SERIAL):
        if card.values(kind):
            return f"{kind}={card.values(kind)[0]}"
    return f"id={card.id}"
