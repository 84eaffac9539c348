# SPDX-License-Identifier: Apache-2.0
"""Every plain query, each of one state of the store. Safe to call from any thread."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, func, or_, select, union_all

from muster.domain.model.errors import NotFound, Unavailable
from muster.domain.model.roll import CardRecord, Finding, NodeRecord, SourceRecord, Word
from muster.spi.store import CaptureRow, ChangeRow, CurrentValue, EventRow, FindingRow, Fresh, News, Reporter
from muster.store import again, asking, essence, evidence, freshness, mapping
from muster.store.connections import Connections
from muster.store.gauges_both import newest, rolled
from muster.store.gauges_read import GaugeReader
from muster.store.mapping import Row
from muster.store.schema import aliases, audit, captures, card_versions, cards, counters, current, findings, minutes, node_versions, nodes, reporters, sources
from muster.store.schema_gauges import slots
from muster.store.statements import among, listing
from muster.store.unread import UNREADABLE, Unread

_ID, _NUMBER, _VERSION = ("id",), ("number",), ("id", "learnt_from")
"""What a row is called by, where it cannot be read."""
_AT_ONCE = 1000
"""Records that are decoded together."""
_VERSION_NOW = select(counters.c.value).where(counters.c.name == freshness.VERSION)
_WRITTEN = select(cards.c.id, cards.c.record).where(among(cards.c.id, "some"))
_SAID = select(current).where(current.c.live, among(current.c.card, "some")).order_by(current.c.number)
_CAPTURED = select(slots.c.slot, slots.c.capture).where(among(slots.c.node, "some"))


class Reader:
    """`RollReader` over connections of its own."""

    def __init__(self, connections: Connections, unread: Unread, gauges: GaugeReader) -> None:
        self._connections = connections
        self._gauges = gauges
        self._readable = unread.readable

    def version(self) -> int:
        """Number of the last commit that changed a record; 0 in an empty store."""
        return sum(row["value"] for row in self._rows(_VERSION_NOW))

    def fresh(self, after: int, *, moved: bool = True) -> Fresh:
        """Cards written since commit ``after``; 0 asks for all. Not ``moved``: with the times of their last full words."""
        counted, written, gone = self._connections.rows(*freshness.asked(after))
        version, floor = freshness.told(counted)
        if after <= 0 or after < floor or after > version:
            return Fresh(version=version, cards=_GoneOver(partial(self._all_cards, moved=moved)), gone=[], regrounded=after > 0)
        return Fresh(version=version, cards=self._cards(written, moved=moved), gone=[row["id"] for row in gone])

    def _all_cards(self, *, moved: bool) -> Iterator[CardRecord]:
        """Every card, some at a time: what is written meanwhile is told as fresh again."""
        number = 0
        some = select(cards.c.number, cards.c.id, cards.c.record).order_by(cards.c.number).limit(_AT_ONCE)
        while rows := self._rows(some.where(cards.c.number > number)):
            number = rows[-1]["number"]
            yield from self._cards(rows, moved=moved)

    def _cards(self, rows: Iterable[Row], *, whole: bool = False, moved: bool = True) -> list[CardRecord]:
        records = self._readable("cards", _ID, rows, lambda row: mapping.card(row["record"]), whole=whole)
        if not moved:
            return records
        runs = self._runs(None if whole else {claim.node for card in records for claim in card.claims})
        return [again.card_on(card, runs) for card in records]

    def written(self, ids: Collection[str], shown: Collection[str], nodes: Collection[str]) -> tuple[list[CardRecord], list[CurrentValue], dict[int, str]]:
        """For who shows cards often, of one state: the cards ``ids`` with the times of their last full words, what was told one by one of the gauges of
        the cards ``shown``, and the captures on which the numbers of the sources on ``nodes`` rest, by slot.
        """
        asked = [(_WRITTEN, listing(ids)), (_SAID, listing(shown)), (_CAPTURED, listing(nodes))]
        some = [(each, {"some": which}) for each, which in asked if which != "[]"]
        try:
            with self._connections.reading() as connection:
                found: list[Any] = [connection.execute(each, which).mappings().all() for each, which in some]
        except Unavailable:  # a damaged text may be the reason: asked so, it is passed over
            found = [*self._connections.rows(*(each.params(which) for each, which in some))]
        told = iter(found)
        read: list[Any] = [next(told) if which != "[]" else [] for _, which in asked]
        records = self._readable("cards", _ID, read[0], lambda row: mapping.card(row["record"]))
        said = self._readable("current", _NUMBER, read[1], _value_now)
        return records, said, {row["slot"]: row["capture"] for row in read[2] if row["capture"]}

    def _runs(self, nodes: Collection[str] | None) -> again.Runs:
        """Until when the sources of these nodes (None: of all) went on saying the same."""
        if nodes is not None and not nodes:
            return {}
        asked = select(slots.c.node, slots.c.source, slots.c.since, slots.c.again_at).where(slots.c.again_at.is_not(None))
        rows = self._rows(asked if nodes is None else asked.where(among(slots.c.node, nodes)))
        return {(row["node"], row["source"]): (row["since"], row["again_at"]) for row in rows if row["since"] is not None}

    def cards(self, at: float | None = None, ids: Iterable[str] | None = None) -> list[CardRecord]:
        """Cards believed at ``at``, in order of creation."""
        wanted = None if ids is None else list(ids)
        if at is None:
            return self._cards(self._rows(_now(cards, wanted)), whole=wanted is None)
        rows = self._rows(_then(cards, card_versions, at, wanted))
        return self._readable("cards", _VERSION, rows, lambda row: essence.card_then(mapping.card(row["record"]), at, row["updated_at"]))

    def resolve(self, card: str) -> str:
        """The card id that ``card`` stands for now. Raises NotFound."""
        itself = select(cards.c.id).where(cards.c.id == card)
        for row in self._rows(union_all(itself, select(aliases.c.new).where(aliases.c.old == card))):
            return str(row["id"])
        raise NotFound(f"no card {card}", hint="`muster get cards` lists the cards there are")

    def current(self, cards: Iterable[str] | None = None, at: float | None = None, *, numbers: bool = True) -> list[CurrentValue]:
        """Gauges and counters; in the past, the last of the minute roll-ups at or before ``at``. Without ``numbers`` those said one by one."""
        wanted = None if cards is None else list(cards)
        told = self._gauges.current(wanted, at) if numbers else []  # first: a number that its layout leaves out meanwhile is a word then
        if at is None:
            rows = self._rows(_of(select(current).where(current.c.live), current.c.card, wanted).order_by(current.c.number))
            return newest(self._readable("current", _NUMBER, rows, _value_now), told)
        said = self._readable("current", _NUMBER, self._rows(_series_then(at, wanted)), lambda row: _value(row, _word_then(row, at)))
        return newest(said, told)

    def minutes(self, subject: str, key: str, since: float, until: float) -> list[Mapping[str, Any]]:
        """Roll-ups ``{minute, source, count, sum, low, high, last}`` of one gauge, ``since`` <= minute <= ``until``.

        Those of cards that were joined into it are its own. A minute without a number is left out.
        """
        columns = (minutes.c[name] for name in ("minute", "count", "sum", "low", "high", "last"))
        asked = select(*columns, current.c.source).select_from(minutes).join(current, current.c.number == minutes.c.series)
        asked = asked.where(asking.subject_of(current.c.subject, subject, None), current.c.key == key, minutes.c["count"] > 0)
        asked = asked.where(minutes.c.minute >= since, minutes.c.minute <= until)
        return rolled(self._rows(asked.order_by(minutes.c.minute, current.c.source)), self._gauges.minutes(subject, key, since, until))

    def nodes(self, at: float | None = None, ids: Iterable[str] | None = None) -> list[NodeRecord]:
        """Nodes, in order of creation; those of ``ids``, or all."""
        wanted = None if ids is None else list(ids)
        if at is None:
            records = self._readable("nodes", _ID, self._rows(_now(nodes, wanted)), lambda row: mapping.node(row["record"]), whole=wanted is None)
            runs = again.by_node(self._runs(wanted))
            return [again.node_on(node, runs.get(node.id, {})) for node in records]
        rows = self._rows(_then(nodes, node_versions, at, wanted))
        return self._readable("nodes", _VERSION, rows, lambda row: essence.node_then(mapping.node(row["record"]), at, row["updated_at"]))

    def sources(self, nodes: Iterable[str] | None = None) -> list[SourceRecord]:
        """Sources, by node name and source; those of ``nodes`` (ids), or all."""
        asked = select(sources.c.node, sources.c.source, sources.c.record).order_by(sources.c.node_name, sources.c.node, sources.c.source)
        rows = self._rows(asked if nodes is None else asked.where(among(sources.c.node, nodes)))
        records = self._readable("sources", ("node", "source"), rows, lambda row: mapping.source(row["record"]), whole=nodes is None)
        runs = self._runs(None if nodes is None else {source.node for source in records})
        return [again.source_on(source, runs) for source in records]

    def reporters(self, names: Iterable[str] | None = None, *, nodes: Iterable[str] | None = None) -> list[Reporter]:
        """Reporters by name; those of ``names``, those that spoke last of ``nodes`` (by name), or all."""
        asked = select(reporters).order_by(reporters.c.reporter)
        asked = asked if names is None else asked.where(among(reporters.c.reporter, names))
        rows = self._rows(asked if nodes is None else asked.where(among(reporters.c.node, nodes)))
        return [Reporter(**row) for row in rows]

    def changes(
        self,
        subject: str | None = None,
        after: int = 0,
        limit: int = 500,
        at: float | None = None,
        *,
        before: int | None = None,
        kinds: Collection[str] | None = None,
        newest: bool = False,
    ) -> list[ChangeRow]:
        """History between two numbers; of one subject (a card: also of those joined into it), or all. In the past: learnt by then and not yet superseded."""
        rows = self._rows(asking.changes(subject, after, limit, at, before=before, kinds=kinds, newest=newest))
        return self._readable("changes", _NUMBER, rows, lambda row: mapping.change_row(row if at is None else {**row, "superseded_at": None}))

    def findings(
        self,
        *,
        closed: bool = False,
        at: float | None = None,
        cards: Iterable[str] | None = None,
        kinds: Collection[str] | None = None,
        node: str | None = None,
        limit: int | None = None,
        before: tuple[float, str] | None = None,
    ) -> list[FindingRow]:
        """Open findings, or closed ones too, newest first."""
        rows = self._rows(asking.findings(closed=closed, at=at, cards=cards, kinds=kinds, node=node, limit=limit, before=before))
        return self._readable("findings", _NUMBER, rows, lambda row: mapping.finding_row(row if at is None else _finding_then(row, at)))

    def standing(self) -> list[tuple[int, float]]:
        """Of each open finding the number of its row and when it was found last, newest first: one that was found again has another time."""
        return [(row["number"], row["last_seen_at"]) for row in self._rows(asking.standing())]

    def numbered(self, numbers: Collection[int]) -> dict[int, Finding]:
        """The findings in these rows, by number; those that cannot be read are left out."""
        found: dict[int, Finding] = {}
        rest = iter(numbers)
        while some := list(islice(rest, _AT_ONCE)):
            rows = self._rows(select(findings.c.number, findings.c.record).where(findings.c.number.in_(some)))
            found |= self._readable("findings", _NUMBER, rows, lambda row: (row["number"], mapping.finding(row["record"])))
        return found

    def finding(self, id_: str) -> FindingRow:
        """The newest finding of that id. Raises NotFound, Unavailable when it is damaged."""
        for row in self._rows(select(findings).where(findings.c.id == id_).order_by(findings.c.number.desc()).limit(1)):
            try:
                return mapping.finding_row(row)
            except UNREADABLE as error:
                raise Unavailable(f"finding {id_} is damaged in the store ({error})", hint="a backup of the store may still have it") from error
        raise NotFound(f"no finding {id_}", hint="`muster get findings` lists those that are open")

    def news(self, after: int, limit: int = 500) -> list[News]:
        """What became of findings, by running number."""
        return self._readable("findings", _NUMBER, self._rows(asking.news(after, limit)), mapping.news_row)

    def events(
        self,
        card: str | None = None,
        node: str | None = None,
        limit: int = 500,
        *,
        kinds: Collection[str] | None = None,
        before: tuple[float, str] | None = None,
    ) -> list[EventRow]:
        """Events, newest first."""
        return self._readable("events", _ID, self._rows(asking.events(card, node, limit, kinds=kinds, before=before)), mapping.event_row)

    def capture(self, digest: str) -> CaptureRow:
        """The capture with this digest. Raises NotFound when it was never kept or was dropped by the budget, Unavailable when it is damaged."""
        for row in self._rows(select(captures).where(captures.c.digest == digest)):
            try:
                return evidence.unpack(row)
            except (*UNREADABLE, zlib.error) as error:
                raise Unavailable(f"capture {digest} is damaged in the store ({error})", hint="a backup of the store may still have it") from error
        raise NotFound(f"no capture {digest}", hint="it was never sent, or made room for newer ones")

    def audit(self, limit: int = 500) -> list[Mapping[str, Any]]:
        """Operator acts, newest first."""
        asked = select(audit.c.number, audit.c.entry).order_by(audit.c.number.desc()).limit(limit)
        return self._readable("audit", _NUMBER, self._rows(asked), lambda row: mapping.entry(row["entry"]))

    def audited(self, limit: int = 500, before: int | None = None) -> list[tuple[int, Mapping[str, Any]]]:
        """The same with the number of each in the log; those before a number."""
        asked = select(audit.c.number, audit.c.entry).order_by(audit.c.number.desc()).limit(limit)
        rows = self._rows(asked if before is None else asked.where(audit.c.number < before))
        return self._readable("audit", _NUMBER, rows, lambda row: (row["number"], mapping.entry(row["entry"])))

    def _rows(self, asked: Any) -> list[dict[str, Any]]:
        (rows,) = self._connections.rows(asked)
        return rows


class _GoneOver:
    """An iterable that begins anew each time it is gone over."""

    def __init__(self, begin: Callable[[], Iterator[CardRecord]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[CardRecord]:
        """From the first on."""
        return self._begin()


def _of(asked: Select[Any], column: ColumnElement[Any], wanted: Sequence[str] | None) -> Select[Any]:
    return asked if wanted is None else asked.where(among(column, wanted))


def _now(table: Table, wanted: Sequence[str] | None) -> Select[Any]:
    return _of(select(table.c.id, table.c.record), table.c.id, wanted).order_by(table.c.created_at, table.c.number)


def _then(now: Table, then: Table, at: float, wanted: Sequence[str] | None) -> Any:
    names = ("id", "record", "updated_at", "learnt_from", "created_at", "number")
    still = _of(select(*(now.c[name] for name in names)).where(now.c.learnt_from <= at), now.c.id, wanted)
    past = _of(select(*(then.c[name] for name in names)).where(then.c.learnt_from <= at, then.c.learnt_to > at), then.c.id, wanted)
    both = union_all(still, past).subquery()
    return select(both).order_by(both.c.created_at, both.c.number)


def _series_then(at: float, wanted: Sequence[str] | None) -> Select[Any]:
    """Each series with its last roll-up that had begun by ``at``. A card that was joined since is found under its old id and its new one."""
    earlier = minutes.alias("earlier")
    last = select(func.max(earlier.c.minute)).where(
        earlier.c.series == current.c.number, earlier.c.minute <= at, or_(earlier.c.last_at <= at, earlier.c.first_at <= at)
    )
    rolled = (
        minutes.c.first,
        minutes.c.first_at,
        minutes.c.last,
        minutes.c.last_at,
        minutes.c.said.label("then_said"),
        minutes.c.value_at.label("then_value_at"),
    )
    asked = select(current, *rolled).select_from(current).join(minutes, and_(minutes.c.series == current.c.number, minutes.c.minute == last.scalar_subquery()))
    if wanted is not None:
        asked = asked.where(or_(among(current.c.card, wanted), current.c.card.in_(select(aliases.c.new).where(among(aliases.c.old, wanted)))))
    return asked.order_by(current.c.number)


def _value_now(row: Row) -> CurrentValue:
    return _value(row, mapping.word(row["said"], row["value_at"], row["why_at"], row["capture"]))


def _value(row: Row, word: Word) -> CurrentValue:
    return CurrentValue(subject=row["subject"], card=row["card"], node=row["node"], source=row["source"], key=row["key"], word=word)


def _number_of(row: Row, number: float) -> int | float:
    """A number of a roll-up, whole where the series is one of whole numbers."""
    return int(number) if type(mapping.word(row["said"], None, None).value) is int and number.is_integer() else number


def _word_then(row: Row, at: float) -> Word:
    """The word at the end of a roll-up. One without a number that has not changed since was said again until now, or until ``at``."""
    if row["last_at"] > at:
        return Word(value=_number_of(row, row["first"]), at=row["first_at"])
    if row["then_said"] is None:
        return Word(value=_number_of(row, row["last"]), at=row["last_at"])
    again = min(row["at"], at) if row["changed_at"] <= at else row["last_at"]
    word = mapping.word(row["then_said"], row["then_value_at"], None)
    if word.why is not None:
        return mapping.word(row["then_said"], row["then_value_at"], again)
    return mapping.word(row["then_said"], again, None)


def _finding_then(row: Row, at: float) -> Row:
    """The row without what came after ``at``."""
    seen = row["acknowledged_at"] is not None and row["acknowledged_at"] <= at
    shut = row["closed_at"] is not None and row["closed_at"] <= at
    return {
        **row,
        "last_seen_at": min(row["last_seen_at"], at),
        "acknowledged_at": row["acknowledged_at"] if seen else None,
        "acknowledged_by": row["acknowledged_by"] if seen else "",
        "closed_at": row["closed_at"] if shut else None,
    }
