# SPDX-License-Identifier: Apache-2.0
"""Hands a report to the server over a connection that is kept open, in the schema that the server reads, and says what became of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from muster.collect.answer import Fate as Fate
from muster.collect.answer import Posted as Posted
from muster.collect.answer import judged as judged
from muster.collect.answer import reads
from muster.collect.link import Answered, Link, speaks_tls
from muster.collect.words import plain
from muster.domain.model.errors import InputError, MusterError
from muster.wire.lanes import older
from muster.wire.report import OLDEST, SCHEMA, ReportDoc, pack

if TYPE_CHECKING:
    import ssl

REPORTS = "/api/v1/reports"
MEMBERS = "/v1/reports"
"""The same at the listener of those that have joined."""
READY = "/readyz"
VERSION = "/version"
TIMEOUT_S = 20.0
DISCOVERY = "server.json"
SYSTEM = Path("/run/muster")
"""Only root can make this folder, for the user whom the server runs as."""


Post = Callable[[ReportDoc], Posted]


class Member(Protocol):
    """A reporter that has joined a site, as the way to the server needs it."""

    @property
    def schema(self) -> int:
        """The newest report schema that the server reads; 0 while it has not said so."""

    def context(self) -> ssl.SSLContext:
        """The TLS context, by which the server is known."""

    def headers(self) -> Mapping[str, str]:
        """The headers by which we are known. Raises MusterError when there are none to be had."""

    def refused(self) -> None:
        """They were not accepted: the next are to be new ones."""


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
    if "@" in url:
        raise InputError("the server's address has a user or a password in it", hint="leave them out: a token goes into MUSTER_TOKEN, which is shown nowhere")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{text!r} is no address of a server", hint="give http://host:port, https://host:port, or the path of a socket")
    return Address(url.rstrip("/"))


def discover(environ: Mapping[str, str], home: Path) -> Address | None:
    """The server that runs on this machine, by the file it leaves; None when there is none, or when it has ended.

    Files of other users than root and ourselves are not believed, but in `SYSTEM`.
    """
    for folder in _runtime_folders(environ, home):
        file = folder / DISCOVERY
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
            ours = folder == SYSTEM or file.stat().st_uid in (0, os.geteuid())
        except (OSError, ValueError, RecursionError):
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
    yield SYSTEM


def _alive(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


class Poster:
    """Posts to one server, or to the one that ``find`` finds at that moment. ``token`` goes into each request where there is one.

    ``member`` is how a reporter that has joined is known. For one thread.
    """

    def __init__(self, find: Callable[[], Address | None], token: str = "", timeout: float = TIMEOUT_S, member: Member | None = None) -> None:
        self._find = find
        self._headers = {"Content-Type": "application/msgpack", "Accept": "application/msgpack, application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._member = member
        self._link = Link(timeout, member.context if member else None)
        self._schema = OLDEST

    def __call__(self, report: ReportDoc) -> Posted:
        """Posts one report."""
        where = self._find()
        if where is None:
            return Posted(Fate.LATER, "no server is running here")
        try:
            answered = self._sent(where, report)
            if answered.status == 401 and self._member is not None:
                self._member.refused()
                answered = self._sent(where, report)
        except MusterError as error:
            return Posted(Fate.LATER, plain(error.message))
        except (OSError, HTTPException, ValueError) as error:
            return Posted(Fate.LATER, f"{where.socket or where.url}: {_why(where, error)}")
        return judged(answered.status, answered.headers, answered.body, whole=answered.whole)

    def well(self) -> bool:
        """True when the server says that it can do its work."""
        where = self._find()
        if where is None:
            return False
        try:
            self._link.open(where.url, where.socket)
            return self._asked(where, READY).status == 200
        except (OSError, HTTPException, ValueError, MusterError):
            return False

    def close(self) -> None:
        """Closes the connection."""
        self._link.close()

    def _sent(self, where: Address, report: ReportDoc) -> Answered:
        """The answer to a report. A connection that the server has closed in the meantime is opened again once, and then asked anew for its schema."""
        known = self._known()
        stale = not self._open(where)
        try:
            return self._exchanged(where, report, known)
        except TimeoutError:
            raise
        except (OSError, HTTPException):
            if not stale:
                raise
        self._open(where)
        return self._exchanged(where, report, known)

    def _open(self, where: Address) -> bool:
        """True when a connection had to be opened; whoever answers on it is asked what it reads."""
        if not self._link.open(where.url, where.socket):
            return False
        self._schema = self._reads(where)
        return True

    def _exchanged(self, where: Address, report: ReportDoc, known: Mapping[str, str]) -> Answered:
        body = pack(report if self._schema >= SCHEMA else older(report))
        path = urlsplit(where.url).path + (MEMBERS if self._member else REPORTS)
        return self._link.ask("POST", path, body, known)

    def _known(self) -> dict[str, str]:
        return {**self._headers, **(self._member.headers() if self._member else {})}

    def _asked(self, where: Address, path: str) -> Answered:
        return self._link.ask("GET", urlsplit(where.url).path + path, None, {**self._headers, "Accept": "application/json"})

    def _reads(self, where: Address) -> int:
        """The newest schema that the server reads; the oldest where it does not say: every server understands that one."""
        if self._member is not None:
            return self._member.schema or SCHEMA
        answered = self._asked(where, VERSION)
        self._link.open(where.url, where.socket)
        return reads(answered.body) if answered.status == 200 else OLDEST


def _why(where: Address, error: Exception) -> str:
    """Why there is no answer, in the words of the system, or what it comes from."""
    if not where.socket and speaks_tls(where.url, error):
        return "it speaks TLS; use https://"
    return plain(getattr(error, "strerror", None) or str(error) or type(error).__name__)
