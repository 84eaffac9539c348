# SPDX-License-Identifier: Apache-2.0
"""Access: users' tokens, one-time tokens to join by, and the reporters that joined."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the tables of those who are let in; nobody is at first."""
    _users()
    _joining()
    _members()


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _time(name: str, *, maybe: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), nullable=maybe)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _users() -> None:
    op.create_table(
        "tokens",
        *(_text(name) for name in ("id", "name", "kind", "grade", "nodes", "reads", "digest")),
        _time("created_at"),
        _text("created_by"),
        _time("expires_at", maybe=True),
        _time("used_at", maybe=True),
        _time("revoked_at", maybe=True),
        _text("revoked_by"),
        sa.Column("origin", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
        sa.UniqueConstraint("origin", name=op.f("uq_tokens_origin")),
    )
    op.create_index(op.f("ix_tokens_expires_at"), "tokens", ["expires_at"])


def _joining() -> None:
    op.create_table(
        "join_tokens",
        *(_text(name) for name in ("id", "digest", "scope", "by")),
        _count("uses"),
        _count("left"),
        _time("created_at"),
        _time("expires_at"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest", name=op.f("uq_join_tokens_digest")),
    )


def _members() -> None:
    op.create_table(
        "members",
        *(_text(name) for name in ("reporter", "name", "machine_id", "system", "name_key", "machine_key", "system_key")),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        _text("scope"),
        _count("generation"),
        _text("token"),
        _time("enrolled_at"),
        _time("keyed_at"),
        _text("agent_version"),
        _time("revoked_at", maybe=True),
        _text("revoked_by"),
        _text("reason"),
        _time("reenrol_until", maybe=True),
        _count("changed"),
        sa.PrimaryKeyConstraint("reporter"),
        sa.UniqueConstraint("public_key", name=op.f("uq_members_public_key")),
    )
    for name in ("name_key", "machine_key", "system_key", "changed"):
        op.create_index(op.f(f"ix_members_{name}"), "members", [name])
