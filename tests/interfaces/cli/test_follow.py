# SPDX-License-Identifier: Apache-2.0
"""`get -w` and `history -w` follow the server's stream: a real process, a real server, what happens is printed as it happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from muster.wire.report import ActDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from muster.wiring.server import Server

SRC = Path(__file__).parents[3] / "src"


def report(node: str, sequence: int = 1, *, at: float, index: str = "0") -> ReportDoc:
    card = ObservationDoc(
        level="card", ids=[("serial", f"FO-{node}"), ("pci_address", "0000:21:00.0"), ("index", index)], readings={"product.name": {"v": "Acme X1"}}
    )
    listing = ListingDoc(
        source="acme.status", channel="in_band", witness="driver", cadence=60, outcome="devices", complete=True, observed_at=at, observations=[card]
    )
    return ReportDoc(reporter=f"agent@{node}", incarnation="i1", sequence=sequence, node=NodeDoc(name=node), sent_at=at, listings=[listing])


@contextmanager
def following(server: Server, words: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """The command as a process that goes on; it is interrupted at the end and says so by its exit code."""
    environment = {**os.environ, "PYTHONPATH": str(SRC), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "muster", *words, "--server", server.socket]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        yield running
        running.send_signal(signal.SIGINT)
        assert running.wait(10) == 130
    finally:
        running.kill()
        running.communicate()


def line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline()


def test_changes_go_on(server: Server) -> None:
    with following(server, ["get", "changes", "-w", "-o", "json", "--limit", "1"]) as running:
        json.loads(line(running))
        before = time.monotonic()
        server.desk.report(report("follow-1", at=time.time()))
        told: dict[str, Any] = json.loads(line(running))

        assert told["kind"] == "installed"
        assert any("follow-1" in name for name in told["names"].values())
        assert time.monotonic() - before < 5


def test_a_list_is_looked_at_when_something_happens(server: Server) -> None:
    with following(server, ["get", "cards", "--watch-only", "-o", "name", "--interval", "300"]) as running:
        time.sleep(3.0)
        server.desk.report(report("follow-2", at=time.time()))

        assert line(running).startswith("c-")


def test_the_history_of_a_card_goes_on(server: Server) -> None:
    server.desk.report(report("follow-3", at=time.time()))
    with following(server, ["history", "card", "FO-follow-3", "-w", "-o", "json"]) as running:
        assert json.loads(line(running))["kind"] == "installed"
        server.desk.act(ActDoc(what="set", by="ann", card={"serial": "FO-follow-3"}, values={"asset.owner": "lab"}))
        told = json.loads(line(running))

    card = next(each for each in server.desk.reader.cards() if "FO-follow-3" in each.ids.get("serial", ()))
    assert told["subject"] == card.id
    assert told["kind"] == "operator_changed"
