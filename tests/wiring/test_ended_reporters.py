# SPDX-License-Identifier: Apache-2.0
"""The roll of a server at which reporters join knows who of them has ended."""

from __future__ import annotations

from pathlib import Path

from muster.domain.model.access import Reach, Scope
from muster.interfaces.api.app import build
from muster.interfaces.ingest.opened import reporters
from muster.services.inventory import Inventory
from muster.wire.report import NodeDoc
from muster.wiring.joining import join
from muster.wiring.server import Server
from muster.wiring.settings import load_settings


def test_the_roll_is_told_who_was_revoked(tmp_path: Path) -> None:
    with Server(load_settings(port=0, ingest_port=0, state=tmp_path / "state", runtime=tmp_path / "run"), build, reporters) as server:
        site = server.writing
        assert site.enrolment is not None
        now = site.clock()
        _, token = site.enrolment.mint(Scope(reach=Reach.NODE), 1, 3600.0, "ana", now)
        where = site.enrolment.where()
        join(tmp_path / "agent", where.address, where.fingerprint, token, NodeDoc(name="n1", machine_id="m1"))
        roll = site._inventory(site.writer, site.policy, now)
        assert isinstance(roll, Inventory)
        assert roll._ended(now) == {}
        site.enrolment.revoke("n1", "ana", "", now)
        assert "was revoked by ana" in roll._ended(now)["agent@n1"]
