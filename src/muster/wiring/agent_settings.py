# SPDX-License-Identifier: Apache-2.0
"""What an agent is told: by the environment and by flags. Read without a library, so that the agent stays light."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.collect.ring import Room
from muster.collect.spool import Limits
from muster.domain.model.errors import InputError

MIB = 1024 * 1024
HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an agent is told. ``server`` empty: the one that was joined, else the one found on this machine; ``machine``: a recorded machine to speak for."""

    server: str = ""
    machine: Path | None = None
    state: Path | None = None
    root: str = "/"
    process_names: bool = False
    outside: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    """Further folders in which tools and libraries of vendors are looked for."""
    cadence: float | None = None
    """Seconds between two reads of what moves; None: each source's own."""
    limits: Limits = field(default_factory=Limits)
    room: Room = field(default_factory=Room)

    @classmethod
    def of(cls, environ: Mapping[str, str], server: str | None = None, machine: Path | None = None, state: Path | None = None) -> Settings:
        """Settings from the environment, overridden by what is given. Raises InputError for a number that is none.

        ``MUSTER_SERVER``, ``MUSTER_ROOT``, ``MUSTER_ADAPTERS`` (words), ``MUSTER_PROCESS_NAMES`` (1), ``MUSTER_SEARCH`` (folders apart by colons),
        ``MUSTER_CADENCE`` (seconds), ``MUSTER_SPOOL_MIB``, ``MUSTER_SPOOL_HOURS``, ``MUSTER_SPOOL_EVENT_HOURS``, ``MUSTER_RING_MIB``, ``MUSTER_RING_HOURS``.
        """
        return cls(
            server=server or environ.get("MUSTER_SERVER", ""),
            machine=machine,
            state=state,
            root=environ.get("MUSTER_ROOT", "/"),
            process_names=environ.get("MUSTER_PROCESS_NAMES", "") == "1",
            outside=tuple(environ.get("MUSTER_ADAPTERS", "").split()),
            search=tuple(folder for folder in environ.get("MUSTER_SEARCH", "").split(":") if folder),
            cadence=_number(environ, "MUSTER_CADENCE", 1.0, 86_400.0),
            limits=_limits(environ),
            room=_room(environ),
        )

    def checked(self) -> Settings:
        """These. Raises InputError for a recorded machine that is not there: it would look like an agent that never ran."""
        if self.machine is not None and not self.machine.is_dir():
            raise InputError(f"{self.machine} is no folder", hint="name a recorded machine, as `muster record` makes it")
        return self


def _limits(environ: Mapping[str, str]) -> Limits:
    plain = Limits()
    return Limits(
        size=int((_number(environ, "MUSTER_SPOOL_MIB", 1.0, 1e6) or plain.size / MIB) * MIB),
        listing_age=(_number(environ, "MUSTER_SPOOL_HOURS", 0.01, 1e5) or plain.listing_age / HOUR) * HOUR,
        event_age=(_number(environ, "MUSTER_SPOOL_EVENT_HOURS", 0.01, 1e5) or plain.event_age / HOUR) * HOUR,
    )


def _room(environ: Mapping[str, str]) -> Room:
    plain = Room()
    size = int((_number(environ, "MUSTER_RING_MIB", 1.0, 1e6) or plain.size / MIB) * MIB)
    return Room(size=size, per_source=size // 4, age=(_number(environ, "MUSTER_RING_HOURS", 0.01, 1e5) or plain.age / HOUR) * HOUR)


def _number(environ: Mapping[str, str], name: str, low: float, high: float) -> float | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError as wrong:
        raise InputError(f"{name}={text!r} is no number", hint=f"give a number from {low:g} to {high:g}, or leave it out") from wrong
    if not low <= value <= high:
        raise InputError(f"{name}={text} is not between {low:g} and {high:g}", hint="give a number in between, or leave it out")
    return value
