# SPDX-License-Identifier: Apache-2.0
"""From start to stop: what stands in the way of a start, and that a stop loses nothing."""

from __future__ import annotations

import logging
import socket
import threading
import time
from dataclasses import replace

import pytest
from tests.interfaces.ingest.door import QUICK, T0, Client, Gate, Intake, Site, open_site, report, request, sequence

from muster.domain.model.errors import InputError, Unavailable
from muster.interfaces.ingest import listener
from muster.interfaces.ingest.limits import Limits
from muster.interfaces.ingest.listener import Ingest
from muster.interfaces.ingest.opened import reporters
from muster.wiring.settings import load_settings


def test_a_stop_while_busy_answers_what_it_has() -> None:
    site = Site(replace(QUICK, gather=0.5, grace=5.0))
    site.intake.hold.clear()
    with site.client() as first, site.client() as second, site.client() as idle, site.client() as half:
        assert idle.ask(request(method="GET", path="/version"))[0] == 200
        first.send(request(report(1)))
        assert site.settled(lambda: bool(site.intake.batches))
        second.send(request(report(2)))
        half.send(request(report(3), Content_Length="5000"))
        assert site.settled(lambda: site.ingest.meters.queue == 2)
        stopping = threading.Thread(target=site.ingest.stop)
        stopping.start()
        assert idle.closed
        time.sleep(0.2)
        assert site.ingest.alive
        half.send(b"x" * 100)
        site.intake.hold.set()
        for client in (first, second):
            status, headers, _ = client.answer()
            assert (status, headers["connection"]) == (200, "close")
            assert client.closed
        half.close()
        stopping.join(10)
    assert not site.ingest.alive
    assert [sequence(body) for body in site.intake.taken] == [1, 2]
    with pytest.raises(ConnectionError):
        Client(site.ingest.port)


def test_a_stop_is_not_held_up_by_a_writer_that_hangs() -> None:
    site = Site(replace(QUICK, grace=0.5))
    site.intake.hold.clear()
    with site.client() as client:
        client.send(request(report(1)))
        assert site.settled(lambda: bool(site.intake.batches))
        began = time.monotonic()
        site.ingest.stop()
        assert time.monotonic() - began < 8
        assert not site.ingest.alive
        assert client.closed, "unanswered: it is not known whether it was taken"
    site.intake.hold.set()


def test_a_stop_is_not_held_up_by_a_client_that_drips() -> None:
    site = Site(replace(QUICK, grace=0.5))
    with site.client() as client:
        client.send(b"POST /v1/re")
        assert site.settled(lambda: site.ingest.meters.connections == 1)
        began = time.monotonic()
        site.ingest.stop()
        assert time.monotonic() - began < 5
        assert client.closed


def test_stopped_twice_or_never_started_is_well() -> None:
    with open_site() as site:
        site.ingest.stop()
        site.ingest.stop()
    Ingest(Gate(), Intake(), lambda: T0).stop()


@pytest.mark.parametrize(
    ("soft", "hard", "taken", "left"),
    [
        (1024, 100_000, 20_000, 20_512),
        (100_000, 100_000, 20_000, 100_000),
        (1024, 10_000, 9_488, 10_000),
        (256, 600, 300, 600),
        (1024, -1, 20_000, 20_512),
        (-1, -1, 20_000, -1),
    ],
)
@pytest.mark.parametrize("likely", [1_000, 15_000, 20_000])
def test_no_more_connections_are_promised_than_files_may_be_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, soft: int, hard: int, taken: int, left: int, likely: int
) -> None:
    held = [(soft, hard)]
    monkeypatch.setattr("resource.getrlimit", lambda _: held[-1])
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: held.append(limits))
    with caplog.at_level(logging.WARNING, "muster.ingest"):
        assert listener._that_fit(20_000, likely) == taken
    assert held[-1] == (left, hard)
    assert bool(caplog.records) is (taken < likely), "it is said only where it may come to matter"


@pytest.mark.parametrize(("joined", "set_", "likely"), [(0, None, 1_000), (9_500, None, 20_000), (0, 30_000, 30_000)])
def test_how_many_connections_are_likely(joined: int, set_: int | None, likely: int) -> None:
    class Knowing(Gate):
        def members(self) -> range:
            return range(joined)

    settings = load_settings(ingest_connections=set_)
    assert reporters(Knowing(), Intake(), lambda: T0, None, settings)._likely == likely
    assert reporters(Gate(), Intake(), lambda: T0, None, settings)._likely == (set_ or 1_000)


def test_a_port_in_use_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ingest = Ingest(Gate(), Intake(), lambda: T0)
        with pytest.raises(Unavailable, match="cannot listen") as told:
            ingest.start(port=other.getsockname()[1])
        assert told.value.hint
        assert not ingest.alive


def test_plain_http_stays_on_this_machine() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.invalid"):
        with pytest.raises(InputError, match="plain HTTP"):
            Ingest(Gate(), Intake(), lambda: T0).start(host)
    with open_site() as site:
        assert site.ingest.host == "127.0.0.1"


def test_it_works_on_the_standard_loop_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvloop", None)
    loop = listener._new_loop()
    loop.close()
    assert type(loop).__module__.startswith("asyncio")
    with open_site() as site, site.client() as client:
        for number in range(5):
            assert client.ask(request(report(number)))[0] == 200
        client.send(request(report(9), Content_Length="99999999"))
        assert client.answer()[0] == 413
        assert client.closed
    assert len(site.intake.taken) == 5


def test_the_limits_that_hold_by_themselves_are_wide() -> None:
    limits = Limits()
    assert limits.idle >= 900
    assert (limits.head, limits.body, limits.connections) == (16 * 1024, 8 * 1024 * 1024, 20_000)
    assert limits.gather <= 0.05
    with open_site(limits) as site, site.client() as client:
        assert client.ask(request(report()))[0] == 200
