# SPDX-License-Identifier: Apache-2.0
"""Columns say exactly what rows say: the same filters, orders, pages and sums, value by value."""

from __future__ import annotations

import json
from functools import cmp_to_key, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.decide import pick
from muster.domain.decide.pick_numbers import devices_together, merged, newest, totals
from muster.domain.decide.pick_order import everything, page, place
from muster.domain.decide.pick_table import Places, Table
from muster.domain.decide.select import Place, SortKey, earlier, selects, stand
from muster.domain.decide.understand import understand
from muster.domain.decide.view import How
from muster.domain.model.filters import Always, And, Compare, Contains, Has, In, Not, Or, Shape, StartsWith, Tree
from muster.domain.model.snapshot import Coded, Numbers, Snapshot

FIELDS = {
    "id": Shape.TEXT,
    "presence": Shape.TEXT,
    "product.name": Shape.TEXT,
    "memory.total": Shape.NUMBER,
    "temperature.core": Shape.NUMBER,
    "aside": Shape.BOOL,
    "seen_at": Shape.TIME,
    "findings": Shape.LIST,
    "link.peers": Shape.MAP,
}

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(["a", "ab", "abc", "node-2", "node-10", "0000:0a:00.0"])
_BORDERS = st.sampled_from([0, 1, 2**53, 2**53 + 1, 2**53 + 2, 2**60 + 1, -5, 0.5, 2.0, float(2**53)])
_NUMBER: st.SearchStrategy[int | float] = _BORDERS | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False)
_FINITE = _NUMBER.filter(lambda number: abs(number) != float("inf"))
_ODD = st.sampled_from([float("nan"), float("inf"), "many", True, "7"])
_ORDERS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
_PATHS = sorted(FIELDS)
_LEAVES: st.SearchStrategy[Tree] = st.one_of(
    st.builds(Compare, st.sampled_from(["presence", "product.name", "id"]), st.sampled_from(["==", "!="]), _TEXT),
    st.builds(Compare, st.sampled_from(["memory.total", "temperature.core", "seen_at"]), _ORDERS, _FINITE),
    st.builds(Compare, st.just("aside"), st.sampled_from(["==", "!="]), st.booleans()),
    st.builds(In, st.sampled_from(["presence", "product.name"]), st.lists(_TEXT, max_size=3).map(tuple)),
    st.builds(In, st.just("memory.total"), st.lists(_FINITE, max_size=3).map(tuple)),
    st.builds(Contains, _TEXT | st.integers(0, 2), st.just("findings")),
    st.builds(Has, st.sampled_from(_PATHS)),
    st.builds(StartsWith, st.sampled_from(["product.name", "presence"]), _TEXT),
    st.builds(Always, st.booleans()),
)


def _grown(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.builds(Not, inner) | st.builds(And, inner, inner) | st.builds(Or, inner, inner)


_TREES: st.SearchStrategy[Tree] = st.recursive(_LEAVES, _grown, max_leaves=8)
_ROWS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "presence": _TEXT | st.integers(0, 3),
        "product.name": _TEXT,
        "memory.total": _NUMBER | _ODD,
        "temperature.core": _NUMBER,
        "seen_at": st.floats(0, 2e9),
        "aside": st.booleans() | st.integers(0, 1),
        "findings": st.lists(_TEXT | st.integers(0, 2), max_size=3) | st.just("a"),
        "link.peers": st.dictionaries(_TEXT, st.integers(0, 2), max_size=2),
    },
)
_FLEETS = st.lists(_ROWS, max_size=12).map(lambda rows: [{**row, "id": f"c-{number * 7 % 12}"} for number, row in enumerate(rows)])


def table(rows: list[dict[str, Any]]) -> Table:
    made = Table(FIELDS)
    for row in rows:
        made.put(row["id"], row)
    return made


def snapshot(made: Table, at: float = 0.0) -> Snapshot:
    live, columns = made.columns()
    return Snapshot(version=1, at=at, live=live, columns=columns)


def ids(of: Snapshot, rows: Any) -> list[str]:
    return of.texts("id", rows)


@given(_FLEETS, _TREES)
def test_a_filter_selects_the_same_rows(rows: list[dict[str, Any]], tree: Tree) -> None:
    columns = snapshot(table(rows))

    assert set(ids(columns, np.flatnonzero(pick.mask(tree, columns)))) == {row["id"] for row in rows if selects(tree, row.get)}


