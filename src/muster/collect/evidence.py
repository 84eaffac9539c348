# SPDX-License-Identifier: Apache-2.0
"""The bytes that facts and events rest on: kept in a ring, and sent when the facts of a listing changed, something happened, or the server asks."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.collect.clock import Clock
from muster.collect.ring import Ring
from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.source import Capture
from muster.wire.mapping import clean
from muster.wire.report import CaptureDoc, ListingDoc

_log = logging.getLogger("muster.evidence")

PER_CAPTURE = 768 * 1024
"""Bytes of one capture that are kept as evidence; a longer one is cut and says so. It fits into one report."""

HOUR = 3600.0
PER_HOUR = 32 * 1024 * 1024
"""Bytes of evidence sent in an hour; facts that change all the time do not fill the server."""

OWED = 4096
"""Captures that the server asked for and that wait for the next hour, at most."""

STILL = Clock(lambda: 0.0, lambda: 0.0)
"""The clock of who looks once."""


def facts(doc: ListingDoc) -> str:
    """A digest of what should stay the same in a listing: outcome, subjects, facts and their absences. Gauges and counters have no part in it."""
    rows = [(each.level, each.ids, each.parent, each.ordinal, _facts(each.readings)) for each in doc.observations]
    text = json.dumps([doc.outcome, doc.complete, doc.unknown_shape, rows], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _facts(readings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in readings.items() if (entry := ATTRIBUTES.get(key)) is not None and entry.kind is Kind.FACT}


def to_capture_doc(capture: Capture, at: float) -> CaptureDoc:
    """A capture as it goes into a report, at most `PER_CAPTURE` bytes of it; ``at`` stands in where it has no time of its own."""
    payload = capture.payload[:PER_CAPTURE]
    return CaptureDoc(
        digest=hashlib.sha256(payload).hexdigest(),
        source=str(capture.source),
        format=capture.format,
        locator=[clean(part) for part in capture.locator],
        taken_at=capture.taken_at.timestamp() if capture.taken_at else at,
        payload=payload,
        exit_status=capture.exit_status,
        stderr=capture.stderr[: PER_CAPTURE // 8],
        cut=capture.cut or len(capture.payload) > PER_CAPTURE,
    )


@dataclass(frozen=True, slots=True)
class _Rest:
    """What the facts of a source were, the packed lane first, and the capture they rest on."""

    lane: bytes
    digest: str
    capture: str


class Evidence:
    """Remembers on which captures the facts of each source rest, and says which of them the server lacks."""

    def __init__(self, ring: Ring | None = None, per_hour: int = PER_HOUR, clock: Clock = STILL) -> None:
        self.ring = Ring() if ring is None else ring
        self._per_hour = per_hour
        self._clock = clock
        self._rests: dict[str, _Rest] = {}
        self._owed: dict[str, None] = {}
        self._window = float("-inf")
        self._spent = 0

    def attach(self, doc: ListingDoc, captures: Callable[[], Sequence[Capture]], now: float, *, lane: bytes = b"", happened: bool = False) -> list[CaptureDoc]:
        """Names in ``doc`` the capture its facts rest on, and gives the captures to send: none while facts stay and nothing ``happened``.

        ``captures`` gives them without names and secrets. ``lane`` are the facts as they are packed: equal ones need no second look. ``now`` is monotonic.
        """
        if happened:
            return self._named(doc, self._kept(captures(), doc.observed_at), now)
        if not doc.observations:
            return []
        known = self._rests.get(doc.source)
        if known is not None and lane and known.lane == lane:
            doc.capture = known.capture
            return []
        digest = facts(doc)
        if known is not None and known.digest == digest:
            doc.capture = known.capture
            self._rests[doc.source] = _Rest(lane, digest, known.capture)
            return []
        sent = self._named(doc, self._kept(captures(), doc.observed_at), now)
        self._rests[doc.source] = _Rest(lane, digest, doc.capture)
        return sent

    def wanted(self, digests: Iterable[str], now: float) -> list[CaptureDoc]:
        """Captures that the server asks for, as far as they are still here. What this hour does not allow is owed, and comes when it is asked in the next."""
        found = []
        asked, self._owed = {**self._owed, **dict.fromkeys(digests)}, {}
        for digest in asked:
            doc = self.ring.get(digest)
            if doc is None or len(doc.payload) > self._per_hour:
                continue
            if self._afford(len(doc.payload), now):
                found.append(doc)
            elif len(self._owed) < OWED:
                self._owed[digest] = None
        return found

    def owes(self, now: float) -> bool:
        """True when what the server asked for in vain can be sent: a new hour has begun."""
        return bool(self._owed) and now - self._window >= HOUR

    def forget(self) -> None:
        """Sends all evidence anew: a new incarnation begins."""
        self._rests.clear()

    def _kept(self, captures: Iterable[Capture], at: float) -> list[CaptureDoc]:
        docs = [to_capture_doc(each, at) for each in captures if each.payload]
        for each in docs:
            self.ring.keep(each, self._clock.wall())
        return docs

    def _named(self, doc: ListingDoc, docs: list[CaptureDoc], now: float) -> list[CaptureDoc]:
        """What is to be sent of them. The listing names the first where it is sent or can be asked for: nobody asks for what is not to be had."""
        sent = self._paid(docs, doc.source, now)
        doc.capture = docs[0].digest if docs and (sent or docs[0].digest in self.ring) else ""
        return sent

    def _paid(self, docs: list[CaptureDoc], source: str, now: float) -> list[CaptureDoc]:
        if self._afford(sum(len(each.payload) for each in docs), now):
            return docs
        _log.warning("%s: facts changed, and the evidence of this hour is used up; it is kept here and not sent", source)
        return []

    def _afford(self, size: int, now: float) -> bool:
        if now - self._window >= HOUR:
            self._window, self._spent = now, 0
        if self._spent + size > self._per_hour:
            return False
        self._spent += size
        return True
