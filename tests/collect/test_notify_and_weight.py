# SPDX-License-Identifier: Apache-2.0
"""What the agent says to the service manager, what it weighs, and what it notes for whoever asks on the node."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.collect.test_delivery import Server, report
from tests.collect.world import Hands

from muster.collect.delivery import Delivery
from muster.collect.noted import EVERY_S, FILE, Noted
from muster.collect.notify import Notify
from muster.collect.post import Fate, Posted
from muster.collect.spool import Spool
from muster.collect.weigh import Scales, children, memory, processor


@pytest.mark.parametrize("abstract", [False, True])
def test_the_manager_hears_that_we_are_up_and_go_on(tmp_path: Path, abstract: bool) -> None:
    name = f"@muster-{os.getpid()}" if abstract else str(tmp_path / "notify")
    hands = Hands()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name[1:]}" if abstract else name)
        manager.setblocking(False)
        notify = Notify({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "10000000"}, hands.clock().mono)
        notify.ready()
        for _ in range(11):
            notify.alive()
            hands.pass_(1)
        notify.stopping()
        said: list[str] = []
        while len(said) < 5:
            said.append(manager.recv(100).decode())

    assert said == ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"]


def test_without_a_manager_nothing_is_said(tmp_path: Path) -> None:
    for environ in ({}, {"NOTIFY_SOCKET": str(tmp_path / "gone"), "WATCHDOG_USEC": "nonsense"}):
        notify = Notify(environ, Hands().clock().mono)
        notify.ready()
        notify.alive()
        notify.stopping()


def test_the_weight_of_a_process_and_its_child() -> None:
    script = "import sys; block = b'x' * 30_000_000; sum(range(2_000_000)); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        mine = os.getpid()
        assert child.pid in set(children(mine))
        assert memory(child.pid) > 30_000_000
        assert memory(mine) >= memory(child.pid)
        assert processor(child.pid) > 0.01
    assert child.pid not in set(children(mine))
    assert memory(child.pid) == processor(child.pid) == 0


def test_memory_is_counted_seldom_by_an_old_process() -> None:
    hands, counted = Hands(), []

    def count(pid: int) -> int:
        counted.append(hands.mono)
        return pid + len(counted)

    scales = Scales(7, hands.clock().mono, count)
    told = []
    for _ in range(31):
        told.append(scales.memory())
        hands.pass_(60)

    assert [round((at - 100) / 60) for at in counted] == [0, 1, 2, 4, 8, 13, 18, 23, 28]
    assert (told[0], told[-1]) == (8, 16)
    assert Scales(os.getpid(), hands.clock().mono).memory() > 1_000_000


def test_a_note_of_another_time_alone_is_put_over_the_one_before(tmp_path: Path) -> None:
    hands = Hands()
    spool, file = Spool(tmp_path / "spool"), tmp_path / FILE
    to = Delivery(spool, Server(), hands.clock(), boot_id="", spread=lambda: 0, renew=lambda: None)
    noted = Noted(file, hands.clock())
    places = []
    for number in range(3):
        spool.add(report(hands, number))
        to.step()
        noted.note(to, spool)
        places.append(file.stat().st_ino)
        assert json.loads(file.read_text())["delivered_at"] == hands.wall
        hands.pass_(EVERY_S + 1)
    assert len(set(places)) == 1

    file.unlink()
    spool.add(report(hands, 4))
    to.step()
    noted.note(to, spool)
    assert json.loads(file.read_text())["delivered_at"] == hands.wall


def test_how_delivery_stands_is_noted(tmp_path: Path) -> None:
    hands = Hands()
    spool = Spool(tmp_path / "spool")
    spool.add(report(hands))
    server = Server(Posted(Fate.LATER, "away"))
    to = Delivery(spool, server, hands.clock(), boot_id="", spread=lambda: 0, renew=lambda: None)
    noted = Noted(tmp_path / FILE, hands.clock())
    to.step()
    noted.note(to, spool)
    first = json.loads((tmp_path / FILE).read_text())
    hands.pass_(EVERY_S / 2)
    to.step()
    noted.note(to, spool)
    assert json.loads((tmp_path / FILE).read_text()) == first
    hands.pass_(EVERY_S)
    noted.note(to, spool)

    assert first.pop("trouble_at") == hands.wall - 1.5 * EVERY_S, "since when it is so"
    assert first == {"delivered_at": 0.0, "trouble": "away", "spool_reports": 1, "spool_bytes": spool.size or first["spool_bytes"], "refused": 0, "dropped": 0}
    well = {"delivered_at": hands.wall - EVERY_S, "trouble": "", "trouble_at": 0.0, "spool_reports": 0, "spool_bytes": 0}
    assert json.loads((tmp_path / FILE).read_text()) == {**first, **well}
