# SPDX-License-Identifier: Apache-2.0
"""The tables of the roll as they are now. How a store gets from one schema to the next stands in ``migrations``; a test holds the two to each other.

Times are seconds since the epoch. Nothing here is particular to SQLite but hints that other databases pass over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, Text, UniqueConstraint, false, text

HEAD = "0005"
"""The revision that these tables stand for."""

NAMES = {"ix": "ix_%(table_name)s_%(column_0_N_name)s", "uq": "uq_%(table_name)s_%(column_0_N_name)s", "fk": "fk_%(table_name)s_%(column_0_N_name)s"}
metadata = MetaData(naming_convention=NAMES)

Number = BigInteger().with_variant(Integer, "sqlite")
"""A running number; SQLite counts only in a column that is called INTEGER."""


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _time(name: str, *, maybe: bool = False) -> Column[float]:
    return Column(name, Double, nullable=maybe)


def _region() -> Column[str]:
    return Column("region", Text, nullable=False, server_default=text("''"))


def _running(name: str = "number") -> Column[int]:
    return Column(name, Number, primary_key=True, autoincrement=True)


received = Table(
    "received",
    metadata,
    Column("reporter", Text, primary_key=True),
    Column("incarnation", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    _text("digest"),
    _time("received_at"),
    _text("answer"),
    Index(None, "received_at"),
    sqlite_with_rowid=False,
)

journal = Table(
    "journal",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    _time("at"),
    _time("received_at"),
    _text("kind"),
    Column("body", LargeBinary, nullable=False),
    _region(),
    Index(None, "region", "number"),
)

base = Table(
    "base",
    metadata,
    Column("part", Text, primary_key=True),
    Column("state", LargeBinary, nullable=False),
    _time("due", maybe=True),
)
"""The parts of the site. An empty ``state``: nothing is folded yet. ``due`` is null where it was never told: such a part is loaded whole at start."""

names = Table(
    "names",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    _text("region"),
    Index(None, "region"),
    sqlite_with_rowid=False,
)
"""Which part of the site knows a name."""

reporters = Table(
    "reporters",
    metadata,
    Column("reporter", Text, primary_key=True),
    _text("incarnation"),
    Column("high", BigInteger, nullable=False),
    Column("recent", LargeBinary, nullable=False),
    _time("received_at"),
    _time("skew"),
    *(_text(name) for name in ("agent_version", "boot_id", "node")),
    Column("state", LargeBinary, nullable=False),
    Index(None, "node"),
)

lease = Table("lease", metadata, Column("name", Text, primary_key=True), _text("holder"), Column("token", BigInteger, nullable=False), _time("until"))
"""Who may write: ``token`` grows with every taking, ``holder`` is empty once it was given back."""

counters = Table("counters", metadata, Column("name", Text, primary_key=True), Column("value", BigInteger, nullable=False))
"""Numbers that only grow: the next place of the journal, commits (``commit``), the last that changed a record (``version``), the last forgotten (``floor``)."""


def _kept(name: str, *extra: Column[Any], more: Iterable[Column[Any]] = ()) -> tuple[Table, Table]:
    """A table of records as believed now, and one of what was believed before."""
    now = Table(
        name,
        metadata,
        _running(),
        _text("id"),
        *extra,
        _time("created_at"),
        _text("digest"),
        _time("learnt_from"),
        _time("updated_at"),
        _text("captures"),
        _text("record"),
        _region(),
        *more,
        UniqueConstraint("id"),
    )
    then = Table(
        f"{name.removesuffix('s')}_versions",
        metadata,
        Column("id", Text, primary_key=True),
        Column("learnt_from", Double, primary_key=True),
        _time("learnt_to"),
        _time("updated_at"),
        Column("number", BigInteger, nullable=False),
        _time("created_at"),
        _text("record"),
        Index(None, "learnt_to", "learnt_from"),
    )
    return now, then


_written = Column("written", BigInteger, nullable=False, server_default=text("0"))
cards, card_versions = _kept("cards", _text("node"), _text("presence"), more=[_written])
nodes, node_versions = _kept("nodes")
Index(None, cards.c.node)
Index(None, cards.c.presence)
Index(None, cards.c.region)
Index(None, cards.c.written)
Index(None, nodes.c.region)

cards_gone = Table(
    "cards_gone",
    metadata,
    Column("id", Text, primary_key=True),
    Column("written", BigInteger, nullable=False),
    _time("at"),
    Index(None, "written"),
    Index(None, "at"),
)
"""Cards that are no more, with the commit that took them, for as long as those who keep columns of the roll may ask."""

aliases = Table(
    "aliases",
    metadata,
    Column("old", Text, primary_key=True),
    _text("new"),
    _time("at"),
    Index(None, "new"),
)

sources = Table(
    "sources",
    metadata,
    Column("node", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    _text("node_name"),
    _text("record"),
)

changes = Table(
    "changes",
    metadata,
    _running(),
    _text("id"),
    _text("subject"),
    _text("kind"),
    _time("at"),
    _time("learnt_at"),
    _text("detail"),
    _time("superseded_at", maybe=True),
    Index(None, "subject", "number"),
    Index(None, "kind", "number"),
)
Index("uq_changes_believed", changes.c.id, unique=True, sqlite_where=changes.c.superseded_at.is_(None), postgresql_where=changes.c.superseded_at.is_(None))

findings = Table(
    "findings",
    metadata,
    _running(),
    _text("id"),
    _text("record"),
    _time("opened_at"),
    _time("learnt_at"),
    _time("last_seen_at"),
    _time("acknowledged_at", maybe=True),
    _text("acknowledged_by"),
    _text("reason"),
    _time("closed_at", maybe=True),
    *(Column(name, Text, nullable=False, server_default=text("''")) for name in ("kind", "node")),
    Index(None, "id"),
    Index(None, "opened_at", "id"),
    Index(None, "kind", "opened_at", "id"),
    Index(None, "node", "opened_at", "id"),
)
_OPEN = findings.c.closed_at.is_(None)
Index("ix_findings_still_open", findings.c.opened_at, findings.c.id, sqlite_where=_OPEN, postgresql_where=_OPEN)
Index("uq_findings_open", findings.c.id, unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN)

finding_cards = Table(
    "finding_cards",
    metadata,
    Column("card", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Index(None, "number"),
    sqlite_with_rowid=False,
)
"""Which cards a finding is about."""

news = Table(
    "news",
    metadata,
    _running(),
    _time("at"),
    _text("what"),
    Column("finding", BigInteger, nullable=False),
    Index(None, "at"),
    sqlite_autoincrement=True,
)
"""What became of findings. A number is never given twice, whatever was dropped."""

current = Table(
    "current",
    metadata,
    _running(),
    _text("subject"),
    _text("node"),
    _text("source"),
    _text("key"),
    _text("card"),
    _time("at"),
    Column("live", Boolean, nullable=False),
    Column("light", Boolean, nullable=False, server_default=false()),
    _time("changed_at"),
    _text("said"),
    _time("value_at", maybe=True),
    _time("why_at", maybe=True),
    _text("capture"),
    UniqueConstraint("subject", "node", "source", "key"),
    Index(None, "card"),
)
"""Series by their newest word. One that is not ``live`` is spoken of no more (its card was joined, or its words were bound anew); its roll-ups stay."""

minutes = Table(
    "minutes",
    metadata,
    Column("series", BigInteger, ForeignKey("current.number", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("minute", BigInteger, primary_key=True, autoincrement=False),
    Column("count", BigInteger, nullable=False),
    Column("sum", Double, nullable=False),
    Column("low", Double),
    Column("high", Double),
    Column("first", Double),
    Column("first_at", Double),
    Column("last", Double),
    _time("last_at"),
    Column("said", Text),
    Column("value_at", Double),
    Index(None, "minute"),
    sqlite_with_rowid=False,
)
"""Roll-ups. ``first`` answers for moments within a minute.

