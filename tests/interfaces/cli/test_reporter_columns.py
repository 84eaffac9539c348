# SPDX-License-Identifier: Apache-2.0
"""What reporters tell of themselves: clock, spool, life, cost and worker, from a posted report through the API to the columns of `muster get`."""

from __future__ import annotations

import csv
import http.client
import io
import json
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.interfaces.cli.conftest import Muster

from muster.interfaces.api.app import build
from muster.wire.lanes import part
from muster.wire.report import AgentDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc, pack
from muster.wiring.adapters import adapters
from muster.wiring.server import Server
from muster.wiring.settings import load_settings

BEHIND, AHEAD = 35.0, 3590.0
"""Seconds by which the clock of one node is behind, and that of another ahead."""
STUCK = "stuck since 2026-11-30T10:00:00Z"


def _sources() -> tuple[str, str, str, str, str]:
    """Two sources of one adapter, its name, a source of another adapter, and the name of that."""
    one, other = [each for each in adapters() if len(each.sources) > 1][:2]
    return str(one.sources[0].id), str(one.sources[1].id), one.manifest.name, str(other.sources[0].id), other.manifest.name


READ, IDLE, ADAPTER, OTHER, OTHERS = _sources()


def _listing(source: str, serial: str, now: float) -> ListingDoc:
    card = ObservationDoc(level="card", ids=[("serial", serial)], readings={"product.name": {"v": "Acme X1"}})
    return ListingDoc(source=source, channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=True, observed_at=now, observations=[card])


def _report(node: str, now: float, *listings: ListingDoc, **more: Any) -> ReportDoc:
    told = {"incarnation": f"life-of-{node}", "sequence": 7, "sent_at": now, "schema": 2, **more}
    return ReportDoc(reporter=f"agent@{node}", node=NodeDoc(name=node, machine_id=f"mid-{node}"), heard=[part(each) for each in listings], **told)


