# SPDX-License-Identifier: Apache-2.0
"""Speaks to the server's API with the standard library alone, so that the first line of output is there at once.

The server is the one named by ``--server`` or ``MUSTER_SERVER``, else the one that the user signed in at last, else the one on this machine, found by its
discovery file (a local socket where there is one). To a server beyond this machine goes the token that is kept for it, or MUSTER_TOKEN; never without TLS,
unless the user said so when signing in.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from muster.collect.link import speaks_tls
from muster.domain.model.errors import Conflict, InputError, MusterError, NotAllowed, NotFound, Unavailable
from muster.interfaces.cli import known
from muster.interfaces.cli.exits import TimedOut

PREFIX = "/api/v1"
READY = "/readyz"
PAGE = 1000
"""Rows asked for at once."""

DISCOVERY = "server.json"
SYSTEM = Path("/run/muster")
"""The server's folder as a service: only root can make it, so whoever it was made for is believed."""
BEARER = "MUSTER_TOKEN"
_START = "start one with `muster server`, or name one with --server URL or MUSTER_SERVER"

_ELSEWHERE = "does it run there, and may this machine reach its port? --server URL or MUSTER_SERVER names another"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is: a URL, and a socket file that goes before it. ``origin`` says how we know; ``ca`` is its authority (PEM) where one was pinned."""

    url: str
    socket: str = ""
    origin: str = ""
    token: str = field(default="", repr=False)
    ca: str = ""
    plain: bool = False
    """The token may go without TLS."""


def runtime_folders() -> list[Path]:
    """Folders in which a server on this machine leaves its discovery file, the likeliest first."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "muster"
    named = [Path(os.environ["MUSTER_RUNTIME"])] if os.environ.get("MUSTER_RUNTIME") else []
    session = [Path(os.environ["XDG_RUNTIME_DIR"]) / "muster"] if os.environ.get("XDG_RUNTIME_DIR") else []
    return [*named, *session, state, Path("/run/muster")]


def locate(server: str | None = None, set_: str = "", origin: str = "") -> Address:
    """The server to speak to: ``server`` as given to the command, else ``set_`` with its origin, else the one signed in at, else the one that runs here.

    Raises Unavailable when none is named and none runs here, InputError for a token that would go without TLS.
    """
    named = server or set_
    if named:
        return _trusted(_named(named, "--server" if server else origin))
    kept = known.read()
    if kept.current:
        return _trusted(_named(kept.current, str(known.file())))
    for folder in runtime_folders():
        found = _discovered(folder / DISCOVERY)
        if found is not None:
            return found
    raise Unavailable("no server is running here", hint=_START)


def _named(text: str, origin: str) -> Address:
    if text.startswith(("/", "unix:")):
        return Address("http://localhost", text.removeprefix("unix:").removeprefix("//"), origin)
    url = text if "://" in text else f"http://{text}"
    if "@" in url:
        raise InputError("the server's address has a user or a password in it", hint="leave them out: `muster login URL --token-file FILE` keeps a token")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise InputError(f"{text!r} is no address of a server", hint="give http://host:port, https://host:port, or the path of a socket")
    return Address(url.rstrip("/"), "", origin)


def _trusted(address: Address) -> Address:
    """The address with what is kept for it."""
    if address.socket:
        return address
    kept = known.read().servers.get(address.url)
    found = known.Server() if kept is None else kept
    token = os.environ.get(BEARER) or found.token
    if token and not found.plain and urlsplit(address.url).scheme == "http" and not loopback(urlsplit(address.url).hostname or ""):
        raise InputError(f"a token would go to {address.url} without TLS", hint="use https://; or sign in with --plain-http, if that network is yours alone")
    return replace(address, token=token, ca=found.ca, plain=found.plain)


