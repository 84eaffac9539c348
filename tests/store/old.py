# SPDX-License-Identifier: Apache-2.0
"""A store as the first version wrote it: made by its own migration, and filled by plain statements."""

from __future__ import annotations

import json
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from tests.store.samples import card, finding, node, source

from muster.store import mapping
from muster.store.opening import connect

FIRST = "0001"


def made(place: Path | str, revision: str = FIRST) -> None:
    """A store that the first version filled, brought on to ``revision``."""
    connections = connect(place)
    config = Config()
    config.set_main_option("script_location", "muster.store:migrations")
    with connections.writing.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, FIRST)
        _filled(connection)
        command.upgrade(config, revision)
    connections.close()


def _filled(connection: Connection) -> None:
    def add(table: str, **row: Any) -> None:
        names = ", ".join(row)
        connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({', '.join(f':{name}' for name in row)})"), row)

    for number, each in enumerate((card("c1"), card("c2", product="Anvil 80")), 1):
        kept = {"id": each.id, "created_at": 100.0, "learnt_from": 100.0, "updated_at": 160.0, "record": _old(each)}
        add("cards", number=number, node="n1", presence="present", digest="d", captures="", **kept)
    add("card_versions", id="c1", learnt_from=50.0, learnt_to=100.0, updated_at=60.0, number=1, created_at=50.0, record=_old(card("c1", product="Anvil 20")))
    add("nodes", number=1, id="n1", created_at=100.0, digest="d", learnt_from=100.0, updated_at=160.0, captures="", record=_old(node()))
    add("aliases", old="c0", new="c1", at=90.0)
    add("sources", node="n1", source="acme.smi", node_name="host-n1", record=_old(source()))
    add("received", reporter="agent@n1", incarnation="i1", sequence=7, digest="d7", received_at=5.0, answer="applied")
    add("journal", number=4, at=10.0, received_at=11.0, kind="listing", body=b"\x00one")
    add("journal", number=6, at=9.0, received_at=12.0, kind="act", body=b"\x00two")
    add("base", part="r1", state=b"state of r1")
    add("counters", name="journal", value=7)
    add("changes", number=1, id="h1", subject="c1", kind="installed", at=90.0, learnt_at=100.0, detail='{"slot":"3"}')
    add("changes", number=2, id="h0", subject="c0", kind="installed", at=80.0, learnt_at=85.0, detail="{}", superseded_at=99.0)
    about = finding("f1", 40.0, cards=("c1", "c2"), node="n1")
    told = {"opened_at": 40.0, "learnt_at": 41.0, "last_seen_at": 50.0, "acknowledged_by": "", "reason": ""}
    add("findings", number=1, id="f1", record=_old(about), **told)
    add("findings", number=2, id="f2", record="{damaged", **told | {"opened_at": 30.0})
    add("current", number=3, subject="c1", node="n1", source="acme.smi", key="power.draw", card="c1", at=60.0, live=True, changed_at=60.0, **_word("40.5"))
    add("minutes", series=3, minute=60, count=2, sum=81.0, low=40.0, high=41.0, first=40.0, first_at=60.0, last=41.0, last_at=70.0)
    add("events", id="e1", card="c1", node="n1", source="s", adapter="a", kind="fault", text="x", address="", first_at=1.0, last_at=2.0, repeats=1)
    packed = {"payload": zlib.compress(b"listing"), "stderr": zlib.compress(b"")}
    add("captures", digest="d1", source="s", node="n1", format="f", locator='["a"]', taken_at=1.0, exit_status=0, cut=False, size=30, **packed)
    for number, (at, entry) in enumerate(ENTRIES, 1):
        add("audit", number=number + 3, at=at, entry=json.dumps(entry))


ENTRIES: list[tuple[float, dict[str, Any]]] = [(12.5, {"at": 12.5, "by": "ann", "what": "set"}), (13.0, {"at": 13.0, "by": "bob", "what": "store"})]


def _word(value: str) -> dict[str, Any]:
    return {"said": f'[{value},null,""]', "value_at": 60.0, "why_at": None, "capture": ""}


def _old(record: Any) -> str:
    told = json.loads(mapping.text(record))
    told.pop("counted", None)
    return json.dumps(told)


def schema_of(place: Path | str) -> str:
    """The revision that a store says it has."""
    if isinstance(place, Path):
        opened = sqlite3.connect(place)
        found = opened.execute("SELECT version_num FROM alembic_version").fetchone()
        opened.close()
        return str(found[0])
    with psycopg.connect(place) as connection:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        assert row is not None
        return str(row[0])
