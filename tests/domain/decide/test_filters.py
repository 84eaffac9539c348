# SPDX-License-Identifier: Apache-2.0
"""The filter: what it understands, what it refuses and where, and its three-valued logic."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.decide.select import SortKey, earlier, holds, order, selects, stand
from muster.domain.decide.understand import DEEPEST, LONGEST, PARTS, understand
from muster.domain.model.errors import InputError
from muster.domain.model.filters import Always, And, Compare, Contains, Has, In, Not, Or, Shape, StartsWith, Tree, paths

FIELDS = {
    "presence": Shape.TEXT,
    "product.name": Shape.TEXT,
    "memory.total": Shape.NUMBER,
    "temperature.core": Shape.NUMBER,
    "aside": Shape.BOOL,
    "seen_at": Shape.TIME,
    "asset.warranty_until": Shape.DATE,
    "findings": Shape.LIST,
    "link.peers": Shape.MAP,
}
ROW: dict[str, Any] = {
    "presence": "present",
    "memory.total": 80 * 2**30,
    "aside": False,
    "seen_at": 1_000.0,
    "asset.warranty_until": "2027-05-01",
    "findings": ["card_missing"],
    "link.peers": {"a": 1},
}
NOW = 2_000.0


def tell(text: str, row: dict[str, Any] | None = None) -> bool | None:
    return holds(understand(text, FIELDS, NOW), (ROW if row is None else row).get)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('presence == "present"', True),
        ("presence == 'present'", True),
        ('presence != "present"', False),
        ('presence in ["missing", "present"]', True),
        ("presence in []", False),
        ('presence.startsWith("pre")', True),
        ('readings["memory.total"] >= 64Gi', True),
        ("readings.memory.total >= 64Gi", True),
        ("memory.total == 80Gi", True),
        ("memory.total > 85.9G", False),
        ("memory.total in [80Gi, 40Gi]", True),
        ("!aside", True),
        ("aside == true || aside", False),
        ('seen_at < "-10m" && seen_at >= "1970-01-01T00:16:40Z"', True),
        ('asset.warranty_until < "2028-01-01"', True),
        ('"card_missing" in findings', True),
        ('!("card_missing" in findings)', False),
        ("has(link.peers) && has(presence)", True),
        ("true", True),
        ("false || (true && !false)", True),
    ],
)
def test_true_and_false(text: str, answer: bool) -> None:
    assert tell(text) is answer


@pytest.mark.parametrize(
    "text",
    [
        "temperature.core > 80",
        "!(temperature.core > 80)",
        "temperature.core != 80",
        "temperature.core in [1, 2]",
        '!product.name.startsWith("A")',
        "temperature.core > 80 && true",
        "temperature.core > 80 || false",
        "!(temperature.core > 80 && true)",
    ],
)
def test_an_absent_value_is_neither(text: str) -> None:
    tree = understand(text, FIELDS, NOW)

    assert holds(tree, ROW.get) is None
    assert not selects(tree, ROW.get)


def test_what_does_not_hang_on_the_absent_value_is_told() -> None:
    assert tell("temperature.core > 80 && false") is False
    assert tell("false && temperature.core > 80") is False
    assert tell("temperature.core > 80 || true") is True
    assert tell('presence == "present" || temperature.core > 80') is True
    assert tell("has(temperature.core)") is False
    assert tell("!has(temperature.core)") is True


def test_a_value_of_another_type_is_no_value() -> None:
    assert tell("memory.total > 1", {"memory.total": "many"}) is None
    assert tell("memory.total > 0", {"memory.total": True}) is None
    assert tell('"x" in findings', {"findings": "x"}) is None
    assert tell('presence.startsWith("x")', {"presence": 1}) is None
    assert tell("presence in ['1']", {"presence": 1}) is False
    assert tell("aside == true", {"aside": 1}) is None


@pytest.mark.parametrize(
    ("text", "part", "position"),
    [
        ("presense == 'x'", "presense", 1),
        ("presence = 'x'", "= 'x'", 10),
        ("presence = 'x'", "equal is ==", 10),
        ("node == mus-h8", "a text stands in quotes", 12),
        ("presence == x", "x", 13),
        ("presence == ", "a value is expected", 13),
        ("presence == 5", "presence", 13),
        ("memory.total > 'big'", "memory.total", 16),
        ("memory.total > 5Xi", "Xi", 16),
        ("memory.total > 1e999", "too large", 16),
        ("presence > 'a'", "no order", 10),
        ("aside < true", "no order", 7),
        ("findings == 'x'", "list", 10),
        ("findings in ['x']", "list", 13),
        ("link.peers == 'x'", "map", 12),
        ("'x' in presence", "no list", 8),
        ("'x' == presence", "left", 5),
        ("memory.total.startsWith('x')", "startsWith", 25),
        ("presence.startsWith(5)", "startsWith", 21),
        ("presence.endsWith('x')", "presence.endsWith", 1),
        ("asset.warranty_until < 'soon'", "date", 24),
        ("has('x')", "a path is expected", 5),
        ("has(presence", "')'", 13),
        ("(presence == 'x'", "')'", 17),
        ("presence == 'x')", "one too many", 16),
        ("presence == 'x' 'y'", "one too many", 17),
        ("presence", "compared with nothing", 1),
        ("&& true", "a path is expected", 1),
        ("presence in ['a' 'b']", "','", 18),
        ("readings[5] == 1", "wants a key", 10),
        ("presence == 'x", "'x", 13),
        ("size(findings) > 1", "size", 1),
        ("memory.total + 1 > 2", "+", 14),
        ("true ? 1 : 2", "? 1", 6),
    ],
)
def test_refused_with_its_position(text: str, part: str, position: int) -> None:
    with pytest.raises(InputError) as refused:
        understand(text, FIELDS, NOW)

    assert part in refused.value.message
    assert f"position {position}:" in refused.value.message


def test_a_wrong_time_is_refused() -> None:
    with pytest.raises(InputError, match="no time"):
        understand("seen_at > 'yesterday'", FIELDS, NOW)


def test_bounds() -> None:
    understand("!" * DEEPEST + "true", FIELDS, NOW)
    for text in ("!" * (DEEPEST + 1) + "true", "(" * 500, " || ".join(["true"] * (PARTS + 1)), " " * (LONGEST + 1), f"memory.total in [{'1,' * PARTS}1]"):
        with pytest.raises(InputError):
            understand(text, FIELDS, NOW)


def test_near_names_are_told() -> None:
    with pytest.raises(InputError, match=r"memory\.total"):
        understand("memory.totl > 1", FIELDS, NOW)


def test_escapes() -> None:
    assert tell(r'presence == "a\"\u00e9\n"', {"presence": 'a"é\n'}) is True
    assert tell(r'presence == "\ud800"', {"presence": "\N{REPLACEMENT CHARACTER}"}) is True


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_NUMBER = st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False, width=32)
_ORDERS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
_LEAVES: st.SearchStrategy[Tree] = st.one_of(
    st.builds(Compare, st.just("presence"), st.sampled_from(["==", "!="]), _TEXT),
    st.builds(Compare, st.sampled_from(["memory.total", "temperature.core"]), _ORDERS, _NUMBER),
    st.builds(Compare, st.just("aside"), st.sampled_from(["==", "!="]), st.booleans()),
    st.builds(In, st.just("presence"), st.lists(_TEXT, max_size=3).map(tuple)),
    st.builds(In, st.just("memory.total"), st.lists(_NUMBER, max_size=3).map(tuple)),
    st.builds(Contains, _TEXT, st.just("findings")),
    st.builds(Has, st.sampled_from(sorted(FIELDS))),
    st.builds(StartsWith, st.just("product.name"), _TEXT),
    st.builds(Always, st.booleans()),
)


def _grown(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.builds(Not, inner) | st.builds(And, inner, inner) | st.builds(Or, inner, inner)


_TREES: st.SearchStrategy[Tree] = st.recursive(_LEAVES, _grown, max_leaves=8)
_ROWS = st.fixed_dictionaries(
    {},
    optional={
        "presence": _TEXT,
        "product.name": _TEXT,
        "memory.total": _NUMBER,
        "temperature.core": _NUMBER,
        "aside": st.booleans(),
        "findings": st.lists(_TEXT, max_size=3),
    },
)


@given(_TREES)
def test_written_and_read_again_it_is_the_same(tree: Tree) -> None:
    assert understand(str(tree), FIELDS, NOW) == tree


@given(_TREES, _TREES, _ROWS)
def test_logic(one: Tree, two: Tree, row: dict[str, Any]) -> None:
    a, b = holds(one, row.get), holds(two, row.get)

    assert holds(Not(Not(one)), row.get) is a
    assert holds(And(one, two), row.get) is holds(And(two, one), row.get)
    assert holds(Not(And(one, two)), row.get) is holds(Or(Not(one), Not(two)), row.get)
    assert not (selects(one, row.get) and selects(Not(one), row.get))
    if a is not None and b is not None:
        assert holds(And(one, two), row.get) is (a and b)
        assert holds(Or(one, two), row.get) is (a or b)
    if not set(paths(one)) <= row.keys() and not isinstance(one, And | Or | Not | Has):
        assert a is None


@given(st.text(max_size=60) | st.lists(st.sampled_from(["presence", "memory.total", "==", "'x'", "64Gi", "(", ")", "!", "&&", "||", "in", "[", "]", ",", ".", "has", "startsWith", "readings", '"', "\\", "-", "1", "findings"]), max_size=14).map(" ".join))  # fmt: skip  # noqa: E501 - one list of words
def test_anything_is_understood_or_refused(text: str) -> None:
    try:
        tree = understand(text, FIELDS, NOW)
    except InputError:
        return

    assert holds(tree, ROW.get) in (True, False, None)


def test_order() -> None:
    keys = order("-temperature.core, presence", FIELDS)

    assert keys == (SortKey("temperature.core", True), SortKey("presence"))
    for wrong in ("nothing", "findings", "a,b,c,d,e", "-link.peers"):
        with pytest.raises(InputError, match="sort"):
            order(wrong, FIELDS)


_VALUES = (
    st.none()
    | st.integers(-3, 3)
    | st.floats(-3, 3)
    | st.just(float("nan"))
    | st.sampled_from(["a", "b", "a2", "a10", "a02", "2", "0000:0a:00.0", "0000:10:00.0"])
)


@pytest.mark.parametrize(
    "texts",
    [
        ["node-1", "node-2", "node-10", "node-10-a"],
        ["PCIe 2", "PCIe 10"],
        ["0000:05:00.0", "0000:0a:00.0", "0000:10:00.0", "0000:1b:00.0", "0001:01:00.0", "10000:01:00.0"],
        ["n · 0000:05:00.0 · X", "n · 0000:0a:00.0 · X"],
        ["01", "1", "2", "a", "a1", "b"],
    ],
)
def test_texts_are_in_natural_order(texts: list[str]) -> None:
    keys = (SortKey("x"),)
    places = [stand({"x": text}.get, "", keys) for text in texts]

    assert [earlier(one, other, keys) for one, other in pairwise(places)] == [-1] * (len(texts) - 1)


@given(st.lists(st.tuples(_VALUES, _VALUES, st.sampled_from("pqrs")), min_size=3, max_size=3), st.booleans(), st.booleans())
def test_the_order_is_total_and_absent_comes_last(rows: list[tuple[Any, Any, str]], down: bool, other_down: bool) -> None:
    keys = (SortKey("x", down), SortKey("y", other_down))
    a, b, c = (stand({"x": x, "y": y}.get, id_, keys) for x, y, id_ in rows)

    assert earlier(a, b, keys) == -earlier(b, a, keys)
    if earlier(a, b, keys) <= 0 and earlier(b, c, keys) <= 0:
        assert earlier(a, c, keys) <= 0
    if rows[0][0] is None and isinstance(rows[1][0], int):
        assert earlier(a, b, keys) > 0
