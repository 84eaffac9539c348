# SPDX-License-Identifier: Apache-2.0
"""The revisions lead to the tables that the code knows, once, and a newer schema is refused."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_mock_engine
from sqlalchemy.engine.mock import MockConnection
from tests.store.samples import card, file_writer

from muster.domain.model.errors import Unavailable
from muster.spi.store import Batch
from muster.store import open_store
from muster.store.schema import HEAD, metadata


def test_the_revisions_lead_to_the_tables_of_the_code() -> None:
    store = open_store(None)
    with store.connections.writing.begin() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
    store.close()


def test_indexes_and_storage_are_the_same_too(tmp_path: Path) -> None:
    migrated = open_store(tmp_path / "roll.db")
    rows = (
        file_writer(migrated)
        .execute(
            "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL AND name NOT IN ('alembic_version', 'sqlite_sequence')"
        )
        .fetchall()
    )
    migrated.close()

    assert {_bare(sql) for _, sql in rows} == {_bare(sql) for sql in _made("sqlite://")}


def test_another_database_understands_the_tables() -> None:
    said = _made("postgresql://")

    assert sum("CREATE TABLE" in sql for sql in said) == len(metadata.tables)
    assert any("BIGSERIAL" in sql for sql in said)
    assert not any("ROWID" in sql for sql in said)


def _made(url: str) -> list[str]:
    """The statements that make the tables of the code in a database of that kind."""
    said: list[str] = []

    def say(statement: Any, *_: Any, **__: Any) -> None:
        said.append(str(statement.compile(dialect=engine.dialect)))

    engine: MockConnection = create_mock_engine(url, say)
    metadata.create_all(engine, checkfirst=False)
    return said


def _bare(sql: str) -> str:
    first, _, rest = sql.partition("(")
    body, _, storage = rest.rpartition(")")
    columns = sorted(filter(None, (" ".join(part.split()).replace('"', "") for part in body.replace("\n", " ").split(","))))
    return f"{' '.join(first.split())} {columns} {storage.strip()}"


def test_the_last_revision_is_the_one_the_code_names() -> None:
    config = Config()
    config.set_main_option("script_location", "muster.store:migrations")

    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


def test_opening_again_finds_what_was_there_and_loads_no_migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "roll.db")
    store.writer.commit(Batch(at=1.0, cards=[card("c1")]))
    store.close()
    monkeypatch.setitem(sys.modules, "muster.store.migrating", None)

    again = open_store(tmp_path / "roll.db")
    assert again.reader.cards() == [card("c1")]
    again.close()


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "roll.db"
    open_store(path).close()
    later = sqlite3.connect(path)
    later.execute("UPDATE alembic_version SET version_num = '9999'")
    later.commit()
    later.close()

    with pytest.raises(Unavailable, match=r"newer Muster \(schema 9999\)") as caught:
        open_store(path)
    assert "upgrade Muster" in caught.value.hint
    check = sqlite3.connect(path)
    assert check.execute("SELECT version_num FROM alembic_version").fetchall() == [("9999",)]
    check.close()
