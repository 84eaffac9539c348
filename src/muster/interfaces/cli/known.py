# SPDX-License-Identifier: Apache-2.0
"""Servers that the user signed in at: their tokens and authorities, in one file that only the user reads. The standard library alone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

from muster.domain.model.errors import InputError, NotAllowed, Unavailable

FILE = "servers.json"
_DIGITS = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What is kept of one: the token, the authority (PEM; empty: those of the system), and whether it may be spoken to without TLS."""

    token: str = field(default="", repr=False)
    ca: str = ""
    plain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """All servers by URL, and the one that is meant when none is named."""

    current: str = ""
    servers: Mapping[str, Server] = field(default_factory=dict)


def file() -> Path:
    """Where it is kept."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "muster" / FILE


def read() -> Known:
    """What is known; nothing when there is no file. Raises InputError for a file that cannot be used, and one that others can read."""
    path = file()
    try:
        with path.open(encoding="utf-8") as opened:
            state = os.fstat(opened.fileno())
            if state.st_uid not in (0, os.geteuid()) or state.st_mode & 0o077:
                raise InputError(f"{path} has tokens in it, and others can read it", hint=f"end those tokens, chmod 600 {path}, and sign in again")
            told = json.load(opened)
        servers = {str(url): _server(each) for url, each in told["servers"].items()}
        return Known(current=str(told.get("current") or ""), servers=servers)
    except FileNotFoundError:
        return Known()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", hint="let this user read it, or remove it and sign in again") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        raise InputError(f"{path} cannot be read: {wrong}", hint="remove it and sign in again: muster login URL") from wrong


def _server(told: Mapping[str, Any]) -> Server:
    return Server(token=str(told.get("token") or ""), ca=str(told.get("ca") or ""), plain=bool(told.get("plain")))


def keep(url: str, server: Server) -> Path:
    """Keeps a server, which is the one meant from now on. Raises InputError or Unavailable."""
    known = read()
    return _write(Known(current=url, servers={**known.servers, url: server}))


def forget(url: str) -> Path:
    """Forgets one."""
    known = read()
    left = {each: server for each, server in known.servers.items() if each != url}
    current = known.current if known.current in left else next(iter(left), "")
    return _write(Known(current=current, servers=left))


def _write(known: Known) -> Path:
    """Whole or not at all, and at no moment readable by others."""
    path = file()
    servers = {url: {"token": each.token, "ca": each.ca, "plain": each.plain} for url, each in known.servers.items()}
    text = json.dumps({"current": known.current, "servers": servers}, indent=1) + "\n"
    aside = path.with_name(f"{FILE}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside.unlink(missing_ok=True)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
            opened.write(text)
        aside.replace(path)
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}", hint="let this user write it, or name another folder with XDG_CONFIG_HOME") from error
    return path


def context(ca: str) -> ssl.SSLContext:
    """The client's side of TLS: by the authority that was pinned, whose certificate may be any of the chain; else by those of the system."""
    made = ssl.create_default_context(cadata=ca or None)
    if ca:
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return made


def pinned(host: str, port: int, fingerprint: str, timeout: float) -> str:
    """The certificate (PEM) of that fingerprint, out of the chain that the server shows. Nothing is sent before it is found.

    Raises InputError for what is no fingerprint, NotAllowed when the server shows another authority, Unavailable when it does not answer.
    """
    digits = fingerprint.strip().lower().removeprefix("sha256 fingerprint=").removeprefix("sha256:").replace(":", "")
    if not _DIGITS.fullmatch(digits):
        hint = "like sha256: and 64 hex digits, as the server prints it when it starts, or as openssl prints it; or --ca-file FILE"
        raise InputError(f"{fingerprint[:200]!r} is no fingerprint", hint=hint)
    blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), timeout) as plain, blind.wrap_socket(plain, server_hostname=host) as sock:
            chain = _chain(sock)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unavailable(f"{host} port {port} does not answer with TLS: {reason}", hint="is the address right, and does that server use TLS?") from error
    found = next((each for each in chain if hashlib.sha256(each).hexdigest() == digits), None)
    if found is None:
        raise NotAllowed(f"{host} port {port} shows another authority than that one", hint="compare it with what the server prints when it starts")
    return ssl.DER_cert_to_PEM_cert(found)


def _chain(sock: ssl.SSLSocket) -> list[bytes]:
    """The certificates that the server sent (DER). Before 3.13 the library tells them by an inner object only."""
    public = getattr(sock, "get_unverified_chain", None)
    if public is not None:
        return [bytes(each) for each in public()]
    inner = attrgetter("_sslobj")(sock)
    return [ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in inner.get_unverified_chain() or ()]
