# SPDX-License-Identifier: Apache-2.0
"""A small invented fleet, told to a real writer on a store in memory, with a clock that the tests turn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient

from muster.domain.model.policy import Policy
from muster.interfaces.api.app import HOSTS, build
from muster.services.inventory import Inventory
from muster.store import open_store
from muster.wire.report import CaptureDoc, EventDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from muster.wiring.adapters import adapters
from muster.wiring.desk import Desk

T0 = 1_790_000_000.0
RAW = b"<b>raw</b>\n"
DIGEST = hashlib.sha256(RAW).hexdigest()
"""Monday 2026-09-21 14:13:20 UTC."""
GIB = 2**30


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now: float = T0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def card(
    ordinal: int, readings: dict[str, Any], role: str = "", level: str = "card", parent: list[tuple[str, str]] | None = None, **ids: str
) -> ObservationDoc:
    """One observation; a reading given as ("a", reason, detail) is absent."""
    told = {key: {"a": value[1], "d": value[2]} if isinstance(value, tuple) else {"v": value} for key, value in readings.items()}
    return ObservationDoc(level=level, ids=list(ids.items()), parent=parent or [], ordinal=ordinal, role=role, readings=told)


def listing(*observations: ObservationDoc, source: str = "acme.smi", at: float = T0, **more: Any) -> ListingDoc:
    """A complete listing of a driver's tool."""
    told = {"channel": "in_band", "witness": "driver", "cadence": 30.0, "outcome": "devices", "complete": True, **more}
    return ListingDoc(source=source, observed_at=at, observations=list(observations), **told)


def report(node: str, *listings: ListingDoc, sequence: int = 1, at: float = T0, **more: Any) -> ReportDoc:
    """A report of the node's agent."""
    told = NodeDoc(name=node, machine_id=f"mid-{node}", system=f"sys-{node}")
    return ReportDoc(reporter=f"agent-{node}", incarnation="i1", sequence=sequence, node=told, sent_at=at, listings=list(listings), **more)


def one() -> ReportDoc:
    """node-a: a whole card, one that lacks much, one with two devices, and a display."""
    whole = card(
        0,
        {
            "product.name": "Acme X1",
            "pci.vendor_id": "f1f1",
            "memory.total": 80 * GIB,
            "memory.used": 8 * GIB,
            "temperature.core": 51,
            "power.draw": 300.5,
            "throttle.reasons": ["power_cap", "idle"],
            "ecc.enabled": True,
        },
        serial="SN-1001",
        vendor_uuid="GPU-aaaa1111-0000-4000-8000-000000000001",
        pci_address="0000:1b:00.0",
        index="0",
    )
    poor = card(
        1,
        {"product.name": "Acme X1", "memory.total": 0, "temperature.core": ("a", "not_supported", "N/A"), "memory.used": ("a", "error", "Unknown Error")},
        serial="SN-1002",
        pci_address="0000:1c:00.0",
        index="1",
    )
    double = card(2, {"product.name": "Acme Duo"}, serial="SN-2001", pci_address="0000:2b:00.0")
    devices = [
        card(
            n,
            {"temperature.core": 40 + n, "memory.total": 32 * GIB, "memory.used": 4 + n},
            level="device",
            parent=[("serial", "SN-2001")],
            vendor_uuid=f"dead-{n}-beef-{n:012}",
        )
        for n in (0, 1)
    ]
    partition = card(
        0, {"partition.profile": "1g.10gb"}, level="partition", parent=[("serial", "SN-1001")], vendor_uuid="MIG-77770000-0000-4000-8000-000000000001"
    )
    display = card(3, {"product.name": "Onboard VGA"}, role="display", pci_address="0000:03:00.0")
    xid = EventDoc(id="e1", source="kernel", adapter="kernel_log", text="Xid 79 <script>", kind="xid", code="79", first_at=T0 - 60, last_at=T0 - 30)
    raw = CaptureDoc(digest=DIGEST, source="acme.smi", format="acme-text", locator=["acme-smi", "-q"], taken_at=T0, payload=RAW, exit_status=0)
    xid.ids = [("pci_address", "0000:1b:00.0")]
    told = listing(whole, poor, double, *devices, partition, display, capture=DIGEST)
    return report("node-a", told, events=[xid], captures=[raw])


def small(node: str, temperature: float, address: str = "0000:03:00.0") -> ReportDoc:
    """A node with one card that only local names know."""
    return report(node, listing(card(0, {"product.name": "Beta F", "temperature.core": temperature, "power.draw": 30}, pci_address=address, index="card0")))


@contextmanager
def fleet(clock: Clock | None = None) -> Iterator[Desk]:
    """The desk of a server that has heard of node-a, node-b and node-c."""
    store = open_store(None)
    now = clock or Clock()
    policy = Policy()
    desk = Desk(
        reader=store.reader,
        keeper=Inventory(store.writer, policy, now()),
        policy=policy,
        clock=now,
        adapters=tuple(adapters()),
        version="1.2.3",
        numbers=store.numbers,
        answers=store.answers,
    )
    for told in (one(), small("node-b", 55), small("node-c", 72)):
        desk.report(told)
    try:
        yield desk
    finally:
        store.close()


def client(desk: Desk) -> TestClient:
    """A client of the API on the desk."""
    return TestClient(app(desk), base_url="http://127.0.0.1", raise_server_exceptions=False)


def app(desk: Desk, *hosts: str) -> FastAPI:
    """The API on the desk; ``hosts`` are names it answers to beside its own."""
    return build(desk, HOSTS | set(hosts))


def get(api: TestClient, path: str, status: int = 200, **params: Any) -> Any:
    """The document at ``path``."""
    answer: httpx2.Response = api.get(path, params=params)

    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == ("application/json" if status < 400 else "application/problem+json")
    return answer.json()
