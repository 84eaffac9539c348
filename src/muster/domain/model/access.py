# SPDX-License-Identifier: Apache-2.0
"""Who asks, and what they may: users with a role, reporters with a scope."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """What a user may do. Each may do what those before it may."""

    VIEWER = "viewer"
    """Sees."""
    OPERATOR = "operator"
    """Says things about cards and nodes, acknowledges findings."""
    ADMIN = "admin"
    """Lets others in: users, tokens, reporters."""


class Part(StrEnum):
    """A part of what a site knows: a token may be for reading some of them only."""

    ROLL = "roll"
    """Cards, devices, partitions, nodes, sources, adapters, and the roll in numbers."""
    HISTORY = "history"
    """What changed."""
    FINDINGS = "findings"
    EVENTS = "events"
    CAPTURES = "captures"
    """The bytes that values rest on."""
    METRICS = "metrics"
    AUDIT = "audit"
    """Who did what."""
    ACCESS = "access"
    """Users, tokens, reporters."""


class Reach(StrEnum):
    """For whom a reporter may speak."""

    NODE = "node"
    """For one node."""
    LIST = "list"
    """For the nodes that are listed."""
    CLUSTER = "cluster"
    """For every node of one cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """For whom a reporter speaks: by ``reach`` one node, those of a list, or a cluster; a node is named by its host name or machine id."""

    reach: Reach
    nodes: frozenset[str] = frozenset()
    cluster: str = ""
    former: tuple[tuple[str, str], ...] = ()
    """Names and chassis (``("name", "gpu-1")``) that its one node had before, the oldest first: reports of that time may still be on their way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person or program at the API. ``via`` is how they are known: local (this machine), token or oidc."""

    name: str
    grade: Grade
    via: str
    token: str = ""
    """Id of the token, for the audit."""
    nodes: tuple[str, ...] = ()
    """Patterns (``rack1-*``) of the names of the nodes that are seen and spoken of; empty: every node, and what stands on none."""
    reads: frozenset[Part] = frozenset()
    """Parts that may be read, and then nothing may be changed; empty: every part that the grade allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """A reporter that has shown its key."""

    reporter: str
    scope: Scope
    until: float
    """When its access token ends (seconds since the epoch)."""
