# SPDX-License-Identifier: Apache-2.0
"""What an error of the database means to a caller, and what to do about it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoneFree

from muster.domain.model.errors import Unavailable

_MEANING = {
    sqlite3.SQLITE_BUSY: ("is held by another process", "end the other program that has it open, or try again"),
    sqlite3.SQLITE_LOCKED: ("is held by another reader or writer", "try again"),
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "make room on its disk; what was committed before is safe"),
    sqlite3.SQLITE_READONLY: ("may not be written", "let this user write the file and its folder, or name another path"),
    sqlite3.SQLITE_PERM: ("may not be opened", "let this user read and write the file and its folder"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "check that its folder is there and that this user may write in it"),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "keep the file, put a backup in its place, and look at the disk"),
    sqlite3.SQLITE_NOTADB: ("is no store of Muster", "name another path"),
    sqlite3.SQLITE_IOERR: ("cannot be read or written: its disk reports an error", "look at the disk and the kernel log"),
    sqlite3.SQLITE_NOMEM: ("needs more memory than there is", "give the server more memory"),
}


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turns the database's errors about the store ``name`` into Unavailable. Errors of our own statements pass as they are."""
    try:
        yield
    except NoneFree as error:
        raise Unavailable(f"{name} has too many readers at once", hint="try again") from error
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise _said(name, error.orig) from error
        raise
    except sqlite3.Error as error:
        raise _said(name, error) from error
    except OSError as error:
        raise Unavailable(f"{name} cannot be opened: {error.strerror}", hint="check its folder") from error


def _said(name: str, error: sqlite3.Error) -> Exception:
    code = getattr(error, "sqlite_errorcode", None)
    found = None if code is None else _MEANING.get(code & 0xFF)
    if found is None:
        return error
    meaning, hint = found
    return Unavailable(f"{name} {meaning} ({error})", hint=hint)
