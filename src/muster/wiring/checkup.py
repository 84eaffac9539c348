# SPDX-License-Identifier: Apache-2.0
"""What an agent on this node needs beside its sources: device nodes it may open, a server that knows it, a clock that is right, and room on the disk."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from pathlib import Path

from muster.collect.answer import ANSWERED
from muster.collect.link import Link, speaks_tls
from muster.collect.noted import FILE
from muster.collect.post import Address, address, discover
from muster.collect.words import plain
from muster.domain.model.errors import MusterError
from muster.wiring.agent import CLOCK, Settings, state_folder
from muster.wiring.lock import running
from muster.wiring.membership import STATE, Membership, folder_of
from muster.wiring.survey import FAILED, LIMITED, NOTHING, OK, Seen

CLOCK_OFF_S = 30.0
"""A clock further off than this is said; the server corrects it, but people who read logs do not."""

TOKEN_NEAR_S = 60.0
SILENT_S = 300.0
TIMEOUT_S = 5.0
_ACCELERATORS = ("0x0302", "0x0380", "0x12")
"""PCI classes of cards that compute: 3D controllers, other displays, processing accelerators."""


def checkup(settings: Settings, environ: Mapping[str, str], *, sys: Path = Path("/sys"), dev: Path = Path("/dev")) -> list[Seen]:
    """All checks of this node, in the order in which they are to be read."""
    folder = state_folder(settings, environ)
    server = list(_server(settings, environ, folder))
    away = next((row.source for row in server if row.source == "agent.reach" or (row.source == "agent.server" and row.state != OK)), "")
    rows = [_devices(sys, dev), *server, *_spool(settings, folder, away, running(folder))]
    return [row for row in rows if row is not None]


def _row(name: str, state: str, why: str = "", help_: str = "", detail: str = "") -> Seen:
    return Seen(source=f"agent.{name}", adapter="agent", state=state, outcome="", why=why, help=help_, detail=detail)


def device_files(sys: Path, dev: Path) -> Iterator[Path]:
    """Device files that drivers made for cards that compute, as the system lists them."""
    for card in sorted((sys / "bus/pci/devices").glob("*")):
        if not _text(card / "class").startswith(_ACCELERATORS):
            continue
        for event in sorted((*card.glob("*/*/uevent"), *card.glob("*/*/*/uevent"))):
            pairs = dict(line.partition("=")[::2] for line in _text(event).splitlines())
            if "MAJOR" in pairs and pairs.get("DEVNAME"):
                yield dev / pairs["DEVNAME"].removeprefix("/dev/")


def _devices(sys: Path, dev: Path) -> Seen | None:
    there = list(dict.fromkeys(device_files(sys, dev)))
    denied = [path for path in there if path.exists() and not os.access(path, os.R_OK | os.W_OK)]
    missing = [path for path in there if not path.exists()]
    if denied:
        groups = sorted({_group(path) for path in denied})
        names = ", ".join(map(str, denied))
        return _row("devices", LIMITED, f"may not be opened: {names}", f"run as root, or put this user into the group {' or '.join(groups)}")
    if missing:
        return _row("devices", LIMITED, f"not there: {', '.join(map(str, missing))}", "in a container: hand the device files in; else let udev make them")
    return _row("devices", OK, detail=f"{len(there)} device files") if there else None


def _group(path: Path) -> str:
    try:
        return path.group()
    except (KeyError, OSError, NotImplementedError):
        return "that owns them"


def _server(settings: Settings, environ: Mapping[str, str], folder: Path) -> Iterator[Seen]:
    try:
        member = None if settings.server else Membership.open(folder)
    except MusterError as error:
        yield _row("server", FAILED, error.message, error.hint)
        return
    if member is not None:
        yield _row("server", OK, detail=f"joined {member.address.url} as {member.reporter}")
        yield from _token(folder)
        yield _clock(lambda: member.address, Link(TIMEOUT_S, member.context), "/readyz")
        return
    try:
        where = address(settings.server) if settings.server else discover(environ, Path.home())
    except MusterError as error:
        yield _row("server", FAILED, error.message, error.hint)
        return
    if where is None:
        why = "this node has joined no server, and none runs here"
        yield _row("server", NOTHING, why, "`muster agent join` with the line that the server printed, or name one with MUSTER_SERVER")
        return
    yield _row("server", OK, detail=where.socket or where.url)
    yield _clock(lambda: where, Link(TIMEOUT_S), "/version")


def _token(folder: Path) -> Iterator[Seen]:
    told = _document(folder_of(folder) / STATE)
    until, off, trouble = told.get("until"), told.get("off"), str(told.get("trouble") or "")
    left = until - CLOCK.wall() - (off if isinstance(off, int | float) else 0.0) if isinstance(until, int | float) else None
    if trouble:
        help_ = str(told.get("help") or "") or "`muster agent status` shows more; a node that was revoked joins again by an operator's word"
        yield _row("token", FAILED, f"{trouble}{_ago(told.get('at'))}", help_)
    elif left is None:
        yield _row("token", NOTHING, "no access token was asked for yet", "start the agent")
    elif left < TOKEN_NEAR_S:
        yield _row("token", LIMITED, "the access token ends now, or has ended", "is the agent running? It asks for a new one long before")
    else:
        yield _row("token", OK, detail=f"holds for {left / 60:.0f} minutes")


def _clock(where: Callable[[], Address], link: Link, path: str) -> Seen:
    """Our clock held against the date of the server's answer, which has whole seconds."""
    from email.utils import parsedate_to_datetime

    there = where()
    try:
        link.open(there.url, there.socket)
        before = CLOCK.wall()
        answered = link.ask("GET", path, None, {"Accept": "application/json"})
        date = answered.headers.get("date", "")
        off = (before + CLOCK.wall()) / 2 - (parsedate_to_datetime(date).timestamp() + 0.5) if date else None
    except (OSError, HTTPException, MusterError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        help_ = "name it as https://" if not there.socket and speaks_tls(there.url, error) else "is the server running, and may this node reach its port?"
        return _row("reach", FAILED, f"{there.socket or there.url} does not answer: {plain(said)}", help_)
    finally:
        link.close()
    if off is None:
        return _row("clock", OK, detail="the server answers; it tells no time")
    if abs(off) > CLOCK_OFF_S:
        way = "ahead of" if off > 0 else "behind"
        return _row("clock", LIMITED, f"this clock is {abs(off):.0f} s {way} the server's", "set it, or let NTP or chrony do so; ages are right all the same")
    return _row("clock", OK, detail="within a second of the server's" if abs(off) < 1.5 else f"{abs(off):.0f} s off the server's")


def _spool(settings: Settings, folder: Path, away: str, pid: int | None) -> Iterator[Seen]:
    """``away``: the row above that says why no server answers; empty when one does. ``pid``: the agent that runs."""
    spool, waits = folder / "spool", _waits(folder, away, pid)
    try:
        waiting = [path.stat() for path in spool.glob("*.report")]
        free = shutil.disk_usage(next(each for each in (spool, folder, *folder.parents) if each.exists())).free
    except OSError as error:
        yield _row("spool", FAILED, f"{spool}: {error.strerror}", "let the agent's user write there, or name another folder with --state")
        return
    size, most = sum(each.st_size for each in waiting), settings.limits.size
    oldest = CLOCK.wall() - min((each.st_mtime for each in waiting), default=CLOCK.wall())
    if not os.access(next(each for each in (spool, folder, *folder.parents) if each.exists()), os.W_OK):
        yield _row("spool", FAILED, f"{spool} may not be written", "run this as the agent's user, or give the folder to it")
    elif free < most - size:
        yield _row(
            "spool", LIMITED, f"the disk has {free // 2**20} MiB left, the spool may need {(most - size) // 2**20}", "free some, or set MUSTER_SPOOL_MIB"
        )
    elif size > 0.8 * most:
        yield _row("spool", LIMITED, f"{len(waiting)} reports wait, {size * 100 // most} % of its bound; the oldest listings go first", waits)
    elif waiting and oldest > SILENT_S:
        yield _row("spool", LIMITED, f"{len(waiting)} reports wait, the oldest for {oldest / 60:.0f} minutes", waits)
    else:
        yield _row("spool", OK, detail=f"{len(waiting)} reports wait")
    yield from _delivery(folder, away, pid)


def _waits(folder: Path, away: str, pid: int | None) -> str:
    """What lets reports go on that have waited long."""
    if pid is None:
        return f"no agent runs on {folder}: start it"
    return f"look at {away} above" if away else "the server answers: they go now, the oldest first; where they do not, the agent's log says why"


def _delivery(folder: Path, away: str, pid: int | None) -> Iterator[Seen]:
    """What became of the last posts. What was wrong then is not told where the server answers now, but what this server said to an agent that runs still."""
    told = _document(folder / FILE)
    trouble, lost = str(told.get("trouble") or ""), [f"{told[key]} {key}" for key in ("dropped", "refused") if told.get(key)]
    if trouble and (away or (pid is not None and trouble.startswith(ANSWERED))):
        yield _row("delivery", FAILED, f"{trouble}{_ago(told.get('trouble_at'))}", "reports wait on disk until it is over")
    elif lost:
        yield _row("delivery", LIMITED, f"{' and '.join(lost)} since the agent began", "its log says which reports, and why")


def _ago(at: object) -> str:
    """When something was said for the first time, in words."""
    if not isinstance(at, int | float) or at <= 0:
        return ""
    seconds = max(0.0, CLOCK.wall() - at)
    return f" (first said {seconds / 60:.0f} minutes ago)" if seconds >= 90 else f" (first said {seconds:.0f} s ago)"


def _document(path: Path) -> Mapping[str, object]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