@given(st.lists(_TEXT, min_size=600, max_size=700), _LEAVES)
def test_many_words_are_looked_up_with_the_same_answers(names: list[str], tree: Tree) -> None:
    rows = [{"id": f"c-{number}", "product.name": f"{name}{number % 550}", "presence": name} for number, name in enumerate(names)]
    columns = snapshot(table(rows))

    assert set(ids(columns, np.flatnonzero(pick.mask(tree, columns)))) == {row["id"] for row in rows if selects(tree, row.get)}


_SORTED = ["presence", "product.name", "memory.total", "temperature.core", "aside", "id"]
_KEYS = st.lists(st.builds(SortKey, st.sampled_from(_SORTED), st.booleans()), min_size=1, max_size=3)


def _earlier(keys: list[SortKey], one: Place, other: Place) -> int:
    return earlier(one, other, keys)


@given(_FLEETS, _KEYS, st.integers(1, 5))
def test_pages_have_the_order_of_rows_and_each_row_once(rows: list[dict[str, Any]], keys: list[SortKey], limit: int) -> None:
    places: list[Place] = [stand(row.get, row["id"], keys) for row in rows]
    wanted = sorted(places, key=cmp_to_key(partial(_earlier, keys)))
    columns = snapshot(table(rows))

    assert ids(columns, everything(columns, columns.live, keys)) == [id_ for _, id_ in wanted]
    found: list[str] = []
    after = None
    while True:
        told = page(columns, columns.live, keys, after, limit)
        found += ids(columns, told)
        if len(told) < limit:
            break
        values, id_ = place(columns, int(told[-1]), keys)
        after = (tuple(json.loads(json.dumps(values))), id_)
    assert found == [id_ for _, id_ in wanted]


@given(_FLEETS, _KEYS, _ROWS)
def test_a_page_goes_on_after_a_row_that_is_gone(rows: list[dict[str, Any]], keys: list[SortKey], gone: dict[str, Any]) -> None:
    after = (tuple(gone.get(key.path) for key in keys), "c-5x")
    columns = snapshot(table(rows))
    wanted = [stand(row.get, row["id"], keys) for row in rows]

    assert set(ids(columns, page(columns, columns.live, keys, after, 50))) == {each[1] for each in wanted if earlier(each, after, keys) > 0}


@given(st.lists(st.tuples(st.integers(0, 5), _ROWS | st.none()), max_size=30))
def test_a_snapshot_never_changes_and_the_last_says_what_stands(steps: list[tuple[int, dict[str, Any] | None]]) -> None:
    made = Table(FIELDS)
    stands: dict[str, dict[str, Any]] = {}
    seen: list[tuple[Snapshot, dict[str, dict[str, Any]]]] = []
    for number, row in steps:
        id_ = f"c-{number}"
        if row is None:
            made.drop(id_)
            stands.pop(id_, None)
        else:
            stands[id_] = {**row, "id": id_}
            made.put(id_, stands[id_])
        seen.append((snapshot(made), dict(stands)))
    for columns, told in seen:
        rows = np.flatnonzero(columns.live).tolist()
        assert {columns.texts("id", [row])[0]: _told(columns, row) for row in rows} == {id_: _plain(row) for id_, row in told.items()}


def _told(columns: Snapshot, row: int) -> dict[str, str]:
    return {path: repr(value) for path, column in columns.columns.items() if (value := column.at(row)) is not None}


def _plain(row: dict[str, Any]) -> dict[str, str]:
    def number(value: Any) -> Any:
        whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
        return int(value) if whole else value

    return {path: repr(number(value) if FIELDS[path] in (Shape.NUMBER, Shape.TIME) else value) for path, value in row.items()}


def test_one_and_true_are_two_words() -> None:
    columns = snapshot(table([{"id": "a", "presence": 1}, {"id": "b", "presence": True}, {"id": "c", "presence": "1"}, {"id": "d", "presence": [1]}]))
    column = columns.columns["presence"]

    assert isinstance(column, Coded)
    assert [column.at(row) for row in range(4)] == [1, True, "1", [1]]
    assert len(column.words.values) == 4


def test_a_filter_on_what_no_row_has() -> None:
    columns = snapshot(table([{"id": "a"}]))

    for text in ("temperature.core > 1", "!(temperature.core > 1)", "has(temperature.core)"):
        assert not pick.mask(understand(text, FIELDS, 0.0), columns).any()
    assert pick.mask(understand("!has(temperature.core)", FIELDS, 0.0), columns).all()
    assert pick.mask(None, columns).all()


