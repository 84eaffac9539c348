# SPDX-License-Identifier: Apache-2.0
"""A small site: texts of tools go through their adapter, a report and the store; cards come back as they are shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from muster.domain.decide.view import CardView, view
from muster.domain.model.observation import Interpretation
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known, Reading
from muster.domain.model.roll import Finding
from muster.domain.model.source import Capture, Source
from muster.services.inventory import Inventory
from muster.spi.adapter import HEAD
from muster.store import open_store
from muster.wire.mapping import Seeing, to_event_docs, to_listing_doc
from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from muster.wiring.adapters import adapter, adapters, known_vendors

EPOCH = 1_800_000_000.0


def understand(name: str, text: str | bytes, *, locator: Sequence[str] = ("tool",), form: str | None = None) -> Interpretation:
    """What the adapter makes of a text, by the format that it sees in it (or ``form``)."""
    payload = text.encode() if isinstance(text, str) else text
    each = adapter(name)
    seen = form or each.recognise(payload[:HEAD])
    assert seen is not None, f"{name} does not know this text"
    context = {"known_vendors": ",".join(known_vendors(adapters()))}
    return each.interpret([Capture(source=each.sources[0].id, locator=tuple(locator), format=seen, payload=payload, exit_status=0, context=context)])


class Site:
    """Nodes report, and what was believed comes back."""

    def __init__(self) -> None:
        self.policy = Policy(known_vendors=frozenset(known_vendors(adapters())))
        self.store = open_store(None)
        self.inventory = Inventory(self.store.writer, self.policy, EPOCH)
        self.number: dict[str, int] = defaultdict(int)
        self.now = EPOCH

    def text(self, at: float, node: str, name: str, text: str | bytes, **how: Any) -> None:
        """One round of the adapter ``name`` on ``node``: the text is what its first source printed."""
        told = understand(name, text, **how)
        source = adapter(name).sources[0] if adapter(name).sources else None
        assert source is not None
        self.told(at, node, source, told)

    def told(self, at: float, node: str, source: Source, told: Interpretation) -> None:
        """One round of ``source`` with its events."""
        now = EPOCH + at
        events = to_event_docs(told.events, source=str(source.id), adapter=source.adapter, boot_id="b", place=lambda _: "0", seen_at=now)
        self._send(node, now, [to_listing_doc(source, told, Seeing(at=now))] if told.observations or not told.events else [], events)

    def plain(self, at: float, node: str, observations: Sequence[ObservationDoc], *, source: str = "driver", complete: bool = True) -> None:
        """A listing given as plain observations, for cases that no tool's text is part of."""
        now = EPOCH + at
        doc = ListingDoc(
            source=source,
            channel="in_band",
            witness="driver",
            cadence=60,
            outcome="devices",
            complete=complete,
            observed_at=now,
            observations=list(observations),
        )
        self._send(node, now, [doc], [])

    def _send(self, node: str, now: float, listings: list[ListingDoc], events: list[Any]) -> None:
        self.number[node] += 1
        doc = ReportDoc(
            reporter=f"agent@{node}", incarnation="i1", sequence=self.number[node], node=NodeDoc(name=node), sent_at=now, listings=listings, events=events
        )
        assert self.inventory.report(doc, now).answer == "applied"
        self.now = now
        self.inventory.tick(now)

    def cards(self) -> list[CardView]:
        """All cards as they are shown now."""
        apart: dict[str, dict[tuple[str, str], dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
        for value in self.store.reader.current():
            apart[value.subject][value.node, value.source][value.key] = value.word
        return [view(card, apart, self.policy, self.now) for card in self.store.reader.cards()]

    def findings(self) -> list[Finding]:
        """What is open."""
        return [row.finding for row in self.store.reader.findings()]


def card(ids: dict[str, str], **facts: Any) -> ObservationDoc:
    """A card of a plain listing."""
    return ObservationDoc(
        level="card", ids=[(kind, value) for kind, value in ids.items() if value], readings={key.replace("__", "."): {"v": v} for key, v in facts.items()}
    )


def value(reading: Reading | None) -> Any:
    """The value, ``!reason`` of an absence, or None where nobody speaks of it."""
    if reading is None:
        return None
    return reading.value if isinstance(reading, Known) else f"!{reading.why.value}"
