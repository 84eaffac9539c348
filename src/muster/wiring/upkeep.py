# SPDX-License-Identifier: Apache-2.0
"""The state of a server looked after from outside: backed up while it runs, restored, checked, and brought to this version's schema."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from muster.domain.model.errors import Conflict, InputError, Unavailable
from muster.store import copies, looking, open_store
from muster.store.connections import Connections
from muster.store.leasing import WriterLease
from muster.store.looking import Looked, Pending
from muster.store.looking_rows import Progress
from muster.store.opening import SPAN, connect
from muster.wiring import archive, authority, holds, listening
from muster.wiring.archive import Manifest
from muster.wiring.private import as_owner
from muster.wiring.settings import ServerSettings
from muster.wiring.whole import decoders

STORE = "roll.sqlite"
AUTHORITY = "authority"
"""Folder of the keys that reporters trust: it goes with the store."""
_NO_KEYS = frozenset({"lock"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Backed:
    """A backup that was made."""

    file: Path
    size: int
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A backup that is in its place now."""

    manifest: Manifest
    name: str
    """Of the store."""
    before: Sequence[Path]
    """Where what was there lies now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """What an upgrade found and did."""

    name: str
    found: str | None
    steps: Sequence[Pending]
    copy: Path | None = None
    """The backup that was made first; None when nothing was changed."""


def place_of(settings: ServerSettings) -> Path | str:
    """Where the store of a server with these settings is. Raises InputError for one in memory."""
    if settings.in_memory:
        raise InputError("a store in memory has nothing to look after", hint="leave out --in-memory")
    return settings.database or settings.state / STORE


def backup(settings: ServerSettings, file: Path, now: float, version: str) -> Backed:
    """Writes the store and the server's keys to one file, beside a server that may be at work. Raises NotFound, Conflict, Unavailable."""
    place = place_of(settings)
    found = looking.pending(place)[0] or ""
    with archive.writing(file) as made, _work(settings) as folder:
        with as_owner(settings.state):
            taken = copies.take(place, folder)
            while (copy := next(taken, None)) is not None:
                made.add(copy.relative_to(folder).as_posix(), copy)
                copy.unlink()
            for key in _keys(settings.state):
                made.add(f"{AUTHORITY}/{key.name}", key)
        manifest = made.finish(version, found, now)
    return Backed(file=file, size=file.stat().st_size, manifest=manifest)


def coming(settings: ServerSettings, file: Path) -> Manifest:
    """What a backup is, before it is put in place of the store. Raises Conflict at once while a server runs on the state folder, InputError for no backup."""
    manifest = archive.told(file)
    _nobody_on(settings)
    return manifest


def restore(settings: ServerSettings, file: Path, now: float, version: str, *, patience: float = 2 * SPAN) -> Restored:
    """Puts a backup in the place of the store. What was there stays beside it. Raises Conflict while a server holds it, InputError for no whole backup."""
    place = place_of(settings)
    holds.folder(settings.state, "state", "--state", 0o700)
    with archive.reading(file) as opened, _work(settings) as folder:
        with as_owner(settings.state):
            manifest = archive.unpack(file, opened, folder)
        _known(manifest, folder)
        with _held(settings, place, patience), as_owner(settings.state):
            stamp = _stamp(now)
            before = _dumped(settings, place, stamp, now, version)
            before += copies.put(place, folder, stamp)
            before += _put_keys(settings.state, folder / AUTHORITY, stamp)
    return Restored(manifest=manifest, name=_name(place), before=before)


def check(settings: ServerSettings, progress: Progress = lambda _table, _rows: None) -> Looked:
    """Looks the store over row by row, and the server's keys, beside a server that may be at work. Raises NotFound, Unavailable."""
    with as_owner(settings.state):
        found = looking.look(place_of(settings), decoders(), progress)
        joined = any(found.counts.get(name) for name in ("members", "reporters"))
        wrong = authority.problems(authority.state_of(settings.state), listening.theirs(settings), joined=joined)
    return replace(found, problems=(*found.problems, *wrong))


def upgrade(
    settings: ServerSettings, now: float, version: str, agreed: Callable[[Upgraded], bool], *, dry_run: bool = False, patience: float = 2 * SPAN
) -> Upgraded:
    """Brings the store to this version's schema, once ``agreed`` to the migrations; a backup is made first. Raises Conflict while a server holds it."""
    place = place_of(settings)
    found, steps = looking.pending(place)
    plan = Upgraded(name=_name(place), found=found, steps=steps)
    if not steps or dry_run:
        return plan
    _nobody_on(settings)
    if not agreed(plan):
        return plan
    with _held(settings, place, patience):
        copy = settings.state / f"before-{steps[-1].revision}-{_stamp(now)}.backup"
        backup(settings, copy, now, version)
        with as_owner(settings.state):
            open_store(place, alone=True).close()
    return Upgraded(name=plan.name, found=found, steps=steps, copy=copy)


