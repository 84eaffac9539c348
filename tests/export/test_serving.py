# SPDX-License-Identifier: Apache-2.0
"""`/metrics` over a real socket: from the cache, packed when asked for, and never old."""

from __future__ import annotations

import gzip
import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.export.fleets import T0, card, fleet, told

from muster.export.families import READINGS
from muster.export.series import Names, points
from muster.export.serving import Listener, Pages
from muster.export.shards import Shard
from muster.formats.prometheus import samples


@contextmanager
def listening(pages: Pages, now: list[float]) -> Iterator[int]:
    with Listener(("127.0.0.1", 0), pages, lambda: now[0]) as listener:
        listener.start()
        yield int(listener.server_address[1])
        listener.shutdown()


def asked(port: int, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def put(pages: Pages, now: float) -> None:
    pages.put(points(fleet(card(1, {"power.draw": told(7)})), frozenset(READINGS), Names()), at=T0, took=0.25, now=now)


def values(body: bytes) -> dict[str, float]:
    return {each.name: each.value for each in samples(body)}


def test_the_page_is_served_and_what_is_told_of_the_export() -> None:
    pages = Pages(Shard(number=2, of=4), 90)
    put(pages, 0)
    with listening(pages, [1.0]) as port:
        answer, body = asked(port)
        head, nothing = asked(port, method="HEAD")

    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert values(body)["muster_power_draw_watts"] == 7
    assert values(body)["muster_export_fresh"] == 1
    assert values(body)["muster_export_last_read_timestamp_seconds"] == T0
    assert b'muster_export_shard_info{shard="2",shards="4"} 1\n' in body
    assert (head.headers["Content-Length"], nothing) == (str(len(body)), b"")


def test_a_page_can_be_had_packed() -> None:
    pages = Pages(Shard(), 90)
    put(pages, 0)
    with listening(pages, [1.0]) as port:
        answer, body = asked(port, **{"Accept-Encoding": "gzip"})
        _, plain = asked(port)

    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == plain


def test_an_old_page_is_not_served() -> None:
    pages, now = Pages(Shard(), 90), [0.0]
    with listening(pages, now) as port:
        _, before = asked(port)
        put(pages, 0)
        now[0] = 90.0
        _, still = asked(port)
        pages.failed()
        now[0] = 90.1
        _, old = asked(port)
        put(pages, 90.1)
        _, again = asked(port)

    assert "muster_power_draw_watts" not in values(before)
    assert values(before)["muster_export_fresh"] == 0
    assert "muster_export_last_read_timestamp_seconds" not in values(before)
    assert values(still)["muster_power_draw_watts"] == 7
    assert not [name for name in values(old) if not name.startswith("muster_export_")]
    assert (values(old)["muster_export_fresh"], values(old)["muster_export_reads_failed_total"]) == (0, 1)
    assert values(old)["muster_export_last_read_timestamp_seconds"] == T0
    assert values(again)["muster_power_draw_watts"] == 7


@pytest.mark.parametrize("path", ["/", "/metricsx", "/../etc/passwd", "/api/v1/cards"])
def test_nothing_else_is_served(path: str) -> None:
    with listening(Pages(Shard(), 90), [0.0]) as port:
        answer, body = asked(port, path)

    assert (answer.status, body) == (404, b"metrics are at /metrics\n")


def test_many_ask_at_once() -> None:
    pages = Pages(Shard(), 90)
    put(pages, 0)
    statuses: list[int] = []
    with listening(pages, [1.0]) as port:
        threads = [threading.Thread(target=lambda: statuses.append(asked(port)[0].status)) for _ in range(40)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(20)

    assert statuses == [200] * 40
