# SPDX-License-Identifier: Apache-2.0
"""docs/reference/api.md says of each route what its answers show: headers, conditions, keys; and has every route of both doors."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.house.tree import ROOT
from tests.interfaces.api.site import Site, site
from tests.interfaces.api.test_matrix import MATRIX, PUBLIC, address

from muster.interfaces.ingest.routes import ROUTES

TEXT = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### (GET|POST|DELETE) (\S+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
SECTIONS = {(method, path): told for method, path, told in SECTION.findall(TEXT)}
UNSERVED = "/openapi.json"
"""The description does not describe itself."""
NODE_B = "node-b"


@pytest.fixture(scope="module")
def place() -> Iterator[Site]:
    with site() as found:
        found.joins("node-a")
        found.joins(NODE_B)
        yield found


def plain(path: str) -> str:
    return path.replace(":path}", "}")


ROWS = sorted((method, path) for method, path in MATRIX if path != UNSERVED)


def test_every_route_has_its_section_and_every_section_its_route() -> None:
    assert sorted(SECTIONS) == sorted((method, plain(path)) for method, path in ROWS)


def test_every_route_of_the_listener_is_on_the_page() -> None:
    told = TEXT.partition("## The listener for reporters")[2]

    assert [path for path, route in ROUTES.items() if f"| `{route.method.decode()} {path}` |" not in told] == []


@pytest.mark.parametrize(("method", "path"), ROWS)
def test_who_may_is_what_the_matrix_says(method: str, path: str) -> None:
    row = MATRIX[method, path]
    told = SECTIONS[method, plain(path)]
    least = {PUBLIC: "everybody, without a token", "here": "programs of the server's machine"}.get(row.least, row.least)

    assert f"- Who may: {least}" in told
    if method == "GET" and row.least != PUBLIC:
        assert f"- Who may: {least}, part `{row.part}`." in told


@pytest.mark.parametrize(("method", "path"), [each for each in ROWS if each[0] == "GET" and "finding" not in each[1] and "stream" not in each[1]])
def test_a_tag_comes_where_the_page_says_so(place: Site, method: str, path: str) -> None:
    row = MATRIX[method, path]
    answer = place.ask("admin", method, address(place, row.inside), params=row.params)

    assert answer.status_code == 200, answer.text
    assert ("etag" in answer.headers) == ("`ETag`" in SECTIONS[method, plain(path)]), dict(answer.headers)


@pytest.mark.parametrize(("method", "path"), [each for each in ROWS if each[0] == "POST" and MATRIX[each].least == "operator" and "reporter" not in each[1]])
def test_conditions_and_keys_are_taken_where_the_page_says_so(place: Site, method: str, path: str) -> None:
    row = MATRIX[method, path]
    told = SECTIONS[method, plain(path)]
    asked = row.inside.replace("{finding a}", "none")
    condition = place.ask("admin", method, asked, row.body, headers={"if-match": "no tag"})
    key = place.ask("admin", method, asked, row.body, headers={"idempotency-key": "x" * 500})

    assert ("`If-Match`" in told) == ("If-Match" in condition.text), condition.text
    assert ("`Idempotency-Key`" in told) == ("Idempotency-Key" in key.text), key.text


def test_routes_that_take_no_key_say_none(place: Site) -> None:
    for method, path in (("POST", "/api/v1/tokens"), ("POST", "/api/v1/join-tokens")):
        assert "Idempotency-Key" not in SECTIONS[method, path]
        answer = place.ask("admin", method, path, MATRIX[method, path].body, headers={"idempotency-key": "x" * 500, "if-match": "no tag"})
        assert answer.status_code == 200, answer.text
