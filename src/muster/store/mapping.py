# SPDX-License-Identifier: Apache-2.0
"""The one place where the roll's records become text of the tables and come back.

A record is JSON of its frozen dataclass. Read-only mappings become objects and sets become arrays; what comes back equals what went in, with lists for
the tuples and sets inside a value, because a value is whatever a source said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from muster.domain.model.reading import Why
from muster.domain.model.roll import CardRecord, Change, Finding, Happening, NodeRecord, SourceRecord, Word
from muster.spi.store import CaptureRow, ChangeRow, EventRow, FindingRow, News

Row = Mapping[str, Any]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no form in the store for {type(value).__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
_sorted = msgspec.json.Encoder(enc_hook=_plain, order="sorted")
_card = msgspec.json.Decoder(CardRecord)
_node = msgspec.json.Decoder(NodeRecord)
_source = msgspec.json.Decoder(SourceRecord)
_finding = msgspec.json.Decoder(Finding)
_said = msgspec.json.Decoder(tuple[Any, Why | None, str])
_any = msgspec.json.Decoder(dict[str, Any])
_texts = msgspec.json.Decoder(tuple[str, ...])

card = _card.decode
"""The card in a column ``record``."""
node = _node.decode
"""The node in a column ``record``."""
finding = _finding.decode
"""The finding in a column ``record``."""
source = _source.decode
"""The source in a column ``record``."""
entry = _any.decode
"""The audit entry in a column ``entry``."""


def text(value: Any) -> str:
    """A record or value as JSON."""
    return _encoder.encode(value).decode()


def ordered(value: Any) -> bytes:
    """A value as JSON with its keys in order, to be digested or compared."""
    return _sorted.encode(value)


def said(word: Word) -> str:
    """What a word says, without when: value, absence, detail."""
    return _sorted.encode((word.value, word.why, word.detail)).decode()


def word(said: str, value_at: float | None, why_at: float | None, capture: str = "") -> Word:
    """The word of a column ``said`` with its times."""
    value, why, detail = _said.decode(said)
    return Word(value=value, at=value_at, why=why, why_at=why_at, detail=detail, capture=capture)


def change_row(row: Row) -> ChangeRow:
    """One row of ``changes``."""
    change = Change(
        id=row["id"],
        subject=row["subject"],
        kind=Happening(row["kind"]),
        at=row["at"],
        learnt_at=row["learnt_at"],
        detail=_any.decode(row["detail"]),
    )
    return ChangeRow(number=row["number"], change=change, superseded_at=row["superseded_at"])


def finding_row(row: Row) -> FindingRow:
    """One row of ``findings``."""
    return FindingRow(
        finding=_finding.decode(row["record"]),
        last_seen_at=row["last_seen_at"],
        acknowledged_at=row["acknowledged_at"],
        acknowledged_by=row["acknowledged_by"],
        closed_at=row["closed_at"],
    )


def news_row(row: Row) -> News:
    """One row of ``news`` with that of its finding."""
    return News(number=row["news_number"], at=row["news_at"], what=row["news_what"], row=finding_row(row))


def event_row(row: Row) -> EventRow:
    """One row of ``events``."""
    return EventRow(**row)


def capture_row(row: Row, payload: bytes, stderr: bytes) -> CaptureRow:
    """One row of ``captures`` with its bytes unpacked."""
    return CaptureRow(
        digest=row["digest"],
        source=row["source"],
        node=row["node"],
        format=row["format"],
        locator=_texts.decode(row["locator"]),
        taken_at=row["taken_at"],
        exit_status=row["exit_status"],
        stderr=stderr,
        cut=row["cut"],
        payload=payload,
    )
