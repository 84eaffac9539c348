# SPDX-License-Identifier: Apache-2.0
"""`muster get`, `describe`, `history`, `status`, `top`, `capture` against a server with a small roll."""

from __future__ import annotations

import csv
import io
import json
import time
from typing import Any

import click
import pytest

from muster.interfaces.cli import client
from muster.interfaces.cli.cells import Missing
from muster.interfaces.cli.documents import as_of, now, on_card
from muster.interfaces.cli.main import run

from .conftest import DIGEST, PAYLOAD, Muster

FIRST = "XQ47-1"


def items(told: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(told)["items"]
    return found


def test_cards_are_named_by_node_slot_and_model(muster: Muster) -> None:
    told = muster("get", "cards")

    assert told.code == 0
    assert "alpha · PCIe 4 · Acme X1" in told.out
    assert told.out.splitlines()[0].split() == ["CARD", "PRESENCE", "MEMORY", "USED", "BUSY", "TEMP", "POWER", "HEALTH", "SEEN", "ID"]


def test_an_unknown_value_is_a_dash_and_a_zero_is_a_zero(muster: Muster) -> None:
    rows = {row["ids.serial"]: row for row in csv.DictReader(io.StringIO(muster("get", "cards", "-o", "csv").out))}
    lines = {line.split()[2]: line for line in muster("get", "cards", "--no-headers").out.splitlines()}

    assert rows[FIRST]["memory.used"] == "0"
    assert rows["XQ47-2"]["memory.used"] == ""
    assert " 0 B " in lines["PCIe"]
    assert " 0 " not in lines["0000:22:00.0"].replace("0000:22:00.0", "")


def test_wide_tells_the_reason(muster: Muster) -> None:
    assert "- (not supported)" in muster("get", "cards", "-o", "wide").out


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "csv", "name", "jsonpath={.items[*].name}"])
@pytest.mark.parametrize("what", ["cards", "nodes", "sources", "findings", "events", "changes", "partitions", "devices", "adapters"])
def test_every_list_in_every_form_is_clean(muster: Muster, what: str, form: str) -> None:
    told = muster("get", what, "-o", form)

    assert (told.code, "\x1b" in told.out, "\u202e" in told.out, "\x07" in told.out) == (0, False, False, False), told.err


@pytest.mark.parametrize(("short", "long"), [("c", "cards"), ("card", "cards"), ("n", "nodes"), ("s", "sources"), ("f", "findings"), ("p", "partitions")])
def test_short_and_singular_forms(muster: Muster, short: str, long: str) -> None:
    assert muster("get", short, "-o", "name").out == muster("get", long, "-o", "name").out


def test_json_is_what_the_api_says(muster: Muster, server: Any) -> None:
    told = json.loads(muster("get", "cards", "-o", "json").out)

    assert sorted(told) == ["at", "items", "next", "total"]
    assert told["total"] == len(told["items"]) == 2
    assert {"readings", "claims", "ids"} <= told["items"][0].keys()


def test_pages_are_read_to_the_end(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {what: muster("get", what, "-o", "name").out for what in ("cards", "changes", "sources")}
    monkeypatch.setattr(client, "PAGE", 1)

    assert {what: muster("get", what, "-o", "name").out for what in whole} == whole
    assert len(whole["cards"].splitlines()) == 2


def test_a_limit_holds(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAGE", 1)

    assert len(items(muster("get", "cards", "--limit", "1", "-o", "json").out)) == 1


def test_filter_and_order(muster: Muster) -> None:
    assert len(items(muster("get", "cards", "--filter", "memory.total >= 1Gi", "-o", "json").out)) == 1
    down = items(muster("get", "cards", "--sort-by", "-serial", "-o", "json").out)
    assert [each["ids"]["serial"] for each in down] == [["XQ47-2"], ["XQ47-1"]]


def test_one_by_name(muster: Muster) -> None:
    one = json.loads(muster("get", "card", FIRST, "-o", "json").out)

    assert one["ids"]["serial"] == [FIRST]
    assert muster("get", "card", FIRST, "-o", "jsonpath={.readings['memory.total'].value}").out == "68719476736\n"


def test_the_past_was_empty(muster: Muster) -> None:
    told = muster("get", "cards", "--at", "2h")

    assert (told.code, told.out, told.err) == (0, "", "no cards\n")
    assert muster("get", "cards", "--at", "2h", "-q").err == ""


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("get", "things"), 2, "nothing is called 'things'"),
        (("get", "cards", "-o", "xml"), 2, "no output form"),
        (("get", "cards", "--at", "yesterday"), 2, "is no time"),
        (("get", "cards", "--at", "2199-01-01T00:00:00Z"), 2, "yet to come"),
        (("get", "cards", "--filter", "presence =="), 2, "filter"),
        (("get", "cards", "--sort-by", "colour"), 2, "colour"),
        (("get", "cards", "--limit", "0"), 2, "limit"),
        (("get", "sources", "--at", "1h"), 2, "as they are now"),
        (("get", "changes", "--filter", "x"), 2, "unfiltered"),
        (("get", "nodes", "--all"), 2, "listed already"),
        (("get", "event", "e1"), 2, "by name"),
        (("get", "card", "nobody"), 3, "nobody"),
        (("describe", "card", "nobody"), 3, "nobody"),
        (("describe", "event", "e1"), 2, "no page"),
        (("describe", "finding", "x", "--at", "1h"), 2, "as it is now"),
        (("history", "node", "alpha"), 2, "no history"),
        (("capture", "0" * 64), 3, "no capture"),
        (("nonsense",), 2, "nonsense"),
    ],
)
def test_what_cannot_be_done_is_said(muster: Muster, words: tuple[str, ...], code: int, says: str) -> None:
    told = muster(*words)

    assert (told.code, told.out) == (code, "")
    assert says in told.err
    assert "Traceback" not in told.err


