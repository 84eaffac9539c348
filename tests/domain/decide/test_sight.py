# SPDX-License-Identifier: Apache-2.0
"""What a user may see and do: grades in their order, patterns of nodes, parts that are only read."""

from __future__ import annotations

import pytest

from muster.domain.decide.sight import highest, may, reaches, sees
from muster.domain.model.access import Grade, Part, User


def test_grades_are_in_order() -> None:
    order = [Grade.VIEWER, Grade.OPERATOR, Grade.ADMIN]

    assert [[reaches(has, needs) for needs in order] for has in order] == [[True, False, False], [True, True, False], [True, True, True]]
    assert highest([Grade.VIEWER, Grade.ADMIN, Grade.OPERATOR]) is Grade.ADMIN
    assert highest([]) is None


@pytest.mark.parametrize(
    ("patterns", "node", "seen"),
    [
        ((), "node-a", True),
        ((), None, True),
        (("node-a",), "node-a", True),
        (("node-a",), "NODE-A", True),
        (("node-a",), "node-ab", False),
        (("node-a",), "xnode-a", False),
        (("rack1-*",), "rack1-7", True),
        (("rack1-*",), "rack11-7", False),
        (("rack[12]-*",), "rack2-7", True),
        (("a", "b"), "b", True),
        (("*",), "", False),
        (("*",), None, False),
        (("",), "node-a", False),
        (("",), None, False),
    ],
)
def test_patterns(patterns: tuple[str, ...], node: str | None, seen: bool) -> None:
    assert sees(patterns, node) is seen


def test_may() -> None:
    viewer = User(name="ann", grade=Grade.VIEWER, via="token")
    reads = User(name="bea", grade=Grade.VIEWER, via="token", reads=frozenset({Part.FINDINGS}))
    admin = User(name="cleo", grade=Grade.ADMIN, via="token")

    assert may(viewer, Grade.VIEWER, Part.ROLL, changes=False) == ""
    assert "needs the role operator" in may(viewer, Grade.OPERATOR, Part.ROLL, changes=True)
    assert may(admin, Grade.ADMIN, Part.ACCESS, changes=True) == ""
    assert may(reads, Grade.VIEWER, Part.FINDINGS, changes=False) == ""
    assert may(reads, Grade.VIEWER, Part.FINDINGS, changes=True) == "bea may only read"
    assert may(reads, Grade.VIEWER, Part.ROLL, changes=False) == "bea may read findings only, not roll"
