# SPDX-License-Identifier: Apache-2.0
"""The bytes that facts rest on: kept by the digest of their content within a budget, and sent when the facts of a listing changed."""

from __future__ import annotations

import hashlib
import json
import logging
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.source import Capture
from muster.wire.mapping import clean
from muster.wire.report import CaptureDoc, ListingDoc

_log = logging.getLogger("muster.evidence")

RING = 8 * 1024 * 1024
"""Bytes of the ring, packed."""

PER_CAPTURE = 1024 * 1024
"""Bytes of one capture that are kept as evidence; a longer one is cut and says so."""

PER_HOUR = 32 * 1024 * 1024
"""Bytes of evidence sent in an hour; facts that change all the time do not fill the server."""


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
        stderr=capture.stderr[:PER_CAPTURE],
        cut=capture.cut or len(capture.payload) > PER_CAPTURE,
    )


class Ring:
    """Captures by digest, packed; the oldest go when the budget is full."""

    def __init__(self, budget: int = RING) -> None:
        self._budget = budget
        self._kept: OrderedDict[str, tuple[CaptureDoc, bytes]] = OrderedDict()
        self.size = 0
        """Bytes kept, packed."""

    def keep(self, doc: CaptureDoc) -> None:
        """Keeps a capture."""
        self._drop(doc.digest)
        packed = zlib.compress(doc.payload, 1)
        self._kept[doc.digest] = (msgspec.structs.replace(doc, payload=b""), packed)
        self.size += len(packed)
        while self.size > self._budget:
            self._drop(next(iter(self._kept)))

    def get(self, digest: str) -> CaptureDoc | None:
        """The capture with this digest, while it is kept."""
        found = self._kept.get(digest)
        return msgspec.structs.replace(found[0], payload=zlib.decompress(found[1])) if found else None

    def _drop(self, digest: str) -> None:
        found = self._kept.pop(digest, None)
        self.size -= len(found[1]) if found else 0


class Evidence:
    """Remembers on which captures the facts of each source rest, and says which of them the server lacks."""

    def __init__(self, ring: Ring | None = None, per_hour: int = PER_HOUR) -> None:
        self.ring = ring or Ring()
        self._per_hour = per_hour
        self._rests: dict[str, tuple[str, str]] = {}
        self._window = float("-inf")
        self._spent = 0

    def attach(self, doc: ListingDoc, captures: Sequence[Capture], now: float) -> list[CaptureDoc]:
        """Names in ``doc`` the capture its facts rest on, and gives the captures to send: none while facts stay.

        ``now`` is monotonic seconds.
        """
        if not doc.observations:
            return []
        digest = facts(doc)
        known, capture = self._rests.get(doc.source, ("", ""))
        if known == digest:
            doc.capture = capture
            return []
        docs = [to_capture_doc(each, doc.observed_at) for each in captures if each.payload]
        if not self._afford(sum(len(each.payload) for each in docs), now):
            _log.warning("%s: facts changed, and the evidence of this hour is used up; it is not sent", doc.source)
            docs = []
        for each in docs:
            self.ring.keep(each)
        doc.capture = docs[0].digest if docs else ""
        self._rests[doc.source] = (digest, doc.capture)
        return docs

    def forget(self) -> None:
        """Sends all evidence anew: a new incarnation begins."""
        self._rests.clear()

    def _afford(self, size: int, now: float) -> bool:
        if now - self._window >= 3600:
            self._window, self._spent = now, 0
        if self._spent + size > self._per_hour:
            return False
        self._spent += size
        return True
