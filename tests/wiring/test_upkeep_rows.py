# SPDX-License-Identifier: Apache-2.0
"""A check reads every row as a server would, and the server's keys: what cannot be read is named, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.interfaces.api.fleet import GIB, T0, card, listing, one, report, small
from tests.services.gate import ANY, Node, doc, gate_on
from tests.store.samples import card as record
from tests.store.samples import event, finding
from tests.wiring.kept import Place, filed, in_postgres, place, postgres, postgres_store_url, postgres_template, postgres_url, programs

from muster.domain.model.errors import Unavailable
from muster.domain.model.policy import Policy
from muster.interfaces.cli import upkeep as commands
from muster.services.inventory import Inventory
from muster.spi.store import Batch
from muster.store import looking_rows
from muster.store.segments import Block, FileSegments, Segments, TableSegments
from muster.wiring import authority, upkeep
from muster.wiring.whole import whole

__all__ = ["filed", "place", "postgres", "postgres_store_url", "postgres_template", "postgres_url", "programs"]
BAD = {
    "journal": "body",
    "cards": "record",
    "card_versions": "record",
    "nodes": "record",
    "sources": "record",
    "changes": "detail",
    "findings": "record",
    "captures": "payload",
    "reporters": "recent",
    "layouts": "columns",
    "slots": "numbers",
    "members": "scope",
    "join_tokens": "scope",
}
"""Tables with a column of each, which is overwritten."""


def lived(place: Place) -> None:
    """A store in which something of nearly everything is."""
    store = place.opened()
    assert store.lease.acquire("test", 0.0, certain=True)
    keeper = Inventory(store.writer, Policy(), T0)
    other = card(0, {"product.name": "Beta G", "memory.total": GIB}, pci_address="0000:03:00.0", index="card0")
    for each in (one(), small("node-b", 55), report("node-b", listing(other, at=T0 + 30), sequence=2, at=T0 + 30)):
        keeper.report(each, T0 + 30)
    gate = gate_on(store, T0, address=lambda: "https://muster.example:7461")
    Node(doc("node-j")).joins(gate, gate.mint(ANY, 2, 600.0, "root", T0)[1], T0)
    store.writer.commit(Batch(at=T0 + 40, findings=[finding("f1", T0)], events=[event("e1", T0)]))
    for later, product in enumerate(("Anvil 20", "Anvil 30")):
        store.writer.commit(Batch(at=T0 + 50 + later, cards=[record("c-x", product=product)]))
    store.close()


def spoil(place: Place, table: str, column: str) -> int:
    """Overwrites one column of all rows; how many."""
    store = place.opened()
    with store.connections.transaction() as session:
        (count,) = session.execute(f"SELECT count(*) FROM {table}").fetchone()
        blob = column in ("body", "payload", "recent", "columns", "numbers")
        put = ("'\\x0011'::bytea" if in_postgres(place) else "x'0011'") if blob else "'{damaged'"
        session.execute(f"UPDATE {table} SET {column} = {put}")
    store.close()
    return int(count)


def test_a_store_that_lived_is_well(place: Place) -> None:
    lived(place)
    read: dict[str, int] = {}
    found = upkeep.check(place.settings, lambda table, rows: read.update({table: rows}))
    (only,) = found.problems
    assert only.startswith(f"{authority.state_of(place.settings.state)} is missing: nodes that joined trust the authority in it")
    assert {table for table in BAD if not read[table]} == set()


@pytest.mark.parametrize("table", BAD)
def test_every_row_that_cannot_be_read_is_named(place: Place, table: str) -> None:
    lived(place)
    count = spoil(place, table, BAD[table])
    told = [each for each in upkeep.check(place.settings).problems if f"of the table {table} cannot be read" in each]
    assert len(told) == count > 0
    assert all(each.startswith("row ") for each in told)


def test_the_command_ends_with_1_and_names_the_row(filed: Place) -> None:
    lived(filed)
    spoil(filed, "members", "scope")
    done = CliRunner().invoke(commands.check, ["--state", str(filed.settings.state)], standalone_mode=False)
    assert done.return_value == 1
    assert "wrong: row agent@node-j of the table members cannot be read" in done.output


def test_bytes_that_are_no_text_are_found(filed: Place) -> None:
    lived(filed)
    store = filed.opened()
    with store.connections.transaction() as session:
        session.execute("UPDATE cards SET node = CAST(x'fffe' AS TEXT) WHERE number = 1")
        session.execute("UPDATE nodes SET digest = x'fffe' WHERE number = 1")
    store.close()
    told = [each for each in upkeep.check(filed.settings).problems if "of the table" in each]
    assert told == ["row 1 of the table cards cannot be read: node is no text", "row 1 of the table nodes cannot be read: digest is of another kind (bytes)"]


def test_many_rows_are_counted(filed: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking_rows, "MOST", 2)
    monkeypatch.setattr(looking_rows, "AT_ONCE", 3)
    filed.write(*(f"c{n}" for n in range(10)))
    spoil(filed, "cards", "record")
    told = [each for each in upkeep.check(filed.settings).problems if "table cards" in each]
    assert len(told) == 3
    assert told[-1] == "8 more rows of the table cards cannot be read"


def test_packed_minutes_are_read(place: Place) -> None:
    lived(place)
    store = place.opened()
    with store.connections.transaction() as session:
        (layout,) = session.execute("SELECT max(number) FROM layouts").fetchone()
    at = place.at
    kept: Segments = TableSegments(store.connections, store.connections.transaction) if isinstance(at, str) else FileSegments(Path(f"{at}-minutes"))
    kept.write([Block(layout, 0, 20, b"no block")])
    store.close()
    assert any(f"block 0 of layout {layout} in segment 0 cannot be read" in each for each in upkeep.check(place.settings).problems)


def test_a_start_names_the_row_that_stands_in_its_way(place: Place) -> None:
    lived(place)
    spoil(place, "members", "scope")
    store = place.opened()
    with pytest.raises(Unavailable, match="row agent@node-j of the table members cannot be read") as refused:
        gate_on(store, T0)
    assert "muster server check" in refused.value.hint
    store.close()
    spoil(place, "reporters", "recent")
    store = place.opened()
    with pytest.raises(Unavailable, match="table reporters, row agent-node-"), whole(store.connections.name, store.writer):
        Inventory(store.writer, Policy(), T0)
    store.close()


def test_rows_of_sources_that_are_damaged_do_not_stop_the_gate(place: Place) -> None:
    lived(place)
    store = place.opened()
    assert {reporter for reporter, _ in store.enrolment.told()} == {"agent-node-a", "agent-node-b"}
    with store.connections.transaction() as session:
        session.execute("UPDATE layouts SET names = '{damaged' WHERE node = (SELECT min(node) FROM layouts)")
    assert len({reporter for reporter, _ in store.enrolment.told()}) == 1
    if not in_postgres(place):
        with store.connections.transaction() as session:
            session.execute("UPDATE slots SET reporter = x'ff00'")
            session.execute("UPDATE layouts SET names = x'ff0067'")
        assert store.enrolment.told() == []
    store.close()


def test_keys_that_are_missing_or_broken_are_told(filed: Place) -> None:
    filed.write("c1")
    folder = authority.state_of(filed.settings.state)
    authority.Authority.open(folder, ["here"], T0)
    assert upkeep.check(filed.settings).problems == ()
    kept = {each.name: each.read_bytes() for each in folder.iterdir()}

    def told() -> str:
        (only,) = upkeep.check(filed.settings).problems
        for name, payload in kept.items():
            (folder / name).write_bytes(payload)
            (folder / name).chmod(0o600)
        return only

    (folder / "ca.key").unlink()
    assert f"there is no key {folder / 'ca.key'}" in told()
    (folder / "ca.pem").write_text("junk")
    assert f"{folder / 'ca.pem'} is no certificate" in told()
    (folder / "tokens.key").chmod(0o644)
    assert "may be read by others" in told()
    other = authority.Authority.open(filed.settings.state / "other", ["here"], T0)
    (folder / "ca.pem").write_bytes(other.ca)
    assert "do not belong together" in told()
    assert upkeep.check(filed.settings).problems == ()
