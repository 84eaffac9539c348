# SPDX-License-Identifier: Apache-2.0
"""The agent of each machine: its reports, its spool and its delivery are the real ones, on the virtual clock; only what it reads is synthetic."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from muster.collect import spool as spooling
from muster.collect.clock import Clock
from muster.collect.delivery import Delivery
from muster.collect.post import Posted
from muster.collect.reports import Identity, Reports
from muster.collect.spool import Spool
from muster.wire.report import AgentDoc, NodeDoc, ReportDoc
from tests.sim.speech import Round, boot
from tests.sim.world import Machine

_write = spooling._write
FULL: set[Path] = set()
"""Folders on disks that are full."""
SPEAKS_OF_ITSELF = 12
"""Every so many rounds."""


def _written(path: Path, body: bytes) -> None:
    """Writes a report as the spool does, where there is room on the disk."""
    if path.parent in FULL:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    _write(path, body)


class Agent:
    """One agent. ``now`` is the true time; what it shows on the machine's own clock is the machine's affair."""

    def __init__(self, machine: Machine, folder: Path, now: Callable[[], float], spread: Callable[[], float]) -> None:
        self.machine = machine
        self._folder = folder / machine.own_name
        self._clock = Clock(wall=lambda: wall(machine, now()), mono=lambda: now() - machine.booted)
        self._spread = spread
        self._answer: tuple[tuple[str, int], Posted] | None = None
        self.delivered = self.dropped = self.refused = 0
        self._begin()

    def begin(self) -> None:
        """A new process: what was spooled is found, what was in memory is not."""
        self.dropped += self.spool.dropped
        self.delivered += self.delivery.delivered
        self.refused += self.delivery.refused
        self._begin()

    def _begin(self) -> None:
        machine = self.machine
        self.born, self.boots = machine.lives, machine.boots
        self._rounds = self._minted = 0
        self.stands_by = False
        node = NodeDoc(name=machine.name, machine_id=machine.machine_id, system=machine.system)
        who = Identity(node=node, boot_id=boot(machine), agent_version="1.0", reporter_name=machine.reporter)
        self.spool = Spool(self._folder)
        self.reports = Reports(who, self._clock, self._mint)
        self.delivery = Delivery(self.spool, self._post, self._clock, boot_id=boot(machine), spread=self._spread, renew=self.reports.renew)

    def _mint(self) -> str:
        self._minted += 1
        return f"i{self.machine.lives}.{self._minted}"

    @property
    def lost(self) -> int:
        """Reports given up undelivered so far."""
        return self.dropped + self.spool.dropped

    def fill(self, *, full: bool) -> None:
        """Its disk fills up, or has room again."""
        (FULL.add if full else FULL.discard)(self._folder)

    def say(self, rounds: list[Round]) -> list[ReportDoc]:
        """Makes the reports of a round and puts them into the spool. That a source stands by is said once."""
        self._rounds += 1
        stood, self.stands_by = self.stands_by, any(each.standing_by for each in rounds)
        rounds[:] = [each for each in rounds if not (each.standing_by and stood)]
        itself = AgentDoc(spool_reports=len(self.spool), spool_bytes=self.spool.size) if self._rounds % SPEAKS_OF_ITSELF == 0 else None
        made = self.reports.build([each.heard for each in rounds], [], [], itself)
        for each in made:
            self.spool.add(each)
        return made

    def next(self) -> ReportDoc | None:
        """What it would send now, as it would send it: the site hears of many agents at once, and each learns later what became of its own."""
        if self._clock.mono() < self.delivery.next_at:
            return None
        found = self.spool.oldest(self._clock.wall(), self._clock.mono(), boot(self.machine))
        return None if found is None else self.delivery._stamped(found[1])

    def learn(self, sent: ReportDoc, posted: Posted) -> bool:
        """Takes the step of delivery whose answer is known. True when the next can follow at once."""
        self._answer = ((sent.incarnation, sent.sequence), posted)
        return self.delivery.step()

    def _post(self, report: ReportDoc) -> Posted:
        answer, self._answer = self._answer, None
        if answer is None or answer[0] != (report.incarnation, report.sequence):
            raise AssertionError(f"{report.reporter} sends {report.incarnation}/{report.sequence}, which nobody asked for")
        return answer[1]


def wall(machine: Machine, now: float) -> float:
    """What its wall clock shows."""
    return now + machine.clock_off


spooling._write = _written
