# SPDX-License-Identifier: Apache-2.0
"""`muster export` as people run it: what it refuses, what it says, and what it reads of a server."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs

import pytest
from tests.export.receiver import receiver

from muster.domain.model.errors import Unavailable
from muster.export.fleet import CARD_FIELDS, read, seconds
from muster.export.shards import Shard, shard
from muster.formats.prometheus import samples
from muster.interfaces.cli.main import run
from muster.wiring.server import Server

Capture = pytest.CaptureFixture[str]


def lines(text: str, name: str) -> list[dict[str, str]]:
    return [each.labels for each in samples(text.encode()) if each.name == name]


def test_the_page_is_printed_once(server: Server, capsys: Capture) -> None:
    assert run(["export", "prometheus", "--once", "--server", server.url]) == 0
    shown = capsys.readouterr()

    assert len(lines(shown.out, "muster_card_info")) == 3
    assert len(lines(shown.out, "muster_device_info")) == 2
    assert shown.err == ""


def test_shards_are_the_whole_fleet(server: Server, capsys: Capture) -> None:
    found: list[str] = []
    findings = 0
    for number in range(1, 5):
        assert run(["export", "prometheus", "--once", "--shard", f"{number}/4", "--server", server.url]) == 0
        told = capsys.readouterr().out
        found += [labels["card"] for labels in lines(told, "muster_card_info")]
        findings += bool(lines(told, "muster_findings_open"))
        assert all(shard(f"{number}/4").has(labels["card"]) for labels in lines(told, "muster_card_info"))

    assert len(found) == len(set(found)) == 3
    assert findings == 1


def test_only_some_attributes_can_be_told(server: Server, capsys: Capture) -> None:
    assert run(["export", "prometheus", "--once", "--attributes", "power.draw, memory.total", "--server", server.url]) == 0
    told = capsys.readouterr().out

    assert lines(told, "muster_power_draw_watts")
    assert lines(told, "muster_memory_size_bytes")
    assert not lines(told, "muster_temperature_core_celsius")
    assert lines(told, "muster_card_info")[0]["driver"] == "1.2"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["prometheus", "--listen", "0.0.0.0:9460"], "is reached from other machines"),
        (["prometheus", "--listen", "muster.example:9460"], "is reached from other machines"),
        (["prometheus", "--listen", "9460"], "is no address"),
        (["prometheus", "--listen", "127.0.0.1:70000"], "is no address"),
        (["prometheus", "--shard", "5/4"], "is no shard"),
        (["prometheus", "--attributes", "no.such"], "the dictionary has none of that name"),
        (["prometheus", "--attributes", "product.name"], "its values are texts or lists"),
        (["remote-write", "--url", "ftp://x/"], "is no URL"),
        (["remote-write", "--url", "http://[::1/"], "is no URL"),
        (["remote-write", "--url", "https://me:secret@x/"], "has a name or password in it"),
        (["remote-write", "--url", "http://127.0.0.1:1/", "--header", "no header"], "is no header"),
        (["remote-write", "--url", "http://127.0.0.1:1/", "--header", "X-A=b\nX-C: d"], "is no header"),
        (["otlp", "--endpoint", "localhost:4318"], "is no URL"),
        (["otlp", "--endpoint", "http://127.0.0.1:1", "--token-file", "/no/such/file"], "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_refused(words: list[str], said: str, server: Server, capsys: Capture) -> None:
    code = run(["export", *words, "--server", server.url])

    assert code == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "secret" not in shown or "name or password" in shown


def test_a_token_is_not_shown_to_the_network(server: Server, tmp_path: Path, capsys: Capture) -> None:
    token = tmp_path / "token"
    token.write_text("canary-1234\n", encoding="utf-8")
    code = run(["export", "remote-write", "--url", "http://metrics.example/", "--token-file", str(token), "--server", server.url])

    shown = capsys.readouterr().err
    assert code == 2
    assert "plain text" in shown
    assert "canary" not in shown


def test_a_token_and_headers_go_with_each_post(server: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("canary-1234\n", encoding="utf-8")
    with receiver() as there:
        words = ["--url", f"{there.url}/push?x=1", "--token-file", str(token), "--header", "X-Scope-OrgID=gpu"]
        assert run(["export", "remote-write", *words, "--server", server.url, "--once"]) == 0

    assert there.paths == ["/push?x=1"]
    assert there.headers[0]["authorization"] == "Bearer canary-1234"
    assert there.headers[0]["x-scope-orgid"] == "gpu"
    assert there.headers[0]["content-encoding"] == "snappy"
    assert there.headers[0]["x-prometheus-remote-write-version"] == "0.1.0"


def test_redirects_are_not_followed(server: Server, capsys: Capture) -> None:
    with receiver() as there, receiver() as other:
        there.usual = (307, {"Location": f"{other.url}/steal"}, b"")
        code = run(["export", "remote-write", "--url", there.url, "--server", server.url, "--once"])

    assert (code, other.paths) == (1, [])
    assert "refused: HTTP 307" in capsys.readouterr().err


def test_a_server_that_is_away_is_said(capsys: Capture) -> None:
    assert run(["export", "prometheus", "--once", "--server", "http://127.0.0.1:1"]) == 6
    assert "does not answer" in capsys.readouterr().err
    with receiver() as there:
        assert run(["export", "remote-write", "--url", there.url, "--server", "http://127.0.0.1:1", "--once"]) == 6
    assert there.paths == []


@pytest.mark.parametrize("words", [("remote-write", "--url"), ("otlp", "--endpoint")])
def test_once_ends_though_nobody_takes_it(server: Server, capsys: Capture, words: tuple[str, str]) -> None:
    """Nobody listens; somebody who never answers; somebody who wants it in an hour; somebody who is busy."""
    with receiver() as busy, receiver() as later, socket.create_server(("127.0.0.1", 0)) as mute:
        busy.usual, later.usual = (503, {}, b"busy"), (503, {"Retry-After": "3600"}, b"")
        silent = f"http://127.0.0.1:{mute.getsockname()[1]}"
        for url, why in (("http://127.0.0.1:1", "refused"), (silent, "timed out"), (later.url, "HTTP 503"), (busy.url, "HTTP 503 busy")):
            began = time.monotonic()
            code = run(["export", *words, url, "--server", server.url, "--once", "--interval", "3600", "--timeout", "2"])
            told = capsys.readouterr().err
            assert code == 6
            assert time.monotonic() - began < 30
            assert "muster: it is not taken: " in told
            assert why in told
            assert "--once" in told
    assert (len(busy.paths), len(later.paths)) == (4, 1)


def test_once_goes_on_after_a_short_trouble(server: Server) -> None:
    with receiver() as there:
        there.answers = [(503, {}, b"")] * 3
        assert run(["export", "remote-write", "--url", there.url, "--server", server.url, "--once"]) == 0


def test_an_address_that_is_taken_is_said(server: Server, capsys: Capture) -> None:
    taken = server.url.removeprefix("http://")

    assert run(["export", "prometheus", "--listen", taken, "--server", server.url]) == 6
    assert "cannot be listened on" in capsys.readouterr().err


class Api:
    """An API of many pages, whose cards come twice when they move between two pages; or one that streams."""

    def __init__(self, cards: int, *, streams: bool = False) -> None:
        self.cards = [{"id": f"c-{n}", "name": f"card {n}", "aside": n == 3} for n in range(cards)]
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.streams = streams

    def __call__(self, path: str, query: Mapping[str, str]) -> bytes:
        self.asked.append((path, query))
        if path == "/summary":
            return b'{"at": "2026-09-21T14:13:20Z", "findings": {"card_missing": 1}, "models": []}'
        if path != "/cards":
            return b'{"items": [], "next": null, "at": "2026-09-21T14:13:20Z"}'
        begin = max(0, int(query.get("cursor", "0")) - 1)
        page = self.cards[begin : begin + 5]
        following = str(begin + 5) if begin + 5 < len(self.cards) else None
        return json.dumps({"items": page, "next": following, "total": len(self.cards), "at": "2026-09-21T14:13:20Z"}).encode()

    def ready(self) -> bool:
        return True

    def listed(self, path: str, query: Mapping[str, str]) -> Iterator[bytes] | None:
        if not self.streams:
            return None
        self.asked.append((path, query))
        return (json.dumps(each).encode() + b"\n" for each in (self.cards if path == "/cards" else []))


@pytest.mark.parametrize("streams", [False, True])
def test_all_of_a_list_is_read_and_no_card_twice(streams: bool) -> None:
    api = Api(23, streams=streams)
    told = read(api, Shard(), frozenset({"power.draw"}))

    assert [card.id for card in told.cards] == [f"c-{n}" for n in range(23) if n != 3]
    assert told.findings == {"card_missing": 1}
    assert told.at == 1_790_000_000
    asked = [query for path, query in api.asked if path == "/cards"]
    assert asked[0]["fields"].split(",") == [*CARD_FIELDS, "readings.power.draw"]
    assert len(asked) == (1 if streams else 6)


def test_a_long_list_of_fields_is_not_asked_for() -> None:
    api = Api(1)
    read(api, Shard(number=2, of=2), frozenset(f"attribute.number.{n}" for n in range(200)))

    assert [query["fields"].endswith(",readings") for path, query in api.asked if path == "/cards"] == [True]
    assert all(len(value) < 2000 for _, query in api.asked for value in query.values())
    assert "/summary" not in [path for path, _ in api.asked]


class Broken(Api):
    """An API that answers one thing."""

    def __init__(self, answer: bytes) -> None:
        super().__init__(0)
        self.answer = answer

    def __call__(self, path: str, query: Mapping[str, str]) -> bytes:
        return self.answer


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"items": 3}', b'{"items": [{"id": 7}]}', b"\xff", b"[" * 5000])
def test_an_answer_of_another_shape_is_said(answer: bytes) -> None:
    with pytest.raises(Unavailable, match="another shape"):
        read(Broken(answer), Shard(), frozenset())


def test_times_of_the_api_are_read() -> None:
    assert seconds("2026-09-21T14:13:20.250Z") == 1_790_000_000.25
    assert seconds("2026-09-21T14:13:20Z") == 1_790_000_000
    assert seconds("") is None
    assert seconds("yesterday") is None


class Streaming(BaseHTTPRequestHandler):
    """A server that streams three cards, and breaks off after ``whole`` of them."""

    protocol_version = "HTTP/1.1"
    whole: ClassVar[int] = 3
    ready: ClassVar[bool] = True
    formats: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/readyz":
            self._send(b'{"status": "ok"}', "application/json", 200 if self.ready else 503)
            return
        asked = parse_qs(query).get("format", [""])[0]
        if asked != "ndjson":
            self._send(b'{"items": [], "next": null, "at": "2026-09-21T14:13:20Z"}', "application/json")
            return
        self.formats.append(path)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(self.whole if path == "/api/v1/cards" else 0):
            line = json.dumps({"id": f"c-{number}", "name": f"card {number}", "presence": "present"}).encode() + b"\n"
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.write(b"0\r\n\r\n" if self.whole == 3 else b"ff\r\n{")
        self.close_connection = True

    def _send(self, body: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *told: object, **more: object) -> None:
        """Says nothing."""


@contextmanager
def streaming(whole: int, *, ready: bool = True) -> Iterator[tuple[str, list[str]]]:
    """The address of such a server, and the lists that were streamed."""
    lists: list[str] = []
    handler = type("Bound", (Streaming,), {"whole": whole, "formats": lists, "ready": ready})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as there:
        thread = threading.Thread(target=there.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{there.server_port}", lists
        finally:
            there.shutdown()
            thread.join(10)


def test_a_list_is_read_as_it_is_streamed(capsys: Capture) -> None:
    with streaming(3) as (url, lists):
        assert run(["export", "prometheus", "--once", "--server", url]) == 0

    assert [labels["card"] for labels in lines(capsys.readouterr().out, "muster_card_info")] == ["c-0", "c-1", "c-2"]
    assert lists == ["/api/v1/cards", "/api/v1/nodes", "/api/v1/sources"]


def test_a_stream_that_breaks_off_is_no_fleet(capsys: Capture) -> None:
    with streaming(2) as (url, _):
        assert run(["export", "prometheus", "--once", "--server", url]) == 6

    shown = capsys.readouterr()
    assert shown.out == ""
    assert "does not answer" in shown.err


@pytest.mark.parametrize("ready", [True, False])
def test_a_server_that_is_not_ready_is_told(ready: bool, capsys: Capture) -> None:
    with streaming(3, ready=ready) as (url, _):
        assert run(["export", "prometheus", "--once", "--server", url]) == 0
        first = capsys.readouterr().out
        assert run(["export", "prometheus", "--once", "--shard", "2/2", "--server", url]) == 0
        second = capsys.readouterr().out

    assert f"muster_server_ready {int(ready)}\n" in first
    assert "muster_server_ready" not in second
