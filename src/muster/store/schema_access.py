# SPDX-License-Identifier: Apache-2.0
"""The tables of those who are let in: users by their tokens, reporters by one-time tokens and then by their keys."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, LargeBinary, Table, Text, UniqueConstraint

from muster.store.schema import metadata

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    *(Column(name, Text, nullable=False) for name in ("name", "kind", "grade", "nodes", "reads", "digest")),
    Column("created_at", Double, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", Double),
    Column("used_at", Double),
    Column("revoked_at", Double),
    Column("revoked_by", Text, nullable=False),
    Column("origin", Text),
    UniqueConstraint("digest"),
    UniqueConstraint("origin"),
    Index(None, "expires_at"),
)
"""``nodes`` and ``reads`` are JSON lists. Only the digest of a secret is kept."""

join_tokens = Table(
    "join_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    *(Column(name, Text, nullable=False) for name in ("digest", "scope", "by")),
    Column("uses", BigInteger, nullable=False),
    Column("left", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    UniqueConstraint("digest"),
)
"""``scope`` is JSON. Only the digest of a token is kept."""

members = Table(
    "members",
    metadata,
    Column("reporter", Text, primary_key=True),
    *(Column(name, Text, nullable=False) for name in ("name", "machine_id", "system", "name_key", "machine_key", "system_key")),
    Column("public_key", LargeBinary, nullable=False),
    Column("scope", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("token", Text, nullable=False),
    Column("enrolled_at", Double, nullable=False),
    Column("keyed_at", Double, nullable=False),
    Column("agent_version", Text, nullable=False),
    Column("revoked_at", Double),
    Column("revoked_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("reenrol_until", Double),
    Column("changed", BigInteger, nullable=False),
    UniqueConstraint("public_key"),
    *(Index(None, name) for name in ("name_key", "machine_key", "system_key", "changed")),
)
"""Reporters that joined. ``changed`` is the number of the change that wrote the row, by which other processes learn of it."""
