# SPDX-License-Identifier: Apache-2.0
"""The roll as a user sees it whose scope is some nodes: every list without the rest, and what is out of sight is not there at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from muster.domain.decide.find import find
from muster.domain.decide.sight import sees
from muster.domain.model.errors import NotFound
from muster.domain.model.roll import CardRecord, NodeRecord, SourceRecord
from muster.spi.store import CaptureRow, ChangeRow, CurrentValue, EventRow, FindingRow, Fresh, News, Reporter, RollReader

STRETCH = 500
"""Rows that are read at once while those in sight are looked for."""
NODE = re.compile(r"n-[0-9a-f]{8,64}")
"""Our ids of nodes."""
MOST_AUDIT = 10_000
"""Entries of the audit among which those in sight are looked for."""


class Limited:
    """A reader behind patterns of node names; one for each request. What stands on no node is out of sight."""

    def __init__(self, reader: RollReader, patterns: Sequence[str]) -> None:
        self._reader = reader
        self._patterns = tuple(patterns)

    def _card(self, card: CardRecord) -> bool:
        return card.node is not None and sees(self._patterns, card.node_name)

    @cached_property
    def _cards(self) -> dict[str, CardRecord]:
        return {card.id: card for card in self._reader.cards() if self._card(card)}

    @cached_property
    def _parts(self) -> frozenset[str]:
        return frozenset(part.id for card in self._cards.values() for part in (*card.devices, *card.partitions))

    @cached_property
    def _nodes(self) -> frozenset[str]:
        return frozenset(node.id for node in self._reader.nodes() if sees(self._patterns, node.name))

    def node(self, word: str) -> bool:
        """True when a node of that id or name is in sight."""
        return word in self._nodes or (sees(self._patterns, word) and any(node.name.lower() == word.lower() for node in self.nodes()))

    def card(self, word: str) -> CardRecord:
        """The card in sight of that name. Raises NotFound or Ambiguous."""
        return find(word, list(self._cards.values()))

    def _about(self, ids: Iterable[str]) -> bool:
        return any(each in self._cards or each in self._nodes or each in self._parts for each in ids)

    def reporters(self, names: Iterable[str] | None = None, *, nodes: Iterable[str] | None = None) -> list[Reporter]:
        """Reporters that spoke last of a node in sight."""
        return [each for each in self._reader.reporters(names, nodes=nodes) if sees(self._patterns, each.node)]

    def version(self) -> int:
        """Number of the last commit that changed a record."""
        return self._reader.version()

    def fresh(self, after: int) -> Fresh:
        """Cards in sight that were written since a commit; those that left it are gone."""
        told = self._reader.fresh(after)
        written = list(told.cards)
        here = [card for card in written if self._card(card)]
        left = [card.id for card in written if not self._card(card)]
        return Fresh(version=told.version, cards=here, gone=[*told.gone, *left], regrounded=told.regrounded)

    def cards(self, at: float | None = None, ids: Iterable[str] | None = None) -> list[CardRecord]:
        """Cards that stood in sight then."""
        return [card for card in self._reader.cards(at, ids) if self._card(card)]

    def resolve(self, card: str) -> str:
        """The card that an id stands for now. Raises NotFound, also for one out of sight."""
        found = self._reader.resolve(card)
        if found not in self._cards:
            raise NotFound(f"no card {card!r}", hint="`/api/v1/cards` lists them")
        return found

    def current(self, cards: Iterable[str] | None = None, at: float | None = None, **more: Any) -> list[CurrentValue]:
        """Gauges and counters of cards in sight."""
        seen = self._cards.keys() if at is None else {card.id for card in self.cards(at)}
        return self._reader.current(seen if cards is None else [card for card in cards if card in seen], at, **more)

    def minutes(self, subject: str, key: str, since: float, until: float) -> list[Mapping[str, Any]]:
        """Roll-ups of a subject in sight; none of another."""
        return self._reader.minutes(subject, key, since, until) if self._about([subject]) else []

    def nodes(self, at: float | None = None, ids: Iterable[str] | None = None) -> list[NodeRecord]:
        """Nodes in sight."""
        return [node for node in self._reader.nodes(at, ids) if sees(self._patterns, node.name)]

    def sources(self, nodes: Iterable[str] | None = None) -> list[SourceRecord]:
        """Sources on nodes in sight."""
        return [source for source in self._reader.sources(nodes) if source.node in self._nodes]

    def changes(self, subject: str | None = None, after: int = 0, limit: int = 500, at: float | None = None, **more: Any) -> list[ChangeRow]:
        """History of what is in sight, without nodes that are not: a card may have come from one. Reads on while nothing of a stretch is."""
        if subject is not None and not self._about([subject]):
            return []
        while found := self._reader.changes(subject, after, max(limit, STRETCH), at, **more):
            here = [self._without_others(row) for row in found if self._about([row.change.subject])]
            if here:
                return here[:limit]
            if more.get("newest"):
                more["before"] = found[-1].number
            else:
                after = found[-1].number
        return []

    def _without_others(self, row: ChangeRow) -> ChangeRow:
        """The entry, in which ids of nodes out of sight are empty."""
        detail = {key: "" if self._hidden(value) else value for key, value in row.change.detail.items()}
        return row if detail == row.change.detail else replace(row, change=replace(row.change, detail=detail))

    def _hidden(self, value: Any) -> bool:
        return isinstance(value, str) and value not in self._nodes and NODE.fullmatch(value) is not None

    def news(self, after: int, limit: int = 500) -> list[News]:
        """What became of findings on what is in sight. Reads on while nothing of a stretch is."""
        while found := self._reader.news(after, max(limit, STRETCH)):
            here = [row for row in found if self._finding(row.row)]
            if here:
                return here[:limit]
            after = found[-1].number
        return []

    def findings(self, *, limit: int | None = None, before: tuple[float, str] | None = None, **more: Any) -> list[FindingRow]:
        """Findings on cards and nodes in sight, newest first."""
        if limit is None:
            return [row for row in self._reader.findings(before=before, **more) if self._finding(row)]
        here: list[FindingRow] = []
        while len(here) < limit and (found := self._reader.findings(limit=max(limit, STRETCH), before=before, **more)):
            here += [row for row in found if self._finding(row)]
            before = found[-1].finding.opened_at, found[-1].finding.id
        return here[:limit]

    def finding(self, id_: str) -> FindingRow:
        """The finding of that id. Raises NotFound, also for one out of sight."""
        found = self._reader.finding(id_)
        if not self._finding(found):
            raise NotFound(f"no finding {id_!r}", hint="`/api/v1/findings?closed=true` lists them")
        return found

    def _finding(self, row: FindingRow) -> bool:
        told = row.finding
        return self._about((told.node,)) if told.node else self._about((told.subject, *told.cards))

    def events(
        self, card: str | None = None, node: str | None = None, limit: int = 500, *, before: tuple[float, str] | None = None, **more: Any
    ) -> list[EventRow]:
        """Events on nodes in sight, newest first."""
        here: list[EventRow] = []
        while len(here) < limit and (found := self._reader.events(card, node, max(limit, STRETCH), before=before, **more)):
            here += [row for row in found if row.node in self._nodes and (not row.card or row.card in self._cards)]
            before = found[-1].last_at, found[-1].id
        return here[:limit]

    def capture(self, digest: str) -> CaptureRow:
        """A capture made on a node in sight. Raises NotFound."""
        found = self._reader.capture(digest)
        if not (found.node in self._nodes or sees(self._patterns, found.node)):
            raise NotFound(f"no capture {digest}", hint="the digests of readings name them")
        return found

    def audit(self, limit: int = 500) -> list[Mapping[str, Any]]:
        """Acts on what is in sight."""
        return [row for row in self._reader.audit(MOST_AUDIT) if self._act(row)][:limit]

    def audited(self, limit: int = 500, before: int | None = None) -> list[tuple[int, Mapping[str, Any]]]:
        """Acts on what is in sight, with their numbers in the log."""
        here: list[tuple[int, Mapping[str, Any]]] = []
        while len(here) < limit and (found := self._reader.audited(max(limit, STRETCH), before)):
            here += [each for each in found if self._act(each[1])]
            before = found[-1][0]
        return here[:limit]

    def _act(self, row: Mapping[str, Any]) -> bool:
        node = str(row.get("node") or "")
        if node:
            return self.node(node)
        named = [str(row[side].get("id", "")) for side in ("card", "other") if isinstance(row.get(side), Mapping)]
        return bool(named) and all(each in self._cards for each in named)
