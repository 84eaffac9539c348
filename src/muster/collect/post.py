# SPDX-License-Identifier: Apache-2.0
"""Hands a report to the server: over a local socket or HTTP, with the standard library alone."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from muster.domain.model.errors import InputError
from muster.wire.report import AnswerDoc

REPORTS = "/api/v1/reports"
READY = "/readyz"
TIMEOUT_S = 20.0
DISCOVERY = "server.json"


class Fate(Enum):
    """What became of a post. ``TAKEN``: the server has it. ``REFUSED``: it never will. ``LATER``: try again."""

    TAKEN = "taken"
    REFUSED = "refused"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Posted:
    """The fate of one post, with the server's reason; ``wait`` are seconds the server asked for. ``renew`` when its numbering clashed.

    ``broke`` when the server failed on it, which may be the report's own doing.
    """

    fate: Fate
    detail: str = ""
    wait: float = 0.0
    renew: bool = False
    broke: bool = False


Post = Callable[[bytes], Posted]


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is. With ``socket`` the URL only gives the path."""

    url: str
    socket: str = ""


def address(text: str) -> Address:
    """The address in ``text``: a URL, ``host:port``, or the path of a socket. Raises InputError when it is none."""
    if text.startswith(("/", "unix:")):
        return Address("http://localhost", text.removeprefix("unix:").removeprefix("//"))
    url = text if "://" in text else f"http://{text}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{text!r} is no address of a server", hint="give http://host:port, https://host:port, or the path of a socket")
    return Address(url.rstrip("/"))


def discover(environ: Mapping[str, str], home: Path) -> Address | None:
    """The server that runs on this machine, by the file it leaves; None when there is none, or when it has ended.

    Files of other users than root and ourselves are not believed.
    """
    for folder in _runtime_folders(environ, home):
        file = folder / DISCOVERY
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
            ours = file.stat().st_uid in (0, os.geteuid())
        except (OSError, ValueError):
            continue
        if ours and isinstance(told, dict) and _alive(told.get("pid")):
            path = str(told.get("socket") or "")
            return Address(str(told.get("url") or "http://localhost").rstrip("/"), path if path and Path(path).exists() else "")
    return None


def _runtime_folders(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    if environ.get("MUSTER_RUNTIME"):
        yield Path(environ["MUSTER_RUNTIME"])
    if environ.get("XDG_RUNTIME_DIR"):
        yield Path(environ["XDG_RUNTIME_DIR"]) / "muster"
    yield Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "muster"
    yield Path("/run/muster")


def _alive(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Poster:
    """Posts to one server, or to the one that ``find`` finds at that moment. ``token`` goes into each request where there is one."""

    def __init__(self, find: Callable[[], Address | None], token: str = "", timeout: float = TIMEOUT_S) -> None:
        self._find = find
        self._headers = {"Content-Type": "application/msgpack", "Accept": "application/msgpack, application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout = timeout

    def __call__(self, body: bytes) -> Posted:
        """Posts one report."""
        where = self._find()
        if where is None:
            return Posted(Fate.LATER, "no server is running here")
        connection = _connection(where, self._timeout)
        try:
            connection.request("POST", urlsplit(where.url).path + REPORTS, body=body, headers=self._headers)
            answer = connection.getresponse()
            return judged(answer.status, dict(answer.getheaders()), answer.read())
        except (OSError, http.client.HTTPException) as error:
            return Posted(Fate.LATER, f"{where.socket or where.url}: {getattr(error, 'strerror', None) or str(error) or type(error).__name__}")
        finally:
            connection.close()

    def well(self) -> bool:
        """True when the server says that it can do its work."""
        where = self._find()
        if where is None:
            return False
        connection = _connection(where, self._timeout)
        try:
            connection.request("GET", urlsplit(where.url).path + READY, headers={**self._headers, "Accept": "application/json"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def judged(status: int, headers: Mapping[str, str], body: bytes) -> Posted:
    """What an answer means. A server that is busy, starting, or does not know us yet is asked again; one that cannot use the report is not."""
    headers = {name.lower(): value for name, value in headers.items()}
    detail = _detail(status, headers, body)
    if 200 <= status < 300:
        return Posted(Fate.REFUSED, detail, renew=True) if detail.startswith("refused") else Posted(Fate.TAKEN, detail)
    if status in (400, 409, 413, 415, 422):
        return Posted(Fate.REFUSED, detail, renew=status == 409)
    after = headers.get("retry-after") or ""
    return Posted(Fate.LATER, detail, wait=float(after) if after.isdecimal() else 0.0, broke=status >= 500 and status != 503)


def _detail(status: int, headers: Mapping[str, str], body: bytes) -> str:
    try:
        decode = msgspec.msgpack.decode if "msgpack" in (headers.get("content-type", "")) else msgspec.json.decode
        answer = decode(body, type=AnswerDoc)
    except msgspec.DecodeError:
        return f"HTTP {status}: {_problem(body)}"
    return f"{answer.answer}: {answer.detail}" if answer.detail else answer.answer


def _problem(body: bytes) -> str:
    """The sentence of a problem document (RFC 9457), else the beginning of what was said."""
    try:
        told = json.loads(body)
    except ValueError:
        told = None
    found = told.get("detail") or told.get("title") if isinstance(told, dict) else None
    return str(found or body[:200].decode("utf-8", "replace"))


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _connection(where: Address, timeout: float) -> http.client.HTTPConnection:
    if where.socket:
        return _SocketConnection(where.socket, timeout)
    parts = urlsplit(where.url)
    if parts.scheme == "https":
        return http.client.HTTPSConnection(parts.hostname or "localhost", parts.port, timeout=timeout, context=ssl.create_default_context())
    return http.client.HTTPConnection(parts.hostname or "localhost", parts.port, timeout=timeout)
