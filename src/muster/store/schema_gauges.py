# SPDX-License-Identifier: Apache-2.0
"""The tables of numbers that move: one row a source, what its numbers are of, and minutes that are not yet packed into segments."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, LargeBinary, Table, Text

from muster.store.schema import Number, metadata


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _blob(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


slots = Table(
    "slots",
    metadata,
    Column("slot", Number, primary_key=True, autoincrement=False),
    *(_text(name) for name in ("node", "source", "reporter", "region")),
    Column("layout", BigInteger, nullable=False),
    Column("width", BigInteger, nullable=False),
    *(Column(name, Double) for name in ("at", "since", "again_at", "received_at")),
    _text("incarnation"),
    Column("sequence", BigInteger, nullable=False),
    *(_blob(name) for name in ("facts",)),
    _text("capture"),
    Column("minute", BigInteger),
    *(_blob(name) for name in ("numbers", "told", "open")),
    Index(None, "region"),
    Index(None, "node"),
)
"""One row a source. ``numbers``: the newest, float64. ``told``: when each was told, where that is not ``at``. ``open``: roll-up of ``minute``, which is open.

``since`` is up to when the records have its words, ``again_at`` until when the last of them was said again, ``at`` its newest round.
"""

layouts = Table(
    "layouts",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("slot", BigInteger, nullable=False),
    _text("node"),
    _text("source"),
    Column("since", Double, nullable=False),
    Column("until", Double),
    Column("width", BigInteger, nullable=False),
    _blob("columns"),
    Column("promise", Double, nullable=False),
    _blob("bounds"),
    _text("names"),
    Index(None, "slot", "number"),
    Index(None, "until"),
)
"""What the numbers of a source are of. ``names`` is JSON: what the node calls itself. One that another replaced (``until``) stays as long as it has minutes."""

layout_subjects = Table(
    "layout_subjects",
    metadata,
    Column("subject", Text, primary_key=True),
    Column("layout", BigInteger, primary_key=True, autoincrement=False),
    _text("card"),
    Index(None, "card"),
    Index(None, "layout"),
    sqlite_with_rowid=False,
)
"""In which layouts a card, device or partition stands. ``card`` is the card's name then."""

minute_rows = Table(
    "minute_rows",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("layout", BigInteger, nullable=False),
    Column("block", BigInteger, nullable=False),
    Column("minute", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    _blob("packed"),
    Index(None, "layout", "minute"),
    Index(None, "block", "layout"),
)
"""Minutes that wait to be packed, several of one minute perhaps. ``at``: the last round in it. Numbers are never given twice."""
