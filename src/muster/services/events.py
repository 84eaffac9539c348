# SPDX-License-Identifier: Apache-2.0
"""Events find their card: by its names, or by who stood at the address on that node; an event without a card is kept with its node.

An event is its reporter's own: two reporters may call theirs the same, and neither changes the other's.
"""

from __future__ import annotations

import base64
import hashlib

from muster.domain.decide.merge import Roll
from muster.domain.decide.merge.nodes import find, keys
from muster.domain.decide.merge.state import Site, Turn
from muster.domain.model.names import NameKind, canonical
from muster.domain.model.policy import Policy
from muster.domain.model.roll import NodeNames
from muster.spi.store import EventRow
from muster.wire.report import EventDoc, ReportDoc

MOST_REPEATS = 2**31
"""What repeats more often is told as this often."""


def place_events(roll: Roll, doc: ReportDoc, policy: Policy) -> list[EventRow]:
    """The events of a report as rows, each on its card where one is found."""
    if not doc.events:
        return []
    names = NodeNames(name=doc.node.name, machine_id=doc.node.machine_id, system=doc.node.system)
    system, machine, name = keys(names, policy)
    found = next(((r.site, n) for r in roll.regions.values() if (n := find(r.site, system, machine, name)) is not None), None)
    site, node = (found[0], found[1].id) if found else (Site(), "")
    own = mark(doc.reporter)
    return [_row(site, node, doc, each, own) for each in doc.events]


def mark(reporter: str) -> str:
    """With what the ids of a reporter's events begin: nobody finds another name that makes the same."""
    told = hashlib.blake2b(reporter.encode("utf-8", "backslashreplace"), digest_size=10).digest()
    return base64.b32encode(told).decode().lower()


def _row(site: Site, node: str, doc: ReportDoc, each: EventDoc, own: str) -> EventRow:
    address = next((canonical(NameKind.PCI_ADDRESS, v) for k, v in each.ids if k == NameKind.PCI_ADDRESS), "")
    return EventRow(
        id=f"{own}-{each.id}",
        card=_card(site, node, each, address),
        node=node or doc.node.name,
        source=each.source,
        adapter=each.adapter,
        kind=each.kind,
        code=each.code,
        text=each.text,
        address=address,
        first_at=each.first_at,
        last_at=each.last_at,
        repeats=max(1, min(each.repeats, MOST_REPEATS)),
    )


def _card(site: Site, node: str, each: EventDoc, address: str) -> str:
    for kind, value in each.ids:
        if kind in (NameKind.VENDOR_UUID, NameKind.SERIAL):
            form = canonical(NameKind(kind), value)
            held = [c.id for c in site.cards.values() if form in c.names.get(NameKind(kind), {})]
            if len(held) == 1:
                return held[0]
    device = address.rpartition(".")[0]
    if not device:
        return ""
    best: tuple[Turn, str] | None = None
    for card in site.cards.values():
        for place, claim in card.claims.items():
            if place[0] == node and not claim.void and any(a.rpartition(".")[0] == device for a in claim.addresses) and (best is None or claim.n > best[0]):
                best = (claim.n, card.id)
    return best[1] if best else ""
