# SPDX-License-Identifier: Apache-2.0
"""`muster server backup`, `restore`, `check` and `upgrade` as they are typed."""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tests.store import old
from tests.store.samples import card

from muster.domain.model.errors import Conflict, InputError, MusterError, NotFound
from muster.interfaces.cli import upkeep
from muster.spi.store import Batch
from muster.store import open_store
from muster.store.schema import HEAD
from muster.wiring import holds


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder with a card in its store."""
    folder = tmp_path / "state"
    store = open_store(folder / "roll.sqlite")
    store.writer.commit(Batch(at=1.0, cards=[card("c1")], audit=[{"by": "ann"}]))
    store.close()
    return folder


def run(command: click.Command, state: Path, *arguments: str) -> Result:
    result = CliRunner().invoke(command, [*arguments, "--state", str(state)], standalone_mode=False)
    if isinstance(result.exception, MusterError):
        raise result.exception
    assert result.exception is None, result.exception
    return result


def test_a_backup_and_a_restore(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "roll.backup"
    said = run(upkeep.backup, state, str(file)).stdout
    assert said.startswith(f"{file}: ")
    assert f"schema {HEAD}, 1 file\n" in said
    with pytest.raises(Conflict, match="nobody to ask"):
        run(upkeep.restore, state, str(file))
    done = run(upkeep.restore, state, str(file), "-y")

    assert re.search(rf"{file} is of 20[0-9-]+ [0-9:]+ UTC, by Muster \S+, schema {HEAD}; what came later is not in it", done.stderr)
    assert f"{state / 'roll.sqlite'}: restored as of 20" in done.stdout
    assert "what was there is in" in done.stderr
    assert len([each for each in state.iterdir() if ".before-" in each.name]) >= 1


def test_a_restore_is_refused_at_once_under_a_server(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "roll.backup"
    run(upkeep.backup, state, str(file))
    asked: list[str] = []
    monkeypatch.setattr(upkeep, "confirm", lambda question, _: asked.append(question))
    before = time.monotonic()
    with holds.hold(state), pytest.raises(Conflict, match="another server"):
        run(upkeep.restore, state, str(file))
    assert asked == []
    assert time.monotonic() - before < 5
    with pytest.raises(InputError, match="no whole backup"):
        run(upkeep.restore, state, str(state / "roll.sqlite"))
    cut = tmp_path / "cut.backup"
    cut.write_bytes(file.read_bytes()[:4096])
    with pytest.raises(InputError, match=r"no whole backup|its end is missing"):
        run(upkeep.restore, state, str(cut))
    assert asked == []


def test_a_check_tells_the_head_of_the_audit_log(state: Path) -> None:
    store = open_store(state / "roll.sqlite")
    entries, head = store.audit_head()
    store.close()
    assert f"audit log: {entries} entry, whole; the last is sha256:{head}\n" in run(upkeep.check, state).stdout


def test_a_check_ends_with_how_it_went(state: Path) -> None:
    fine = run(upkeep.check, state)
    assert fine.return_value == 0
    assert "cards: 1\n" in fine.stdout
    assert "audit log: 1 entry, whole" in fine.stdout
    assert fine.stdout.endswith("all is well\n")
    with sqlite3.connect(state / "roll.sqlite") as store:
        store.execute("DROP TRIGGER audit_no_update")
        store.execute("UPDATE audit SET entry = '{}'")
    store.close()
    wrong = run(upkeep.check, state)

    assert wrong.return_value == 1
    assert "wrong: row 1 of the audit log is not as it was written" in wrong.stdout


def test_an_upgrade_shows_its_migrations_first(tmp_path: Path) -> None:
    state = tmp_path / "state"
    old.made(state / "roll.sqlite")
    shown = run(upkeep.upgrade, state, "--dry-run")
    assert "schema 0001; to be run:\n  0002  The site" in shown.stdout
    assert old.schema_of(state / "roll.sqlite") == "0001"
    with pytest.raises(Conflict, match="nobody to ask"):
        run(upkeep.upgrade, state)
    with holds.hold(state), pytest.raises(Conflict, match="another server"):
        run(upkeep.upgrade, state)
    done = run(upkeep.upgrade, state, "--yes")

    assert done.stdout.startswith(shown.stdout)
    assert done.stdout.endswith(f"schema {HEAD} now\n")
    assert "what was there is in" in done.stderr
    assert f"schema {HEAD}, which is this version's" in run(upkeep.upgrade, state).stdout


def test_where_there_is_no_store(tmp_path: Path) -> None:
    for command in (upkeep.check, upkeep.upgrade):
        with pytest.raises(NotFound, match="no store at"):
            run(command, tmp_path)
