# SPDX-License-Identifier: Apache-2.0
"""What a filter or an order may ask of each list of the roll, and the shape of what stands there."""

from __future__ import annotations

from muster.domain.model.attributes import ATTRIBUTES, Attribute
from muster.domain.model.filters import Fields, Shape
from muster.domain.model.units import NUMBERS, Unit

_SHAPES = {Unit.BOOL: Shape.BOOL, Unit.SET: Shape.LIST, Unit.LIST: Shape.LIST, Unit.MAP: Shape.MAP, Unit.DATE: Shape.DATE}


def shape(entry: Attribute) -> Shape:
    """What may be asked of an attribute."""
    return Shape.NUMBER if entry.unit in NUMBERS else _SHAPES.get(entry.unit, Shape.TEXT)


READING_FIELDS: Fields = {key: shape(entry) for key, entry in ATTRIBUTES.items()}
"""Every attribute as a field of a filter."""
_TEXTS = ("id", "name", "vendor", "model", "presence", "rung", "role", "node", "node_id", "slot", "address", "index", "place", "serial", "vendor_uuid")
CARD_FIELDS: Fields = {
    **READING_FIELDS,
    **dict.fromkeys(_TEXTS, Shape.TEXT),
    **dict.fromkeys(("conflicts", "seen_by", "findings"), Shape.LIST),
    "aside": Shape.BOOL,
    "presence_since": Shape.TIME,
    "created_at": Shape.TIME,
}
"""What a filter or an order may ask of a card."""
PART_FIELDS: Fields = {
    **READING_FIELDS,
    **dict.fromkeys(("id", "card", "presence", "role", "node", "under", "serial", "vendor_uuid"), Shape.TEXT),
    "ordinal": Shape.NUMBER,
}
"""What a filter or an order may ask of a device or partition; presence, role and node are its card's."""
NODE_FIELDS: Fields = {
    **READING_FIELDS,
    **dict.fromkeys(("id", "name", "machine_id", "system"), Shape.TEXT),
    "cards": Shape.NUMBER,
    "created_at": Shape.TIME,
    "last_at": Shape.TIME,
}
"""What a filter or an order may ask of a node; ``cards`` is their number."""
_SOURCE_TEXTS = ("id", "node", "node_id", "source", "adapter", "channel", "witness", "reporter", "state", "outcome", "detail", "unknown_shape")
SOURCE_FIELDS: Fields = {**dict.fromkeys(_SOURCE_TEXTS, Shape.TEXT), **dict.fromkeys(("cadence", "promise", "cards", "age"), Shape.NUMBER)}
"""What a filter or an order may ask of a source."""
