# SPDX-License-Identifier: Apache-2.0
"""A server in memory with a small roll on it, and the command line pointed at it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from muster.interfaces.api.app import build
from muster.interfaces.cli.main import run
from muster.wire.report import CaptureDoc, EventDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from muster.wiring.server import Server
from muster.wiring.settings import load_settings

PAYLOAD = b"acmectl 1.4.2\ncard 0\n\x1b[31mred\x1b[0m\n"
DIGEST = hashlib.sha256(PAYLOAD).hexdigest()
NASTY = "=HYPERLINK(1)\x1b[2J\u202eB"


def report(now: float) -> ReportDoc:
    """Two cards of one node: the first with everything, the second with little and with text that is out to harm."""
    full = ObservationDoc(
        level="card",
        ids=[("serial", "XQ47-1"), ("vendor_uuid", "GPU-5a1b0001-0000-4000-8000-000000000001"), ("pci_address", "0000:21:00.0"), ("index", "0")],
        readings={
            "product.name": {"v": "Acme X1"},
            "memory.total": {"v": 68719476736},
            "memory.used": {"v": 0},
            "utilization.core": {"v": 0.45},
            "temperature.core": {"v": 41},
            "power.draw": {"v": 61.2},
            "fan.speed": {"a": "not_present"},
            "processes": {"v": [{"pid": 7, "name": "train\x1b", "memory.used": 1024, "kind": "compute"}]},
        },
    )
    bare = ObservationDoc(
        level="card",
        ids=[("serial", "XQ47-2"), ("pci_address", "0000:22:00.0"), ("index", "1")],
        ordinal=1,
        readings={"product.name": {"v": NASTY}, "temperature.core": {"a": "not_supported", "d": "N/A"}, "partition.mode": {"v": "mig"}},
    )
    part = ObservationDoc(
        level="partition",
        ids=[("gpu_instance_id", "3")],
        parent=[("serial", "XQ47-2")],
        readings={"partition.profile": {"v": "1g"}, "memory.total": {"v": 1024}},
    )
    listing = ListingDoc(
        source="acme.status",
        channel="in_band",
        witness="driver",
        cadence=60,
        outcome="devices",
        complete=True,
        observed_at=now,
        observations=[full, bare, part],
        capture=DIGEST,
    )
    event = EventDoc(
        id="e1",
        source="kernel_log.kmsg",
        adapter="kernel_log",
        text="link down\x07",
        ids=[("pci_address", "0000:21:00.0")],
        kind="aer",
        first_at=now,
        last_at=now,
    )
    capture = CaptureDoc(digest=DIGEST, source="acme.status", format="acme-status", locator=["acmectl", "status"], taken_at=now, payload=PAYLOAD, exit_status=0)
    node = NodeDoc(name="alpha", machine_id="5f3c2b1a09e84d7c8b6a5f4e3d2c1b0a")
    return ReportDoc(reporter="agent@alpha", incarnation="i1", sequence=1, node=node, sent_at=now, listings=[listing], events=[event], captures=[capture])


def other_words(now: float) -> ReportDoc:
    """A management controller that says another thing of the first card, and a tool that fails."""
    card = ObservationDoc(level="card", ids=[("serial", "XQ47-1"), ("chassis_slot", "PCIe 4")], readings={"memory.total": {"v": 34359738368}})
    bmc = ListingDoc(
        source="redfish", channel="out_of_band", witness="bmc", cadence=120, outcome="devices", complete=True, observed_at=now, observations=[card]
    )
    failed = ListingDoc(
        source="other.smi", channel="in_band", witness="driver", cadence=60, outcome="not_permitted", complete=False, observed_at=now, detail="needs root\x1b"
    )
    node = NodeDoc(name="alpha", machine_id="5f3c2b1a09e84d7c8b6a5f4e3d2c1b0a")
    return ReportDoc(reporter="bmc@alpha", incarnation="i1", sequence=1, node=node, sent_at=now, listings=[bmc, failed])


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


Muster = Callable[..., Said]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the module's own, with the two reports applied."""
    folder = tmp_path_factory.mktemp("server")
    settings = load_settings(host="127.0.0.1", port=0, in_memory=True, runtime=folder / "run", state=folder / "state")
    with Server(settings, build) as running:
        now = time.time()
        assert running.desk.report(report(now)).answer == "applied"
        assert running.desk.report(other_words(now)).answer == "applied"
        yield running


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting, file or server of this machine is looked at."""
    for name in ("MUSTER_SERVER", "MUSTER_OUTPUT", "MUSTER_TIMEOUT", "MUSTER_RUNTIME", "XDG_RUNTIME_DIR", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))


@pytest.fixture
def alone(capsys: pytest.CaptureFixture[str]) -> Muster:
    """The command line, with no server named."""

    def call(*words: str) -> Said:
        code = run(list(words))
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return call


@pytest.fixture
def muster(server: Server, monkeypatch: pytest.MonkeyPatch, alone: Muster) -> Muster:
    """The command line, pointed at the server."""
    monkeypatch.setenv("MUSTER_RUNTIME", str(server.settings.runtime))
    return alone
