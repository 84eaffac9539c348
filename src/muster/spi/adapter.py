# SPDX-License-Identifier: Apache-2.0
"""What a vendor must give: a manifest, sources, and two pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Who the adapter is for (`manifest.toml`). ``pci_vendors`` are 4 hex digits; ``words`` are names and aliases that no file outside its folder may use."""

    name: str
    title: str
    tier: str
    owners: tuple[str, ...] = ()
    pci_vendors: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    formats: Mapping[str, str] = field(default_factory=dict)
    """Format name to what it is, in the tool's own words (the command line that prints it)."""
    later: tuple[str, ...] = ()
    """What this adapter does not read yet, for the support matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One product of `models.toml`: facts that the vendor publishes, with where they come from and how sure we are. Measured values win over them."""

    key: str
    name: str
    facts: Mapping[str, Any]
    source: str
    confidence: str


Models: TypeAlias = Mapping[str, Model]
"""Models by the key an adapter looks them up with (PCI device id, chip name), lower case."""


@runtime_checkable
class Adapter(Protocol):
    """All that a vendor must give."""

    @property
    def manifest(self) -> Manifest:
        """Who it is for."""

    @property
    def sources(self) -> Sequence[Source]:
        """Declared ways of seeing, leaders before those that follow them."""

    def recognise(self, head: bytes) -> str | None:
        """The name of the format that the text has, None for a strange one. ``head`` are the first 64 KiB at most. Several adapters may claim one text."""

    def interpret(self, captures: Sequence[Capture]) -> Interpretation:
        """What the captures of one round of one source say. Pure; never raises on bad input."""


Recognise: TypeAlias = Callable[[bytes], "str | None"]
Interpret: TypeAlias = Callable[[Sequence[Capture], Models], Interpretation]
HEAD = 64 * 1024
"""Bytes of a capture that recognition sees."""
