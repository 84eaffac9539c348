# SPDX-License-Identifier: Apache-2.0
"""Puts an agent together: the adapters, readers of this node or of a recorded machine, the spool, and the way to the server."""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import secrets
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from muster.collect.agent import LONGEST_S, STEP_S, Agent, drain, run, until_signal
from muster.collect.clock import Clock
from muster.collect.collector import Collector
from muster.collect.delivery import LONGEST_WAIT_S, Delivery
from muster.collect.evidence import Evidence
from muster.collect.follow import Cursors, Follower
from muster.collect.node import NodeAdapter, node_of
from muster.collect.noted import FILE, Noted
from muster.collect.notify import Notify
from muster.collect.pace import tells_who
from muster.collect.post import Address, Poster, address, discover
from muster.collect.reports import Identity, Reports
from muster.collect.ring import Ring
from muster.collect.spool import Spool
from muster.collect.tell import Teller
from muster.collect.weigh import Scales, processor
from muster.domain.model.errors import Unavailable
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, ReaderKind, Source
from muster.readers.real import RealReaders, real_readers
from muster.readers.recorded import RecordedMachine, RecordedReader, load_machine
from muster.spi.adapter import Adapter, Manifest
from muster.spi.readers import Reader
from muster.wire.report import AgentDoc, NodeDoc
from muster.wiring.adapters import adapter, claims, folders, known_vendors
from muster.wiring.agent_settings import Settings as Settings
from muster.wiring.aloud import Aloud, waiting
from muster.wiring.lock import alone
from muster.wiring.membership import Membership
from muster.wiring.moving import short_ways
from muster.wiring.release import Releases

_log = logging.getLogger("muster.agent")

CLOCK = Clock(time.time, time.monotonic)  # noqa: TID251 - wiring owns the clock

GARBAGE = 20_000
"""New objects that lie around before circles among them are looked for."""

DISTRIBUTION = "musterroll"

HERE_WAIT_S = 5.0
"""Seconds between looks for a server on this machine; looking costs nothing."""

ONCE_S = 30.0
"""Seconds that `--once` waits for the server."""

SELDOM_S = 120.0
"""A source that is read more seldom than this is not read more often by a setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eyes:
    """All that sees one node: adapters with their readers, live or recorded. ``streams`` are followed beside the rounds."""

    adapters: Sequence[Adapter]
    readers: Mapping[ReaderKind, Reader]
    context: Mapping[str, str]
    node: NodeDoc
    real: RealReaders | None = None
    streams: tuple[Source, ...] = ()

    def collector(self, clock: Clock = CLOCK) -> Collector:
        """A collector over these."""
        real = self.real
        if real is None:
            return Collector(self.adapters, self.readers, clock, self.context)
        return Collector(self.adapters, self.readers, clock, self.context, lambda name: str(real.custody.stuck(name) or ""), real.workers.release, short_ways())

    def close(self) -> None:
        """Ends workers and streams."""
        if self.real is not None:
            self.real.close()


def now() -> datetime:
    """The wall time for readers."""
    return datetime.now(UTC)  # noqa: TID251 - wiring owns the clock


@cache
def version() -> str:
    """The version of Muster that runs, by the folder that its installation left; `importlib.metadata` takes more memory than all adapters together."""
    for folder in sys.path:
        for found in Path(folder).glob(f"{DISTRIBUTION}-*.dist-info"):
            return found.name.removesuffix(".dist-info").removeprefix(f"{DISTRIBUTION}-")
    return "0+tree"


def _spread() -> float:
    return secrets.randbelow(1000) / 1000


def sources(these: Sequence[Adapter], *kinds: ReaderKind) -> tuple[Source, ...]:
    """Sources of these adapters that are read by readers of ``kinds``."""
    return tuple(source for each in these for source in each.sources if source.reader in kinds)


def eyes(machine: Path | None = None, outside: Sequence[str] = (), root: str = "/", *, search: Sequence[str] = (), cadence: float | None = None) -> Eyes:
    """This node as it can be seen, or a recorded machine.

    ``search`` are further folders for tools and libraries, ``cadence`` the seconds between two reads of what moves, where it is not to be each source's own.
    """
    these: tuple[Adapter, ...] = (NodeAdapter(), *_loaded((*folders(), *(name for name in outside if name not in folders()))))
    if search or cadence:
        these = tuple(Sighted(each, tuple(_tuned(source, search, cadence) for source in each.sources)) for each in these)
    context = {"known_vendors": ",".join(known_vendors(these))}
    return _live(these, context, root) if machine is None else _recorded(these, context, load_machine(machine))


def _loaded(names: Sequence[str]) -> Iterator[Adapter]:
    """The adapters of these names that can be loaded; one that cannot is said, and the others see on."""
    for name in names:
        try:
            yield adapter(name)
        except Exception as error:  # noqa: BLE001 - the edge to code of others: whatever their import raises must not blind the agent
            _log.error("the adapter %s is not used: %s: %s", name, type(error).__name__, error)


def _live(these: tuple[Adapter, ...], context: Mapping[str, str], root: str) -> Eyes:
    real = real_readers(now, root)
    readers: dict[ReaderKind, Reader] = {kind: reader for kind, reader in real.by_kind.items() if kind is not ReaderKind.STREAM}
    source = these[0].sources[0]
    node = node_of(list(readers[ReaderKind.FILES].read(source, source.deadline)))
    if not node.name:
        node = NodeDoc(name=os.uname().nodename, machine_id=node.machine_id, system=node.system)
    return Eyes(adapters=these, readers=readers, context=context, node=node, real=real, streams=sources(these, ReaderKind.STREAM))


def _tuned(source: Source, search: Sequence[str], cadence: float | None) -> Source:
    """The source with the folders and the pace of this node; who is there is asked as rarely as ever, and a stream has no pace."""
    slow = source.reader is ReaderKind.STREAM or tells_who(source) or source.cadence.total_seconds() > SELDOM_S
    pace = source.cadence if cadence is None or slow else timedelta(seconds=cadence)
    return replace(source, search=(*search, *source.search), cadence=pace)


@dataclass(frozen=True, slots=True)
class Sighted:
    """An adapter with sources of another choice: those that a recorded machine has something of, or as this node wants them read."""

    inner: Adapter
    sources: Sequence[Source]

    @property
    def manifest(self) -> Manifest:
        """The adapter's own."""
        return self.inner.manifest

    def recognise(self, head: bytes) -> str | None:
        """The adapter's own."""
        return self.inner.recognise(head)

    def interpret(self, captures: Sequence[Capture]) -> Interpretation:
        """The adapter's own."""
        return self.inner.interpret(captures)


