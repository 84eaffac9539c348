# SPDX-License-Identifier: Apache-2.0
"""Reports as they arrive: whose number this is, how far the reporter's clock is off, and what the report is known by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from muster.services.windows import SIZE, Copy, Window
from muster.spi.store import Reporter
from muster.wire.report import HeardDoc, ReportDoc

_pack = msgspec.msgpack.Encoder(order="sorted")


@dataclass(slots=True)
class Known:
    """A reporter as the writer knows it."""

    window: Window = field(default_factory=Window)
    skew: float = 0.0
    agent_version: str = ""
    boot_id: str = ""
    node: str = ""
    state: bytes = b""


class Arrivals:
    """All reporters that ever spoke."""

    def __init__(self, told: Iterable[Reporter]) -> None:
        self._spools: dict[str, int] = {}
        self._known = {each.reporter: Known(Window(each.recent), each.skew, each.agent_version, each.boot_id, each.node, each.state) for each in told}

    @property
    def spooled(self) -> int:
        """Bytes of reports that wait at reporters, as they told last since the start."""
        return sum(self._spools.values())

    def __len__(self) -> int:
        return len(self._known)

    def reach(self, reporter: str, incarnation: str, sequence: int) -> None:
        """Brings a reporter's window up to the number that one of its sources' rows tells."""
        known = self._known.get(reporter)
        if known is not None:
            known.window.reach(incarnation, sequence)

    def judge(self, doc: ReportDoc, digest: bytes) -> Copy:
        """What this report is."""
        known = self._known.get(doc.reporter)
        return Copy.NEW if known is None else known.window.judge(doc.incarnation, doc.sequence, digest)

    def take(self, doc: ReportDoc, digest: bytes, skew: float, now: float, *, alone: bool) -> Reporter | None:
        """Takes the report in. Returns the reporter's row when it must be kept; None when its sources' rows (``alone``) say all there is to know."""
        known = self._known.setdefault(doc.reporter, Known())
        new = (doc.agent_version, doc.boot_id, doc.node.name) != (known.agent_version, known.boot_id, known.node) or abs(skew - known.skew) > 1.0
        keep = new or not alone or doc.agent is not None or not known.window.follows(doc.incarnation, doc.sequence)
        known.window.add(doc.incarnation, doc.sequence, digest)
        if not keep:
            return None
        known.skew, known.agent_version, known.boot_id, known.node = skew, doc.agent_version, doc.boot_id, doc.node.name
        if doc.agent is not None:
            known.state = msgspec.msgpack.encode(doc.agent)
            self._spools[doc.reporter] = doc.agent.spool_bytes
        return Reporter(
            reporter=doc.reporter,
            incarnation=known.window.incarnation,
            high=known.window.high,
            recent=known.window.packed(),
            received_at=now,
            skew=skew,
            agent_version=doc.agent_version,
            boot_id=doc.boot_id,
            node=doc.node.name,
            state=known.state,
        )


def told(doc: ReportDoc, rounds: Sequence[HeardDoc], facts: Sequence[bytes]) -> bytes:
    """What the report says, whenever it is sent: eight bytes that a second copy is held against."""
    said = hashlib.blake2b(digest_size=SIZE)
    for each, digest in zip(rounds, facts, strict=True):
        said.update(digest)
        said.update(each.numbers)
        said.update(repr(each.observed_at).encode())
    said.update(_pack.encode((doc.node, doc.events)))
    return said.digest()
