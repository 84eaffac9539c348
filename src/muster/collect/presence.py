# SPDX-License-Identifier: Apache-2.0
"""Which adapters have something on this node, so that a tool that is missing for a vendor that is not there is no failure."""

from __future__ import annotations

from collections.abc import Iterable

from muster.collect.chain import SHOWS
from muster.domain.model.observation import Interpretation
from muster.domain.model.reading import Known
from muster.domain.model.source import Outcome, Source, WitnessClass
from muster.spi.adapter import Manifest

_QUIET = frozenset({Outcome.TOOL_MISSING, Outcome.UNREACHABLE, Outcome.NO_DEVICES})


class Presence:
    """PCI vendors that the bus shows, and adapters whose sources showed cards."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self._vendors = {each.name: frozenset(each.pci_vendors) for each in manifests}
        self._on_bus: frozenset[str] | None = None
        self._glimpsed: set[str] = set()
        self._showed: set[str] = set()

    def hear(self, source: Source, told: Interpretation) -> None:
        """Takes note of what a source said."""
        if source.witness is WitnessClass.PCI and not told.outcome.failed:
            found = (each.readings.get("pci.vendor_id") for each in told.observations)
            vendors = frozenset(str(reading.value).lower() for reading in found if isinstance(reading, Known))
            self._glimpsed |= vendors
            if told.complete:
                self._on_bus = vendors
        elif told.outcome in SHOWS and told.observations:
            self._showed.add(source.adapter)

    def has(self, adapter: str) -> bool | None:
        """True when the adapter has cards here, or speaks for no vendor; False when the bus shows none of its vendor; None when the bus is not known."""
        vendors = self._vendors.get(adapter, frozenset())
        if not vendors or adapter in self._showed:
            return True
        if self._on_bus is None:
            return True if vendors & self._glimpsed else None
        return bool(vendors & self._on_bus)

    def counts(self, source: Source, told: Interpretation) -> bool:
        """True when a round is worth a report: nothing to see, of a vendor that is not here, is not."""
        here = self.has(source.adapter)
        return bool(here) or told.outcome in SHOWS or (here is None and told.outcome not in _QUIET)

    @property
    def idle(self) -> frozenset[str]:
        """Adapters with nothing on this node."""
        return frozenset(name for name in self._vendors if self.has(name) is False)