def _recorded(these: tuple[Adapter, ...], context: Mapping[str, str], machine: RecordedMachine) -> Eyes:
    machine = replace(machine, captures=tuple(_placed(these, machine.captures)))
    reader = RecordedReader(machine)
    source = these[0].sources[0]
    seen = node_of(list(reader.read(source, source.deadline)))
    node = NodeDoc(
        name=machine.node.name or seen.name or machine.path.resolve().name,
        machine_id=machine.node.machine_id or seen.machine_id,
        system=_chassis(machine.node.system) or seen.system,
    )
    there = {capture.source for capture in machine.captures}
    sighted = tuple(Sighted(each, tuple(source for source in each.sources if source.id in there)) for each in these)
    return Eyes(adapters=sighted, readers=dict.fromkeys(ReaderKind, reader), context=context, node=node)


def _chassis(text: str) -> str:
    """The chassis' serial or UUID as a recording gives it; a word without a digit, or several words, names an operating system and no chassis."""
    return text if any(sign.isdigit() for sign in text) and not any(sign.isspace() for sign in text) else ""


def _placed(these: Sequence[Adapter], captures: Sequence[Capture]) -> Iterator[Capture]:
    """Captures under sources that there are; one of no source, or of one that is gone, goes to whoever reads its format."""
    known = {source.id for each in these for source in each.sources}
    for capture in captures:
        if capture.source in known:
            yield capture
            continue
        for each, form in claims(these, capture.payload):
            reading = [source for source in each.sources if form in {read.format for read in source.reads}]
            yield from (replace(capture, source=source.id, format=form) for source in reading[:1])


