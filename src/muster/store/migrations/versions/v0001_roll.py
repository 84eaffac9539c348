# SPDX-License-Identifier: Apache-2.0
"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes every table."""
    _intake()
    _cards()
    _nodes()
    _history()
    _series()
    _evidence()


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _time(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), nullable=False)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _running(name: str) -> sa.Column[int]:
    return sa.Column(name, NUMBER, autoincrement=True, nullable=False)


def _where(condition: str) -> dict[str, sa.TextClause]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def _intake() -> None:
    op.create_table(
        "received",
        _text("reporter"),
        _text("incarnation"),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        _text("digest"),
        _time("received_at"),
        _text("answer"),
        sa.PrimaryKeyConstraint("reporter", "incarnation", "sequence"),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_received_received_at"), "received", ["received_at"])
    op.create_table(
        "journal",
        sa.Column("number", NUMBER, autoincrement=False, nullable=False),
        _time("at"),
        _time("received_at"),
        _text("kind"),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "base",
        _text("part"),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("part"),
    )
    op.create_table(
        "counters",
        _text("name"),
        _count("value"),
        sa.PrimaryKeyConstraint("name"),
    )


def _cards() -> None:
    op.create_table(
        "cards",
        _running("number"),
        _text("id"),
        _text("node"),
        _text("presence"),
        _time("created_at"),
        _text("digest"),
        _time("learnt_from"),
        _time("updated_at"),
        _text("captures"),
        _text("record"),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id", name=op.f("uq_cards_id")),
    )
    op.create_index(op.f("ix_cards_node"), "cards", ["node"])
    op.create_index(op.f("ix_cards_presence"), "cards", ["presence"])
    op.create_table(
        "card_versions",
        _text("id"),
        _time("learnt_from"),
        _time("learnt_to"),
        _time("updated_at"),
        _count("number"),
        _time("created_at"),
        _text("record"),
        sa.PrimaryKeyConstraint("id", "learnt_from"),
    )
    op.create_index(op.f("ix_card_versions_learnt_to_learnt_from"), "card_versions", ["learnt_to", "learnt_from"])


def _nodes() -> None:
    op.create_table(
        "nodes",
        _running("number"),
        _text("id"),
        _time("created_at"),
        _text("digest"),
        _time("learnt_from"),
        _time("updated_at"),
        _text("captures"),
        _text("record"),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id", name=op.f("uq_nodes_id")),
    )
    op.create_table(
        "node_versions",
        _text("id"),
        _time("learnt_from"),
        _time("learnt_to"),
        _time("updated_at"),
        _count("number"),
        _time("created_at"),
        _text("record"),
        sa.PrimaryKeyConstraint("id", "learnt_from"),
    )
    op.create_index(op.f("ix_node_versions_learnt_to_learnt_from"), "node_versions", ["learnt_to", "learnt_from"])
    op.create_table(
        "aliases",
        _text("old"),
        _text("new"),
        _time("at"),
        sa.PrimaryKeyConstraint("old"),
    )
    op.create_index(op.f("ix_aliases_new"), "aliases", ["new"])
    op.create_table(
        "sources",
        _text("node"),
        _text("source"),
        _text("node_name"),
        _text("record"),
        sa.PrimaryKeyConstraint("node", "source"),
    )


def _history() -> None:
    op.create_table(
        "changes",
        _running("number"),
        _text("id"),
        _text("subject"),
        _text("kind"),
        _time("at"),
        _time("learnt_at"),
        _text("detail"),
        sa.Column("superseded_at", sa.Double()),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index(op.f("ix_changes_subject_number"), "changes", ["subject", "number"])
    op.create_index(
        "uq_changes_believed", "changes", ["id"], unique=True, sqlite_where=sa.text("superseded_at IS NULL"), postgresql_where=sa.text("superseded_at IS NULL")
    )
    op.create_table(
        "findings",
        _running("number"),
        _text("id"),
        _text("record"),
        _time("opened_at"),
        _time("learnt_at"),
        _time("last_seen_at"),
        sa.Column("acknowledged_at", sa.Double()),
        _text("acknowledged_by"),
        _text("reason"),
        sa.Column("closed_at", sa.Double()),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index(op.f("ix_findings_closed_at"), "findings", ["closed_at"])
    op.create_index(op.f("ix_findings_id"), "findings", ["id"])
    op.create_index(
        "uq_findings_open", "findings", ["id"], unique=True, sqlite_where=sa.text("closed_at IS NULL"), postgresql_where=sa.text("closed_at IS NULL")
    )


def _series() -> None:
    op.create_table(
        "current",
        _running("number"),
        _text("subject"),
        _text("node"),
        _text("source"),
        _text("key"),
        _text("card"),
        _time("at"),
        sa.Column("live", sa.Boolean(), nullable=False),
        _time("changed_at"),
        _text("said"),
        sa.Column("value_at", sa.Double()),
        sa.Column("why_at", sa.Double()),
        _text("capture"),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("subject", "node", "source", "key", name=op.f("uq_current_subject_node_source_key")),
    )
    op.create_index(op.f("ix_current_card"), "current", ["card"])
    op.create_table(
        "minutes",
        sa.Column("series", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("minute", sa.BigInteger(), autoincrement=False, nullable=False),
        _count("count"),
        _time("sum"),
        sa.Column("low", sa.Double()),
        sa.Column("high", sa.Double()),
        sa.Column("first", sa.Double()),
        sa.Column("first_at", sa.Double()),
        sa.Column("last", sa.Double()),
        _time("last_at"),
        sa.Column("said", sa.Text()),
        sa.Column("value_at", sa.Double()),
        sa.ForeignKeyConstraint(["series"], ["current.number"], name=op.f("fk_minutes_series"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("series", "minute"),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_minutes_minute"), "minutes", ["minute"])


# ### end Alembic commands ###


def _evidence() -> None:
    op.create_table(
        "events",
        _text("id"),
        _text("card"),
        _text("node"),
        _text("source"),
        _text("adapter"),
        _text("kind"),
        sa.Column("code", sa.Text()),
        _text("text"),
        _text("address"),
        _time("first_at"),
        _time("last_at"),
        _count("repeats"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_events_card_last_at"), "events", ["card", "last_at"])
    op.create_index(op.f("ix_events_last_at"), "events", ["last_at"])
    op.create_index(op.f("ix_events_node_last_at"), "events", ["node", "last_at"])
    op.create_table(
        "captures",
        _text("digest"),
        _text("source"),
        _text("node"),
        _text("format"),
        _text("locator"),
        _time("taken_at"),
        sa.Column("exit_status", sa.Integer()),
        sa.Column("stderr", sa.LargeBinary(), nullable=False),
        sa.Column("cut", sa.Boolean(), nullable=False),
        _count("size"),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index(op.f("ix_captures_taken_at_size_digest"), "captures", ["taken_at", "size", "digest"])
    op.create_table(
        "audit",
        _running("number"),
        _time("at"),
        _text("entry"),
        sa.PrimaryKeyConstraint("number"),
    )
