# SPDX-License-Identifier: Apache-2.0
"""Two logs of the vendor's: NodeD's (fault events that the BMC holds) and the container log of the soft share (vCANN-RT)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_FAULT = re.compile(r"\[device type: ([^\]]+)\]-\[device id: (\d{1,6})\]-\[error code: ([0-9A-Fa-f]{6,9})\]")
_STAMP = re.compile(r"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)(?:\.\d+)?\s+(\d+)\s")
_CONFIG = re.compile(r"\[vCANN_RT\].*load config: ([a-z-]+), value: (\S+)")


@dataclass(frozen=True, slots=True)
class Fault:
    """One line of a fault round: kind of part ("NPU", "Port"), the BMC's number of it, the code."""

    part: str
    ident: str
    code: str


@dataclass(slots=True)
class FaultLog:
    """Rounds of faults in order: each is the whole list that the BMC held at that time."""

    rounds: list[list[Fault]] = field(default_factory=list)

    @property
    def npus(self) -> list[str]:
        """Numbers of all NPUs that any round names, as the BMC counts them; 255 means none."""
        named = {f.ident for each in self.rounds for f in each if f.part == "NPU" and f.ident != "255"}
        return sorted(named, key=int)

    def standing(self, ident: str) -> list[str]:
        """Codes of an NPU in the last round."""
        last = self.rounds[-1] if self.rounds else []
        return sorted({f.code.upper() for f in last if f.part == "NPU" and f.ident == ident})


def faults(lines: Sequence[str]) -> FaultLog:
    """Fault rounds of a NodeD log. Lines between two fault lines end a round, unless they came within the same second."""
    log, second, apart = FaultLog(), "", True
    for line in lines:
        found = _FAULT.search(line)
        if found is None:
            apart = apart or bool(line.strip())
            continue
        stamp = _STAMP.search(line)
        now = stamp.group(1) if stamp else second
        if (apart and now != second) or not log.rounds:
            log.rounds.append([])
        log.rounds[-1].append(Fault(*found.groups()))
        second, apart = now, False
    return log


def settings(lines: Sequence[str]) -> dict[str, str]:
    """Settings that the soft share's container log says it loaded; the first of each counts."""
    found: dict[str, str] = {}
    for line in lines:
        match = _CONFIG.search(line)
        if match:
            found.setdefault(match.group(1), match.group(2))
    return found
