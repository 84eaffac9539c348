# SPDX-License-Identifier: Apache-2.0
"""Files that only their user reads: written whole or not at all, durable when written. Standard library alone: the agent uses it."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muster.domain.model.errors import NotFound, Unavailable

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_new(path: Path, payload: bytes, mode: int = 0o600) -> bool:
    """Writes a file that was not there, whole or not at all. False when there was one. Raises Unavailable."""
    if os.path.lexists(path):
        return False  # a full disk is no reason to fail then
    try:
        with _part(path, payload, mode) as part:
            try:
                os.link(part, path)
            except FileExistsError:
                return False
        _settle(path.parent)
    except OSError as error:
        raise _unwritten(path, error) from error
    return True


def write_over(path: Path, payload: bytes, mode: int = 0o600) -> None:
    """Puts a file in the place of what was there, whole or not at all. Raises Unavailable."""
    try:
        with _part(path, payload, mode) as part:
            part.replace(path)
        _settle(path.parent)
    except OSError as error:
        raise _unwritten(path, error) from error


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Holds a file, so that of several processes one is at work. Raises Unavailable when it cannot be had."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritten(path, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def as_owner(folder: Path) -> Iterator[None]:
    """Acts as the user who owns the folder, or where it would be made: root that works for an agent of another user leaves nothing that this one cannot read,
    and follows no link that this one has laid."""
    owner = next(each.stat() for each in (folder, *folder.absolute().parents) if each.exists())
    if os.geteuid() != 0 or owner.st_uid == 0:
        yield
        return
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@contextmanager
def _part(path: Path, payload: bytes, mode: int) -> Iterator[Path]:
    """The payload in a file beside; nothing is left of it, whatever happens."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        _written(part, payload, mode)
        yield part
    finally:
        part.unlink(missing_ok=True)


def _written(part: Path, payload: bytes, mode: int) -> None:
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(payload)
        file.flush()
        os.fsync(handle)


def _settle(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unwritten(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"{path} cannot be written: {error.strerror}", hint="let this user write in its folder, and make room on its disk")


def secret(path: Path) -> bytes:
    """A secret file. Raises NotFound, or Unavailable when it cannot be read or others can read it."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            payload = file.read(1 << 20)
    except FileNotFoundError as error:
        raise NotFound(f"there is no key {path}") from error
    except OSError as error:
        raise Unavailable(f"the key {path} cannot be read: {error.strerror}", hint="run this as the user who owns it") from error
    if mode & _OTHERS:
        raise Unavailable(f"the key {path} may be read by others", hint=f"chmod 600 {path}; if others had access to it, make a new one")
    return payload
