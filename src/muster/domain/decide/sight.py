# SPDX-License-Identifier: Apache-2.0
"""What a user may see and do: the order of grades, and patterns of node names. Denied where nothing says yes."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from muster.domain.model.access import Grade, Part, User

_ORDER = {Grade.VIEWER: 0, Grade.OPERATOR: 1, Grade.ADMIN: 2}


def reaches(has: Grade, needs: Grade) -> bool:
    """True when a grade may do what needs another."""
    return _ORDER[has] >= _ORDER[needs]


def highest(grades: Sequence[Grade]) -> Grade | None:
    """The grade that may most; None of none."""
    return max(grades, key=_ORDER.__getitem__, default=None)


def sees(patterns: Sequence[str], node: str | None) -> bool:
    """True when a node of that name is in sight. Without patterns everything is, even what stands on no node; with patterns a nameless one never is."""
    return not patterns or (bool(node) and any(fnmatchcase((node or "").lower(), each.lower()) for each in patterns))


def may(user: User, needs: Grade, part: Part, *, changes: bool) -> str:
    """Why the user may not; empty when they may."""
    if not reaches(user.grade, needs):
        return f"needs the role {needs}, and {user.name} is {user.grade}"
    if user.reads and changes:
        return f"{user.name} may only read"
    if user.reads and part not in user.reads:
        return f"{user.name} may read {', '.join(sorted(user.reads))} only, not {part}"
    return ""