def boot_id(root: str = "/") -> str:
    """The boot of this system, which the monotonic clock is of; empty where the system has none."""
    try:
        return (Path(root) / "proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def state_folder(settings: Settings, environ: Mapping[str, str]) -> Path:
    """Where spool and cursors are kept: as set, else ``agent`` in the state folder of Muster; apart for each recorded machine."""
    if settings.state is not None:
        return settings.state
    if environ.get("MUSTER_STATE"):
        home = Path(environ["MUSTER_STATE"])
    elif os.geteuid() == 0:
        home = Path("/var/lib/muster")
    else:
        home = Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "muster"
    name = f"agent-{hashlib.sha256(str(settings.machine.resolve()).encode()).hexdigest()[:12]}" if settings.machine else "agent"
    return home / name


def poster(settings: Settings, environ: Mapping[str, str], member: Membership | None = None) -> Poster:
    """The way to the server that is named, else to the one that was joined, else to the one that runs here at the moment of posting."""
    if member is not None and not settings.server:
        joined = member.address
        return Poster(lambda: joined, member=member)
    named = address(settings.server) if settings.server else None

    def find() -> Address | None:
        return named or discover(environ, Path.home())

    return Poster(find, token=environ.get("MUSTER_TOKEN", ""))


def run_agent(settings: Settings, environ: Mapping[str, str], *, once: bool = False, stop: threading.Event | None = None) -> int:
    """Runs an agent until ``stop`` is set or a signal comes; with ``once`` every source once. 0 when all is delivered, 1 when reports were refused.

    Raises NotAllowed when the server does not let it in, and Unavailable when it does not answer.
    """
    folder = state_folder(settings.checked(), environ)
    member = Membership.open(folder) if not settings.server else None
    post = poster(settings, environ, member)
    with alone(folder):
        seen = eyes(settings.machine, settings.outside, settings.root, search=settings.search, cadence=settings.cadence)
        if member is not None:
            member.node, member.boot_id, member.agent_version = seen.node, boot_id(), version()
        made = _made(settings, folder, seen, post, member.reporter if member else "")
        notify = Notify(environ, CLOCK.mono)
        aloud = Aloud.at(sys.stderr, CLOCK, made.collector, made.delivery, member)
        if aloud is not None:
            aloud.begin(seen.node.name, settings.server, folder, once=once)
        try:
            return _once(made, folder, stop or until_signal(made.agent), member, aloud) if once else _on(made, folder, notify, stop, aloud)
        finally:
            notify.stopping()
            seen.close()
            post.close()


@dataclass(frozen=True, slots=True)
class Made:
    """An agent and what belongs to it."""

    agent: Agent
    delivery: Delivery
    spool: Spool
    collector: Collector
    follower: Follower | None


def _made(settings: Settings, folder: Path, seen: Eyes, post: Poster, reporter: str) -> Made:
    boot = boot_id()
    adapters = {each.manifest.name: version() for each in seen.adapters}
    identity = Identity(node=seen.node, boot_id=boot, agent_version=version(), adapters=adapters, reporter_name=reporter)
    reports = Reports(identity, CLOCK, lambda: uuid.uuid4().hex)  # noqa: TID251 - wiring mints ids
    spool = Spool(folder / "spool", settings.limits)
    evidence = Evidence(Ring(folder / "ring", settings.room), clock=CLOCK)
    cursors = Cursors(folder / "cursors")
    follower = Follower(seen.streams, seen.real.stream, cursors) if seen.real is not None else None
    collector, scales = seen.collector(), Scales(os.getpid(), CLOCK.mono)
    agent = Agent(
        collector,
        Teller(boot, evidence, names=settings.process_names),
        reports,
        spool,
        CLOCK,
        follower=follower,
        cursors=cursors,
        streams=seen.streams if follower else (),
        weighed=lambda doc: _weighed(doc, delivery, scales),
    )
    delivery = Delivery(
        spool,
        post,
        CLOCK,
        boot_id=boot,
        spread=_spread,
        renew=agent.renew,
        longest=LONGEST_WAIT_S if settings.server or reporter else HERE_WAIT_S,
        well=post.well,
        smaller=reports.smaller,
        wanted=agent.wanted,
    )
    return Made(agent, delivery, spool, collector, follower)


def _weighed(doc: AgentDoc, delivery: Delivery, scales: Scales) -> AgentDoc:
    doc.refused, doc.memory, doc.cpu = delivery.refused, scales.memory(), round(processor(os.getpid()), 2)
    return doc


def _on(made: Made, folder: Path, notify: Notify, stop: threading.Event | None, aloud: Aloud | None) -> int:
    """Reads and delivers until it is told to stop."""
    longest = LONGEST_S if stop is None and aloud is None else STEP_S
    stop = stop or until_signal(made.agent)
    noted = Noted(folder / FILE, CLOCK)
    releases = Releases(folder, made.collector.release)
    releases.listen(made.agent.wake)

    def between() -> float:
        left = notify.alive()
        releases.look()
        if aloud is not None:
            aloud.look()
        return min(left, longest)

    def delivered() -> float:
        if aloud is not None:
            aloud.heard()
        return noted.note(made.delivery, made.spool)

    _calm()
    notify.ready()
    run(made.agent, made.delivery, CLOCK, stop, made.follower, between=between, noted=delivered)
    return 0


def _calm() -> None:
    """Looks for circles of garbage seldom: a round leaves none, and what was loaded stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)


def _once(made: Made, folder: Path, stop: threading.Event, member: Membership | None, aloud: Aloud | None) -> int:
    """Reads every source once and delivers."""
    made.agent.once()
    until = CLOCK.mono() + ONCE_S
    delivery = made.delivery
    delivered = drain(delivery, lambda: stop.is_set() or CLOCK.mono() > until)
    Noted(folder / FILE, CLOCK).note(delivery, made.spool)
    if not delivered and made.spool.held:
        hint = "make room there, or name another folder with --state or MUSTER_STATE"
        raise Unavailable(f"reports are lost: {folder / 'spool'} cannot be written, and the server did not take them: {delivery.trouble}", hint=hint)
    if not delivered:
        raise waiting(folder / "spool", delivery.failed, member)
    if aloud is not None:
        aloud.end()
    return 1 if delivery.refused else 0