def test_describe_a_card_tells_everything(muster: Muster) -> None:
    told = muster("describe", "card", FIRST).out

    for part in ("64 GiB", "acme.status", "redfish says 32 GiB", "- (not present)", "XQ47-1", "PCIe 4", "known by", "installed", "train\\x1b"):
        assert part in told
    assert "\x1b" not in told


def test_describe_a_card_with_partitions(muster: Muster) -> None:
    told = muster("describe", "card", "XQ47-2").out

    assert "PARTITION 0" in told
    assert "1 KiB" in told
    assert "- (not supported: N/A)" in told


def test_describe_as_json_is_the_document(muster: Muster) -> None:
    assert json.loads(muster("describe", "card", FIRST, "-o", "json").out)["ids"]["serial"] == [FIRST]


def test_describe_a_node_its_sources_and_findings(muster: Muster) -> None:
    told = muster("describe", "node", "alpha").out

    for part in ("5f3c2b1a09e84d7c8b6a5f4e3d2c1b0a", "alpha/acme.status", "Acme X1", "source failed"):
        assert part in told


def test_describe_a_source(muster: Muster) -> None:
    told = muster("describe", "source", "alpha/other.smi").out

    for part in ("failed", "not_permitted", "needs root\\x1b", "180 s"):
        assert part in told


def test_describe_a_finding(muster: Muster) -> None:
    (finding,) = muster("get", "findings", "-o", "name").out.split()

    assert "source_failed" in muster("describe", "finding", finding).out


def test_describe_a_card_tells_its_newest_events(muster: Muster) -> None:
    told = muster("describe", "card", FIRST).out

    assert "\nEVENTS\n" in told
    assert "link down\\x07" in told
    assert "\nEVENTS" not in muster("describe", "card", "XQ47-2").out


def test_what_devices_say_together_is_a_value_of_the_card() -> None:
    column = on_card("MEMORY", "memory.total", "bytes")
    of_devices = {"together": {"memory.total": {"value": 2048, "unit": "bytes", "how": "sum of devices"}}}

    assert column.value({"readings": {}, **of_devices}) == 2048
    assert column.value({"readings": {"memory.total": {"absent": "not_supported"}}, **of_devices}) == 2048
    assert column.value({"readings": {"memory.total": {"value": 0}}, **of_devices}) == 0
    assert column.value({"readings": {"memory.total": {"absent": "not_supported"}}}) == Missing("not_supported")
    assert column.needs == ("memory.total", "together")


@pytest.mark.parametrize(
    "document",
    [
        {"items": [], "at": "2026-09-21T14:13:20Z"},
        {"id": "s", "last_at": "2026-09-21T14:13:00Z", "age": 20.0},
        {"id": "f", "opened_at": "2026-09-21T14:13:19Z", "age": 1},
        {"id": "c", "readings": {"memory.total": {"value": 1, "observed_at": "2026-09-21T14:13:18Z", "age": 2.0}}},
        {"items": [{"id": "c", "readings": {"memory.total": {"absent": "error", "observed_at": "2026-09-21T14:13:18Z", "age": 2.0}}}]},
    ],
)
def test_ages_are_of_the_time_of_the_document(document: dict[str, Any]) -> None:
    with click.Context(click.Command("get")):
        as_of(document)
        assert now() == 1_790_000_000.0


def test_ages_are_of_this_moment_where_a_document_tells_no_time() -> None:
    with click.Context(click.Command("get")):
        as_of({"id": "1", "at": "2026-09-21T14:13:20Z", "learnt_at": "2026-09-21T14:13:20Z"})
        assert abs(now() - time.time()) < 60


def test_history(muster: Muster) -> None:
    told = muster("history", "card", FIRST, "-o", "json")

    assert [each["kind"] for each in items(told.out)] == ["installed"]
    assert "installed" in muster("history", "card", FIRST).out


def test_status_counts_and_never_sums_the_unknown(muster: Muster) -> None:
    told = muster("status").out
    sums = {line.split()[0]: line.split()[1] for line in told.splitlines() if line.startswith(("  power.", "  memory."))}

    assert "2 cards on 1 node," in told
    assert sums["power.limit"] == "-"
    assert sums["memory.used"] == "0"
    assert json.loads(muster("status", "-o", "json").out)["cards"] == 2


def test_top_has_a_limit(muster: Muster) -> None:
    assert len(muster("top", "--limit", "1", "--no-headers").out.splitlines()) == 1
    assert len(muster("top", "--no-headers").out.splitlines()) == 2


def test_top_ends_at_once_where_it_is_no_terminal(muster: Muster) -> None:
    told = muster("top")

    assert told.code == 0
    assert "45 %" in told.out
    assert "\x1b" not in told.out


def test_a_capture_comes_back_byte_by_byte(server: Any, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["capture", DIGEST, "--server", server.url]) == 0
    assert capfdbinary.readouterr().out == PAYLOAD


def test_where_a_capture_comes_from(muster: Muster) -> None:
    assert json.loads(muster("capture", DIGEST, "--info").out)["locator"] == ["acmectl", "status"]


def test_verbose_talks_on_stderr_only(muster: Muster) -> None:
    told = muster("get", "cards", "-v", "-o", "name")

    assert "muster.sock" in told.err
    assert "muster.sock" not in told.out
