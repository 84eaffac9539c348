# SPDX-License-Identifier: Apache-2.0
"""Real stores of metrics: what was pushed or scraped is read back by their own queries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.export.conftest import report
from tests.export.tools import free_port, needed, running

from muster.export import remote
from muster.export.delivery import Courier, Moving
from muster.export.families import CARD_SEEN
from muster.export.labels import labels
from muster.export.remote import Lines
from muster.export.series import Point
from muster.interfaces.cli.main import run
from muster.wiring.exporting import HttpPost
from muster.wiring.server import Server

PATIENCE_S = 40


@dataclass
class Store:
    """A store of metrics that runs: where it takes remote write, and where it is asked."""

    url: str
    write: str

    def ask(self, query: str) -> dict[str, float]:
        """Values by the ``card`` or ``state`` of their series."""
        told = self.documents(query)
        return {each["metric"].get("state") or each["metric"].get("card", ""): float(each["value"][1]) for each in told}

    def documents(self, query: str) -> list[Any]:
        """The result of an instant query."""
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=20) as answer:
            found: list[Any] = json.load(answer)["data"]["result"]
        return found

    def until(self, query: str, wanted: Callable[[dict[str, float]], bool]) -> dict[str, float]:
        """The answer, as soon as it is what is wanted."""
        end = time.monotonic() + PATIENCE_S
        while not wanted(found := self.ask(query)):
            assert time.monotonic() < end, f"{query}: {found}"
            time.sleep(0.2)
        return found


def prometheus(folder: Path, scraped: int | None = None) -> tuple[list[str], Store]:
    port, config = free_port(), folder / "prometheus.yml"
    jobs = f"scrape_configs: [{{job_name: m, scrape_interval: 1s, static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]}}]" if scraped else ""
    config.write_text(f"global: {{scrape_interval: 1s}}\n{jobs}\n")
    flags = [
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-remote-write-receiver",
    ]
    url = f"http://127.0.0.1:{port}"
    return [needed("prometheus"), *flags], Store(url, f"{url}/api/v1/write")


def victoria(folder: Path) -> tuple[list[str], Store]:
    port = free_port()
    flags = [
        f"-httpListenAddr=127.0.0.1:{port}",
        f"-storageDataPath={folder / 'vm'}",
        "-search.latencyOffset=0s",
        "-search.disableCache",
        "-memory.allowedBytes=128MB",
    ]
    url = f"http://127.0.0.1:{port}"
    return [needed("victoria-metrics"), *flags], Store(url, f"{url}/api/v1/write")


@pytest.fixture(params=["prometheus", "victoria-metrics"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each store that takes remote write."""
    command, found = prometheus(tmp_path) if request.param == "prometheus" else victoria(tmp_path)
    ready = f"{found.url}/-/ready" if request.param == "prometheus" else f"{found.url}/health"
    with running(command, ready, tmp_path / "log"):
        yield found


def muster(*words: str) -> subprocess.Popen[bytes]:
    """The command as a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "muster", *words], stderr=subprocess.PIPE, env=dict(os.environ))


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Its exit code and what it said, after SIGTERM."""
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    return process.returncode, said.decode()


def test_one_push_is_read_back(store: Store, server: Server) -> None:
    assert run(["export", "remote-write", "--url", store.write, "--server", server.url, "--once"]) == 0

    store.until("muster_power_draw_watts", bool)
    assert list(store.ask('muster_power_draw_watts{device=""}').values()) == [61.25]
    assert sorted(float(each["value"][1]) for each in store.documents('muster_power_draw_watts{device!=""}')) == [10, 11]
    assert store.ask('muster_utilization_core_ratio{device=""}') == {next(iter(store.ask('muster_power_draw_watts{device=""}'))): 0}
    sick = store.documents('muster_card_info{serial="XQ47-2"}')[0]["metric"]
    assert sick["model"] == 'Acme "X2"'
    assert store.ask(f'muster_health_reported{{card="{sick["card"]}"}}') == {"ok": 0, "warning": 0, "critical": 1, "unknown": 0}
    assert store.documents(f'muster_power_draw_watts{{card="{sick["card"]}"}}') == []
    assert store.documents('sum(muster_cards{presence="present"})')[0]["value"][1] == "3"


