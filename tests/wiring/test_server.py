# SPDX-License-Identifier: Apache-2.0
"""The server as a whole: it answers on port and socket, is found, keeps what it heard, and says what stands in its way."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.interfaces.api.fleet import small

from muster.domain.model.errors import Conflict, InputError, MusterError, NotAllowed, Unavailable
from muster.interfaces.api.app import build
from muster.services.folding import never
from muster.services.inventory import Inventory
from muster.spi.store import Batch
from muster.store.files import FileConnections
from muster.wire.report import CaptureDoc, pack
from muster.wiring import holds
from muster.wiring.discovery import Found, announce, read, withdraw
from muster.wiring.server import Server, serve
from muster.wiring.settings import ServerSettings, load_settings
from muster.wiring.writing import wall_clock


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return load_settings(port=0, state=tmp_path / "state", runtime=tmp_path / "run", tick=0.02)


@pytest.fixture
def server(settings: ServerSettings) -> Iterator[Server]:
    with Server(settings, build) as running:
        yield running


def ask(server: Server, path: str, body: bytes | None = None) -> Any:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    connection.request("POST" if body else "GET", path, body, {"content-type": "application/msgpack"} if body else {})
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return told


def test_it_answers_on_port_and_socket(server: Server) -> None:
    assert ask(server, "/readyz")["status"] == "ok"
    connection = http.client.HTTPConnection("muster")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(server.socket)
    connection.request("GET", "/version")
    assert json.loads(connection.getresponse().read())["api"] == "v1"
    connection.close()
    assert Path(server.socket).stat().st_mode & 0o777 == 0o600


def test_it_is_found_while_it_runs_and_leaves_nothing(settings: ServerSettings) -> None:
    server = Server(settings, build)
    server.start()
    found = read(settings.runtime)

    assert found == Found(url=server.url, socket=server.socket, pid=os.getpid(), state=str(settings.state), version=found.version if found else "")
    server.stop()
    server.stop()
    assert read(settings.runtime) is None
    assert list(settings.runtime.iterdir()) == []


def test_it_keeps_what_it_heard(settings: ServerSettings) -> None:
    with Server(settings, build) as server:
        told = small("node-b", 55)
        told.sent_at = told.listings[0].observed_at = wall_clock()
        assert ask(server, "/api/v1/reports", pack(told)) == {"answer": "applied"}
        before = ask(server, "/api/v1/cards/node-b/card0")
    with Server(settings, build) as server:
        after = ask(server, "/api/v1/cards/node-b/card0")

        assert after["id"] == before["id"]
        assert after["readings"]["temperature.core"]["value"] == 55
        assert ask(server, "/api/v1/reports", pack(told)) == {"answer": "duplicate"}


def test_the_log_has_the_head_of_the_audit_log(settings: ServerSettings) -> None:
    heads: list[tuple[int, str]] = []

    def ready(server: Server) -> None:
        server.writing.store.writer.commit(Batch(at=1.0, audit=[{"by": "ann", "what": "note"}]))
        heads.append((1, server.writing.store.verify().head))
        threading.Timer(0.5, more, [server]).start()

    def more(server: Server) -> None:
        server.writing.store.writer.commit(Batch(at=2.0, audit=[{"by": "ann", "what": "note"}]))
        heads.append((2, server.writing.store.verify().head))
        ending.set()

    ending = threading.Event()
    with capture_logs() as said:
        assert serve(settings, build, ready=ready, until=ending) == 0
    told = [(each["event"][-8:], each["entries"], each["head"]) for each in said if "audit log" in each["event"]]
    assert told == [("found it", *heads[0]), ("eaves it", *heads[1])]


def test_a_second_server_on_the_same_store_reads_and_does_not_write(server: Server, settings: ServerSettings, tmp_path: Path) -> None:
    told = small("node-b", 55)
    told.sent_at = told.listings[0].observed_at = wall_clock()
    ask(server, "/api/v1/reports", pack(told))
    with Server(settings.model_copy(update={"runtime": tmp_path / "other"}), build) as other:
        assert ask(other, "/api/v1/cards/node-b/card0")["name"]
        told.sequence += 1
        assert ask(other, "/api/v1/reports", pack(told))["status"] == 503
        assert ask(other, "/readyz")["status"] == 503
    assert ask(server, "/readyz")["status"] == "ok"


def test_who_waits_for_the_store_says_so_and_says_when_it_writes(settings: ServerSettings, tmp_path: Path) -> None:
    with capture_logs() as said, contextlib.ExitStack() as held:
        with Server(settings, build):
            other = held.enter_context(Server(settings.model_copy(update={"runtime": tmp_path / "other"}), build))
        end = time.monotonic() + 20
        while ask(other, "/readyz")["status"] != "ok" and time.monotonic() < end:
            time.sleep(0.1)
    told = [each["event"] for each in said if each["event"].startswith("this server")]

    assert told == ["this server only reads", "this server writes from now on"]


def test_a_second_server_on_the_same_socket_is_refused(server: Server, settings: ServerSettings, tmp_path: Path) -> None:
    with pytest.raises(Conflict, match="another server answers") as refused:
        Server(settings.model_copy(update={"state": tmp_path / "other"}), build).start()

    assert "--runtime" in refused.value.hint
    assert read(settings.runtime) is not None


def test_a_port_in_use(server: Server, settings: ServerSettings, tmp_path: Path) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(Conflict, match="in use") as refused:
        Server(settings.model_copy(update={"port": port, "state": tmp_path / "a", "runtime": tmp_path / "b"}), build).start()

    assert "--port" in refused.value.hint
    assert list((tmp_path / "b").iterdir()) == []


def test_no_address(settings: ServerSettings) -> None:
    with pytest.raises(InputError, match="no address"):
        Server(settings.model_copy(update={"host": "example.org"}), build).start()


def test_names_of_loopback() -> None:
    for host in ("localhost", "127.0.0.1"):
        with holds.listen(host, 0) as listener:
            assert listener.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "socket", type("Refusing", (socket.socket,), {"bind": bind}))
    with pytest.raises(NotAllowed, match="may not be used"):
        holds.listen("127.0.0.1", 80)


def test_a_folder_that_cannot_be_used(settings: ServerSettings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("state", "runtime"):
        with pytest.raises(Unavailable, match=f"the {name} folder") as refused:
            Server(settings.model_copy(update={name: tmp_path / "file" / "below"}), build).start()
        assert f"--{name}" in refused.value.hint


def test_a_store_that_is_none(settings: ServerSettings) -> None:
    settings.state.mkdir()
    (settings.state / "roll.sqlite").write_bytes(b"this is text, not a database" * 100)
    with pytest.raises(MusterError):
        Server(settings, build).start()

    with pytest.raises(MusterError):
        Server(settings, build).start()


def test_a_long_path_of_the_socket(settings: ServerSettings, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too long"):
        Server(settings.model_copy(update={"runtime": tmp_path / ("x" * 90)}), build).start()


def test_a_dead_socket_is_replaced(settings: ServerSettings) -> None:
    settings.runtime.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(settings.runtime / "muster.sock"))
    with Server(settings, build) as server:
        assert ask(server, "/readyz")["status"] == "ok"


def test_in_memory_needs_no_folder(settings: ServerSettings) -> None:
    with Server(settings.model_copy(update={"in_memory": True}), build) as server:
        assert ask(server, "/api/v1/summary")["cards"] == 0
        found = read(settings.runtime)
        assert found is not None
        assert found.state == "memory"
    assert not settings.state.exists()


class Troubled(Inventory):
    """A writer whose store is full from some moment on."""

    full = False
    ticks = 0

    def tick(self, now: float, enough: Callable[[], bool] = never) -> bool:
        type(self).ticks += 1
        if self.full:
            raise Unavailable("the disk is full", hint="make room")
        return super().tick(now, enough)


def wait(holds_: Any) -> None:
    until = time.monotonic() + 10
    while not holds_():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_time_passes_and_trouble_is_told_and_ends(settings: ServerSettings) -> None:
    with capture_logs() as said, Server(settings.model_copy(update={"trim": 0.01}), build, keeper=Troubled) as server:
        wait(lambda: Troubled.ticks > 2)
        Troubled.full = True
        wait(lambda: ask(server, "/readyz")["status"] == 503)
        assert "the disk is full" in ask(server, "/readyz")["detail"]
        Troubled.full = False
        wait(lambda: ask(server, "/readyz")["status"] == "ok")
        assert not server.broken
    told = [(each["event"], each.get("problem", each.get("problem_was"))) for each in said if "time" in each["event"]]
    assert told == [("time does not pass", "the disk is full"), ("time passes again", "the disk is full")]


class Idle(Inventory):
    """A keeper whose ticks write nothing."""

    def tick(self, now: float, enough: Callable[[], bool] = never) -> bool:
        """Nothing has changed."""
        return False


def test_not_ready_until_a_write_went_through(settings: ServerSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(settings, build, keeper=Idle) as server:
        connections = server.writing.store.connections
        assert isinstance(connections, FileConnections)
        writer = connections.writer
        writer.execute(f"PRAGMA max_page_count={writer.execute('PRAGMA page_count').fetchone()[0]}")
        monkeypatch.setattr("muster.store.connections.ROOM", 2**70)
        told = small("node-b", 55)
        told.sent_at = told.listings[0].observed_at = wall_clock()
        payload = os.urandom(500_000)
        told.captures = [CaptureDoc(digest=hashlib.sha256(payload).hexdigest(), source="a", format="f", locator=[], taken_at=1.0, payload=payload)]
        answer = ask(server, "/api/v1/reports", pack(told))
        assert "disk is full" in answer.get("detail", ""), answer
        for _ in range(5):
            assert ask(server, "/readyz")["status"] == 503
            assert "disk is full" in ask(server, "/readyz")["detail"]
            assert ask(server, "/healthz")["status"] == "ok"
            time.sleep(0.05)
        monkeypatch.undo()
        wait(lambda: ask(server, "/readyz")["status"] == "ok")
        writer.execute("PRAGMA max_page_count=1000000")
        assert ask(server, "/api/v1/reports", pack(told)) == {"answer": "applied"}


def test_rows_that_cannot_be_read_are_told_and_hide_no_list(settings: ServerSettings) -> None:
    with Server(settings, build) as server:
        for name in ("node-b", "node-c"):
            told = small(name, 55)
            told.sent_at = told.listings[0].observed_at = wall_clock()
            ask(server, "/api/v1/reports", pack(told))
        with server.writing.store.connections.transaction() as connection:
            connection.execute("UPDATE cards SET record = '{' WHERE number = (SELECT min(number) FROM cards)")
            connection.execute("UPDATE nodes SET record = '[]' WHERE number = (SELECT min(number) FROM nodes)")
        (card,) = ask(server, "/api/v1/cards")["items"]
        assert card["node"]["name"] == "node-c" if isinstance(card["node"], dict) else card["node"]
        assert len(ask(server, "/api/v1/nodes")["items"]) == 1
        for path in ("summary", "sources", "findings", "adapters", "changes", "events", "devices"):
            assert "status" not in ask(server, f"/api/v1/{path}")
        ready = ask(server, "/readyz")
        assert ready["status"] == "ok"
        assert ready["checks"]["store"] == "1 row of cards cannot be read, 1 row of nodes cannot be read"


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        ("INSERT INTO base (part, state) VALUES ('east', x'c1')", "table base, part east"),
        ("INSERT INTO base (part, state) VALUES ('east', 'text')", "table base, part east"),
        ("DROP TABLE journal", "no table journal"),
        ("DROP TABLE cards", "no table cards"),
        ("DROP TABLE received", "no table received"),
    ],
)
def test_a_damaged_row_at_start_is_named(settings: ServerSettings, spoil: str, where: str) -> None:
    with Server(settings, build) as server:
        told = small("node-b", 55)
        told.sent_at = told.listings[0].observed_at = wall_clock()
        ask(server, "/api/v1/reports", pack(told))
    path = settings.state / "roll.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as store, store:
        store.execute(spoil)
    with pytest.raises(Unavailable, match=re.escape(str(path))) as refused:
        Server(settings, build).start()
    assert "damaged" in refused.value.message
    assert where in refused.value.message
    assert "backup" in refused.value.hint
    assert read(settings.runtime) is None


@pytest.mark.parametrize("spoil", ["x'00'", "substr(body, 1, length(body) / 2)", "'text'"])
def test_a_damaged_part_is_told_when_it_is_asked_for_and_holds_up_no_other(settings: ServerSettings, spoil: str) -> None:
    told = small("node-b", 55)
    told.sent_at = told.listings[0].observed_at = wall_clock()
    with Server(settings, build) as server:
        ask(server, "/api/v1/reports", pack(told))
    with contextlib.closing(sqlite3.connect(settings.state / "roll.sqlite")) as store, store:
        assert store.execute(f"UPDATE journal SET body = {spoil}").rowcount == 1
    with Server(settings, build) as server:
        told.sequence += 1
        told.listings[0].observed_at += 1
        told.listings[0].observations[0].readings["product.name"] = {"v": "Beta G"}
        refused = ask(server, "/api/v1/reports", pack(told))
        assert (refused["status"], "cannot be read from the store" in refused["detail"], "backup" in refused["hint"]) == (503, True, True)
        other = small("node-c", 55)
        other.sent_at = other.listings[0].observed_at = wall_clock()
        assert ask(server, "/api/v1/reports", pack(other)) == {"answer": "applied"}


def test_an_empty_store_file_is_refused(settings: ServerSettings) -> None:
    settings.state.mkdir()
    (settings.state / "roll.sqlite").touch()
    with pytest.raises(Unavailable, match="it has lost what it held"):
        Server(settings, build).start()


def test_serve_until_told(settings: ServerSettings) -> None:
    ready, until, codes = threading.Event(), threading.Event(), []
    thread = threading.Thread(target=lambda: codes.append(serve(settings, build, ready=ready, until=until)))
    thread.start()

    assert ready.wait(20)
    assert read(settings.runtime) is not None
    until.set()
    thread.join(20)
    assert codes == [0]


def test_strange_files_are_not_believed(tmp_path: Path) -> None:
    dead = Found(url="http://127.0.0.1:1", socket="", pid=2**22 + 1, state="", version="")
    announce(tmp_path, dead)

    assert read(tmp_path) == dead
    assert read(tmp_path / "none") is None
    withdraw(tmp_path, 1)
    assert read(tmp_path) == dead
    for text in ("", "[]", '{"pid": "x"}', "\x00"):
        (tmp_path / "server.json").write_text(text)
        assert read(tmp_path) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_ends_in_order(tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-m", "muster", "server", "--port", "0", "--state", str(tmp_path / "s"), "--runtime", str(tmp_path / "r")]
    environment = {**os.environ, "PYTHONPATH": "src", "MUSTER_LOG_FORMAT": "json"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline(), process.stderr.readline()]
        assert read(tmp_path / "r") is not None
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(20) == 0

    assert json.loads(lines[0])["event"] == "serving"
    assert "http://127.0.0.1:" in lines[1]
    assert "Traceback" not in rest
    assert read(tmp_path / "r") is None
