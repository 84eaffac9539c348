# SPDX-License-Identifier: Apache-2.0
"""What every command that speaks to the server shares: its options, the client, the time of ``--at``, and asking a person at a terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from muster.domain.model.errors import Conflict, InputError
from muster.interfaces.cli.cells import moment
from muster.interfaces.cli.client import Client, locate
from muster.interfaces.cli.documents import now
from muster.interfaces.cli.output import note
from muster.interfaces.cli.preferences import LONGEST_S, preferred

F = TypeVar("F", bound=Callable[..., Any])
_AGO = re.compile(r"^-?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$")


class Seconds(click.FloatRange):
    """A time to wait: a number that a clock can count to."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails for nan and for more than LONGEST_S."""
        number = super().convert(value, param, ctx)
        if not number <= LONGEST_S:
            self.fail(f"{number} is no time to wait: at most {LONGEST_S:.0f} seconds.", param, ctx)
        return number


def server_options(command: F) -> F:
    """``--server``, ``--timeout``, ``-q`` and ``-v``."""
    for option in (
        click.option("-v", "--verbose", is_flag=True, help="Say on stderr what is asked of which server."),
        click.option("-q", "--quiet", is_flag=True, help="No talk on stderr but errors."),
        click.option(
            "--timeout",
            type=Seconds(min=0.1),
            default=lambda: preferred("timeout")[0],
            metavar="SECONDS",
            help="How long to wait for an answer; 30 where nothing else is set.",
        ),
        click.option("--server", metavar="URL", help="The server, or the path of its socket; left out: MUSTER_SERVER, else the one on this machine."),
    ):
        command = option(command)
    return command


def form_options(command: F) -> F:
    """``-o`` and ``--no-headers``."""
    for option in (
        click.option("--no-headers", is_flag=True, help="No line of titles."),
        click.option(
            "-o",
            "--output",
            default=lambda: preferred("output")[0],
            metavar="FORM",
            help="table, wide, json, yaml, csv, name, or jsonpath={PATH}.",
        ),
    ):
        command = option(command)
    return command


def connect(server: str | None, timeout: float, verbose: bool) -> Client:
    """A client of the server that is meant."""
    address = locate(server, *preferred("server"))
    if verbose:
        note(f"muster: server {address.socket or address.url} (from {address.origin})")
    client = Client(address, timeout)
    click.get_current_context().call_on_close(client.close)
    return client


def at_time(text: str | None) -> str | None:
    """``--at`` as RFC 3339: a time of that form, ``now``, or how long ago (``2h``, ``3d12h``). Raises InputError."""
    if text is None or text == "now":
        return None
    match = _AGO.match(text)
    if match and any(match.groups()):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        then = now() - ((days * 24 + hours) * 60 + minutes) * 60 - seconds
        return datetime.fromtimestamp(max(then, 0), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    found = moment(text)
    if found is None:
        raise InputError(f"--at {text!r} is no time", hint="give one like 2026-05-01T12:00:00Z (UTC where it has no offset), or how long ago: 30m, 2h, 3d12h")
    return found.isoformat().replace("+00:00", "Z")


yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask; needed where there is no terminal.")
"""Of every act that asks."""


def confirm(question: str, yes: bool) -> None:
    """Asks a person at a terminal, unless ``yes``. Raises Conflict when the answer is no, or nobody is there to give it."""
    if yes:
        return
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Conflict(f"nothing was changed, for there is nobody to ask: {question}", hint="-y says yes")
    if not click.confirm(question, err=True):
        raise Conflict("nothing was changed", hint="-y says yes")
