# SPDX-License-Identifier: Apache-2.0
"""`muster server backup`, `restore`, `check` and `upgrade`: the state of a server looked after from its own machine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from muster.interfaces.cli.calls import confirm, yes_option
from muster.interfaces.cli.cells import counted
from muster.interfaces.cli.exits import FAILED, OK
from muster.interfaces.cli.output import note, write
from muster.wiring.agent import CLOCK
from muster.wiring.server import running_version
from muster.wiring.settings import ServerSettings, load_settings
from muster.wiring.upkeep import Upgraded, coming
from muster.wiring.upkeep import backup as back_up
from muster.wiring.upkeep import check as look_over
from muster.wiring.upkeep import restore as put_back
from muster.wiring.upkeep import upgrade as bring_up

TELL = 100_000
"""Rows of a table after which is told how far a check has come."""


def _where(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which server's state is meant."""
    state = click.option("--state", type=click.Path(path_type=Path), metavar="FOLDER", help="State folder of the server.")
    config = click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Settings file; left out: as of `muster server`.")
    return config(state(command))


def _settings(file: Path | None, state: Path | None) -> ServerSettings:
    return load_settings(file, state=state)


@click.command()
@click.argument("to", type=click.Path(path_type=Path), metavar="FILE")
@_where
def backup(to: Path, file: Path | None, state: Path | None) -> int:
    """Write the roll, its history and the server's keys to one FILE, also while the server runs. Keep it safe: it lets its holder act as the server."""
    made = back_up(_settings(file, state), to, CLOCK.wall(), running_version())
    write(f"{made.file}: {_size(made.size)}, schema {made.manifest.schema or 'none'}, {counted(len(made.manifest.members), 'file')}\n")
    return OK


@click.command()
@click.argument("of", type=click.Path(path_type=Path), metavar="FILE")
@yes_option
@_where
def restore(of: Path, yes: bool, file: Path | None, state: Path | None) -> int:
    """Put a backup in the place of what the server holds now, which is kept beside it. The server must be stopped."""
    settings = _settings(file, state)
    found = coming(settings, of)
    note(f"muster: {of} is of {_day(found.made_at)}, by Muster {found.muster}, schema {found.schema or 'none'}; what came later is not in it")
    confirm(f"Put {of} in the place of the store? What it holds now is kept beside it.", yes)
    done = put_back(settings, of, CLOCK.wall(), running_version())
    for kept in done.before:
        note(f"muster: what was there is in {kept}")
    write(f"{done.name}: restored as of {_day(done.manifest.made_at)}, by Muster {done.manifest.muster}\n")
    return OK


@click.command()
@_where
def check(file: Path | None, state: Path | None) -> int:
    """Look the store over, row by row: its schema, whether it is whole, the chain of the audit log, how much it holds, and the server's keys.

    Ends with 1 when something is wrong. The digest of the audit log's last entry, kept elsewhere, shows later whether entries were cut off its end.
    """
    found = look_over(_settings(file, state), _progress)
    lines = [f"{found.name}: schema {found.schema or 'none'}"]
    lines += [f"  {name.replace('_', ' ')}: {count}" for name, count in found.counts.items()]
    if found.audit is not None and found.audit.broken is None:
        lines.append(f"  audit log: {found.audit.rows} {'entry' if found.audit.rows == 1 else 'entries'}, whole; the last is sha256:{found.audit.head}")
    write("\n".join([*lines, *(f"  wrong: {problem}" for problem in found.problems), "" if found.problems else "  all is well\n"]))
    return FAILED if found.problems else OK


def _progress(table: str, rows: int) -> None:
    if rows and rows % TELL == 0:
        note(f"muster: {table}: {rows} rows read")


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show the migrations.")
@yes_option
@_where
def upgrade(dry_run: bool, yes: bool, file: Path | None, state: Path | None) -> int:
    """Bring the store to this version's schema: shows the migrations, asks, makes a backup, and runs them. The server must be stopped."""

    def agreed(plan: Upgraded) -> bool:
        _show(plan)
        confirm("Run them? A backup is made first.", yes)
        return True

    done = bring_up(_settings(file, state), CLOCK.wall(), running_version(), agreed, dry_run=dry_run)
    if not done.steps:
        write(f"{done.name}: schema {done.found}, which is this version's\n")
    elif dry_run:
        _show(done)
    else:
        note(f"muster: what was there is in {done.copy}")
        write(f"{done.name}: schema {done.steps[-1].revision} now\n")
    return OK


def _show(plan: Upgraded) -> None:
    lines = [f"  {each.revision}  {each.about}" for each in plan.steps]
    write("\n".join([f"{plan.name}: schema {plan.found or 'none'}; to be run:", *lines, ""]))


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
