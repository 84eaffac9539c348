# SPDX-License-Identifier: Apache-2.0
"""What the writer asks while a site grows is looked up by index: how it is gone about is worked out while the tables are empty, and holds on."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from muster.store import access, intake, kept, open_store
from muster.store.statements import Statement, listing

MANY = 5000
NAMES = "INSERT INTO names SELECT 'serial', 'v' || n, 'r' FROM generate_series({}, {}) n"
MEMBERS = """INSERT INTO members (reporter, name, machine_id, system, name_key, machine_key, system_key, public_key, scope, generation, token, enrolled_at,
keyed_at, agent_version, revoked_by, reason, changed)
SELECT 'r' || n, 'n' || n, '', '', 'v' || n, 'v' || n, 'v' || n, ('k' || n)::bytea, '', 0, '', 0, 0, '', '', '', n FROM generate_series({}, {}) n"""
CARDS = """INSERT INTO cards (id, node, presence, created_at, digest, learnt_from, updated_at, captures, record, region, written)
SELECT 'v' || n, '', '', 0, '', 0, 0, '', '', '', 0 FROM generate_series({}, {}) n"""
ASKED: dict[str, tuple[Statement, dict[str, object], str]] = {
    "names": (intake._KNOWING, {"kind_": "serial", "values_": listing(["v4007", "v4008"])}, NAMES),
    "members": (access._KIN, {"key_": b"k4007", "name_key_": "v4007", "machine_key_": "v4007", "system_key_": "v4008"}, MEMBERS),
    "cards": (kept.CARDS._digests, {"ids": listing(["v4007", "v4008"])}, CARDS),
}
READ = "SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables WHERE relname = "
"""Rows of a table that were read in this transaction."""


@pytest.mark.parametrize(("table", "few"), [("names", 0), ("names", 300), ("members", 0), ("members", 300), ("cards", 0)])
def test_what_was_planned_while_a_table_was_small_is_good_when_it_is_large(postgres_store_url: str, table: str, few: int) -> None:
    statement, values, fill = ASKED[table]
    store = open_store(postgres_store_url)
    with store.connections.transaction() as session:
        session.execute(fill.format(1, few))
        if few:
            session.execute("ANALYZE")  # as the database does by itself, a minute after it was begun
        for _ in range(20):
            assert session.execute(statement, values).fetchall() == []
        session.execute(fill.format(few + 1, MANY))
    with store.connections.transaction() as session:
        assert len(session.execute(statement, values).fetchall()) == 2
        assert session.execute(f"{READ}'{table}'").fetchone()[0] <= 10
    store.close()


def test_the_members_that_changed_are_looked_up_while_nothing_is_known_of_their_table(postgres_store_url: str) -> None:
    store = open_store(postgres_store_url)
    with store.connections.transaction() as session:
        session.execute(MEMBERS.format(1, MANY))
    with store.connections.reading() as connection:
        assert len(connection.execute(access.changed_within(MANY - 2, MANY)).fetchall()) == 2
        assert (connection.execute(text(f"{READ}'members'")).scalar() or 0) <= 10
    store.close()