def _posted(server: Server, report: ReportDoc) -> None:
    """As an agent of this machine posts it."""
    connection = http.client.HTTPConnection("muster", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.connect(server.socket)
        connection.request("POST", "/api/v1/reports", pack(report), {"content-type": "application/msgpack"})
        answer = connection.getresponse()
        assert (answer.status, b"applied" in answer.read()) == (200, True)
    finally:
        connection.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that two agents have told of themselves, and two not."""
    folder = tmp_path_factory.mktemp("reporters")
    settings = load_settings(host="127.0.0.1", port=0, in_memory=True, runtime=folder / "run", state=folder / "state")
    spooled = AgentDoc(
        spool_reports=12,
        spool_bytes=3 * 2**20,
        spool_oldest=95.0,
        dropped=4,
        refused=2,
        memory=40 * 2**20,
        cpu=1.5,
        workers={ADAPTER: f"reading {READ}", OTHERS: STUCK},
        costs={READ: 5.25, IDLE: 0.125},
    )
    with Server(settings, build) as running:
        now = time.time()
        late = now - BEHIND
        first = [_listing(READ, "SN-1", late), _listing(IDLE, "SN-1", late), _listing(OTHER, "SN-1", late)]
        _posted(running, _report("alpha", late, *first, agent=spooled, agent_version="1.4.2"))
        _posted(running, _report("beta", now, _listing(READ, "SN-2", now), agent=AgentDoc(), agent_version="1.4.3"))
        _posted(running, _report("gamma", now, _listing(READ, "SN-3", now)))
        _posted(running, _report("delta", now + AHEAD, _listing(READ, "SN-4", now + AHEAD), agent_version="1.4.2"))
        yield running


def _items(muster: Muster, what: str, key: str = "id") -> dict[str, Any]:
    return {each[key]: each for each in json.loads(muster("get", what, "-o", "json").out)["items"]}


def _rows(muster: Muster, what: str, key: str) -> dict[str, dict[str, str]]:
    return {row[key]: row for row in csv.DictReader(io.StringIO(muster("get", what, "-o", "csv").out))}


def _table(muster: Muster, *words: str) -> dict[str, dict[str, str]]:
    """The cells of a table by the titles above them, by the first cell of each line. Columns are two blanks apart."""
    head, *lines = (re.split(" {2,}", line.strip()) for line in muster(*words).out.splitlines())
    return {line[0]: dict(zip(head, line, strict=False)) for line in lines}


def test_a_node_tells_what_its_agent_told(muster: Muster) -> None:
    nodes = _items(muster, "nodes", "name")
    (told,) = nodes["alpha"]["agents"]

    assert told["spool"] == {"reports": 12, "bytes": 3 * 2**20, "oldest": 95.0}
    assert BEHIND <= told["skew"] < BEHIND + 20
    assert (told["reporter"], told["version"], told["incarnation"], told["sequence"]) == ("agent@alpha", "1.4.2", "life-of-alpha", 7)
    assert (told["dropped"], told["refused"], told["memory"], told["cpu"]) == (4, 2, 40 * 2**20, 1.5)
    assert told["workers"] == {ADAPTER: f"reading {READ}", OTHERS: STUCK}


def test_a_clock_that_is_ahead_has_a_skew_below_zero(muster: Muster) -> None:
    (told,) = _items(muster, "nodes", "name")["delta"]["agents"]

    assert -AHEAD <= told["skew"] < -AHEAD + 20
    assert _table(muster, "get", "nodes")["delta"]["SKEW"].startswith("-59m")


def test_nothing_that_waits_is_nought_and_nothing_told_is_unknown(muster: Muster) -> None:
    nodes = _items(muster, "nodes", "name")
    (empty,), (mute,) = nodes["beta"]["agents"], nodes["gamma"]["agents"]

    assert empty["spool"] == {"reports": 0, "bytes": 0, "oldest": 0.0}
    assert empty["skew"] == 0.0
    assert (mute["spool"], mute["dropped"], mute["memory"], mute["version"]) == (None, None, None, None)


def test_the_columns_of_nodes(muster: Muster) -> None:
    table, wide, rows = _table(muster, "get", "nodes"), _table(muster, "get", "nodes", "-o", "wide"), _rows(muster, "nodes", "name")

    assert {each: table[each]["AGENT"] for each in table} == {"alpha": "1.4.2", "beta": "1.4.3", "gamma": "-", "delta": "1.4.2"}
    assert {each: table[each]["SPOOL"] for each in table} == {"alpha": "3 MiB", "beta": "0 B", "gamma": "-", "delta": "-"}
    assert {each: table[each]["LAG"] for each in table} == {"alpha": "1m", "beta": "0s", "gamma": "-", "delta": "-"}
    assert table["alpha"]["SKEW"] in {f"{BEHIND + over:.0f}s" for over in range(20)} | {"1m"}
    assert {each: wide[each]["INCARNATION"] for each in wide} == {each: f"life-of-{each}" for each in ("alpha", "beta", "gamma", "delta")}
    assert (rows["alpha"]["agents.spool"], rows["alpha"]["agents.lag"]) == (str(3 * 2**20), "95.0")
    assert float(rows["alpha"]["agents.skew"]) >= BEHIND
    assert (rows["gamma"]["agents.spool"], rows["gamma"]["agents.lag"]) == ("", "")


def test_a_source_tells_what_a_round_costs_and_who_is_at_it(muster: Muster) -> None:
    found = {each["source"]: each for each in _items(muster, "sources").values() if each["node"] == "alpha"}

    assert {source: found[source]["cost"] for source in found} == {READ: 5.25, IDLE: 0.125, OTHER: None}
    assert found[READ]["worker"] == f"reading {READ}"
    assert found[IDLE]["worker"] is None, "the worker is at another source of its adapter"
    assert found[OTHER]["worker"] == STUCK
    assert {(each["cost"], each["worker"]) for each in _items(muster, "sources").values() if each["node"] != "alpha"} == {(None, None)}
    assert json.loads(muster("get", "source", f"alpha/{READ}", "-o", "json").out)["cost"] == 5.25


def test_the_page_of_a_source_tells_its_cost_and_its_worker(muster: Muster) -> None:
    pages = {source: " ".join(muster("describe", "source", f"alpha/{source}").out.split()) for source in (READ, IDLE, OTHER)}
    silent = muster("describe", "source", f"beta/{READ}").out

    assert f"cost 5.25 s for its last round worker reading {READ}" in pages[READ]
    assert "cost 0.125 s for its last round worker waits" in pages[IDLE]
    assert f"worker {STUCK}" in pages[OTHER]
    assert "cost" not in pages[OTHER]
    assert "cost" not in silent
    assert "worker" not in silent


def test_a_source_is_asked_for_with_its_node(muster: Muster) -> None:
    done = muster("describe", "source", READ)
    assert done.code == 3
    assert "a source is named NODE/SOURCE; `muster get sources -o name` lists them" in done.err
    unknown = muster("describe", "source", f"nowhere/{READ}").err
    assert "`muster get sources" in unknown
    assert "/api/" not in done.err


def test_the_columns_of_sources(muster: Muster) -> None:
    table, wide, rows = _table(muster, "get", "sources"), _table(muster, "get", "sources", "-o", "wide"), _rows(muster, "sources", "source")

    assert {each: (table[each]["COST"], table[each]["WORKER"]) for each in table if each.startswith("alpha/")} == {
        f"alpha/{READ}": ("5.25s", f"reading {READ}"),
        f"alpha/{IDLE}": ("0.125s", "-"),
        f"alpha/{OTHER}": ("-", STUCK),
    }
    assert {(table[each]["COST"], table[each]["WORKER"]) for each in table if not each.startswith("alpha/")} == {("-", "-")}
    assert {table[each]["CADENCE"] for each in table} == {"1m"}
    assert all(re.fullmatch(r"\d+s", table[each]["LAST"]) for each in table if each.startswith("beta/")), table
    assert wide[f"alpha/{READ}"]["REPORTER"] == "agent@alpha"
    assert rows[f"alpha/{IDLE}"]["cost"] == "0.125"
