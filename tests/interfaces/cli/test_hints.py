# SPDX-License-Identifier: Apache-2.0
"""Whatever a server answers, or what stands before it: the command line says what to do next."""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from muster import interfaces
from muster.interfaces.cli.main import run

ERRORS = {"InputError", "NotFound", "Conflict", "Ambiguous", "Unavailable", "NotAllowed", "TimedOut", "WebError", "Refused", "MusterError"}
ENDS = {400: 2, 401: 4, 403: 4, 404: 3, 408: 7, 409: 5, 412: 5, 418: 1, 422: 2, 429: 6, 500: 6, 502: 6, 503: 6, 504: 7}


class Answers(HTTPServer):
    """Answers everything in one way."""

    status = 200
    body = b""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def do_GET(self) -> None:
        """Whatever is asked."""
        server = self.server
        assert isinstance(server, Answers)
        self.send_response(server.status)
        self.send_header("Content-Length", str(len(server.body)))
        self.end_headers()
        self.wfile.write(server.body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Answers]:
    made = Answers(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def said(server: Answers, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    capsys.readouterr()
    code = run(["get", "nodes", "--server", f"http://127.0.0.1:{server.server_port}"])
    return code, capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("status", ENDS)
@pytest.mark.parametrize("body", [b"<html>a proxy</html>", b"{}", b""])
def test_an_answer_that_says_nothing(server: Answers, capsys: pytest.CaptureFixture[str], status: int, body: bytes) -> None:
    server.status, server.body = status, body
    code, lines = said(server, capsys)

    assert code == ENDS[status]
    assert lines[0] == f"muster: the server answered {status}"
    assert len(lines) == 2
    assert len(lines[1].strip()) > 10


def test_the_server_s_own_hint_goes_first(server: Answers, capsys: pytest.CaptureFixture[str]) -> None:
    server.status, server.body = 503, json.dumps({"detail": "the store is full", "hint": "make room"}).encode()

    assert said(server, capsys) == (6, ["muster: the store is full", "  make room"])


def test_no_door_raises_an_error_that_leaves_people_alone() -> None:
    bare = [
        f"{file.name}:{node.lineno}"
        for file in Path(next(iter(interfaces.__path__))).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name) and node.exc.func.id in ERRORS
        if not any(each.arg == "hint" for each in node.exc.keywords)
    ]
    assert bare == []
