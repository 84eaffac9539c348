# SPDX-License-Identifier: Apache-2.0
"""A small site on this machine: a server on SQLite in a temporary folder, and an agent for every recorded machine. `muster demo` tells its story on it.

Nothing of a real Muster is touched: state, socket and discovery file lie in the temporary folder, and go with it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from muster.collect.post import Address, Poster
from muster.domain.model.errors import InputError, Unavailable
from muster.wiring.demo_fleet import Fleet, Loaded, load, machine_folders
from muster.wiring.demo_stage import Stage
from muster.wiring.desk import Desk
from muster.wiring.discovery import SOCKET
from muster.wiring.logs import configure_logs
from muster.wiring.server import Door, Server
from muster.wiring.settings import ServerSettings
from muster.wiring.writing import wall_clock

NEEDED_BYTES = 64 * 1024 * 1024
"""Free bytes that the temporary folder must have."""
_LONGEST_SOCKET = 100
"""Characters of a socket's path; the kernel takes 107."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds by which the demo's site lives, much shorter than those of a real one."""

    cadence: float = 1.0
    stale_floor: float = 4.0
    settle: float = 2.0


class Demo:
    """The site, from ``with`` to its end. ``say`` is told what takes a while; ``machines`` are recorded machines, those that ship with Muster when None.

    Entering raises Conflict for a port in use, Unavailable without temporary space, InputError when no machine can be loaded; nothing is left behind then.
    """

    def __init__(self, door: Door, say: Callable[[str], None], *, port: int = 0, pace: Pace | None = None, machines: Sequence[Path] | None = None) -> None:
        self.pace = pace or Pace()
        self.stage = Stage(wall_clock)
        self._door = door
        self._say = say
        self._port = port
        self._folders = machine_folders() if machines is None else list(machines)
        self._held = ExitStack()

    def __enter__(self) -> Demo:
        """Starts server and agents."""
        with ExitStack() as held:
            self.folder = _folder()
            held.callback(shutil.rmtree, self.folder, ignore_errors=True)
            settings = self._settings()
            configure_logs(settings)
            self._say("starting a server")
            self.server = Server(settings, self._door)
            self.server.start()
            held.callback(self.server.stop)
            self._say(f"reading {len(self._folders)} recorded machines")
            self.loaded = self._load()
            here = Address(self.server.url, self.server.socket)
            self.fleet = Fleet(self.loaded.machines, self.stage, self.folder, Poster(lambda: here))
            held.callback(self.fleet.stop)
            self._held = held.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        """Stops agents, then the server, and removes the temporary folder."""
        self._held.close()

    def _settings(self) -> ServerSettings:
        """Settings of the demo's own; neither the environment nor a file has a say."""
        return ServerSettings.model_construct(
            port=self._port,
            state=self.folder / "state",
            runtime=self.folder / "run",
            settle=self.pace.settle,
            stale_floor=self.pace.stale_floor,
            tick=0.25,
            log_level="warning",
        )

    def _load(self) -> Loaded:
        loaded = load(self._folders, timedelta(seconds=self.pace.cadence))
        if not loaded.machines:
            raise InputError(f"no recorded machine can be used: {'; '.join(loaded.failed) or 'none is installed'}", hint="install muster again")
        return loaded

    @property
    def desk(self) -> Desk:
        """The server's desk."""
        return self.server.desk

    @property
    def trouble(self) -> str:
        """What keeps the site from living; empty when nothing does."""
        if self.server.broken:
            return "the server has ended"
        return "the agents have ended" if self.fleet.broken else self.fleet.trouble


def _folder() -> Path:
    """A fresh temporary folder with room in it."""
    try:
        found = Path(tempfile.mkdtemp(prefix="muster-demo-"))
    except OSError as error:
        raise Unavailable(f"no temporary folder can be made: {error.strerror or error}", hint="set TMPDIR to a folder that this user can write") from error
    wrong = ""
    if shutil.disk_usage(found).free < NEEDED_BYTES:
        wrong = f"{found.parent} has less than {NEEDED_BYTES // 2**20} MiB free"
    elif len(str(found / "run" / SOCKET)) > _LONGEST_SOCKET:
        wrong = f"{found.parent} is too long a path for a socket in it"
    if wrong:
        found.rmdir()
        raise Unavailable(wrong, hint="set TMPDIR to another folder")
    return found
