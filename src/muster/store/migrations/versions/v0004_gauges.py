# SPDX-License-Identifier: Apache-2.0
"""Gauges: one row a source, what its numbers are of, and minutes that wait to be packed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Adds the tables of numbers that move; there are none at first, and what stands in ``current`` and ``minutes`` stays readable."""
    _slots()
    _layouts()
    _rows()
    op.add_column("current", sa.Column("light", sa.Boolean(), server_default=sa.false(), nullable=False))
    if op.get_bind().dialect.name == "postgresql":
        # a row of a source is written anew each round: room beside it, and its bytes within the page
        op.execute("ALTER TABLE slots SET (fillfactor = 50, toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.1)")
        for table, columns in (("slots", ("numbers", "told", "open")), ("minute_rows", ("packed",))):
            for column in columns:
                op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _blob(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=False)


def _count(name: str, *, maybe: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=maybe)


def _slots() -> None:
    op.create_table(
        "slots",
        sa.Column("slot", NUMBER, autoincrement=False, nullable=False),
        *(_text(name) for name in ("node", "source", "reporter", "region")),
        _count("layout"),
        _count("width"),
        *(sa.Column(name, sa.Double(), nullable=True) for name in ("at", "since", "again_at", "received_at")),
        _text("incarnation"),
        _count("sequence"),
        _blob("facts"),
        _text("capture"),
        _count("minute", maybe=True),
        *(_blob(name) for name in ("numbers", "told", "open")),
        sa.PrimaryKeyConstraint("slot"),
    )
    op.create_index(op.f("ix_slots_region"), "slots", ["region"])
    op.create_index(op.f("ix_slots_node"), "slots", ["node"])


def _layouts() -> None:
    op.create_table(
        "layouts",
        sa.Column("number", NUMBER, autoincrement=False, nullable=False),
        _count("slot"),
        _text("node"),
        _text("source"),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("until", sa.Double(), nullable=True),
        _count("width"),
        _blob("columns"),
        sa.Column("promise", sa.Double(), nullable=False),
        _blob("bounds"),
        _text("names"),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index(op.f("ix_layouts_slot_number"), "layouts", ["slot", "number"])
    op.create_index(op.f("ix_layouts_until"), "layouts", ["until"])
    op.create_table(
        "layout_subjects",
        _text("subject"),
        _count("layout"),
        _text("card"),
        sa.PrimaryKeyConstraint("subject", "layout"),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_layout_subjects_card"), "layout_subjects", ["card"])
    op.create_index(op.f("ix_layout_subjects_layout"), "layout_subjects", ["layout"])


def _rows() -> None:
    op.create_table(
        "minute_rows",
        sa.Column("number", NUMBER, autoincrement=False, nullable=False),
        *(_count(name) for name in ("layout", "block", "minute")),
        sa.Column("at", sa.Double(), nullable=False),
        _blob("packed"),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index(op.f("ix_minute_rows_layout_minute"), "minute_rows", ["layout", "minute"])
    op.create_index(op.f("ix_minute_rows_block_layout"), "minute_rows", ["block", "layout"])
