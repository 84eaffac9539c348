# SPDX-License-Identifier: Apache-2.0
"""The server's half: the real roll on a real store and the steady clock, which is killed before, after and within commits, and whose disk fills up."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from muster.domain.model.access import Reach, Scope, Speaker
from muster.domain.model.errors import MusterError, Unavailable
from muster.domain.model.policy import Policy
from muster.services.inventory import Inventory
from muster.spi.store import Batch, FindingRow, Loaded, RegionRows
from muster.store import Store, open_store
from muster.wire.report import ActDoc, AnswerDoc
from muster.wiring.clock import FARTHEST, SteadyClock

POLICY = Policy(known_vendors=frozenset({"10de"}))
NAME = "roll.sqlite"
FRAMES = 400
"""A commit that is cut short is cut after at most so many hundred steps of the database's machine."""
_SOMEBODY = Speaker(reporter="", scope=Scope(reach=Reach.CLUSTER), until=0.0)


class Killed(Exception):
    """The server died here."""


class Mortal:
    """A writer whose process dies at some commits: before anything was written, while it is written, or after all was, without telling."""

    def __init__(self, store: Store, dice: random.Random, rate: float, cut: Callable[[Store], None] | None) -> None:
        self._store, self._writer = store, store.writer
        self._random, self._rate, self._cut = dice, rate, cut
        self.doomed = False

    def load(self) -> Loaded:
        return self._writer.load()

    def region(self, part: str) -> RegionRows:
        return self._writer.region(part)

    def regions_of(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        return self._writer.regions_of(names)

    def lacking(self, digests: Sequence[str]) -> list[str]:
        return self._writer.lacking(digests)

    def commit(self, batch: Batch) -> None:
        dice = self._random.random()
        dies, self.doomed = dice < self._rate or self.doomed, False
        how = self._random.choice(("before", "within", "after")) if dies else ""
        if how == "before":
            raise Killed("before the commit")
        if how == "within" and self._cut is not None:
            self._cut(self._store)
            try:
                self._writer.commit(batch)
            except Unavailable:
                raise Killed("within the commit") from None
        else:
            self._writer.commit(batch)
        if dies:
            raise Killed("after the commit")

    def acknowledge(self, finding: str, by: str, at: float, reason: str) -> FindingRow:
        return self._writer.acknowledge(finding, by, at, reason)

    def trim(self, now: float, keep: Mapping[str, float]) -> int:
        return self._writer.trim(now, keep)


class Server:
    """The roll, started anew whenever it died. ``folder`` None keeps the store in memory: a death takes the process's memory all the same."""

    def __init__(self, seed: int, folder: Path | None, now: Callable[[], float], deaths: float) -> None:
        self._random, self._folder, self._rate = random.Random(seed), folder, deaths
        self._true = now
        self.wall_off = 0.0
        self.deaths = self.reloads = self._runs = 0
        self.full = False
        self._image: Path | None = None
        self._started = now()
        self.store = open_store(self._place())
        self._begin()

    def _place(self) -> Path | None:
        return None if self._folder is None else self._folder / f"run{self._runs}" / NAME

    def _begin(self) -> None:
        """A new process: nothing is known but what is in the store. A machine whose clock is years off gets its time before a server starts on it."""
        if abs(self.wall_off) > FARTHEST:
            self.wall_off = 0.0
        self.clock = SteadyClock(lambda: self._true() + self.wall_off, self._true)
        self.clock.reach(self.store.latest())
        while True:
            self.writer = Mortal(self.store, self._random, self._rate, self._cut_short if self._folder else None)
            try:
                self.inventory = Inventory(self.writer, POLICY, self.now, quiet=POLICY.stale_floor if self.deaths else 0.0)
            except (Killed, Unavailable):
                self.deaths += 1
                self._reopen()
            else:
                return

    @property
    def now(self) -> float:
        """The server's time."""
        return self.clock()

    @property
    def behind(self) -> bool:
        """True while old words come in of some part of the site."""
        return any(until > self.now for _, until in self.inventory._fold._behind.values())

    def take(self, bodies: list[bytes]) -> list[AnswerDoc | MusterError] | None:
        """Answers to reports; None when the server died on them, and nobody knows what became of them."""
        try:
            return self.inventory.take([(_SOMEBODY, body) for body in bodies], self.now)
        except Killed:
            self._die()
            return None

    def act(self, doc: ActDoc) -> bool:
        """An operator's word. False when it was not taken."""
        try:
            self.inventory.act(doc, self.now)
        except Killed:
            self._die()
            return False
        except MusterError:
            return False
        return True

    def tick(self) -> None:
        """Lets time pass, and packs minutes."""
        try:
            self.inventory.tick(self.now)
        except Killed:
            self._die()
        except Unavailable:
            if not self.full:
                raise

    def kill(self) -> None:
        """Kills it between two things."""
        self._die()

    def doom(self) -> None:
        """It dies at its next commit."""
        self.writer.doomed = True

    def _die(self) -> None:
        self.deaths += 1
        self._reopen()
        self._begin()

    def _reopen(self) -> None:
        """A store in a file is opened as its files were when the process died; one in memory is left open, with what was committed."""
        if self._folder is None:
            return
        image, self._image = self._image or self._photographed(), None
        self.store.close()
        shutil.rmtree(self._folder / f"run{self._runs}")
        self._runs += 1
        image.rename(self._folder / f"run{self._runs}")
        self.store = open_store(self._place())
        self.set_full(full=self.full)

    def _photographed(self) -> Path:
        """Copies of the files as they are at this moment, however far a commit has come."""
        image = self._folder / "image" if self._folder else Path()
        shutil.rmtree(image, ignore_errors=True)
        shutil.copytree(self._folder / f"run{self._runs}" if self._folder else Path(), image)
        return image

    def _cut_short(self, store: Store) -> None:
        """The next commit ends at some step of it, and with it the process."""
        left = self._random.randrange(1, FRAMES)
        writer = vars(store.connections)["writer"]

        def step() -> int:
            nonlocal left
            left -= 1
            if left:
                return 0
            self._image = self._photographed()
            return 1

        writer.set_progress_handler(step, 100)

    def set_full(self, *, full: bool) -> None:
        """Its disk fills up, or has room again: the database may not take one more page."""
        self.full = full
        writer = vars(self.store.connections)["writer"]
        pages = writer.execute("PRAGMA page_count").fetchone()[0]
        writer.execute(f"PRAGMA max_page_count={pages if full else 2**32 - 2}").fetchone()

    def pack(self) -> None:
        """Packs minutes while there are some to pack."""
        try:
            while not self.full and self.store.seal(self.now):
                pass
        except Unavailable:
            if not self.full:
                raise

    def again(self) -> None:
        """Stops and starts in good order."""
        self._reopen()
        self._begin()

    def close(self) -> None:
        """Closes the store."""
        self.store.close()
