# SPDX-License-Identifier: Apache-2.0
"""What an error of PostgreSQL means to a caller, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoneFree

from muster.domain.model.errors import Unavailable

_AWAY = ("does not answer", "see that the database runs and is reached from here; what was committed before is safe")
_MEANING = {
    "25006": ("may not be written now: it only reads", "name the server that takes writes, or wait for it to come back"),
    "28": ("does not let this user in", "check the user and the password in the URL, or the file of passwords of the user that runs the server"),
    "3D000": ("is not there", "make the database first: createdb"),
    "42501": ("may not be used as it must be", "let its user make and write tables: give it the database, or the schema"),
    "3F000": ("has no schema to use", "make the schema that the URL or the user's search path names"),
    "53100": ("cannot grow: its disk is full", "make room on its disk; what was committed before is safe"),
    "53": ("has too few resources for one more connection", "raise max_connections there, or end what else uses it"),
    "55P03": ("is held by another program", "end the other program that locks it, or try again"),
    "40": ("was written by another at the same moment", "try again"),
    "57014": ("takes too long to answer", "see what else the database is busy with"),
    "57": _AWAY,
    "58": ("cannot be read or written: its disk reports an error", "look at its disk and its log"),
    "XX": ("is damaged", "keep it as it is, restore a backup into another database, and look at its disk"),
    "08": _AWAY,
}
_WORDS = (("authentication failed", "28"), ("no password supplied", "28"), ("pg_hba", "28"), ("does not exist", "3D000"), ("read-only", "25006"))


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turns the database's errors about the store ``name`` into Unavailable. Errors of our own statements pass as they are."""
    try:
        yield
    except NoneFree as error:
        raise Unavailable(f"{name} has too many readers at once", hint="try again") from error
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise _said(name, error.orig) or error.orig from error
        raise
    except psycopg.Error as error:
        found = _said(name, error)
        if found is None:
            raise
        raise found from error


def _said(name: str, error: psycopg.Error) -> Unavailable | None:
    state = error.sqlstate or ""
    found = _MEANING.get(state) or _MEANING.get(state[:2])
    if found is None and isinstance(error, psycopg.OperationalError):
        found = _refused(str(error)) or _AWAY
    if found is None:
        return None
    meaning, hint = found
    return Unavailable(f"{name} {meaning} ({_line(error)})", hint=hint)


def _refused(said: str) -> tuple[str, str] | None:
    """What the driver says in words alone when it never got a connection."""
    return next((_MEANING[state] for words, state in _WORDS if words in said), None)


def _line(error: psycopg.Error) -> str:
    """The first line of what the database said: the rest quotes rows."""
    return (error.diag.message_primary or str(error)).strip().splitlines()[0] if str(error) else type(error).__name__
