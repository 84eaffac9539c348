# SPDX-License-Identifier: Apache-2.0
"""The command tree: names, one line of help each, and where each command lives; a command's module is imported when it is run."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from muster.domain.model.errors import MusterError
from muster.interfaces.cli.exits import FAILED, INTERRUPTED, OK, exit_code
from muster.interfaces.cli.lazy import Lazy

_HERE = "muster.interfaces.cli"
COMMANDS: dict[str, tuple[str, str]] = {
    "get": (f"{_HERE}.get:get", "Lists: cards, nodes, sources, findings and more."),
    "describe": (f"{_HERE}.describe:describe", "Everything about one card, node, source or finding."),
    "history": (f"{_HERE}.history:history", "What happened to a card, in order."),
    "top": (f"{_HERE}.top:top", "Live gauges of all cards."),
    "status": (f"{_HERE}.status:status", "The roll in one screen: counts, findings, late sources."),
    "set": (f"{_HERE}.acts:set_", "Say an owner, rack or other words of yours on a card or node."),
    "store": (f"{_HERE}.acts:store", "Say that a card lies in a store."),
    "retire": (f"{_HERE}.acts:retire", "Say that a card is gone for good."),
    "same": (f"{_HERE}.acts:same", "Say that two cards are one."),
    "not-same": (f"{_HERE}.acts:not_same", "Say that two cards are not one."),
    "source": (f"{_HERE}.acts:source", "Remove a source from the roll."),
    "ack": (f"{_HERE}.acts:ack", "Acknowledge a finding."),
    "login": (f"{_HERE}.login:login", "Sign in at a server."),
    "logout": (f"{_HERE}.login:logout", "Forget a server and its token."),
    "whoami": (f"{_HERE}.login:whoami", "Who you are at the server, and what you may."),
    "token": (f"{_HERE}.token:token", "Make, list and end tokens."),
    "audit": (f"{_HERE}.audit:audit", "Who did what, and whether the log of it is whole."),
    "capture": (f"{_HERE}.capture:capture", "The bytes that a value rests on."),
    "scan": (f"{_HERE}.scan:scan", "The cards of this machine, without a server."),
    "interpret": (f"{_HERE}.interpret:interpret", "What an adapter makes of captured output, offline."),
    "record": (f"{_HERE}.record:record", "Record this machine as a folder of captures."),
    "doctor": (f"{_HERE}.doctor:doctor", "What this machine needs so that its cards are seen."),
    "adapter": (f"{_HERE}.adapter:adapter", "List, check and begin adapters."),
    "agent": (f"{_HERE}.agent:agent", "Report this machine to a server."),
    "server": (f"{_HERE}.server:server", "Run the server."),
    "export": (f"{_HERE}.export:export", "Metrics for Prometheus, OpenTelemetry and remote write."),
    "demo": (f"{_HERE}.demo:demo", "A small site on this machine, and its story."),
    "config": (f"{_HERE}.config:config", "Each setting, and where it comes from."),
    "completion": (f"{_HERE}.completion:completion", "Completion for bash, zsh or fish."),
    "version": (f"{_HERE}.version:version", "Version of muster."),
    "help": (f"{_HERE}.manual:help_", "What a command takes, as its --help says it."),
}
"""Name to module and function, and one line of help."""


class _Muster(Lazy):
    table = COMMANDS

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Its own options, and the rest. Fails with where an option belongs that its commands have."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as wrong:
            if wrong.option_name in ("--server", "--timeout", "--output", "-o"):
                told = f"No such option {wrong.option_name!r}. It goes after the command: {ctx.command_path} COMMAND {wrong.option_name} ..."
                raise click.UsageError(told, ctx) from wrong
            raise


def _say_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Says the version and ends, as `muster version` does."""
    del option
    if wanted and not context.resilient_parsing:
        from muster.interfaces.cli.version import line

        click.echo(line())
        context.exit(OK)


@click.group(cls=_Muster, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_say_version, help="Show the version and exit.")
def muster() -> None:
    """The roll of every accelerator: what each card is, where, whether it is seen, and where each value comes from."""


def run(args: list[str] | None = None, door: Callable[[Any], Any] | None = None, ingest: Callable[..., Any] | None = None) -> int:
    """Runs the command line and returns the exit code. ``door`` makes the API on a desk, ``ingest`` the door of reporters; only `muster server` opens them."""
    _stand_in()
    if os.environ.get("_MUSTER_COMPLETE"):
        muster.main(prog_name="muster")
    try:
        with muster.make_context("muster", list(sys.argv[1:] if args is None else args), obj={"door": door, "ingest": ingest}) as context:
            result: Any = muster.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except MusterError as error:
        return _failed(error)
    except BrokenPipeError:
        return _quietly()
    except OSError as error:
        return _unwritten(error)
    return result if isinstance(result, int) else OK


def _failed(error: MusterError) -> int:
    from muster.interfaces.cli.cells import safe

    print(f"muster: {safe(error.message)}" + (f"\n  {safe(error.hint)}" if error.hint else ""), file=sys.stderr)
    return exit_code(error) or FAILED


def _quietly() -> int:
    """The reader of our output has gone: nothing more to say, nor to flush at the end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


def _unwritten(error: OSError) -> int:
    """What was asked is known, but cannot be put where it should go."""
    _quietly()
    print(f"muster: {error.filename or 'the output cannot be written'}: {error.strerror or error}", file=sys.stderr)
    return FAILED


class _Closed(io.TextIOBase):
    """Stands where a stream is that was closed before we began: what is written to it fails as it should."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Fails."""
        del text
        raise OSError(errno.EBADF, "it is closed")


def _stand_in() -> None:
    """Puts something where Python found no stream. Without a place for complaints these are dropped."""
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
