# SPDX-License-Identifier: Apache-2.0
"""A node whose root is hostile: whatever it reports, it is one node, and no other's record changes. At a real server, whose users' door is inside or apart."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.faults.site import Server, server
from tests.faults.voices import Said, Voice, authority

from muster.wire.lanes import part
from muster.wire.report import NodeDoc, pack

HOST = NodeDoc(name="muster-host", machine_id="cd" * 16, system="CHASSIS-HOST")


def joined(site: Server, name: str, serial: str) -> Voice:
    voice = Voice(name, authority(site), site.port, serial=serial)
    site.after.append(voice.close)
    voice.join(site.join_token())
    return voice


def report(voice: Voice, number: int, node: NodeDoc, serial: str = "") -> bytes:
    """A complete listing of the node with one card, or without."""
    listing = voice.listing(number, time.time())
    listing.observations = [msgspec.structs.replace(listing.observations[0], ids=[("serial", serial), ("pci_address", "0000:3b:00.0")])] if serial else []
    return pack(msgspec.structs.replace(voice.report(number), node=node, heard=[part(listing)], events=[]))


def says(voice: Voice, number: int, node: NodeDoc, serial: str = "") -> Said:
    return voice.post(report(voice, number, node, serial))


def roll(site: Server) -> list[Any]:
    """Nodes and cards, as far as a rogue would change them."""
    nodes = [(each["name"], each["system"], each["former_names"]) for each in site.all("nodes")]
    return [sorted(nodes), sorted((each["id"], each["node"], each["presence"], sorted(each["ids"].get("serial", ()))) for each in site.all("cards"))]


@pytest.mark.parametrize("door", ["inside", "apart"])
def test_a_rogue_is_one_node_and_nobody_else(tmp_path: Path, door: str) -> None:
    with server(tmp_path, door=door) as site:
        victim, rogue = joined(site, "victim", "SN-V"), joined(site, "rogue", "SN-R")
        local = Voice("muster-host", authority(site), site.port, serial="SN-H")
        site.after.append(local.close)
        local.reporter, local.node = "agent@muster-host", HOST
        assert site.post(report(local, 1, HOST, "SN-H"))[0] == 200
        assert [says(victim, 1, victim.node, "SN-V").status, says(rogue, 1, rogue.node, "SN-R").status] == [200, 200]
        before = roll(site)

        own = rogue.node
        for number, node in enumerate(
            [
                *(NodeDoc(name=own.name, machine_id=own.machine_id, system=f"FAKE-{each}") for each in range(4)),
                NodeDoc(name=own.name, machine_id=own.machine_id, system=HOST.system),
                NodeDoc(name=HOST.name, machine_id=own.machine_id),
                NodeDoc(name=own.name, machine_id=HOST.machine_id),
                NodeDoc(name=own.name),
                victim.node,
            ],
            10,
        ):
            assert says(rogue, number, node, "SN-V").status == 403, node
            assert says(rogue, number, node).status == 403, node
        for who in (victim, rogue):
            forged = report(who, 90, who.node)
            assert site.post(forged)[0] == 403, "a program of this machine has no token of it"
        assert roll(site) == before
        assert site.post(report(local, 2, HOST, "SN-H"))[0] == 200
