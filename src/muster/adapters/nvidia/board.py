# SPDX-License-Identifier: Apache-2.0
"""The plain values that every layout of the vendor's tools is read into before anything is said about cards.

Layouts name the same thing differently. Each parser maps its own names to the column names of ``nvidia-smi --query-gpu``, which are the best documented;
what that query lacks has a name of the same style ("temperature.shutdown"). Values stay text as printed, with their unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from muster.domain.model.reading import Absent, Why
from muster.formats.csvtext import Sign

Fields: TypeAlias = "dict[str, str | Absent]"
"""Field name to the text that stood there, or to an absence that the parser alone could tell."""


@dataclass(slots=True)
class Slice:
    """One instance that a card is cut into. ``fields`` are named as those of a board."""

    index: str | None = None
    gpu_instance: str | None = None
    compute_instance: str | None = None
    uuid: str | None = None
    profile: str | None = None
    fields: Fields = field(default_factory=dict)

    @property
    def key(self) -> tuple[str | None, ...]:
        """What tells this instance from its neighbours in one listing."""
        if self.gpu_instance is not None:
            return ("instance", self.gpu_instance, self.compute_instance)
        return ("index", self.index) if self.index is not None else ("uuid", self.uuid)


@dataclass(slots=True)
class Process:
    """One process on a card. ``memory`` is text as printed, None where the layout has no such column."""

    pid: str
    name: str | None = None
    memory: str | None = None
    kind: str | None = None
    gpu_instance: str | None = None
    compute_instance: str | None = None


@dataclass(slots=True)
class Board:
    """One card of a listing.

    ``processes`` is None where the layout does not speak of them. ``lost`` is the tool's own word that the card does not answer, ``why`` the reason.
    ``partial`` is True where the text ends or breaks inside this card: what was read is right, but a set or map may lack members.
    """

    fields: Fields = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    processes: list[Process] | None = None
    sign: Sign = Sign.POINT
    lost: str = ""
    why: Why = Why.DEVICE_LOST
    partial: bool = False
    holders: list[dict[str, str]] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    extra: dict[str, object] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """The text of a field, None where there is none or the parser itself told an absence."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else None

    def offer(self, name: str, value: str | Absent | None) -> None:
        """Sets a field that is not set yet; the first line of two wins, and any text wins over an absence."""
        if value is not None and (name not in self.fields or (isinstance(self.fields[name], Absent) and isinstance(value, str))):
            self.fields[name] = value


@dataclass(slots=True)
class Listing:
    """What one text of the tool says: head fields (driver, versions), boards in order, and how whole it is.

    ``whole`` is True when the layout shows every card and nothing was cut; ``cut`` when the text ends early or is broken inside.
    """

    head: dict[str, str] = field(default_factory=dict)
    boards: list[Board] = field(default_factory=list)
    attached: int | None = None
    whole: bool = False
    cut: bool = False
    note: str = ""
    unknown: str = ""
