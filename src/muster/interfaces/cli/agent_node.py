# SPDX-License-Identifier: Apache-2.0
"""`muster agent` on the node: join a server, leave it, change the key, say how it stands, let go of drivers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from muster.domain.model.errors import InputError, NotAllowed
from muster.interfaces.cli import sections
from muster.interfaces.cli.cells import safe, span
from muster.interfaces.cli.documents import now
from muster.interfaces.cli.output import note, to_json, write

F = TypeVar("F", bound=Callable[..., Any])


def _of_agent(command: F) -> F:
    """``--state`` and ``--machine``: which agent of this machine is meant."""
    for option in (
        click.option("--machine", metavar="DIR", type=click.Path(path_type=Path), help="The agent of a recorded machine."),
        click.option("--state", metavar="DIR", type=click.Path(path_type=Path), help="Where the agent keeps its reports, key and cursors."),
    ):
        command = option(command)
    return command


def _folder(state: Path | None, machine: Path | None) -> Path:
    from muster.wiring.agent import Settings, state_folder

    above = click.get_current_context().parent
    told: Mapping[str, Any] = above.params if above else {}
    return state_folder(Settings.of(os.environ, None, machine or told.get("machine"), state or told.get("state")).checked(), os.environ)


@click.command()
@click.argument("server", metavar="https://HOST:7461")
@click.option("--ca", "mark", required=True, metavar="sha256:HEX", help="Fingerprint of the server's authority, as the server prints it.")
@click.option("--token", metavar="TOKEN", help="The one-time token; `-` reads it from stdin. As an argument other users of this node can see it.")
@click.option("--token-file", "file", metavar="FILE", help="A file with the one-time token; `-` reads it from stdin.")
@click.option(
    "--for", "reach", type=click.Choice(["node", "list", "cluster"]), default="node", show_default=True, help="For whom to speak, as the token allows."
)
@_of_agent
def join(server: str, mark: str, token: str | None, file: str | None, reach: str, state: Path | None, machine: Path | None) -> int:
    """Join a server, once: the agent of this node reports there from then on.

    The server's authority is checked by its fingerprint before the token is sent, and pinned. The key is made here and never leaves the node.
    """
    from muster.wiring.agent import eyes, version
    from muster.wiring.joining import join as joining
    from muster.wiring.joining import token_text
    from muster.wiring.private import as_owner

    text = token_text(token, file, _stdin)
    above = click.get_current_context().parent
    machine = machine or (above.params.get("machine") if above else None)
    seen = eyes(machine, (), os.environ.get("MUSTER_ROOT", "/"))
    folder = _folder(state, machine)
    try:
        with as_owner(folder):
            card = joining(folder, server, mark, text, seen.node, reach, version())
    finally:
        seen.close()
    note(f"muster: joined {safe(card.url)} as {safe(card.reporter)}; `muster agent` reports there now (an agent that runs already: restart it)")
    return 0


def _stdin() -> str:
    return "" if sys.stdin is None else sys.stdin.read(4096)


@click.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the answer.")
@_of_agent
def status(output: str, state: Path | None, machine: Path | None) -> int:
    """Where this node joined, until when its access token holds, what waits, what was delivered last, and what is wrong.

    The exit code is 0 when nothing is wrong, 1 when something is.
    """
    from muster.wiring.joining import status as standing

    told = standing(_folder(state, machine))
    if output == "json":
        write(to_json(told) + "\n")
    else:
        _page(told)
    return 1 if told["wrong"] else 0


def _page(told: Mapping[str, Any]) -> None:
    at = now()
    where = f"{told['server']} as {told['reporter']}" if told["joined"] else "none; it reports to the server that is named, or to the one on this machine"
    until = told["token_until"]
    delivered = told["delivered_at"]
    count = told["spool_reports"]
    spool = f"{count} {'report' if count == 1 else 'reports'}, {told['spool_bytes']} bytes" if count else "empty"
    sections.pairs(
        "",
        [
            ("joined", where),
            ("since", _time(told["joined_at"])),
            ("node", told["node"]),
            ("authority", told["authority"]),
            (
                "access token",
                None if until is None else f"until {_time(until)}" if until > at else f"ended {_time(until)}, the agent gets another",
            ),
            ("clock", f"{abs(told['clock_off']):.1f} s off the server's" if abs(told["clock_off"] or 0.0) > 1.0 else None),
            ("spool", spool),
            ("last delivery", f"{span(max(at - delivered, 0.0))} ago" if delivered else "none that is known"),
            ("refused", told["refused"] or None),
            ("agent", f"runs (process {told['process']})" if told["process"] else "does not run" if told["joined"] or count else None),
            ("wrong", "; ".join(safe(each) for each in told["wrong"])),
            ("wrong since", _time(told["wrong_since"]) if told["wrong"] else None),
            ("what to do", "; ".join(safe(each) for each in _help(told))),
        ],
    )


def _help(told: Mapping[str, Any]) -> list[str]:
    """What ends the trouble, where that is known."""
    if told["help"] or not told["wrong"]:
        return list(told["help"])
    if told["joined"]:
        return [] if told["process"] else ["start the agent: what is wrong is of the time when it ran"]
    return ["stop the agent that runs, or join again and start it anew"] if told["process"] and "has left" in told["wrong"][0] else []


def _time(at: float | None) -> str | None:
    try:
        return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None  # a time that is none


@click.command()
@_of_agent
def renew(state: Path | None, machine: Path | None) -> int:
    """Make a new key, and have the server take it for the old one. An agent that runs goes on by itself."""
    from muster.wiring.joining import renew as renewing
    from muster.wiring.private import as_owner

    folder = _folder(state, machine)
    with as_owner(folder):
        member = renewing(folder)
    note(f"muster: {safe(member.reporter)} has a new key; the old one holds no more")
    return 0


@click.command()
@click.option("--keep-enrolment", is_flag=True, help="Only forget it here: for a copy of a node's disk, whose original goes on.")
@_of_agent
def leave(keep_enrolment: bool, state: Path | None, machine: Path | None) -> int:
    """Leave the server: it is told, and key and membership are deleted here. Reports that wait stay in the spool."""
    from muster.wiring.joining import leave as leaving
    from muster.wiring.lock import running
    from muster.wiring.private import as_owner

    folder = _folder(state, machine)
    with as_owner(folder):
        card, trouble = leaving(folder, tell=not keep_enrolment)
    note(f"muster: {safe(card.reporter)} has left {safe(card.url)}")
    if (pid := running(folder)) is not None:
        note(f"muster: the agent that runs (process {pid}) reports no more from now on; stop it, or join again and start it anew")
    if isinstance(trouble, NotAllowed):
        note(f"muster: the server does not let it in any more: {safe(trouble.message)}\n  how it stands there: muster agent list")
    elif trouble is not None:
        note(f"muster: the server could not be told: {safe(trouble.message)}\n  end it there: muster agent revoke {safe(card.reporter)}")
        return 1
    return 0


@click.command()
@click.option("--for", "how_long", default="60", show_default=True, metavar="TIME", help="For how long: seconds, or 10m; an hour at most.")
@_of_agent
def release(how_long: str, state: Path | None, machine: Path | None) -> int:
    """Let the running agent go of the handles of drivers for a while, before a reset or an upgrade of a driver."""
    from muster.interfaces.cli.agent_site import lasting
    from muster.wiring.release import LONGEST_S
    from muster.wiring.release import release as releasing

    seconds = lasting(how_long)
    if not 1 <= seconds <= LONGEST_S:
        raise InputError(f"{how_long!r} is no time to let go for", hint="1 s to an hour: 90, 10m, 1h")
    gone = releasing(_folder(state, machine), seconds)
    note(f"muster: let go for {seconds:g} s: {', '.join(gone) if gone else 'it held none'}")
    return 0