def test_values_move_and_end_with_their_readings(store: Store, server: Server) -> None:
    process = muster("export", "remote-write", "--url", store.write, "--server", server.url, "--interval", "1")
    try:
        store.until('muster_power_draw_watts{device=""}', lambda found: list(found.values()) == [61.25])
        assert server.desk.report(report(time.time(), 2, watts=99.5)).answer == "applied"
        store.until('muster_power_draw_watts{device=""}', lambda found: list(found.values()) == [99.5])
        gone = report(time.time(), 3)
        gone.listings[0].observations[0].readings["power.draw"] = {"a": "not_supported", "d": "N/A"}
        assert server.desk.report(gone).answer == "applied"
        store.until('muster_power_draw_watts{device=""}', lambda found: found == {})
        assert len(store.ask('muster_temperature_core_celsius{device=""}')) == 1
        assert {each["value"][1] for each in store.documents("muster_export_dropped_total")} == {"0"}
    finally:
        code, said = ended(process)
    assert (code, said) == (0, "")


def test_a_store_that_was_away_gets_all_when_it_is_back(tmp_path: Path, server: Server) -> None:
    command, store = prometheus(tmp_path)
    process = muster("export", "remote-write", "--url", store.write, "--server", server.url, "--interval", "1")
    try:
        time.sleep(2.5)
        with running(command, f"{store.url}/-/ready", tmp_path / "log"):
            store.until('muster_power_draw_watts{device=""}', lambda found: list(found.values()) == [61.25])
            store.until("muster_export_retries_total", lambda found: max(found.values(), default=0) > 0)
    finally:
        code, said = ended(process)
    assert code == 0
    assert "it is tried again: 127.0.0.1: Connection refused" in said


def test_of_a_refused_request_the_good_part_arrives(tmp_path: Path) -> None:
    command, store = prometheus(tmp_path)

    def told(card: str, value: float, at: float) -> list[bytes]:
        return list(Lines().told([Point(CARD_SEEN, labels((("card", card),)), value)], at))

    with running(command, f"{store.url}/-/ready", tmp_path / "log"):
        post, now = HttpPost(store.write, remote.HEADERS, 10), time.time()
        courier = Courier(post, remote.sealed, Moving(pause=threading.Event().wait, clock=time.monotonic, die=lambda: 0.5), print)
        courier.add(told("late", 1, now))
        assert courier.deliver(time.monotonic() + 10)
        courier.add([*told("a", 2, now), *told("late", 3, now - 5), *told("b", 4, now)])
        assert courier.deliver(time.monotonic() + 10)
        post.close()

        assert store.ask("muster_card_last_seen_timestamp_seconds") == {"late": 1, "a": 2, "b": 4}
    assert (courier.sent, courier.dropped) == (3, {"refused": 1, "rejected": 0, "waited": 0})


def test_prometheus_scrapes_what_is_served(tmp_path: Path, server: Server) -> None:
    port = free_port()
    command, store = prometheus(tmp_path, scraped=port)
    process = muster("export", "prometheus", "--listen", f"127.0.0.1:{port}", "--server", server.url, "--interval", "1")
    try:
        with running(command, f"{store.url}/-/ready", tmp_path / "log"):
            store.until("muster_export_fresh", lambda found: list(found.values()) == [1])
            named = 'muster_power_draw_watts{device=""} * on (card) group_left (model, serial) muster_card_info'
            store.until(named, bool)
            assert store.documents(named)[0]["metric"]["serial"] == "XQ47-1"
            assert list(store.ask("up").values()) == [1]
            assert list(store.ask("muster_export_reads_failed_total").values()) == [0]
    finally:
        code, said = ended(process)
    assert (code, said) == (0, f"muster: metrics at http://127.0.0.1:{port}/metrics\n")