def loopback(host: str) -> bool:
    """True for this machine by a name or address that is certain."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _discovered(file: Path) -> Address | None:
    """What the file of a server says; None when there is none, its process has ended, or another user wrote it."""
    try:
        if file.stat().st_uid not in (0, os.geteuid()) and file.parent != SYSTEM:
            return None
        told = json.loads(file.read_text(encoding="utf-8"))
        url, path, pid = str(told["url"]), str(told.get("socket") or ""), int(told["pid"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return Address(url.rstrip("/"), path if path and os.path.exists(path) else "", str(file)) if _alive(pid) else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return pid > 0


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a socket file."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """One server. Every failure is an error of Muster's own tree, with what to do next."""

    def __init__(self, address: Address, timeout: float = 30.0) -> None:
        self.address = address
        self._timeout = timeout
        self._open: http.client.HTTPConnection | None = None

    def get(self, path: str, **query: Any) -> Any:
        """The document at ``path`` (under ``/api/v1``); parameters that are None are left out."""
        return self._json(self.raw("GET", path, query)[1])

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What the server answers to ``body``."""
        return self._json(self.raw("POST", path, {}, json.dumps(body).encode())[1])

    def delete(self, path: str) -> Any:
        """What the server answers when the thing at ``path`` is ended."""
        return self._json(self.raw("DELETE", path, {})[1])

    def issuer(self) -> tuple[str, str]:
        """Where people sign in for this server, and its name there, as it tells those whom it does not know; both empty when it does not."""
        status, headers, _ = self._sent("GET", f"{self._base()}{PREFIX}/whoami", None, {"Accept": "application/json"})
        told = next((value for name, value in headers.items() if name.lower() == "www-authenticate"), "") if status == 401 else ""
        words = dict(re.findall(r'(\w+)="([^"]*)"', told))
        return words.get("oidc_issuer", ""), words.get("oidc_client_id", "")

    def checks(self) -> dict[str, str]:
        """What a person should know of the server's state, by check; empty when all is well."""
        try:
            told = self._json(self.raw("GET", READY, {}, prefix="")[1]).get("checks")
        except (Unavailable, NotFound) as error:
            return {"server": error.message}
        return {str(check): str(what) for check, what in told.items()} if isinstance(told, dict) else {}

    def _json(self, payload: bytes) -> Any:
        try:
            found = json.loads(payload)
        except (ValueError, RecursionError) as wrong:
            raise Unavailable(f"{self._where()} answers with something that is no JSON", hint="is it a muster server?") from wrong
        if not isinstance(found, dict):
            raise Unavailable(f"{self._where()} answers with a document of another shape", hint="is it a muster server?")
        return found

    def raw(self, method: str, path: str, query: Mapping[str, Any], body: bytes | None = None, prefix: str = PREFIX) -> tuple[Mapping[str, str], bytes]:
        """Headers and bytes of the answer. Raises the error that the server tells, Unavailable or TimedOut."""
        wanted = {key: value for key, value in query.items() if value is not None}
        target = self._base() + prefix + path + (f"?{urlencode(wanted)}" if wanted else "")
        headers = {"Accept": "application/json, */*"} | ({"Content-Type": "application/json"} if body is not None else {})
        headers |= {"Authorization": f"Bearer {self.address.token}"} if self.address.token else {}
        status, told, payload = self._sent(method, target, body, headers)
        if status >= 400:
            raise problem(status, payload)
        return told, payload

    def _base(self) -> str:
        return "" if self.address.socket else urlsplit(self.address.url).path

    def _sent(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and bytes. Raises Unavailable, TimedOut, or NotAllowed for a server that cannot show who it is."""
        try:
            return self._exchange(method, target, body, headers)
        except TimeoutError as late:
            self.close()
            raise TimedOut(f"{self._where()} did not answer within {self._timeout:g} s", hint="--timeout SECONDS waits longer") from late
        except ssl.SSLCertVerificationError as error:
            self.close()
            hint = "sign in again with the fingerprint that it prints when it starts: muster login URL --ca sha256:..."
            raise NotAllowed(f"{self._where()} cannot show that it is the one: {error.verify_message}", hint=hint) from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._silent(error) from error

    def _exchange(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """One exchange on the open connection; a GET on one that the server has closed meanwhile is sent once more."""
        again = self._open is not None and method == "GET"
        try:
            return self._once(method, target, body, headers)
        except (ConnectionError, http.client.BadStatusLine):
            self.close()
            if not again:
                raise
            return self._once(method, target, body, headers)

    def _once(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        self._open = self._open or self._connection()
        self._open.request(method, target, body=body, headers=dict(headers))
        answer = self._open.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def _connection(self) -> http.client.HTTPConnection:
        if self.address.socket:
            return _SocketConnection(self.address.socket, self._timeout)
        parts = urlsplit(self.address.url)
        host = parts.hostname or "localhost"
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, parts.port, timeout=self._timeout, context=known.context(self.address.ca))
        return http.client.HTTPConnection(host, parts.port, timeout=self._timeout)

    def lines(self, path: str, last: str, quiet: float, query: Mapping[str, Any]) -> Iterator[bytes]:
        """The lines of a stream after ``last``, on a connection of its own. Raises Unavailable when it ends, or when ``quiet`` seconds say nothing."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        headers |= {"Authorization": f"Bearer {self.address.token}"} if self.address.token else {}
        connection = self._connection()
        connection.timeout = quiet
        try:
            connection.request("GET", f"{self._base()}{PREFIX}{path}?{urlencode(query)}", headers=headers)
            answer = connection.getresponse()
            if answer.status >= 400:
                raise problem(answer.status, answer.read())
            while line := answer.readline():
                yield line
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(error) from error
        finally:
            connection.close()
        raise Unavailable(f"{self._where()} ended the stream", hint="it is asked again")

    def _silent(self, error: Exception) -> Unavailable:
        """The error for a server that gives no answer, with what helps then."""
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        host = urlsplit(self.address.url).hostname or ""
        hint = _START if self.address.socket or loopback(host) else _ELSEWHERE
        if isinstance(error, socket.gaierror):
            hint = f"is {host!r} the server's name? --server URL or MUSTER_SERVER names it"
        elif not self.address.socket and speaks_tls(self.address.url, error):
            reason, hint = "it speaks TLS", f"use https://{self.address.url.partition('://')[2]}"
        return Unavailable(f"{self._where()} does not answer: {reason}", hint=hint)

    def _where(self) -> str:
        return f"the server at {self.address.socket or self.address.url}"

    def close(self) -> None:
        """Lets the connection go."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def pages(self, path: str, limit: int | None = None, **query: Any) -> Iterator[dict[str, Any]]:
        """The pages of a list, until ``limit`` rows are told; each as the API gives it."""
        left = limit
        after: dict[str, Any] = {}
        while True:
            page = self.get(path, limit=PAGE if left is None else min(PAGE, left), **query, **after)
            if not isinstance(page.get("items"), list):
                raise Unavailable(f"{self._where()} answers with a document of another shape", hint="is it a muster server?")
            yield page
            left = None if left is None else left - len(page["items"])
            following = page.get("next")
            if following is None or (left is not None and left <= 0):
                return
            after = {"after" if isinstance(following, int) else "cursor": following}

    def all(self, path: str, limit: int | None = None, **query: Any) -> dict[str, Any]:
        """The list as one page of the API's shape, with ``next`` of the last page that was read."""
        pages = list(self.pages(path, limit, **query))
        return {**pages[0], "items": [each for page in pages for each in page["items"]], "next": pages[-1].get("next")}


def segment(text: str) -> str:
    """A name as one part of a path."""
    return quote(text, safe="")


_HINTS: tuple[tuple[range, str], ...] = (
    (range(401, 402), "sign in: muster login URL"),
    (range(403, 404), "`muster whoami` says what you may; an admin makes tokens: muster token create"),
    (range(404, 405), "is it a muster server, and of this version?"),
    (range(408, 409), "--timeout SECONDS waits longer"),
    (range(409, 410), "look at it anew with `muster describe`, and say it again if it still fits"),
    (range(412, 413), "look at it anew with `muster describe`, and say it again if it still fits"),
    (range(429, 430), "wait a minute, and ask again"),
    (range(400, 500), "`--help` of the command says what it takes; -v which server was asked"),
    (range(500, 600), "ask again in a while; the log of the server, or of what stands before it, says more"),
)
"""What to do after an answer that does not say it: of a proxy, or of another version."""
_KINDS: dict[int, type[MusterError]] = {
    **dict.fromkeys((400, 422), InputError),
    **dict.fromkeys((401, 403), NotAllowed),
    **dict.fromkeys((409, 412), Conflict),
    404: NotFound,
    429: Unavailable,
}


def problem(status: int, payload: bytes) -> MusterError:
    """The error that a problem document tells (RFC 9457), with its hint."""
    try:
        told = json.loads(payload)
    except ValueError:
        told = {}
    told = told if isinstance(told, dict) else {}
    text = str(told.get("detail") or told.get("title") or f"the server answered {status}")
    hint = str(told.get("hint") or next((hint for among, hint in _HINTS if status in among), ""))
    if status in (408, 504):
        return TimedOut(text, hint=hint)
    kind = _KINDS.get(status) or (Unavailable if status >= 500 else MusterError)
    return kind(text, hint=hint)
