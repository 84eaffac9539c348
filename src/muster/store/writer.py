# SPDX-License-Identifier: Apache-2.0
"""The one writer: a batch is one transaction, and durable when `commit` returns."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

from sqlalchemy import bindparam, delete, select, update

from muster.domain.model.errors import InputError, Unavailable
from muster.domain.model.roll import SourceRecord
from muster.spi.store import Batch, FindingRow, Loaded
from muster.store import evidence, history, intake, mapping, series
from muster.store.connections import Connections
from muster.store.kept import CARDS, NODES
from muster.store.schema import aliases, sources
from muster.store.statements import compiled, each, replacing
from muster.store.unread import Unread, lenient

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
    "received": intake.drop_older,
    "minutes": series.drop_older,
    "events": history.drop_older,
    "captures": evidence.drop_older,
}


class Writer:
    """`RollWriter` over the writer's connection."""

    def __init__(self, connections: Connections, capture_budget: int, unread: Unread) -> None:
        self._connections = connections
        self._unread = unread
        self._budget = capture_budget

    def load(self) -> Loaded:
        """State at start."""
        with self._connections.transaction() as connection:
            try:
                return self._loaded(connection)
            except sqlite3.OperationalError as error:
                if "UTF-8" not in str(error):
                    raise Unavailable(f"{self._connections.name} is damaged ({error})", hint="keep the file, and put a backup in its place") from error
                connection.text_factory = lenient
                return self._loaded(connection)

    def _loaded(self, connection: sqlite3.Connection) -> Loaded:
        return Loaded(
            said=intake.said(connection),
            base=intake.states(connection),
            received=intake.keys(connection),
            findings=history.open_findings(connection, self._unread),
            next_order=intake.next_order(connection),
            ids=dict(connection.execute(_ALIASES).fetchall()),
        )

    def commit(self, batch: Batch) -> None:
        """Writes the batch whole; it is on the disk when this returns. Raises Unavailable, and then nothing of it was written."""
        with self._connections.transaction() as connection:
            intake.write(connection, batch)
            _write_roll(connection, batch)
            series.write(connection, batch.samples, batch.rebound)
            history.write(connection, batch)
            if batch.captures:
                evidence.write(connection, batch.captures, self._budget)

    def probe(self) -> None:
        """Writes a little, durable when it returns: the way to find out whether the store can be written again. Raises Unavailable."""
        self._connections.room()
        with self._connections.transaction() as connection:
            intake.count_probe(connection)

    def acknowledge(self, finding: str, by: str, at: float, reason: str) -> FindingRow:
        """Marks an open finding as seen; seen again, the last to say so stands. Raises NotFound or Conflict."""
        with self._connections.transaction() as connection:
            return history.acknowledge(connection, finding, by, at, reason)

    def trim(self, now: float, keep: Mapping[str, float]) -> int:
        """Drops what is older than ``keep`` seconds, by kind: minutes, events, captures, received. Returns rows dropped.

        The last roll-up of each series before the cut stays, and so do captures that something rests on. Raises InputError for another kind.
        """
        unknown = keep.keys() - _TRIMMED.keys()
        if unknown:
            raise InputError(f"nothing called {', '.join(sorted(unknown))} is trimmed", hint=f"one of {', '.join(_TRIMMED)}")
        return sum(self._drop(_TRIMMED[kind], now - age) for kind, age in keep.items())

    def _drop(self, drop: Callable[[sqlite3.Connection, float], int], than: float) -> int:
        """Drops part by part, each in a transaction of its own: a batch that waits goes between two of them."""
        total = 0
        while True:
            with self._connections.transaction() as connection:
                dropped = drop(connection, than)
            if not dropped:
                return total
            total += dropped


def _write_roll(connection: sqlite3.Connection, batch: Batch) -> None:
    gone = {old: _last(new, batch.gone) for old, new in batch.gone.items()}
    CARDS.drop(connection, [*gone, *batch.vanished], batch.at)
    each(connection, _ALIAS_ON, ({"old": old, "new": new} for old, new in gone.items()))
    each(connection, _ALIAS, ({"old": old, "new": new, "at": batch.at} for old, new in gone.items()))
    series.join(connection, gone)
    history.join(connection, gone)
    series.silence(connection, batch.vanished)
    each(connection, _ALIASES_OF, ({"new_": card} for card in batch.vanished))
    back = CARDS.write(connection, batch.cards, batch.at)
    each(connection, _ALIAS_GONE, ({"old_": card} for card in back))
    NODES.drop(connection, batch.nodes_gone, batch.at)
    NODES.write(connection, batch.nodes, batch.at)
    each(connection, _SOURCE, (_source_row(source) for source in batch.sources))
    each(connection, _SOURCE_GONE, ({"node_": node, "source_": source} for node, source in batch.sources_gone))


def _last(card: str, gone: Mapping[str, str]) -> str:
    """The end of a chain of joins made in one batch."""
    seen = {card}
    while (further := gone.get(card)) is not None and further not in seen:
        card = further
        seen.add(card)
    return card


def _source_row(source: SourceRecord) -> dict[str, str]:
    return {"node": source.node, "source": source.source, "node_name": source.node_name, "record": mapping.text(source)}
