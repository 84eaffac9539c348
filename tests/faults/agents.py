# SPDX-License-Identifier: Apache-2.0
"""Agents of a recorded machine, as processes, that have joined a site."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.faults.site import ROOT, Agent, Server
from tests.faults.voices import authority

from muster.wire.report import NodeDoc
from muster.wiring.adapters import TREE
from muster.wiring.authority import fingerprint
from muster.wiring.joining import join


def _machine() -> Path:
    """A recorded machine with eight cards that come from a snapshot and an exporter."""
    for file in sorted(TREE.glob("*/machines/*/machine.toml")):
        told = tomllib.loads(file.read_text(encoding="utf-8"))
        if file.parent.name.endswith("100-8") and len(told["captures"]) > 1 and told.get("node", {}).get("machine_id"):
            return file.parent
    raise AssertionError(f"no such machine in {TREE}")


MACHINE = _machine()
_NODE = tomllib.loads((MACHINE / "machine.toml").read_text(encoding="utf-8"))["node"]
NODE = NodeDoc(name=_NODE["name"], machine_id=_NODE["machine_id"], system=_NODE.get("system", ""))


def joined(server: Server, state: Path, node: NodeDoc = NODE) -> None:
    """The state folder of an agent that has joined."""
    join(state, f"https://127.0.0.1:{server.port}", fingerprint(authority(server)), server.join_token(uses=1), node)


def agent_of(folder: Path, **environment: str) -> Agent:
    """An agent of the recorded machine; its state is in its folder."""
    program = ("-m", "muster.interfaces.agent", "--machine", str(MACHINE), "--state", str(folder / "state"))
    return Agent(folder, environment, program)


__all__ = ["MACHINE", "NODE", "ROOT", "agent_of", "joined"]
