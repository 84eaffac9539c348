# SPDX-License-Identifier: Apache-2.0
"""The library's snapshot on the short way: what stands still in it, and the plain numbers that move, as `interpret` would say them.

A number that is not plain (refused, a sentinel, out of range, more power than the card may draw) sends the whole round the long way, and so do cards in slices.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.units import scaled

_LARGEST = 0x7FFFFFF0
"""From here on numbers of 32 bits may stand for "no value"."""
_WIDE = 1 << 48
"""The same for bytes and energy."""
_NARROW = 0xFFFF
_PLAIN: tuple[tuple[str, str, float, int], ...] = (
    ("temperature_c", "temperature.core", 1, _LARGEST),
    ("temperature_memory_c", "temperature.memory", 1, _LARGEST),
    ("fan_percent", "fan.speed", 0.01, _LARGEST),
    ("power_average_mw", "power.draw.average", 0.001, _LARGEST),
    ("clock_graphics_mhz", "clock.core", 1e6, _LARGEST),
    ("clock_memory_mhz", "clock.memory", 1e6, _LARGEST),
    ("clock_video_mhz", "clock.video", 1e6, _LARGEST),
    ("energy_mj", "energy.total", 0.001, _WIDE),
)
_INNER: tuple[tuple[str, str, str, float, int], ...] = (
    ("utilization", "gpu", "utilization.core", 0.01, _LARGEST),
    ("utilization", "memory", "utilization.memory_bandwidth", 0.01, _LARGEST),
    ("encoder_percent", "0", "utilization.encoder", 0.01, _LARGEST),
    ("decoder_percent", "0", "utilization.decoder", 0.01, _LARGEST),
    ("jpeg_percent", "0", "utilization.jpeg", 0.01, _LARGEST),
    ("ofa_percent", "0", "utilization.ofa", 0.01, _LARGEST),
    ("memory", "used", "memory.used", 1, _WIDE),
    ("memory", "free", "memory.free", 1, _WIDE),
)
_PERIOD = "1"
"""How long the library looked for a utilisation; it is not said."""


_decode = msgspec.json.Decoder().decode


def nvml(payload: bytes) -> tuple[object, list[dict[str, float]]] | None:
    """What stands still in the snapshot, and for each card its numbers by attribute."""
    told = _decode(payload)
    cards = told.pop("gpus", None) if isinstance(told, dict) else None
    if not isinstance(cards, list):
        return None
    found: list[dict[str, float]] = []
    for card in cards:
        numbers = _card(card)
        if numbers is None:
            return None
        found.append(numbers)
    return (told, cards), found


def _card(card: Any) -> dict[str, float] | None:
    """Takes the numbers that move out of the card; None where one is not plain."""
    if not isinstance(card, dict) or "error" in card or card.get("mig_devices"):
        return None
    numbers: dict[str, float] = {}
    if not _power(card, numbers):
        return None
    for name, key, factor, below in _PLAIN:
        if isinstance(card.get(name), int) and not _take(numbers, key, card.pop(name), factor, below):
            return None
    for outer, name, key, factor, below in _INNER:
        inner = card.get(outer)
        if isinstance(inner, dict) and isinstance(inner.get(name), int) and not _take(numbers, key, inner.pop(name), factor, below):
            return None
    for outer in ("encoder_percent", "decoder_percent", "jpeg_percent", "ofa_percent"):
        if isinstance(card.get(outer), dict):
            card[outer].pop(_PERIOD, None)
    if "clock.core" in numbers and isinstance(card.get("clock_sm_mhz"), int):
        del card["clock_sm_mhz"]
    return numbers


def _power(card: dict[str, Any], numbers: dict[str, float]) -> bool:
    """The draw now, which stands for the other two; False for one above the limit, which may be in another unit."""
    now, other, limit = card.get("power_instant_mw"), card.get("power_usage_mw"), card.get("power_limit_enforced_mw")
    for draw in (now, other, card.get("power_average_mw")):
        if isinstance(draw, int) and not (isinstance(limit, int) and 0 < draw <= 2 * limit):
            return False
    name = "power_instant_mw" if isinstance(now, int) else "power_usage_mw" if isinstance(other, int) else ""
    if not name:
        return True
    taken = _take(numbers, "power.draw", card.pop(name), 0.001, _LARGEST)
    if name == "power_instant_mw" and isinstance(other, int):
        del card["power_usage_mw"]
    return taken


def _take(numbers: dict[str, float], key: str, raw: int, factor: float, below: int) -> bool:
    value = scaled(raw, factor)
    entry = ATTRIBUTES[key]
    inside = (entry.low is None or value >= entry.low) and (entry.high is None or value <= entry.high)
    numbers[key] = value
    return inside and 0 <= raw < below and raw != _NARROW and not isinstance(raw, bool)


MOVING = {"nvml-json": nvml}