def _nobody_on(settings: ServerSettings) -> None:
    """Raises Conflict at once while a server runs on the state folder: nobody is asked about what cannot be done."""
    if settings.state.is_dir():
        with as_owner(settings.state):
            holds.hold(settings.state).close()


@contextmanager
def _work(settings: ServerSettings) -> Iterator[Path]:
    """A folder for copies, on the disk of the state and gone afterwards."""
    with as_owner(settings.state):
        try:
            folder = Path(tempfile.mkdtemp(prefix=".copies-", dir=settings.state))
        except OSError as error:
            raise Unavailable(f"the state folder {settings.state} cannot be written: {error.strerror}", hint="let this user write it") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _held(settings: ServerSettings, place: Path | str, patience: float) -> Iterator[None]:
    """Nobody else has the store while this lasts. Raises Conflict when a server has it."""
    with holds.hold(settings.state), ExitStack() as held:
        connections = _known_of(place)
        if connections is not None:
            held.callback(connections.close)
            lease = WriterLease(connections, SPAN)
            _acquire(lease, connections.name, patience)
            held.enter_context(_renewed(lease, connections))
        yield


def _known_of(place: Path | str) -> Connections | None:
    """Connections to a store that has a lease; None where there is none yet, or what is there is a file too damaged to ask."""
    if isinstance(place, Path) and not place.is_file():
        return None
    try:
        connections = connect(place)
    except Unavailable:
        if isinstance(place, Path):
            return None
        raise
    try:
        if _leased(connections):
            return connections
    except Unavailable:
        connections.close()
        if isinstance(place, Path):
            return None
        raise
    connections.close()
    return None


def _acquire(lease: WriterLease, name: str, patience: float) -> None:
    """Waits for a lease whose holder may be gone. Raises Conflict as soon as that one is seen to renew it, and when it is not to be had in time."""
    until, first = time.monotonic() + patience, None
    while not lease.acquire("upkeep", time.monotonic()):
        holder = lease.holder()
        first = first or holder
        if (holder is not None and holder != first) or time.monotonic() > until:
            raise Conflict(f"{name} is written by {holder.holder if holder else 'a server'}", hint="stop that server first")
        time.sleep(0.2)


@contextmanager
def _renewed(lease: WriterLease, connections: Connections) -> Iterator[None]:
    """Keeps the lease while this lasts, and gives it back."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(SPAN / 4):
            with suppress(Unavailable):
                lease.renew(time.monotonic())

    thread = threading.Thread(target=renew, name="muster-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(Unavailable):
            if _leased(connections):
                lease.release()


def _leased(connections: Connections) -> bool:
    """Whether its schema has a lease at all."""
    return (looking.schema(connections) or "") >= "0002"


def _known(manifest: Manifest, folder: Path) -> None:
    """Raises Unavailable for a backup that a newer version made, InputError for one whose store is damaged."""
    looking.steps_after(manifest.schema or None)
    damage = next(looking.damage(folder / copies.MAIN), None) if (folder / copies.MAIN).is_file() else None
    if damage:
        raise InputError(f"the store in the backup is damaged: {damage}", hint="take another backup")


def _dumped(settings: ServerSettings, place: Path | str, stamp: str, now: float, version: str) -> list[Path]:
    """A database is not moved aside: what it holds is backed up before it is replaced."""
    if isinstance(place, Path) or looking.pending(place)[0] is None:
        return []
    kept = settings.state / f"before-restore-{stamp}.backup"
    backup(settings, kept, now, version)
    return [kept]


def _keys(state: Path) -> list[Path]:
    folder = state / AUTHORITY
    return sorted(file for file in folder.iterdir() if file.is_file() and file.name not in _NO_KEYS) if folder.is_dir() else []


def _put_keys(state: Path, coming: Path, stamp: str) -> list[Path]:
    """Puts the keys of the backup in place. Where other ones were, those stay beside."""
    if not coming.is_dir():
        return []
    folder, moved = state / AUTHORITY, []
    if {key.name: key.read_bytes() for key in _keys(state)} == {key.name: key.read_bytes() for key in coming.iterdir()}:
        return []
    if folder.exists():
        moved.append(folder.rename(state / f"{AUTHORITY}.before-{stamp}"))
    shutil.copytree(coming, folder)
    folder.chmod(0o700)
    return moved


def _name(place: Path | str) -> str:
    connections = connect(place)
    connections.close()
    return connections.name


def _stamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