def arrays(*said: tuple[int, float, float, float, float]) -> list[Any]:
    places, values, times, ranks, promises = zip(*said, strict=True)
    return [np.array(places, np.int32), *(np.array(each, np.float64) for each in (values, times, ranks, promises))]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ([(0, 5.0, 90, 0, 30)], 5.0),
        ([(0, 5.0, 90, 1, 30), (0, 6.0, 80, 0, 30)], 6.0),
        ([(0, 5.0, 90, 1, 30), (0, 6.0, 60, 0, 30)], 5.0),
        ([(0, 5.0, 10, 1, 30), (0, 6.0, 20, 1, 30)], 6.0),
        ([(0, 5.0, 10, 0, 30), (0, 6.0, 20, 1, 30)], 5.0),
        ([(0, float("nan"), 99, 0, 30), (0, 6.0, 20, 1, 30)], 6.0),
        ([(-1, 5.0, 90, 0, 30)], None),
        ([(0, float("nan"), 90, 0, 30)], None),
    ],
)
def test_the_number_shown_is_chosen_as_facts_are(said: list[tuple[int, float, float, float, float]], shown: float | None) -> None:
    places, values, times, ranks, promises = arrays(*said)
    found = newest(places, values, times, ranks, promises, 100.0, 2)

    assert np.isnan(found[1])
    assert (None if np.isnan(found[0]) else found[0]) == shown


def test_numbers_of_records_stand_where_nothing_newer_is_told() -> None:
    told = merged(Numbers(values=np.array([1.0, 2.0, np.nan]), odd={2: "many"}), np.array([np.nan, 5.0, 6.0]))

    assert [told.at(row) for row in range(3)] == [1, 5, 6]
    assert merged(None, np.array([1.5])).at(0) == 1.5


def test_devices_speak_together_only_when_all_do() -> None:
    own = Numbers(values=np.array([np.nan, 9.0, np.nan, np.nan]))
    owners = np.array([0, 0, 1, 2, 2, -1], np.int32)
    told = Numbers(values=np.array([3.0, 4.0, 1.0, 2.0, np.nan, 7.0]))
    added, most = devices_together(own, How.SUM, owners, told, 4), devices_together(own, How.MOST, owners, told, 4)

    assert [added.at(row) for row in range(4)] == [7, 9, None, None]
    assert [most.at(row) for row in range(4)] == [4, 9, None, None]
    assert totals(np.array([True, True, True, False]), own, owners, told) == (18.0, 3)
    assert devices_together(own, How.SUM, owners, None, 4) is own


def test_places_are_looked_up_once_and_again_when_rows_came_or_went() -> None:
    known = {"a": 0, "b": 1}
    asked: list[str] = []

    def resolve(subject: str, none: int) -> int:
        asked.append(subject)
        return known.get(subject, none)

    places = Places()
    assert places.of("k", 1, ["a", "x"], 2, resolve).tolist() == [0, -1]
    assert places.of("k", 1, ["a", "x", "b"], 3, resolve).tolist() == [0, -1, 1]
    assert asked == ["a", "x", "b"]
    known["x"] = 2
    assert places.of("k", 2, ["a", "x", "b"], 3, resolve).tolist() == [0, 2, 1]


@given(st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=12), st.lists(st.integers(1, 5), max_size=4))
def test_orders_that_are_kept_are_those_made_anew(told: list[tuple[str, str]], cuts: list[int]) -> None:
    """Rows come some at a time, and each time the order of words is what a table that never was asked before says."""
    keys = (SortKey("presence", down=True), SortKey("product.name", down=False))
    grown = Table(FIELDS)
    done = 0
    for cut in (*cuts, len(told)):
        for number, (name, presence) in enumerate(told[done : done + cut], done):
            grown.put(f"{name}-{number}", {"id": f"{name}-{number}", "product.name": name, "presence": presence})
            grown.put(f"{name}-0", {"id": f"{name}-0", "product.name": presence, "presence": name})
        done += cut
        anew = Table(FIELDS)
        for id_, place_ in grown.places.items():
            anew.put(id_, {path: grown.value(id_, path) for path in ("id", "product.name", "presence")})
            assert place_ >= 0
        orders = []
        for table in (grown, anew):
            live, columns = table.columns()
            snapshot = Snapshot(version=1, at=0.0, live=live, columns=columns)
            first = place(snapshot, next(row for row in range(snapshot.rows) if snapshot.texts("id", [row]) == [min(table.places)]), keys)
            orders.append([snapshot.texts("id", rows.tolist()) for rows in (everything(snapshot, live, keys), page(snapshot, live, keys, (first[0], "m"), 5))])
        assert orders[0] == orders[1]
