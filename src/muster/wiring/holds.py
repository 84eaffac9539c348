# SPDX-License-Identifier: Apache-2.0
"""What a server holds while it runs: its folder, its port and its socket. Whoever cannot get one is told why, and what to do."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import ipaddress
import os
import socket
from pathlib import Path
from typing import IO

from muster.domain.model.errors import Conflict, InputError, NotAllowed, Unavailable
from muster.wiring.discovery import SOCKET

LOCK = "server.lock"
_LONGEST_SOCKET = 100
"""Characters of a socket's path; the kernel takes 107."""


def folder(path: Path, what: str, flag: str, mode: int = 0o755) -> Path:
    """The folder, made where needed. Raises Unavailable when it cannot be made or written."""
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
        probe = path / f".writable.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise Unavailable(f"the {what} folder {path} cannot be used: {error.strerror}", hint=f"let this user write it, or name another with {flag}") from error
    return path


def hold(state: Path) -> IO[str]:
    """The only right to serve the store in ``state``, for as long as the file stays open. Raises Conflict when another server has it, Unavailable."""
    try:
        lock = os.fdopen(os.open(state / LOCK, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "a+", encoding="utf-8")
    except OSError as error:
        raise Unavailable(f"{state / LOCK} cannot be used: {error.strerror}", hint="run the server as the user whose it is; root may have made it") from error
    with contextlib.suppress(OSError):
        os.fchmod(lock.fileno(), 0o600)  # one that an earlier version made
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        pid = lock.read(20).strip()
        lock.close()
        raise Conflict(
            f"another server{f' (process {pid})' if pid else ''} runs on {state}", hint="stop that one, or give this one a folder of its own with --state"
        ) from error
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def listen(host: str, port: int) -> socket.socket:
    """A socket on a port of this machine. Raises InputError for what is no address, Conflict for a port in use, NotAllowed for one that is not ours to take."""
    address = address_of(host)
    listener = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if address.version == 6 and address.is_unspecified:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    try:
        listener.bind((str(address), port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Conflict(f"port {port} on {host} is in use", hint="stop what uses it, or name another with --port (0 takes any free one)") from error
        if error.errno in (errno.EACCES, errno.EPERM):
            raise NotAllowed(f"port {port} may not be used: {error.strerror}", hint="name a port above 1023 with --port") from error
        raise Unavailable(f"cannot listen on {host} port {port}: {error.strerror}", hint="leave --host out, or name an address of this machine") from error
    return listener


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address to listen on. Raises InputError for what is none."""
    try:
        return ipaddress.ip_address("127.0.0.1" if host == "localhost" else host.strip("[]"))
    except ValueError as error:
        hint = "leave it out, or give an address of this machine, or 0.0.0.0 for all; names go into the setting `names`"
        raise InputError(f"host {host!r} is no address", hint=hint) from error


def listen_here(runtime: Path) -> socket.socket:
    """The socket in ``runtime``, for this user alone. One that a dead server left is replaced. Raises Conflict when a live one answers on it."""
    path = runtime / SOCKET
    if len(str(path)) > _LONGEST_SOCKET:
        raise InputError(f"the path of the socket is too long: {path}", hint="name a shorter folder with --runtime")
    if _answers(path):
        raise Conflict(f"another server answers on {path}", hint="stop that one, or give this one a folder of its own with --runtime")
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise Unavailable(f"cannot make the socket {path}: {error.strerror}", hint="name another folder with --runtime") from error
    finally:
        os.umask(before)
    return listener


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(path))
        except OSError as error:
            return error.errno in (errno.EAGAIN, errno.EACCES)
    return True
