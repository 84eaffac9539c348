# SPDX-License-Identifier: Apache-2.0
"""Cards, slices and events out of the vendor's logs."""

from __future__ import annotations

from collections import Counter

from muster.adapters.huawei.names import die, digits
from muster.adapters.huawei.parse_logs import FaultLog
from muster.domain.model.attributes import Level
from muster.domain.model.gather import Gather
from muster.domain.model.names import names
from muster.domain.model.observation import Event, Subject
from muster.domain.model.reading import Known
from muster.domain.model.units import from_mib, from_percent
from muster.formats.numbers import number


def faults(log: FaultLog) -> tuple[Gather, tuple[Event, ...]]:
    """Cards that the BMC's fault list names, with the codes that stand at its end, and one event per part and code."""
    found = Gather()
    last = {f.ident for f in log.rounds[-1] if f.part == "NPU"} if log.rounds else set()
    for ident in log.npus:
        card = found.card(ident).named(index=ident)
        card.tell("numbered by", "BMC")
        if ident in last:
            card.put("fault.codes", Known(log.standing(ident)))
    seen = Counter((f.part, f.ident, f.code) for each in log.rounds for f in each)
    return found, tuple(_event(part, ident, code, count) for (part, ident, code), count in seen.items())


def _event(part: str, ident: str, code: str, count: int) -> Event:
    level = Level.CARD if part == "NPU" else Level.NODE
    subject = Subject(level=level, names=names(index=ident) if level is Level.CARD else frozenset())
    return Event(subject=subject, code=code, text=f"{part} {ident}: {code}", repeats=count, kind="bmc")


def soft_share(found: dict[str, str]) -> Gather:
    """The card that a container's slice lies on: the quota is the slice's, the die id is the whole chip's."""
    cards = Gather()
    physical = found.get("physical-npu-id", "")
    if not digits(physical):
        return cards
    card = cards.card(physical).named(index=physical, vendor_uuid=die(found.get("shm-id")))
    slot = found.get("virtual-npu-id", "0")
    part = card.partition(slot).named(index=slot)
    memory, share = number(found.get("memory-quota", "")), number(found.get("aicore-quota", ""))
    if memory is not None and memory > 0:
        part.value("memory.total", from_mib(memory)).value("partition.memory.limit", from_mib(memory))
    if share is not None and share > 0:
        part.value("partition.compute.share", from_percent(share))
    for key in ("scheduling-policy", "memory-quota", "aicore-quota"):
        if key in found:
            part.tell(key, found[key])
    return cards
