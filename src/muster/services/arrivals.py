# SPDX-License-Identifier: Apache-2.0
"""Reports as they arrive: whose number this is, how far the reporter's clock is off, what the report is known by, and why one is not taken."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from muster.services.lives import SIZE, Made
from muster.services.windows import Copy, Window
from muster.spi.store import Reporter, Slot
from muster.wire.report import HeardDoc, ReportDoc

_pack = msgspec.msgpack.Encoder(order="sorted")
_WHY = {
    Copy.OTHER: "came again with other words; a copied state file? Restart the agent there",
    Copy.UNTOLD: "is among those that came before, and what it said is not remembered; a spool that was put back, or a copied state file?",
    Copy.FORGOTTEN: "is of the time of runs that are not remembered, and may have been taken before; a spool that was put back, or a clock that was set back?",
}


@dataclass(slots=True)
class Known:
    """A reporter as the writer knows it."""

    window: Window = field(default_factory=Window)
    skew: float = 0.0
    agent_version: str = ""
    boot_id: str = ""
    node: str = ""
    state: bytes = b""
    reached: dict[tuple[str, int], dict[tuple[str, str], tuple[bytes, bytes]]] = field(default_factory=lambda: defaultdict(dict))
    """Of numbers that only the rows of sources tell: what each source (with its node) said under it, facts and numbers. Until the reporter speaks again."""


class Arrivals:
    """All reporters that ever spoke."""

    def __init__(self, told: Iterable[Reporter]) -> None:
        self._spools: dict[str, int] = {}
        self._judged: tuple[Sequence[HeardDoc], Made | None] = ((), None)
        """Rounds of the report that was judged last, and when it was made."""
        self._known = {each.reporter: Known(Window(each.recent), each.skew, each.agent_version, each.boot_id, each.node, each.state) for each in told}

    @property
    def spooled(self) -> int:
        """Bytes of reports that wait at reporters, as they told last since the start."""
        return sum(self._spools.values())

    def __len__(self) -> int:
        return len(self._known)

    def reach(self, slot: Slot) -> None:
        """Brings a reporter's window up to the number that the row of one of its sources tells."""
        known = self._known.get(slot.reporter)
        if known is None or slot.sequence < 0:
            return
        at = slot.at if slot.again_at is None else max(slot.at, slot.again_at)
        known.window.reach(slot.incarnation, slot.sequence, at - known.skew)
        known.reached[slot.incarnation, slot.sequence][slot.source, slot.node_names[0]] = (slot.facts, slot.numbers)

    def judge(self, doc: ReportDoc, digest: bytes, rounds: Sequence[HeardDoc], facts: Sequence[bytes]) -> Copy:
        """What this report is."""
        known = self._known.get(doc.reporter)
        if known is None:
            return Copy.NEW
        self._judged = rounds, made(rounds)
        copy = known.window.judge(doc.incarnation, doc.sequence, digest, self._judged[1])
        if copy is Copy.UNTOLD and (said := known.reached.get((doc.incarnation, doc.sequence))):
            told = {(each.source, doc.node.name): (digest, each.numbers) for each, digest in zip(rounds, facts, strict=True)}
            return Copy.SAME if said.items() <= told.items() and not doc.events else Copy.OTHER
        return copy

    def take(self, doc: ReportDoc, digest: bytes, rounds: Sequence[HeardDoc], skew: float, now: float, *, alone: bool) -> Reporter | None:
        """Takes the report in. Returns the reporter's row when it must be kept; None when its sources' rows (``alone``) say all there is to know."""
        known = self._known.get(doc.reporter)
        if known is None:
            known = self._known[doc.reporter] = Known()
        new = (doc.agent_version, doc.boot_id, doc.node.name) != (known.agent_version, known.boot_id, known.node) or abs(skew - known.skew) > 1.0
        keep = new or not alone or doc.agent is not None or bool(doc.events) or not known.window.follows(doc.incarnation, doc.sequence)
        known.window.add(doc.incarnation, doc.sequence, digest, self._judged[1] if self._judged[0] is rounds and not skew else made(rounds, right=not skew))
        known.reached.clear()
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


def made(rounds: Sequence[HeardDoc], *, right: bool = True) -> Made | None:
    """When a report was made, by its rounds; None for one without: it does nothing when it comes again that it did not do before."""
    if not rounds:
        return None
    wall, mono, boot = rounds[0].observed_at, rounds[0].observed_mono, rounds[0].boot_id
    for each in rounds[1:]:
        wall, mono, boot = max(wall, each.observed_at), max(mono, each.observed_mono), boot if each.boot_id == boot else ""
    if not boot or not math.isfinite(mono):
        return Made(wall, right=right)
    return Made(wall, hashlib.blake2b(boot.encode("utf-8", "backslashreplace"), digest_size=SIZE).digest(), mono, right)


def refusal(copy: Copy, doc: ReportDoc) -> str:
    """Why a report is not taken, and what to do."""
    return f"{doc.reporter}: number {doc.sequence} of {doc.incarnation} {_WHY[copy]}"
