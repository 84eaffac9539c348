# SPDX-License-Identifier: Apache-2.0
"""From rows of the store to documents of the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muster.domain.model.moments import rfc3339
from muster.spi.store import CaptureRow, ChangeRow, EventRow, FindingRow
from muster.wire import documents as d
from muster.wire.shown import perhaps, plain, seconds


def finding(row: FindingRow, names: Mapping[str, str], now: float) -> d.Finding:
    """A finding's document; ``names`` are those of cards and nodes by id."""
    told = row.finding
    return d.Finding(
        id=told.id,
        kind=told.kind.value,
        subject=told.subject,
        about=told.about,
        cards=list(told.cards),
        node=names.get(told.node, told.node) or None,
        node_id=told.node or None,
        source=told.source or None,
        attribute=told.attribute or None,
        evidence=plain(told.evidence),
        names=_among(names, finding_words(row)),
        opened_at=rfc3339(told.opened_at),
        last_seen_at=rfc3339(row.last_seen_at),
        age=seconds(now - told.opened_at),
        acknowledged_at=perhaps(row.acknowledged_at),
        acknowledged_by=row.acknowledged_by or None,
        closed_at=perhaps(row.closed_at),
    )


def change(row: ChangeRow, names: Mapping[str, str]) -> d.Change:
    """A history entry's document; ``names`` are those of cards and nodes by id."""
    told = row.change
    return d.Change(
        number=row.number,
        id=told.id,
        subject=told.subject,
        kind=told.kind.value,
        at=rfc3339(told.at),
        learnt_at=rfc3339(told.learnt_at),
        detail=plain(told.detail),
        names=_among(names, change_words(row)),
        superseded_at=perhaps(row.superseded_at),
    )


def event(row: EventRow, nodes: Mapping[str, str]) -> d.Event:
    """An event's document; ``nodes`` are names of nodes by id."""
    return d.Event(
        id=row.id,
        card=row.card or None,
        node=nodes.get(row.node, row.node),
        source=row.source,
        adapter=row.adapter,
        kind=row.kind,
        code=row.code,
        text=row.text,
        address=row.address or None,
        first_at=rfc3339(row.first_at),
        last_at=rfc3339(row.last_at),
        repeats=row.repeats,
    )


def capture(row: CaptureRow) -> d.CaptureInfo:
    """A capture's document, without its bytes."""
    return d.CaptureInfo(
        digest=row.digest,
        source=row.source,
        node=row.node,
        format=row.format,
        locator=list(row.locator),
        taken_at=rfc3339(row.taken_at),
        exit_status=row.exit_status,
        stderr=row.stderr.decode("utf-8", errors="replace"),
        cut=row.cut,
        size=len(row.payload),
    )


def finding_words(row: FindingRow) -> set[str]:
    """What a finding says that may be an id."""
    told = row.finding
    return {told.subject, told.node, *told.cards, *_words(told.evidence)}


def change_words(row: ChangeRow) -> set[str]:
    """What a history entry says that may be an id."""
    return {row.change.subject, *_words(row.change.detail)}


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _words(each)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _words(each)


def _among(names: Mapping[str, str], words: set[str]) -> dict[str, str]:
    return {word: names[word] for word in sorted(words) if word in names}
