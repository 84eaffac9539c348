# SPDX-License-Identifier: Apache-2.0
"""What the command line goes by: environment variables ``MUSTER_*``, then the user's file, then the machine's; options of a command win over all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.domain.model.errors import InputError

FILE = "config.toml"
LONGEST_S = 1_000_000.0
"""Seconds that a wait may take; what waits for longer is not waited for."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A setting of the command line: its name, what it is when nobody says it, and what it is for."""

    name: str
    default: str | float
    about: str

    @property
    def variable(self) -> str:
        """The environment variable that says it."""
        return f"MUSTER_{self.name.upper()}"


PREFERENCES = (
    Preference("server", "", "The server to speak to: a URL, or the path of its socket; empty: the one that runs on this machine."),
    Preference("output", "table", "Form of lists."),
    Preference("timeout", 30.0, "Seconds to wait for an answer of the server."),
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A setting of the agent, and of what reads a machine: said by its environment variable alone."""

    setting: str
    variable: str
    about: str
    default: str = ""
    of: str = "agent"
    secret: bool = False


VARIABLES = (
    Variable("server", "MUSTER_SERVER", "The server that the agent reports to: a URL, or the path of its socket; empty: the one that runs on this machine."),
    Variable("token", "MUSTER_TOKEN", "The token by which the agent may report, where the server asks for one.", secret=True),
    Variable("state", "MUSTER_STATE", "Where the agent keeps reports that wait, and its cursors."),
    Variable("root", "MUSTER_ROOT", "The root under which /sys and /proc are read, in a container.", "/", "agent, scan, record, doctor"),
    Variable("adapters", "MUSTER_ADAPTERS", "Adapters from outside the tree that are loaded, by name.", of="all"),
    Variable("search", "MUSTER_SEARCH", "Further folders in which makers' tools and libraries are looked for, apart by colons."),
    Variable("cadence", "MUSTER_CADENCE", "Seconds between two reads of what moves; left out: each source's own pace."),
    Variable("spool_mib", "MUSTER_SPOOL_MIB", "MiB of reports that wait at most.", "64"),
    Variable("spool_hours", "MUSTER_SPOOL_HOURS", "Hours that a listing waits at most.", "24"),
    Variable("spool_event_hours", "MUSTER_SPOOL_EVENT_HOURS", "Hours that an event waits at most.", "168"),
    Variable("ring_mib", "MUSTER_RING_MIB", "MiB of captures kept on the node.", "64"),
    Variable("ring_hours", "MUSTER_RING_HOURS", "Hours that a capture is kept on the node.", "168"),
    Variable("process_names", "MUSTER_PROCESS_NAMES", "1: names of processes on the cards are reported; they are left out otherwise.", "0"),
)
"""What has no file: the agent runs where files of a person are none of its business."""


def files() -> tuple[Path, ...]:
    """Where the file is looked for, the user's first."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return (config / "muster" / FILE, Path("/etc/muster") / FILE)


def preferred(name: str) -> tuple[Any, str]:
    """The value of a setting, and where it comes from. Raises InputError for a file or value that cannot be used."""
    preference = next(each for each in PREFERENCES if each.name == name)
    text = os.environ.get(preference.variable)
    if text:
        return _checked(preference, text, preference.variable), preference.variable
    for file in files():
        table = _read(file)
        if name in table:
            return _checked(preference, table[name], str(file)), str(file)
    return preference.default, "default"


def _checked(preference: Preference, value: Any, origin: str) -> Any:
    if not isinstance(preference.default, float):
        return str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number <= LONGEST_S:
        raise InputError(f"{origin}: {preference.name} is {value!r}, not a number above zero and at most {LONGEST_S:.0f}", hint="like 30")
    return number


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    import tomllib

    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as wrong:
        raise InputError(f"{file}: {wrong}", hint='it holds lines like: server = "http://muster.example:7460"') from wrong
    unknown = sorted(told.keys() - {each.name for each in PREFERENCES})
    if unknown:
        raise InputError(f"{file}: no setting {unknown[0]!r}", hint=f"settings are {', '.join(each.name for each in PREFERENCES)}")
    return told
