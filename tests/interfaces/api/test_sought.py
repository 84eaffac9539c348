# SPDX-License-Identifier: Apache-2.0
"""Lists of what is kept without end (findings, events, the audit log): all of it can be reached, and no request reads all of it unasked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.interfaces.api.fleet import client, get
from tests.store.samples import event, finding

from muster.domain.model.roll import FindingKind
from muster.interfaces.api import findings_sought
from muster.spi.store import Batch
from muster.store import open_store
from muster.store.reader import Reader
from muster.wiring.desk import Desk

MANY = 60


class Counting:
    """Counts the rows that a reader hands out to those who go through them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.rows, self.calls = 0, list[dict[str, Any]]()
        read = getattr(Reader, name)

        def counted(reader: Reader, *told: Any, **asked: Any) -> Any:
            found = read(reader, *told, **asked)
            if "before" in asked:
                self.rows += len(found)
                self.calls.append(asked)
            return found

        monkeypatch.setattr(Reader, name, counted)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings_sought, "CHUNK", 5)
    monkeypatch.setattr(findings_sought, "READ", 20)
    monkeypatch.setattr(findings_sought, "SORTED", MANY)


@pytest.fixture
def asked(desk: Desk) -> Iterator[TestClient]:
    """An API on findings and events of two kinds, each a second after the one before, and as many entries of the audit log."""
    kinds = (FindingKind.CARD_MISSING, FindingKind.SEQUENCE_CONFLICT)
    store = open_store(None)
    store.writer.commit(
        Batch(
            at=1000.0,
            findings=[finding(f"f{n:03}", float(n + 1), kind=kinds[n % 2], cards=(f"x{n % 3}", "both"), subject=f"s{n}") for n in range(MANY)],
            events=[event(f"e{n:03}", float(n + 1), text=f"line {n}", kind=("fault", "reset")[n % 2]) for n in range(MANY)],
            audit=[{"by": "ann", "what": "note", "detail": n} for n in range(MANY)],
        )
    )
    yield client(replace(desk, reader=store.reader))
    store.close()


def pages(api: TestClient, path: str, **query: Any) -> tuple[list[Any], int]:
    """All items of a list, page by page, and how many pages there were."""
    found, count, after = list[Any](), 0, ""
    while True:
        asked: dict[str, Any] = {**query, "cursor": after} if after else query
        page = get(api, path, **asked)
        found, count, after = found + page["items"], count + 1, page.get("next") or ""
        if not after:
            return found, count


@pytest.mark.parametrize(("path", "name", "word"), [("findings", "findings", "subject"), ("events", "events", "text")])
def test_a_filter_without_an_index_reads_a_part_and_reaches_all(asked: TestClient, monkeypatch: pytest.MonkeyPatch, path: str, name: str, word: str) -> None:
    counted = Counting(monkeypatch, name)
    wanted = {"subject": "s0", "text": "line 0"}[word]
    first = get(asked, f"/api/v1/{path}", filter=f'{word} == "{wanted}"', limit=5)
    assert (first["items"], first["total"]) == ([], None)
    assert first["next"]
    assert counted.rows <= findings_sought.READ
    found, count = pages(asked, f"/api/v1/{path}", filter=f'{word} == "{wanted}"', limit=5)
    assert [each[word] for each in found] == [wanted]
    assert count == MANY // findings_sought.READ + 1


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_pages_of_a_filter_leave_out_nothing(asked: TestClient, limit: int) -> None:
    found, _ = pages(asked, "/api/v1/findings", filter='has(subject) && kind == "card_missing"', limit=limit)
    assert [each["id"] for each in found] == [f"f{n:03}" for n in range(MANY - 2, -1, -2)]
    told, _ = pages(asked, "/api/v1/events", filter='text.startsWith("line 1")', limit=limit)
    assert [each["id"] for each in told] == [*(f"e{n:03}" for n in range(19, 9, -1)), "e001"]


def test_what_has_an_index_is_asked_of_the_store(asked: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counting(monkeypatch, "findings")
    found, _ = pages(asked, "/api/v1/findings", filter='"x1" in cards && "both" in cards && kind in ["card_missing"] && subject != "s4"')
    assert [each["id"] for each in found] == [f"f{n:03}" for n in range(MANY - 1, 4, -1) if n % 3 == 1 and n % 2 == 0]
    assert {tuple(each["cards"]) for each in counted.calls} == {("x1",)}
    assert counted.rows == MANY // 6


def test_another_order_is_given_of_few_and_refused_of_many(asked: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    found, count = pages(asked, "/api/v1/findings", sort="opened_at", limit=25)
    assert [each["id"] for each in found] == [f"f{n:03}" for n in range(MANY)]
    assert count == 3
    assert get(asked, "/api/v1/events", sort="text", limit=2)["total"] == MANY
    monkeypatch.setattr(findings_sought, "SORTED", MANY - 1)
    counted = Counting(monkeypatch, "findings")
    for path, own in (("findings", "opened_at"), ("events", "last_at")):
        refused = get(asked, f"/api/v1/{path}", 400, sort=own)
        assert f"more than {MANY - 1} {path}" in refused["detail"]
        assert f"sort=-{own}" in refused["hint"]
        assert "kind, node, a card" in refused["hint"]
    assert counted.rows == MANY
    assert len(get(asked, "/api/v1/findings", sort="opened_at", filter='kind == "card_missing"')["items"]) == MANY // 2


def test_the_audit_log_is_gone_through_to_its_first_entry(asked: TestClient) -> None:
    found, count = pages(asked, "/api/v1/audit", limit=25)
    assert [each["detail"]["detail"] for each in found] == list(range(MANY - 1, -1, -1))
    assert count == 3
    assert get(asked, "/api/v1/audit", limit=MANY)["next"] is None
    assert get(asked, "/api/v1/audit", 400, cursor="abc")["code"] == "invalid_input"
