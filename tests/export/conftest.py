# SPDX-License-Identifier: Apache-2.0
"""A real server with a small roll, and the command line pointed at it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from muster.interfaces.api.app import build
from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from muster.wiring.server import Server
from muster.wiring.settings import load_settings


def observed(
    level: str, ids: list[tuple[str, str]], readings: Mapping[str, object], parent: list[tuple[str, str]] | None = None, ordinal: int = 0
) -> ObservationDoc:
    """One observation; a reading of None is absent."""
    told = {key: {"a": "not_supported", "d": "N/A"} if value is None else {"v": value} for key, value in readings.items()}
    return ObservationDoc(level=level, ids=ids, readings=told, parent=parent or [], ordinal=ordinal)


def report(now: float, sequence: int = 1, watts: float = 61.25) -> ReportDoc:
    """A node with a whole card, one that is sick and says little, and one with two devices."""
    whole = {"product.name": "Acme X1", "power.draw": watts, "utilization.core": 0, "temperature.core": 41, "memory.total": 2**36, "health.reported": "ok"}
    poor = {"product.name": 'Acme "X2"', "power.draw": None, "health.reported": "critical"}
    cards = [
        observed(
            "card", [("serial", "XQ47-1"), ("vendor_uuid", "GPU-5a1b0001-0000-4000-8000-000000000001"), ("index", "0")], whole | {"driver.version": "1.2"}
        ),
        observed("card", [("serial", "XQ47-2"), ("index", "1")], poor, ordinal=1),
        observed("card", [("serial", "XQ47-3"), ("index", "2")], {"product.name": "Acme Duo"}, ordinal=2),
        *(observed("device", [("serial", f"D{n}")], {"power.draw": 10 + n}, [("serial", "XQ47-3")], n) for n in (0, 1)),
    ]
    listing = ListingDoc(
        source="acme.status", channel="in_band", witness="driver", cadence=60, outcome="devices", complete=True, observed_at=now, observations=cards
    )
    node = NodeDoc(name="alpha", machine_id="5f3c2b1a09e84d7c8b6a5f4e3d2c1b0a")
    return ReportDoc(reporter="agent@alpha", incarnation="i1", sequence=sequence, node=node, sent_at=now, listings=[listing])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own that has heard of the node."""
    settings = load_settings(host="127.0.0.1", port=0, in_memory=True, runtime=tmp_path / "run", state=tmp_path / "state")
    with Server(settings, build) as running:
        assert running.desk.report(report(time.time())).answer == "applied"
        yield running


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting, file or server of this machine is looked at."""
    for name in ("MUSTER_SERVER", "MUSTER_OUTPUT", "MUSTER_TIMEOUT", "MUSTER_RUNTIME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