``said`` is the word of a minute that ended without a number (its value is of ``value_at``), kept only where it differs from the one before.
"""

events = Table(
    "events",
    metadata,
    Column("id", Text, primary_key=True),
    *(_text(name) for name in ("card", "node", "source", "adapter", "kind")),
    Column("code", Text),
    _text("text"),
    _text("address"),
    _time("first_at"),
    _time("last_at"),
    Column("repeats", BigInteger, nullable=False),
    Index(None, "last_at"),
    Index(None, "card", "last_at"),
    Index(None, "node", "last_at"),
    Index(None, "kind", "last_at"),
)

captures = Table(
    "captures",
    metadata,
    Column("digest", Text, primary_key=True),
    *(_text(name) for name in ("source", "node", "format", "locator")),
    _time("taken_at"),
    Column("exit_status", Integer),
    Column("stderr", LargeBinary, nullable=False),
    Column("cut", Boolean, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Index(None, "taken_at", "size", "digest"),
)
"""``payload`` and ``stderr`` are zlib; ``size`` counts the bytes of both as they are kept."""

audit = Table("audit", metadata, Column("number", Number, primary_key=True, autoincrement=False), _time("at"), _text("entry"), _text("digest"))
"""Operator acts, one after the other without a gap: ``digest`` is over the digest before and the row. Triggers refuse to change or drop a row."""

answered = Table(
    "answered",
    metadata,
    Column("key", Text, primary_key=True),
    _text("digest"),
    _time("at"),
    Column("status", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "at"),
)

audit_head = Table(
    "audit_head",
    metadata,
    Column("name", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    _text("digest"),
)
"""The newest digest once more, so that rows cut off the end are missed."""
