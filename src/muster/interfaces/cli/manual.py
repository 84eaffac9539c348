# SPDX-License-Identifier: Apache-2.0
"""`muster help`: the help of a command, for who looks for it by that word."""

from __future__ import annotations

import click

from muster.interfaces.cli.exits import OK
from muster.interfaces.cli.output import write


@click.command(name="help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_(context: click.Context, /, words: tuple[str, ...]) -> int:
    """What a command takes, as its --help says it: `muster help get`, `muster help agent join`. Without one, all commands."""
    at = context.parent or context
    for word in words:
        group = at.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{at.command_path} has no commands of its own.", at)
        name, command, _ = group.resolve_command(at, [word])
        if command is None:
            raise click.UsageError(f"No such command {word!r}.", at)
        at = click.Context(command, info_name=name, parent=at)
    write(at.get_help() + "\n")
    return OK
