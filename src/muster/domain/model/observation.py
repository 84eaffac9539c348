# SPDX-License-Identifier: Apache-2.0
"""What a source said in one round: observations of subjects, events, and the outcome of the read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from muster.domain.model.attributes import Level
from muster.domain.model.names import Name
from muster.domain.model.reading import Reading
from muster.domain.model.source import Outcome


def _nothing() -> Mapping[Any, Any]:
    return MappingProxyType({})


class Role(StrEnum):
    """What a card is for. A display or BMC chip is kept apart and never counted."""

    ACCELERATOR = "accelerator"
    DISPLAY = "display"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Who is spoken of. ``parent`` are names of the card (of a device) or of the card or device (of a partition); ``ordinal`` is the place in its listing."""

    level: Level
    names: frozenset[Name] = frozenset()
    parent: frozenset[Name] = frozenset()
    ordinal: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a source told of one subject when it was read; ``vendor`` holds the tool's own names and text."""

    subject: Subject
    readings: Mapping[str, Reading] = field(default_factory=_nothing)
    vendor: Mapping[str, Any] = field(default_factory=_nothing)
    role: Role | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened. ``at`` is the source's own time where it printed one that can be dated; ``code`` is the vendor's spelling ("79")."""

    subject: Subject
    code: str | None
    text: str
    at: datetime | None = None
    repeats: int = 1
    kind: str = ""
    """Family of the code ("xid", "aer", "hung_task"); empty when the line has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpretation:
    """What an adapter makes of the captures of one round of one source.

    ``complete`` is True only when the listing shows every card that the source can see; a cut, partial or filtered one says nothing about the rest.
    ``counts`` are numbers the tool printed itself (attached GPUs). ``unknown_shape`` is set when the tool's version or layout was never seen: what did not fit.
    """

    outcome: Outcome
    complete: bool = False
    format: str = ""
    detail: str = ""
    tool_version: str = ""
    unknown_shape: str = ""
    counts: Mapping[Level, int] = field(default_factory=_nothing)
    observations: tuple[Observation, ...] = ()
    events: tuple[Event, ...] = ()
