# SPDX-License-Identifier: Apache-2.0
"""What the tools' texts say, as plain words: every parser adds to one `Said`, and `observe_npu` makes observations of it.

Nothing here is converted: fields keep the tool's own names and text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Of(StrEnum):
    """What a record speaks of."""

    NPU = "npu"
    CHIP = "chip"
    BOARD = "board"
    PORT = "port"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Fields said of one NPU (by its id), of one of its chips, of its board controller, or of a network port (by the id that the network tool uses).

    ``npu`` is None where the text does not say which; ``cut`` names fields whose value was cut off.
    """

    of: Of
    fields: Mapping[str, str]
    npu: str | None = None
    chip: str | None = None
    listed: str = ""
    """Which listing it comes from: "table" when the chip id is a column of the summary table, where single chips may carry any number."""
    cut: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process row: ids as printed, memory in the tool's MB (MiB)."""

    npu: str | None
    chip: str | None
    pid: int
    name: str
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A hardware slice (vNPU) of one chip: its id and the template it was made from."""

    npu: str | None
    chip: str | None
    ident: str
    template: str


@dataclass(slots=True)
class Said:
    """Everything that the texts of one round say. Parsers append; nobody removes."""

    records: list[Record] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    idle: list[tuple[str | None, str | None]] = field(default_factory=list)
    """NPUs (or NPU and chip) of which the tool says that no process runs."""
    slices: list[Slice] = field(default_factory=list)
    peers: dict[str, dict[str, str]] = field(default_factory=dict)
    """Row label of the link matrix ("Phy-ID2", "NPU0") to peer label to link word."""
    node: dict[str, str] = field(default_factory=dict)
    """Facts of the node: "driver", "firmware", "runtime" and, beside them, keys of version files."""
    runtimes: list[str] = field(default_factory=list)
    tool: str = ""
    total: int | None = None
    """How many NPUs the tool says there are."""
    failures: list[str] = field(default_factory=list)
    whole: bool = False
    """True when a listing of all NPUs was read to its end."""
    ended: bool = False
    """True when the summary's boxes end as they should; a text that was cut between two boxes looks the same, so the exit status must agree."""
    cut: bool = False
    """True when something was visibly cut off, filtered or missing."""
    packages: set[str] = field(default_factory=set)
    """NPUs that have several chips although the text shows one of them."""
    mixed: bool = False
    """True when the texts of several hosts stand one behind the other."""
    soft_sliced: bool = False
    """True when a limiter in the container rewrites what the tool prints."""
