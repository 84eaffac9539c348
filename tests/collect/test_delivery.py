# SPDX-License-Identifier: Apache-2.0
"""Reports: built, kept on disk, delivered or dropped."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from tests.collect.world import Hands

from muster.collect.delivery import LONGEST_WAIT_S, TRIES, Delivery
from muster.collect.post import Address, Fate, Posted, address, discover
from muster.collect.reports import Identity, Reports
from muster.collect.spool import ASIDES, Limits, Spool
from muster.domain.model.errors import Conflict, InputError, Unavailable
from muster.wire.lanes import part, whole
from muster.wire.report import SCHEMA, CaptureDoc, EventDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc, digest, pack, unpack


def listing(name: str = "a", detail: str = "") -> ListingDoc:
    return ListingDoc(source=name, channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=True, observed_at=1.0, detail=detail)


def event(text: str = "fell over") -> EventDoc:
    return EventDoc(id=text, source="log", adapter="acme", text=text)


def capture(size: int, digest_: str = "d") -> CaptureDoc:
    return CaptureDoc(digest=digest_, source="a", format="list", locator=[], taken_at=1.0, payload=b"x" * size)


@pytest.fixture
def hands() -> Hands:
    return Hands()


def reports(hands: Hands, split: int = 2000) -> Reports:
    names = iter(f"i{n}" for n in range(99))
    return Reports(Identity(node=NodeDoc(name="n1"), boot_id="b1"), hands.clock(), lambda: next(names), split)


def report(hands: Hands, sequence: int = 1, *, events: bool = False, size: int = 10) -> ReportDoc:
    return ReportDoc(
        reporter="agent@n1",
        incarnation="i0",
        sequence=sequence,
        node=NodeDoc(name="n1"),
        sent_at=hands.wall,
        listings=[] if events else [listing(detail="x" * size)],
        events=[event("x" * size)] if events else [],
    )


def test_one_report_where_it_fits_and_events_apart(hands: Hands) -> None:
    made = reports(hands).build([listing()], [event()], [capture(10)])

    assert [(each.reporter, each.incarnation, each.sequence) for each in made] == [("agent@n1", "i0", 1), ("agent@n1", "i0", 2)]
    assert made[0].captures
    assert not made[0].events
    assert made[1].events
    assert (made[0].sent_at, made[0].sent_mono, made[0].boot_id) == (hands.wall, hands.mono, "b1")


def test_a_round_that_says_more_of_a_node_than_one_report_may_goes_in_several(hands: Hands) -> None:
    rows = [ObservationDoc(level="card", ids=[("serial", f"SN{n}")], readings={"power.draw": {"v": float(n)}}) for n in range(300)]
    large = listing("large")
    large.observations, large.complete = rows, True
    these = reports(hands, split=2**20)
    for _ in range(2):
        made = these.build([part(listing("small")), part(large)], [], [capture(10)])

        told = [[whole(each) for each in report.heard] for report in made]
        assert [[each.source for each in some] for some in told] == [["small", "large"], ["large"], ["large"]]
        assert [row for some in told for each in some if each.source == "large" for row in each.observations] == rows
        assert max(len(each.observations) for some in told for each in some) == 128
        assert not any(each.complete for some in told for each in some if each.source == "large")
        assert [len(each.captures) for each in made] == [1, 0, 0]
    large.observations = rows[:128]
    (fits,) = these.build([part(large)], [], [])
    assert fits.heard == [part(large)]
    (again,) = these.build([part(large)], [], [])
    assert again.heard == fits.heard


def test_large_ones_are_split_and_nothing_is_lost(hands: Hands) -> None:
    listings = [listing(f"s{n}", "x" * 500) for n in range(9)]
    made = reports(hands).build(listings, [], [capture(1500, "one"), capture(5000, "two")])

    assert len(made) > 3
    assert [each.source for part in made for each in part.listings] == [f"s{n}" for n in range(9)]
    assert sorted(each.digest for part in made for each in part.captures) == ["one", "two"]
    assert all(len(pack(each)) < 2500 or len(each.listings) + len(each.captures) == 1 for each in made)
    assert [each.sequence for each in made] == list(range(1, len(made) + 1))


def test_a_new_incarnation_counts_anew(hands: Hands) -> None:
    these = reports(hands)
    these.build([listing()], [], [])
    these.renew()

    assert [(each.incarnation, each.sequence) for each in these.build([listing()], [], [])] == [("i1", 1)]


def test_the_spool_survives_a_restart(tmp_path: Path, hands: Hands) -> None:
    spool = Spool(tmp_path)
    assert spool.add(report(hands, 1))
    assert spool.add(report(hands, 2))
    (tmp_path / "0000000000000009-l.report").write_bytes(b"")
    (tmp_path / "0000000000000010-l.part").write_bytes(b"half")

    again = Spool(tmp_path)
    assert again.add(report(hands, 3))
    found = []
    while (next_ := again.oldest(hands.wall)) is not None:
        found.append(next_[1].sequence)
        again.done(next_[0])
    assert found == [1, 2, 3]
    assert not list(tmp_path.glob("*.part"))
    assert len(Spool(tmp_path)) == 0


def test_half_a_report_is_set_aside_and_told(tmp_path: Path, hands: Hands, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool(tmp_path)
    spool.add(report(hands, 1))
    (path,) = tmp_path.glob("*.report")
    path.write_bytes(path.read_bytes()[:-5])
    with caplog.at_level(logging.WARNING):
        assert Spool(tmp_path).oldest(hands.wall) is None

    assert "set aside" in caplog.text
    assert not list(tmp_path.glob("*.report"))


def test_a_full_spool_drops_listings_before_events(tmp_path: Path, hands: Hands) -> None:
    room = len(pack(report(hands, 1, events=True, size=700))) * 4 + len(pack(report(hands, 1, size=700)))
    spool = Spool(tmp_path, Limits(size=room))
    for sequence in range(1, 8):
        spool.add(report(hands, sequence, events=sequence % 2 == 1, size=700))
    kept = []
    while (next_ := spool.oldest(hands.wall)) is not None:
        kept.append((next_[1].sequence, bool(next_[1].events)))
        spool.done(next_[0])

    assert kept == [(1, True), (3, True), (5, True), (6, False), (7, True)]


def test_old_listings_go_before_old_events(tmp_path: Path, hands: Hands) -> None:
    spool = Spool(tmp_path, Limits(listing_age=100, event_age=1000))
    spool.add(report(hands, 1))
    spool.add(report(hands, 2, events=True))
    found = spool.oldest(hands.wall + 500)

    assert found is not None
    assert found[1].sequence == 2
    assert spool.oldest(hands.wall + 5000) is None


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable):
        Spool(tmp_path / "file" / "spool")


def test_strange_files_in_the_spool_never_stop_it(tmp_path: Path, hands: Hands, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "0000000000000001-l.report").write_bytes(b"\x91" * 5000)
    (tmp_path / "0000000000000002-l.report").mkdir()
    os.mkfifo(tmp_path / "0000000000000003-l.report")
    (tmp_path / "0000000000000004-e.report").symlink_to(tmp_path / "gone")
    (tmp_path / "odd.part").mkdir()
    (tmp_path / "old.broken").mkdir()
    unreadable = tmp_path / "0000000000000005-l.report"
    unreadable.write_bytes(b"")
    unreadable.chmod(0)
    with caplog.at_level(logging.WARNING):
        spool = Spool(tmp_path)
        spool.add(report(hands, 7))
        found = spool.oldest(hands.wall)

    assert found is not None
    assert found[1].sequence == 7
    assert (tmp_path / "0000000000000001-l.broken").exists()
    for said in ("0001-l.report cannot be read and is set aside", "0002-l.report is no file", "0003-l.report is no file", "odd.part is no file"):
        assert said in caplog.text
    spool.done(found[0])
    assert len(spool) == 0


class Server:
    """Answers as it is told to."""

    def __init__(self, *answers: Posted) -> None:
        self.answers = list(answers)
        self.bodies: list[ReportDoc] = []

    def __call__(self, report: ReportDoc) -> Posted:
        self.bodies.append(unpack(pack(report)))
        return self.answers.pop(0) if self.answers else Posted(Fate.TAKEN, "applied")


def delivery(spool: Spool, server: Server, hands: Hands) -> tuple[Delivery, list[str]]:
    renewed: list[str] = []
    return Delivery(spool, server, hands.clock(), boot_id="b2", spread=lambda: 1.0, renew=lambda: renewed.append("renewed")), renewed


def test_delivered_in_order_with_the_clocks_of_sending(tmp_path: Path, hands: Hands) -> None:
    spool, server = Spool(tmp_path), Server()
    made = [report(hands, 1), report(hands, 2)]
    for each in made:
        spool.add(each)
    hands.pass_(500)
    to, _ = delivery(spool, server, hands)

    assert [to.step(), to.step(), to.step()] == [True, True, False]
    assert [each.sequence for each in server.bodies] == [1, 2]
    assert {(each.sent_at, each.sent_mono, each.boot_id) for each in server.bodies} == {(hands.wall, hands.mono, "b2")}
    assert digest(server.bodies[0]) == digest(made[0])
    assert (to.delivered, len(spool)) == (2, 0)


def test_waits_longer_after_each_failure(tmp_path: Path, hands: Hands, caplog: pytest.LogCaptureFixture) -> None:
    spool, server = Spool(tmp_path), Server(*[Posted(Fate.LATER, "away")] * 9)
    spool.add(report(hands))
    to, _ = delivery(spool, server, hands)
    waits = []
    with caplog.at_level(logging.WARNING):
        for _ in range(9):
            assert not to.step()
            waits.append(to.next_at - hands.mono)
            assert not to.step()
            hands.pass_(waits[-1])

    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_WAIT_S, LONGEST_WAIT_S, LONGEST_WAIT_S]
    assert caplog.text.count("away") == 1
    assert len(server.bodies) == 9
    assert to.step()
    assert to.trouble == ""


def test_the_server_may_ask_for_more_time(tmp_path: Path, hands: Hands) -> None:
    spool = Spool(tmp_path)
    spool.add(report(hands))
    to, _ = delivery(spool, Server(Posted(Fate.LATER, "busy", wait=300)), hands)
    to.step()

    assert to.next_at - hands.mono == 375


def test_a_refused_report_is_dropped_and_the_numbering_renewed(tmp_path: Path, hands: Hands, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool(tmp_path)
    spool.add(report(hands, 1))
    spool.add(report(hands, 2))
    to, renewed = delivery(spool, Server(Posted(Fate.REFUSED, "refused: used", renew=True)), hands)
    with caplog.at_level(logging.ERROR):
        assert to.step()
        assert to.step()

    assert "i0/1 was refused" in caplog.text
    assert renewed == ["renewed"]
    assert (to.refused, to.delivered, len(spool)) == (1, 1, 0)


@pytest.mark.parametrize("well", [True, False])
def test_a_report_that_breaks_a_server_which_is_well_is_set_aside(tmp_path: Path, hands: Hands, caplog: pytest.LogCaptureFixture, well: bool) -> None:
    spool, server = Spool(tmp_path), Server(*[Posted(Fate.LATER, "HTTP 500: oh", broke=True)] * TRIES)
    spool.add(report(hands, 1))
    spool.add(report(hands, 2))
    to = Delivery(spool, server, hands.clock(), boot_id="b2", spread=lambda: 1.0, renew=lambda: None, well=lambda: well)
    with caplog.at_level(logging.ERROR):
        for _ in range(TRIES - 1):
            assert not to.step()
            hands.pass_(LONGEST_WAIT_S)
        assert to.step() is well
    if not well:
        hands.pass_(LONGEST_WAIT_S)
    assert to.step()

    assert ("i0/1 is set aside" in caplog.text) is well
    assert server.bodies[-1].sequence == (2 if well else 1)
    assert len(list(tmp_path.glob("*.aside"))) == well
    assert len(Spool(tmp_path)) == (0 if well else 1)
    assert (to.refused, to.trouble) == (int(well), "")


def test_what_is_set_aside_is_bounded(tmp_path: Path, hands: Hands) -> None:
    spool = Spool(tmp_path)
    for sequence in range(ASIDES + 3):
        spool.add(report(hands, sequence))
        found = spool.oldest(hands.wall)
        assert found is not None
        spool.set_aside(found[0])

    assert len(list(tmp_path.glob("*.aside"))) == ASIDES


def test_addresses() -> None:
    assert address("host:7") == Address("http://host:7")
    assert address("https://host/base/") == Address("https://host/base")
    assert address("/run/m.sock") == Address("http://localhost", "/run/m.sock")
    with pytest.raises(InputError):
        address("ftp://host")
    with pytest.raises(InputError, match="user or a password") as refused:
        address("https://me:CANARY@host:7")
    assert "CANARY" not in f"{refused.value.message}{refused.value.hint}"


def test_the_server_of_this_machine_is_found(tmp_path: Path) -> None:
    def env(**told: object) -> Mapping[str, str]:
        (tmp_path / "server.json").write_text(json.dumps(told))
        return {"MUSTER_RUNTIME": str(tmp_path)}

    socket = tmp_path / "muster.sock"
    socket.touch()

    assert discover(env(url="http://127.0.0.1:7", socket=str(socket), pid=os.getpid()), tmp_path) == Address("http://127.0.0.1:7", str(socket))
    assert discover(env(url="http://127.0.0.1:7", socket="/gone", pid=os.getpid()), tmp_path) == Address("http://127.0.0.1:7")
    assert discover(env(url="http://127.0.0.1:7", socket="", pid=2**22 + 5), tmp_path) is None
    (tmp_path / "server.json").write_text("{half")
    assert discover({"XDG_RUNTIME_DIR": str(tmp_path)}, tmp_path) is None


def test_a_spool_of_a_newer_muster_is_left_alone(tmp_path: Path, hands: Hands) -> None:
    spool = Spool(tmp_path)
    spool.add(report(hands, 1))
    spool.add(msgspec.structs.replace(report(hands, 2, events=True), schema=SCHEMA + 1))
    before = sorted(each.name for each in tmp_path.iterdir())

    with pytest.raises(Conflict, match=rf"newer Muster \(schema {SCHEMA + 1}; this one writes {SCHEMA}\)") as told:
        Spool(tmp_path)
    assert "muster agent --once" in told.value.hint
    assert sorted(each.name for each in tmp_path.iterdir()) == before

    strange = tmp_path / "0000000000000009-l.report"
    (tmp_path / before[-1]).unlink()
    strange.write_bytes(msgspec.msgpack.encode({"heard": 7, "schema": SCHEMA + 7}))
    with pytest.raises(Conflict):
        Spool(tmp_path)
    strange.write_bytes(msgspec.msgpack.encode({"schema": "new"}))
    assert len(Spool(tmp_path)) == 2


def test_a_spool_that_is_no_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("")
    with pytest.raises(Unavailable, match="it is no folder"):
        Spool(tmp_path / "spool")
