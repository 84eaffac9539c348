# SPDX-License-Identifier: Apache-2.0
"""Rows of sources, and which adapter speaks for a source or a maker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.domain.decide.pick_fields import SOURCE_FIELDS
from muster.domain.decide.pick_rows import Makers, Row
from muster.domain.model.filters import Fields, Shape
from muster.domain.model.roll import SourceRecord
from muster.spi.adapter import Adapter
from muster.wire import shown

FIELDS: Fields = {**SOURCE_FIELDS, "last_at": Shape.TIME}
"""Columns of sources: their age is made of ``last_at`` when it is asked for."""
_PLAIN = ("node", "source", "channel", "witness", "reporter", "outcome", "detail", "unknown_shape", "cadence", "promise", "cards", "last_at")


class Adapters:
    """Adapters by their sources."""

    def __init__(self, adapters: Sequence[Adapter]) -> None:
        self._of: dict[str, str] = {source.id: each.manifest.name for each in adapters for source in each.sources}

    def of(self, source: str) -> str | None:
        """The adapter that declares this source."""
        return self._of.get(source)


def makers(adapters: Sequence[Adapter]) -> Makers:
    """Who made a card, as its adapter is called: by the PCI vendor id, else by the source that named the product."""

    def maker(vendor_id: Any, source: str) -> str | None:
        for adapter in adapters:
            by_source = vendor_id is None and source and any(each.id == source for each in adapter.sources)
            if vendor_id in adapter.manifest.pci_vendors or (by_source and adapter.manifest.pci_vendors):
                return adapter.manifest.name
        return None

    return maker


def source_id(record: SourceRecord) -> str:
    """The id of a source: its node's id and its own name."""
    return f"{record.node}/{record.source}"


def source_row(record: SourceRecord, adapters: Adapters) -> Row:
    """A source as a row."""
    row: Row = {name: _told(getattr(record, name)) for name in _PLAIN}
    row |= {"id": source_id(record), "node": record.node_name, "node_id": record.node, "state": shown.source_state(record)}
    row["adapter"] = adapters.of(record.source)
    return row


def _told(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value
