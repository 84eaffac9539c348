# SPDX-License-Identifier: Apache-2.0
"""The numbers and preferences that merge goes by: a site's own, with defaults that stand in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from muster.domain.model.attributes import ATTRIBUTES, Compare
from muster.domain.model.names import PLACEHOLDERS
from muster.domain.model.source import WitnessClass

W = WitnessClass

PRECEDENCE: Mapping[str, tuple[WitnessClass, ...]] = {
    "default": (W.DRIVER, W.EXPORTER, W.BMC, W.PCI, W.CLUSTER, W.OPERATOR),
    "asset.*": (W.OPERATOR, W.CLUSTER, W.BMC, W.DRIVER, W.EXPORTER, W.PCI),
    "platform.slot": (W.BMC, W.DRIVER, W.PCI, W.EXPORTER, W.CLUSTER, W.OPERATOR),
}


@cache
def dictionary_compare() -> Mapping[str, Compare]:
    """Attributes in which witnesses are held to each other by default: the dictionary's column."""
    return {key: entry.compare for key, entry in ATTRIBUTES.items() if entry.compare.how != "never"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Seconds, unless said otherwise."""

    settle: float = 120.0
    """How long an absence or dissent lasts before it is a finding."""
    stale_floor: float = 90.0
    """No source promises more often than this, whatever its cadence."""
    clock_tolerance: float = 30.0
    """How far a reporter's clock may be off before its times are corrected."""
    compare_within: float = 60.0
    """Two gauges are held to each other only when read this close together."""
    placeholder_nodes: int = 3
    """A name claimed by so many nodes at once names nothing."""
    placeholders: frozenset[str] = PLACEHOLDERS
    known_vendors: frozenset[str] = frozenset()
    """PCI vendor ids that an adapter speaks for."""
    vendor_words: frozenset[str] = frozenset()
    """Names of vendors, lower case, that two spellings of a product name may differ by."""
    precedence: Mapping[str, tuple[WitnessClass, ...]] = field(default_factory=lambda: PRECEDENCE)
    compare: Mapping[str, Compare] = field(default_factory=dictionary_compare)
    worst: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"health.reported": ("critical", "warning", "ok", "unknown")})
    """Attributes in which the worst fresh word is shown, worst first."""
    late_window: float = 7200.0
    """Reports older than this against what is already known fill gaps and change no history."""
    late_listings: int = 128
    """So many listings of a site part are kept for late reports, however old."""

    @property
    def timely(self) -> float:
        """Seconds within which a word comes that did not wait for its way to be free."""
        return self.stale_floor / 3

    def promise(self, cadence: float) -> float:
        """Seconds after which a source with this cadence is silent and its word stale."""
        return max(3 * cadence, self.stale_floor)

    def order(self, key: str) -> tuple[WitnessClass, ...]:
        """Classes of sources for an attribute, best first."""
        family = key.partition(".")[0] + ".*"
        return self.precedence.get(key) or self.precedence.get(family) or self.precedence["default"]
