# SPDX-License-Identifier: Apache-2.0
"""Records for the tests of the store."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Any

from muster.domain.model.observation import Role
from muster.domain.model.roll import (
    CardRecord,
    Change,
    Claim,
    Finding,
    FindingKind,
    Happening,
    NodeRecord,
    Presence,
    Rung,
    Sample,
    SourceRecord,
    Voice,
    Word,
)
from muster.domain.model.source import Channel, Outcome, WitnessClass
from muster.spi.store import CaptureRow, EventRow
from muster.store import Store
from muster.store.files import FileConnections

SOURCE = "acme.smi"


def voice(at: float, capture: str = "", **values: Any) -> Voice:
    """What one source says; ``identity__product`` stands for identity.product."""
    words = {key.replace("__", "."): Word(value=value, at=at, capture=capture) for key, value in values.items()}
    return Voice(node="n1", source=SOURCE, channel=Channel.IN_BAND, witness=WitnessClass.DRIVER, promise=180.0, words=words)


def card(card_id: str, at: float = 100.0, capture: str = "", product: str = "Anvil 40", **more: Any) -> CardRecord:
    """A card that was seen at ``at``."""
    claim = Claim(node="n1", source=SOURCE, channel=Channel.IN_BAND, ids={"serial": (card_id,)}, first_at=100.0, at=at, promise=180.0)
    made = CardRecord(
        id=card_id,
        role=Role.ACCELERATOR,
        created_at=100.0,
        rung=Rung.UUID,
        presence=Presence.PRESENT,
        presence_at=100.0,
        node="n1",
        claims=(claim,),
        voices=(voice(at, capture, identity__product=product),),
    )
    return replace(made, **more)


def node(node_id: str = "n1", at: float = 100.0, **more: Any) -> NodeRecord:
    """A node."""
    return replace(NodeRecord(id=node_id, name=f"host-{node_id}", created_at=100.0, last_at=at), **more)


def source(node_name: str = "host-n1", name: str = SOURCE, **more: Any) -> SourceRecord:
    """A source of a node."""
    made = SourceRecord(
        node="n1",
        node_name=node_name,
        source=name,
        channel=Channel.IN_BAND,
        witness=WitnessClass.DRIVER,
        cadence=60.0,
        promise=180.0,
        reporter="agent@host-n1",
        first_at=1.0,
        last_at=2.0,
        listed_at=None,
        outcome=Outcome.DEVICES,
    )
    return replace(made, **more)


def sample(value: Any, at: float, *, subject: str = "c1", key: str = "power.draw", said: Word | None = None, **more: Any) -> Sample:
    """One reading of a gauge; a value that is no number has none for the roll-ups."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    word = said or Word(value=value, at=at)
    return replace(Sample(subject=subject, card=subject, node="n1", source=SOURCE, key=key, at=at, value=number, word=word), **more)


def change(change_id: str, at: float, subject: str = "c1", kind: Happening = Happening.INSTALLED) -> Change:
    """An entry of history, learnt ten seconds after it was true."""
    return Change(id=change_id, subject=subject, kind=kind, at=at, learnt_at=at + 10, detail={"slot": "3"})


def finding(finding_id: str, opened_at: float, **more: Any) -> Finding:
    """A finding about c1."""
    return replace(Finding(id=finding_id, kind=FindingKind.CARD_MISSING, subject="c1", about="It is gone.", opened_at=opened_at), **more)


def event(event_id: str, last_at: float, **more: Any) -> EventRow:
    """An event of n1."""
    made = EventRow(
        id=event_id,
        card="",
        node="n1",
        source="kernel.log",
        adapter="acme",
        kind="fault",
        code="79",
        text="fell off the bus",
        address="0000:01:00.0",
        first_at=last_at,
        last_at=last_at,
        repeats=1,
    )
    return replace(made, **more)


def capture(digest: str, taken_at: float, payload: bytes = b"listing", **more: Any) -> CaptureRow:
    """A capture of acme.smi."""
    made = CaptureRow(
        digest=digest,
        source=SOURCE,
        node="n1",
        format="acme-json",
        locator=("acme", "-q"),
        taken_at=taken_at,
        exit_status=0,
        stderr=b"note",
        cut=False,
        payload=payload,
    )
    return replace(made, **more)


def file_writer(store: Store) -> sqlite3.Connection:
    """The connection that writes a store in a file or in memory."""
    assert isinstance(store.connections, FileConnections)
    return store.connections.writer
