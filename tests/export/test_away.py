# SPDX-License-Identifier: Apache-2.0
"""A server that goes away: what was read of it is told for a while, then it is old, and said to be."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cramjam
import pytest
from tests.export.receiver import receiver
from tests.export.test_remote import fields, is_end, series

from muster.export import remote
from muster.export.families import READINGS
from muster.export.shards import Shard
from muster.formats.prometheus import samples
from muster.interfaces.cli.client import Address
from muster.interfaces.cli.export import Asking
from muster.wiring import exporting
from muster.wiring.exporting import HttpPost, Plan
from muster.wiring.server import Server

PATIENCE_S = 30


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is old after two seconds."""
    monkeypatch.setattr(exporting, "HOLD_S", 2.0)
    monkeypatch.setattr(exporting, "ROUNDS", 1)


@contextmanager
def background(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """The work in a thread, until the end of the block."""
    ending = threading.Event()
    thread = threading.Thread(target=work, args=(ending,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(20)
        assert not thread.is_alive()


def plan(server: Server, said: list[str]) -> Plan:
    ask = Asking(Address(server.url), 5.0)
    return Plan(ask=ask, shard=Shard(), keys=frozenset(READINGS), interval=0.2, say=said.append)


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_old_pages_are_not_served(server: Server) -> None:
    said: list[str] = []
    urls: list[str] = []

    def told() -> dict[str, float]:
        with urllib.request.urlopen(urls[0], timeout=5) as answer:
            return {each.name: each.value for each in samples(answer.read())}

    with background(lambda ending: exporting.serve(plan(server, said), ("127.0.0.1", 0), ending, urls.append)):
        until(lambda: bool(urls) and "muster_power_draw_watts" in told())
        server.stop()
        until(lambda: told()["muster_export_reads_failed_total"] > 0)
        assert "muster_card_info" in told(), "it is told for a while"
        until(lambda: told()["muster_export_fresh"] == 0)
        assert {name for name in told() if not name.startswith("muster_export_")} == set()
    assert len(said) == 1
    assert "it is asked again" in said[0]


def test_pushed_series_end(server: Server, tmp_path: Path) -> None:
    said: list[str] = []
    with receiver() as there:
        sent = HttpPost(there.url, remote.HEADERS, 5)

        def told() -> list[tuple[dict[str, str], float, int]]:
            return [series(item) for body in list(there.bodies) for _, item in fields(bytes(cramjam.snappy.decompress_raw(body)))]

        def push(ending: threading.Event) -> None:
            mine = plan(server, said)
            exporting.push(mine, exporting.to_remote_write(sent, ending, said.append), exporting.remote_items(mine), ending)

        with background(push):
            until(lambda: bool(there.bodies))
            server.stop()
            until(lambda: any(is_end(value) for _, value, _ in told()))
        sent.close()
        all_ = told()
    begun = {tuple(sorted(labels.items())) for labels, value, _ in all_ if not is_end(value) and not labels["__name__"].startswith("muster_export_")}
    ended = [tuple(sorted(labels.items())) for labels, value, _ in all_ if is_end(value)]
    assert begun == set(ended)
    assert len(ended) == len(set(ended))
    assert [value for labels, value, _ in all_ if labels["__name__"] == "muster_export_fresh"][-1] == 0
