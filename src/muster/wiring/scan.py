# SPDX-License-Identifier: Apache-2.0
"""The cards of one machine without a server: what its sources saw, through the same merge, and shown in the same form as the server would."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.collect.reports import Identity, Reports
from muster.collect.tell import Teller
from muster.domain.decide.view import Apart, CardView, view
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known
from muster.domain.model.roll import Finding, Word
from muster.domain.model.source import Outcome, ReaderKind
from muster.services.inventory import Inventory
from muster.spi.adapter import Adapter
from muster.spi.store import CurrentValue, RollReader
from muster.store import open_store
from muster.wire import documents, shown
from muster.wire.report import NodeDoc
from muster.wiring.adapters import known_vendors
from muster.wiring.agent import CLOCK, boot_id
from muster.wiring.survey import NOTHING, Seen, Survey, survey


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The cards of a machine as documents of the API, and what each source found."""

    node: NodeDoc
    cards: list[documents.Card]
    seen: list[Seen]


def scan(machine: Path | None = None, outside: Sequence[str] = (), *, root: str = "/") -> Scan:
    """Looks at this machine, or at a recorded one. Raises NotFound or InputError for a recording that cannot be used."""
    found = survey(machine, outside, root=root)
    cards = merged(found)
    return Scan(node=found.eyes.node, cards=cards, seen=found.seen() if cards else [*found.seen(), *_logs(found)])


def _logs(found: Survey) -> Iterator[Seen]:
    """Logs of a recording, which a scan does not read: the reason why one that has nothing else shows no card."""
    read = {each.source.id for each in found.rounds}
    for adapter in found.eyes.adapters if found.eyes.real is None else ():
        for source in adapter.sources:
            if source.reader is ReaderKind.STREAM and source.id not in read:
                why = "a log: it tells what happened to cards, and lists none"
                yield Seen(source=source.id, adapter=adapter.manifest.name, state=NOTHING, outcome=Outcome.NO_DEVICES.value, why=why)


def merged(found: Survey) -> list[documents.Card]:
    """The cards that the rounds of one look make together."""
    adapters, now = found.eyes.adapters, CLOCK.wall()
    policy = Policy(
        known_vendors=frozenset(known_vendors(adapters)),
        vendor_words=frozenset(word for each in adapters for word in each.manifest.words),
    )
    store = open_store(None)
    try:
        inventory = Inventory(store.writer, policy, now)
        boot = boot_id()
        told = Teller(boot, names=True).tell(each for each in found.rounds if found.here(each))
        reports = Reports(Identity(node=found.eyes.node, boot_id=boot), CLOCK, lambda: "scan")
        for report in reports.build(told.listings, told.events, told.captures):
            inventory.report(report, now)
        return _shown(store.reader, policy, now, adapters)
    finally:
        store.close()


def _shown(reader: RollReader, policy: Policy, now: float, adapters: Sequence[Adapter]) -> list[documents.Card]:
    records = reader.cards()
    apart = _apart(reader.current())
    findings: dict[str, list[Finding]] = defaultdict(list)
    for row in reader.findings():
        for card in dict.fromkeys((*row.finding.cards, row.finding.subject)):
            findings[card].append(row.finding)
    nodes = {node.id: node.name for node in reader.nodes()}
    views = [view(card, apart, policy, now) for card in records]
    return [shown.card(each, _vendor(each, adapters), findings.get(each.record.id, []), nodes) for each in views]


def _apart(values: Sequence[CurrentValue]) -> Apart:
    apart: dict[str, dict[tuple[str, str], dict[str, Word]]] = defaultdict(lambda: defaultdict(dict))
    for each in values:
        apart[each.subject][(each.node, each.source)][each.key] = each.word
    return apart


def _vendor(card: CardView, adapters: Sequence[Adapter]) -> str | None:
    """The maker's name, by the PCI vendor id, else by the adapter that named the product."""
    on_bus, named = card.readings.get("pci.vendor_id"), card.readings.get("product.name")
    value = on_bus.reading.value if on_bus is not None and isinstance(on_bus.reading, Known) else None
    for each in adapters:
        by_source = value is None and named is not None and any(source.id == named.source for source in each.sources)
        if value in each.manifest.pci_vendors or (by_source and each.manifest.pci_vendors):
            return each.manifest.title
    return None
