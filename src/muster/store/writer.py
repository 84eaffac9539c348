# SPDX-License-Identifier: Apache-2.0
"""The one writer: a batch is one transaction, and durable when `commit` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlalchemy import bindparam, delete, select, update

from muster.domain.model.errors import InputError, Unavailable
from muster.domain.model.roll import SourceRecord
from muster.spi.store import Batch, FindingRow, Loaded, RegionRows
from muster.store import evidence, freshness, history, intake, mapping, series
from muster.store.connections import Connections, InDoubt
from muster.store.gauges import Gauges
from muster.store.kept import CARDS, NODES, Step
from muster.store.leasing import WriterLease
from muster.store.schema import aliases, sources
from muster.store.statements import Session, compiled, each, replacing
from muster.store.unread import Unread

CAPTURE_BUDGET = 256 * 1024 * 1024
"""Bytes of packed captures that are kept by default."""

_SOURCE = replacing(sources, [sources.c.node, sources.c.source])
_SOURCE_GONE = compiled(delete(sources).where(sources.c.node == bindparam("node_"), sources.c.source == bindparam("source_")))
_ALIAS = replacing(aliases, [aliases.c.old])
_ALIAS_ON = compiled(update(aliases).where(aliases.c.new == bindparam("old")).values(new=bindparam("new")))
_ALIAS_GONE = compiled(delete(aliases).where(aliases.c.old == bindparam("old_")))
_ALIASES_OF = compiled(delete(aliases).where(aliases.c.new == bindparam("new_")))
_ALIASES = compiled(select(aliases.c.old, aliases.c.new))

_TRIMMED = {
    "minutes": series.drop_older,
    "events": history.drop_older,
    "captures": evidence.drop_older,
}


class Writer:
    """`RollWriter` over the writer's connection."""

    def __init__(self, connections: Connections, capture_budget: int, unread: Unread, lease: WriterLease, gauges: Gauges) -> None:
        self._connections = connections
        self._unread = unread
        self._budget = capture_budget
        self._lease = lease
        self._gauges = gauges
        self._doubt = 0
        """A commit of which it is not known whether it went through; 0: none."""
        self.adrift = False
        """True when a commit went through that its caller was told had not: what is in memory is not what is in the store, and only `load` helps."""

    def load(self) -> Loaded:
        """State at start."""
        with self._connections.transaction() as session:
            loaded = self._connections.whole(session, self._loaded)
        self._doubt, self.adrift = 0, False
        return loaded

    def _loaded(self, session: Session) -> Loaded:
        slots, next_slot = self._gauges.load(session)
        return Loaded(
            said=intake.said(session),
            base=intake.states(session),
            received=intake.keys(session),
            findings=history.open_findings(session, self._unread),
            next_order=intake.next_order(session),
            ids=dict(session.execute(_ALIASES).fetchall()),
            reporters=intake.heard_of(session),
            due=intake.due(session),
            slots=slots,
            next_slot=next_slot,
        )

    def region(self, part: str) -> RegionRows:
        """What the part is rebuilt from. Raises NotFound."""
        with self._connections.transaction() as session:
            return intake.region(session, part)

    def regions_of(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The parts that know these names."""
        with self._connections.transaction() as session:
            return intake.regions_of(session, names)

    def lacking(self, digests: Sequence[str]) -> list[str]:
        """Those of these captures that are not kept here and would be."""
        with self._connections.transaction() as session:
            return evidence.lacking(session, digests, self._budget)

    def commit(self, batch: Batch) -> None:
        """Writes the batch whole; it is on the disk when this returns. Raises Unavailable, and then nothing of it was written."""
        if not batch.audit and any(said.kind == "act" for said in batch.said):
            raise ValueError("an act without an entry for the audit log")
        number = 0
        try:
            with self.writing() as session:
                number = freshness.number(session, batch)
                self._write(session, batch, number)
        except InDoubt:
            self._doubt = number
            if not self._settled():
                raise Unavailable(f"{self._connections.name} was lost while it was written; nothing of it was kept", hint="try again") from None
        self._gauges.settle()

    def _write(self, session: Session, batch: Batch, number: int) -> None:
        """The whole batch, in the order in which its parts need each other."""
        intake.write(session, batch)
        _write_roll(session, batch, number)
        series.silence(session, batch.rebound)
        self._gauges.write(session, batch)
        series.write(session, batch.samples)
        history.write(session, batch)
        if batch.captures:
            evidence.write(session, batch.captures, self._budget, batch.at)

    def _settled(self) -> bool:
        """Whether the commit went through whose answer was lost. Raises Unavailable while nobody can tell."""
        with self._connections.transaction() as session:
            self._lease.check(session)  # waits for the lost transaction, which holds the row until it has ended
            went = intake.counted(session, freshness.COMMIT) >= self._doubt
        self._doubt = 0
        return went

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction of the one who may write. Raises Unavailable."""
        if self._doubt:
            self.adrift = self._settled()
        if self.adrift:
            raise Unavailable(f"{self._connections.name} holds more than this server remembers", hint="the server must load its state anew; restart it")
        with self._connections.transaction() as session:
            self._lease.check(session)
            yield session

    def probe(self) -> None:
        """Writes a little, durable when it returns: the way to find out whether the store can be written again. Raises Unavailable."""
        self._connections.room()
        with self.writing() as session:
            intake.count_probe(session)

    def acknowledge(self, finding: str, by: str, at: float, reason: str) -> FindingRow:
        """Marks an open finding as seen; seen again, the last to say so stands. Raises NotFound or Conflict."""
        with self.writing() as session:
            freshness.number(session, Batch(at=at, closed=[finding]))
            return history.acknowledge(session, finding, by, at, reason)

    def trim(self, now: float, keep: Mapping[str, float]) -> int:
        """Drops what is older than ``keep`` seconds, by kind: minutes, events, captures. Returns rows dropped.

        The last roll-up of each series before the cut stays, and so do captures that something rests on. Raises InputError for another kind.
        """
        unknown = keep.keys() - _TRIMMED.keys()
        if unknown:
            raise InputError(f"nothing called {', '.join(sorted(unknown))} is trimmed", hint=f"one of {', '.join(_TRIMMED)}")
        self._drop(freshness.drop_older, now - freshness.REMEMBERED)
        self._drop(lambda session, _: intake.drop_told(session), now)
        return sum(self._drop(_TRIMMED[kind], now - age) for kind, age in keep.items())

    def _drop(self, drop: Callable[[Session, float], int], than: float) -> int:
        """Drops part by part, each in a transaction of its own: a batch that waits goes between two of them."""
        total = 0
        while True:
            with self.writing() as session:
                dropped = drop(session, than)
            if not dropped:
                return total
            total += dropped


def _write_roll(session: Session, batch: Batch, number: int) -> None:
    step = Step(at=batch.at, number=number, regions=batch.regions)
    gone = {old: intake.last(new, batch.gone) for old, new in batch.gone.items()}
    CARDS.drop(session, [*gone, *batch.vanished], batch.at)
    freshness.gone(session, [*gone, *batch.vanished], batch.at, number)
    each(session, _ALIAS_ON, ({"old": old, "new": new} for old, new in gone.items()))
    each(session, _ALIAS, ({"old": old, "new": new, "at": batch.at} for old, new in gone.items()))
    series.join(session, gone)
    history.join(session, gone)
    series.silence(session, batch.vanished)
    each(session, _ALIASES_OF, ({"new_": card} for card in batch.vanished))
    back = CARDS.write(session, batch.cards, step)
    each(session, _ALIAS_GONE, ({"old_": card} for card in back))
    freshness.back(session, back)
    NODES.drop(session, batch.nodes_gone, batch.at)
    NODES.write(session, batch.nodes, step)
    each(session, _SOURCE, (_source_row(source) for source in batch.sources))
    each(session, _SOURCE_GONE, ({"node_": node, "source_": source} for node, source in batch.sources_gone))


def _source_row(source: SourceRecord) -> dict[str, str]:
    return {"node": source.node, "source": source.source, "node_name": source.node_name, "record": mapping.text(source)}
