# SPDX-License-Identifier: Apache-2.0
"""The writer's half of a server: the store, the right to write it, the roll, who may report and who may ask; and time, which passes in a thread of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TypeAlias

import structlog

from muster.domain.model.errors import Conflict, MusterError, Unavailable
from muster.domain.model.moments import rfc3339
from muster.domain.model.policy import Policy
from muster.services.departed import nobody
from muster.services.enrolment import Enrolment
from muster.services.inventory import Inventory
from muster.services.users import Tokens
from muster.spi.adapter import Adapter
from muster.spi.store import RollWriter
from muster.store import Store, open_store
from muster.store.opening import Place
from muster.store.segments_seal import Kept
from muster.wiring import authority, holds, listening
from muster.wiring.adapters import adapters, known_vendors
from muster.wiring.clock import OLDEST, SteadyClock
from muster.wiring.desk import Keeper
from muster.wiring.keeping import SLICE, Keeping
from muster.wiring.settings import ServerSettings
from muster.wiring.whole import whole
from muster.wiring.written import Watched

MakeKeeper: TypeAlias = Callable[[RollWriter, Policy, float], Keeper]
STORE = "roll.sqlite"
TIDY = 60.0
"""Seconds between two looks at certificates and at which tokens were used."""
LEASE = 2.0
"""Seconds between two signs that this writer is alive."""
PACK = 1.0
"""Seconds between two looks for minutes to pack."""
PATIENCE = 15.0
"""Seconds in which a thread ends."""

log = structlog.get_logger("muster.server")


def wall_clock() -> float:
    """Seconds since the epoch."""
    return time.time()  # noqa: TID251 - here the server's one clock is


def place(settings: ServerSettings) -> Place:
    """Where the store is."""
    return settings.database or (None if settings.in_memory else settings.state / STORE)


def store_name(settings: ServerSettings) -> str:
    """Where the store is, in words without a secret."""
    if settings.database:
        return "postgresql"
    return "memory" if settings.in_memory else str(settings.state)


def opened(settings: ServerSettings, *, alone: bool) -> Store:
    """The store of these settings."""
    minutes = None if settings.long_ranges_elsewhere else Kept(age=settings.keep_minutes, budget=settings.minutes_bytes)
    return open_store(place(settings), capture_budget=settings.captures_bytes, minutes=minutes, alone=alone, upgrade=False)


def policy_of(settings: ServerSettings, known: tuple[Adapter, ...]) -> Policy:
    """The policy of merge, with the words of the adapters that are known."""
    words = frozenset(word.lower() for each in known for word in each.manifest.words)
    return settings.policy(frozenset(known_vendors(known)), words)


def _give_back() -> None:
    """Memory that is free within the process goes back to the system, where its C library can do that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class Writing:
    """The writer's half. `start` returns when the roll is kept, or when another server is found to keep it; `stop` when all is closed."""

    def __init__(self, settings: ServerSettings, clock: Callable[[], float] | None = None, keeper: MakeKeeper | None = None) -> None:
        self.settings = settings
        self.steady: SteadyClock | None = None
        if clock is None:
            clock = self.steady = SteadyClock(wall_clock, time.monotonic)
        self.clock = clock
        self.told = self.steady.told if self.steady is not None else clock
        """The same time, for a process that is parted from this one."""
        self.keeping = Keeping()
        self.wrong: dict[str, str] = {}
        self.threads: dict[str, threading.Thread] = {}
        self._make_keeper = keeper or self._inventory
        self._ending = threading.Event()
        self.sent_away: Callable[[], int] = lambda: 0
        """How many reports could not be taken so far because the server was too busy."""
        self._sent_away, self._busy_until = 0, 0.0
        self.busy = ""
        """That reports are sent away, in words."""
        self._held = ExitStack()
        self._leased = 0.0

    def start(self) -> None:
        """Opens the store and begins. Raises MusterError with what stands in the way; what was opened is closed by `stop`."""
        settings = self.settings
        if self.steady is not None and self.steady() < OLDEST:
            hint = "set it (`timedatectl` tells of it), then start the server: what it keeps has times"
            raise Unavailable(f"the clock of this machine was never set: it shows {rfc3339(self.steady())}", hint=hint)
        self._folder = self._alone()
        self.store = opened(settings, alone=self._folder and not settings.database)
        self._held.callback(self.store.close)
        self.adapters = tuple(adapters())
        self.policy = policy_of(settings, self.adapters)
        self.writer = Watched(self.store.writer, self.store.probe)
        now = self.clock()
        self.authority = None if settings.in_memory else listening.authority(settings, now) if listening.secure(settings) or self.listens else None
        self.tokens = Tokens(self.store.users, os.urandom, listening.issuer(settings, listening.outgoing(settings)))
        self.enrolment = self.keeping.bounds = self._enrolment(now) if self.authority is not None else None
        self._lease(certain=self._folder and not settings.database)
        self._held.callback(self._release)
        self._thread("time", self._pass_time)
        self._thread("packing", self._pack)
        self._held.callback(self._end_time)

    def _alone(self) -> bool:
        """True when nobody else serves from the state folder. A second server on it reads, and waits for its turn to write."""
        if self.settings.in_memory:
            return True
        holds.folder(self.settings.state, "state", "--state", 0o700)
        try:
            self._held.enter_context(holds.hold(self.settings.state))
        except Conflict:
            return False
        return True

    @property
    def listens(self) -> bool:
        """True when reporters may come in from elsewhere."""
        return self.settings.ingest_port is not None or listening.beyond(self.settings)

    def _enrolment(self, now: float) -> Enrolment:
        made = self.authority
        if made is None:
            raise Unavailable("reporters join by the server's authority, and there is none")
        return Enrolment(
            self.store.enrolment,
            made.signer,
            made.authority,
            made.fingerprint,
            now,
            authority.dice,
            placeholders=self.policy.placeholders,
            address=lambda: self.address,
            sights=lambda now: [each.nodes for each in self.tokens.tokens(now) if each.nodes and not each.ended(now)],
        )

    address = ""
    """Where reporters come in, as told to those who join."""

    def _inventory(self, writer: RollWriter, policy: Policy, now: float) -> Keeper:
        bounds = self.enrolment
        return Inventory(writer, policy, now, bounds=bounds, quiet=policy.stale_floor, ended=bounds.ended if bounds is not None else nobody)

    def _lease(self, *, certain: bool = False) -> None:
        """Takes the right to write where it is to be had: the folder's lock first, where the store is a file in it."""
        if not (self._folder or self.settings.database):
            self._folder = self._alone()
            if not self._folder:
                self._wait("another server runs on this state folder; this one reads, and takes over when that one is gone")
                return
            certain = True
        who = f"process {os.getpid()} on {os.uname().nodename}"
        if self.store.lease.acquire(who, time.monotonic(), certain=certain):
            if self.steady is not None:
                self.steady.reach(self.store.latest())
            with whole(self.store.connections.name, self.store.writer):
                self.keeping.begin(lambda: self._make_keeper(self.writer, self.policy, self.clock()))
            if self.enrolment is not None:
                self.enrolment.begin(self.clock())
            if self.wrong.pop("lease", None):
                log.info("this server writes from now on")
            return
        holder = self.store.lease.holder()
        self._wait(
            f"another server writes this store ({holder.holder if holder else 'it is just going'}); this one reads, and takes over when that one is gone"
        )

    def _wait(self, why: str) -> None:
        self.keeping.end(Unavailable(why, hint="send what changes something to that one"))
        if "lease" not in self.wrong:
            log.warning("this server only reads", why=why)
        self.wrong["lease"] = why

    def _release(self) -> None:
        if self.keeping.begun:
            self.keeping.end(Unavailable("the server is stopping", hint="try again when it is back"))
            try:
                self.tokens.flush(self.clock())
                self.store.lease.release()
            except MusterError as error:
                log.warning("the right to write is not given back", problem=error.message)

    def _thread(self, name: str, run: Callable[[], None]) -> None:
        self.threads[name] = threading.Thread(target=run, name=f"muster-{name}", daemon=True)
        self.threads[name].start()

    def _pass_time(self) -> None:
        trimmed = tidied = time.monotonic()
        pause = self.settings.tick
        while not self._ending.wait(pause):
            mono = time.monotonic()
            pause = self.settings.tick
            try:
                self._hold_lease(mono)
                now = self.clock()
                self._hear_out(now)
                if self.keeping.tick(now):
                    pause = SLICE
                if mono - trimmed >= self.settings.trim and self.keeping.begun:
                    trimmed = mono
                    self.keeping.alone(self._trim)
                if mono - tidied >= TIDY:
                    tidied = mono
                    self._tidy()
                self._well("time", "time passes again")
            except MusterError as error:
                self._ill("time", "time does not pass", error)
            if self.keeping.begun:
                self.keeping.alone(self.writer.retry)

    def _hear_out(self, now: float) -> None:
        """Who was sent away because the server was too busy is not silent. They come back within a while, and more of them while it is."""
        sent_away = self.sent_away()
        if sent_away == self._sent_away:
            if self.busy and now >= self._busy_until:
                log.info("all reports are taken in again")
                self.busy = ""
            return
        self._sent_away, self._busy_until = sent_away, now + self.policy.stale_floor
        if not self.busy:
            log.warning("more reports come than can be taken in; nobody is called silent meanwhile")
        self.busy = "more reports come than can be taken in; they wait at their agents, and nobody is called silent meanwhile"
        self.keeping.hold(self._busy_until)

    def _hold_lease(self, mono: float) -> None:
        if mono - self._leased < LEASE:
            return
        self._leased = mono
        if not self.keeping.begun:
            self._lease()
        elif self.store.adrift():
            log.warning("a write ended without an answer; the roll is read anew")
            self.keeping.begin(lambda: self._make_keeper(self.writer, self.policy, self.clock()))
        elif not self.store.lease.renew(mono):
            log.error("another server has taken the right to write")
            self._wait("another server has taken over; this one reads")

    def _trim(self) -> None:
        self.writer.trim(self.clock(), self.settings.keep())

    def _tidy(self) -> None:
        """Certificates that end are made or taken anew, it is written down which tokens were used and who was refused, and freed memory is given back."""
        now = self.clock()
        _give_back()
        if self.authority is not None:
            self.authority.refresh(now)
        if self.keeping.begun:
            self.tokens.flush(now)
            if self.enrolment is not None:
                self.enrolment.tick(now)

    def _pack(self) -> None:
        while not self._ending.wait(PACK):
            try:
                while self.keeping.begun and not self._ending.is_set() and self.store.seal(self.clock()):
                    self._ending.wait(0.05)
                self._well("minutes", "minutes are packed again")
            except MusterError as error:
                self._ill("minutes", "minutes are not packed", error)

    def _ill(self, check: str, what: str, error: MusterError) -> None:
        """Something is not well; the log says so once."""
        if check not in self.wrong:
            log.warning(what, problem=error.message, hint=error.hint)
        self.wrong[check] = error.message

    def _well(self, check: str, what: str) -> None:
        """It is well; the log says so where it was not."""
        if was := self.wrong.pop(check, ""):
            log.info(what, problem_was=was)

    def _end_time(self) -> None:
        self._ending.set()
        for thread in self.threads.values():
            thread.join(PATIENCE)

    def not_well(self) -> dict[str, str]:
        """What is not well, by check; empty when it can do its work."""
        dead = {name: "has ended; restart the server" for name, thread in self.threads.items() if not thread.is_alive()}
        store = {"store": self.writer.trouble} if self.writer.trouble else {}
        return {**self.wrong, **store, **dead}

    def notes(self) -> dict[str, str]:
        """What a person should know of a server that does its work all the same."""
        unread, certificate = self.store.unread.told(), self.authority.trouble if self.authority else ""
        clock = self.steady.trouble if self.steady is not None else ""
        return {name: what for name, what in (("store", unread), ("certificate", certificate), ("clock", clock), ("load", self.busy)) if what}

    def meters(self) -> Mapping[str, float]:
        """Figures of the writer's work."""
        until = self.authority.until if self.authority is not None else None
        return {**self.keeping.meters(), **({"certificate_ends_timestamp_seconds": until} if until is not None else {})}

    def stop(self) -> None:
        """Ends time, gives the right to write back, and closes the store."""
        self._held.close()
