# SPDX-License-Identifier: Apache-2.0
"""Files that only their user reads: written whole or not at all, durable when written. Standard library alone: the agent uses it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from muster.domain.model.errors import NotFound, Unavailable

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_new(path: Path, payload: bytes, mode: int = 0o600) -> bool:
    """Writes a file that was not there, whole or not at all. False when there was one. Raises Unavailable."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _written(part, payload, mode)
        try:
            os.link(part, path)
        except FileExistsError:
            return False
        finally:
            part.unlink(missing_ok=True)
        _settle(path.parent)
    except OSError as error:
        raise _unwritten(path, error) from error
    return True


def write_over(path: Path, payload: bytes, mode: int = 0o600) -> None:
    """Puts a file in the place of what was there, whole or not at all. Raises Unavailable."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _written(part, payload, mode)
        part.replace(path)
        _settle(path.parent)
    except OSError as error:
        raise _unwritten(path, error) from error


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
