# SPDX-License-Identifier: Apache-2.0
"""The command tree: names, one line of help each, and where each command lives; a command's module is imported when it is run."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from muster.domain.model.errors import Conflict, InputError, MusterError, NotAllowed, NotFound, Unavailable

COMMANDS: dict[str, tuple[str, str]] = {
    "interpret": ("muster.interfaces.cli.interpret:interpret", "What an adapter makes of captured output, offline."),
}

EXIT = {InputError: 2, NotFound: 3, NotAllowed: 4, Conflict: 5, Unavailable: 6}
"""Exit codes by kind of error; anything else is 1."""


class Lazy(click.Group):
    """A group whose commands are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands from the table, without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
def muster() -> None:
    """The roll of every accelerator: what each card is, where, whether it is fit, and where each value comes from."""


def run(args: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    try:
        result: Any = muster.main(args=args, standalone_mode=False, prog_name="muster")
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except MusterError as error:
        print(f"muster: {error.message}" + (f"\n  {error.hint}" if error.hint else ""), file=sys.stderr)
        return next((code for kind, code in EXIT.items() if isinstance(error, kind)), 1)
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    return result if isinstance(result, int) else 0
