# SPDX-License-Identifier: Apache-2.0
"""Copies of a PostgreSQL store, by the database's own tools. The password reaches them by their environment, never by their arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import IO

from psycopg.conninfo import make_conninfo

from muster.domain.model.errors import InputError, Unavailable
from muster.store import freshness, intake
from muster.store.leasing import WriterLease
from muster.store.postgres import PostgresConnections, parsed
from muster.store.statements import Session

MAIN = "roll.pgdump"
"""The copy of a store's database."""

_EMPTY = """DO $$ DECLARE one record; BEGIN
FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP EXECUTE format('DROP TABLE %I CASCADE', one.tablename); END LOOP;
DROP FUNCTION IF EXISTS audit_is_added_to();
END $$;
"""
"""Takes away what is there: within the transaction that puts the copy in its place."""


def take(url: str, folder: Path) -> Path:
    """Copies the database into ``folder``, as of one moment. Raises Unavailable."""
    target = folder / MAIN
    target.touch(mode=0o600)
    _run(url, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--lock-wait-timeout=10000", f"--file={target}")
    return target


def put(url: str, folder: Path) -> None:
    """Puts the copy in the place of what the database holds: all of it, or nothing changes. Raises InputError for another kind of copy, Unavailable."""
    copy = folder / MAIN
    if not copy.is_file():
        raise InputError("it is a copy of another kind of store", hint="restore it without a PostgreSQL database in the settings, as it came from a file")
    token, commit = _counted(url)
    script = folder / "roll.sql"
    script.touch(mode=0o600)
    with script.open("wb") as written:
        written.write(_EMPTY.encode())
        written.flush()
        _run("", "pg_restore", "--no-owner", "--no-privileges", "--file=-", str(copy), to=written)
    _run(url, "psql", "-X", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", f"--file={script}", to=subprocess.DEVNULL)
    _begin_after(url, token, commit)


def _counted(url: str) -> tuple[int, int]:
    """How far leases and commits have come in what is there now."""
    with closing(PostgresConnections(url)) as connections, connections.transaction() as session:
        if not _leased(session):
            return 0, 0
        token = session.execute("SELECT max(token) FROM lease").fetchone()
        return int(token[0] or 0), intake.counted(session, freshness.COMMIT)


def _begin_after(url: str, token: int, commit: int) -> None:
    """Makes what was put back newer than all that was there: a server that wrote before is refused, and who kept columns of the roll begins anew."""
    with closing(PostgresConnections(url)) as connections:
        with connections.transaction() as session:
            if not _leased(session):
                return
            now = max(commit, intake.counted(session, freshness.COMMIT)) + 1
            for name in (freshness.COMMIT, freshness.VERSION, freshness.FLOOR):
                intake.count(session, name, now)
        WriterLease(connections, 0.0).begin_after(token)


def _leased(session: Session) -> bool:
    return bool(session.execute("SELECT to_regclass('lease') IS NOT NULL").fetchone()[0])


def _run(url: str, program: str, *arguments: str, to: IO[bytes] | int = subprocess.DEVNULL) -> None:
    found = shutil.which(program)
    if found is None:
        raise Unavailable(f"{program} is not on the PATH", hint="install the client programs of PostgreSQL, of the database's version or a newer one")
    environment, name = dict(os.environ), program
    where: list[str] = []
    if url:
        how, name = parsed(url)
        environment |= {"PGPASSWORD": str(how.pop("password"))} if "password" in how else {}
        where = [f"--dbname={make_conninfo(**how)}"]
    done = subprocess.run([found, *where, *arguments], check=False, stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.PIPE, env=environment)
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Unavailable(
            f"{program} failed on {name}: {told[0] if told else done.returncode}", hint="see that the database answers and that its user may do this"
        )
