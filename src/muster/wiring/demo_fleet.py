# SPDX-License-Identifier: Apache-2.0
"""The demo's machines: every recorded machine that ships with an adapter, each with an agent of its own, all stepped by one thread."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from muster.collect.agent import Agent
from muster.collect.collector import Round
from muster.collect.delivery import Delivery
from muster.collect.post import Poster
from muster.collect.reports import Identity, Reports
from muster.collect.spool import Spool
from muster.collect.tell import Teller
from muster.domain.model.attributes import Level
from muster.domain.model.errors import MusterError
from muster.domain.model.observation import Event, Interpretation, Observation, Role
from muster.domain.model.source import SourceId
from muster.readers.recorded import MACHINE
from muster.wiring.adapters import TREE
from muster.wiring.agent import CLOCK, Eyes, boot_id, eyes, version
from muster.wiring.demo_stage import Played, Stage

STEP_S = 0.1
"""Seconds between two looks at what is due."""
_log = logging.getLogger("muster.demo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One recorded machine and what its sources say before anything is changed. ``rounds`` are those that were not passed over."""

    folder: Path
    eyes: Eyes
    rounds: Sequence[Round] = ()

    @property
    def node(self) -> str:
        """The name of its node."""
        return self.eyes.node.name

    @property
    def lead(self) -> Round | None:
        """The source that lists most cards."""
        return max(self.rounds, key=lambda each: len(_cards(each.told)), default=None)

    @property
    def cards(self) -> Sequence[Observation]:
        """The cards that its lead lists; displays are none."""
        return _cards(self.lead.told) if self.lead else ()

    @property
    def told(self) -> Interpretation | None:
        """What its lead says."""
        return self.lead.told if self.lead else None

    @property
    def source(self) -> SourceId:
        """The id of its lead."""
        return self.lead.source.id if self.lead else SourceId("")

    @property
    def events(self) -> Iterator[Event]:
        """What its logs hold, whoever understood it."""
        return (event for each in self.rounds for routed in each.routed for event in routed.told.events)

    def parts(self, card: Observation) -> list[Observation]:
        """Devices and partitions right under a card."""
        told = self.told.observations if self.told else ()
        return [each for each in told if each.subject.level in (Level.DEVICE, Level.PARTITION) and each.subject.parent == card.subject.names]


def _cards(told: Interpretation) -> list[Observation]:
    return [each for each in told.observations if each.subject.level is Level.CARD and each.role is not Role.DISPLAY]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The machines that could be loaded, by folder, and for the others a sentence each."""

    machines: Sequence[Machine] = ()
    failed: Sequence[str] = field(default_factory=tuple)


def machine_folders(tree: Path = TREE) -> list[Path]:
    """Folders of recorded machines beside the adapters."""
    return sorted(found.parent for found in tree.glob(f"*/machines/*/{MACHINE}"))


def load(folders: Iterable[Path], cadence: timedelta) -> Loaded:
    """Every machine read once. One that cannot be loaded is told and left out."""
    machines: list[Machine] = []
    failed: list[str] = []
    for folder in folders:
        try:
            machines.append(_load(folder, cadence))
        except (MusterError, OSError) as error:
            failed.append(f"{folder.name} is left out: {error.message if isinstance(error, MusterError) else error}")
    return Loaded(machines=tuple(machines), failed=tuple(failed))


def _load(folder: Path, cadence: timedelta) -> Machine:
    seen = eyes(folder)
    played = tuple(Played(inner=each, sources=tuple(replace(source, cadence=cadence) for source in each.sources)) for each in seen.adapters)
    seen = replace(seen, adapters=played)
    rounds = tuple(each for each in seen.collector().once() if not each.standing_by)
    return Machine(folder=folder, eyes=seen, rounds=rounds)


class Reporter:
    """The agent of one machine; a ``silent`` one reads and says nothing."""

    def __init__(self, machine: Machine, stage: Stage, folder: Path, post: Poster) -> None:
        node, boot = machine.eyes.node, boot_id()
        change = stage.change(node.name)
        staged = replace(machine.eyes, adapters=tuple(replace(each, change=change) for each in machine.eyes.adapters if isinstance(each, Played)))
        who = Identity(node=node, boot_id=boot, agent_version=version(), adapters={each.manifest.name: version() for each in staged.adapters})
        spool = Spool(folder)
        reports = Reports(who, CLOCK, lambda: secrets.token_hex(16))
        self.node = node.name
        self.silent = False
        self._agent = Agent(staged.collector(), Teller(boot), reports, spool, CLOCK)
        self.delivery = Delivery(spool, post, CLOCK, boot_id=boot, spread=lambda: 1.0, renew=self._agent.renew, longest=1.0)

    def step(self) -> None:
        """Reads what is due, and delivers what was told."""
        if not self.silent:
            self._agent.step(0)
            while self.delivery.step():
                pass


class Fleet:
    """All reporters, and the thread that steps them."""

    def __init__(self, machines: Sequence[Machine], stage: Stage, folder: Path, post: Poster) -> None:
        self._reporters = [Reporter(each, stage, folder / f"spool-{place}", post) for place, each in enumerate(machines)]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="muster-demo-fleet", daemon=True)

    def start(self) -> None:
        """Begins to report."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def silence(self, node: str) -> None:
        """The agents of a node say nothing from now on."""
        for each in self._reporters:
            each.silent = each.silent or each.node == node

    @property
    def broken(self) -> bool:
        """True when the thread ended by itself."""
        return not self._stop.is_set() and not self._thread.is_alive()

    @property
    def trouble(self) -> str:
        """Why reports do not arrive; empty when they do."""
        return next((each.delivery.trouble for each in self._reporters if each.delivery.trouble), "")

    def _run(self) -> None:
        while not self._stop.is_set():
            for each in self._reporters:
                if self._stop.is_set():
                    return
                each.step()
            self._stop.wait(STEP_S)
