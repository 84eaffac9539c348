# SPDX-License-Identifier: Apache-2.0
"""Groups whose commands are imported when they are run, and what is said of a command that there is not."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import ClassVar

import click
from click.shell_completion import CompletionItem

from muster.domain.model.near import alike


class Lazy(click.Group):
    """A group that knows its commands by a table."""

    table: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Name to module and function, and one line of help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        del ctx
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        del ctx
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant. Fails with what is near it where there is none."""
        if args[0] not in self.table and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command {args[0]!r}{near(args[0], self.table) or '.'}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands from the table, without importing them; options as click knows them."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=about) for name, (_, about) in self.table.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands from the table, without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.table.items()])


def near(word: str, names: Iterable[str]) -> str:
    """What goes on after a sentence about ``word``, with the names that may be meant; empty where it is like none."""
    found = alike(word.lower(), names)
    return f". Did you mean {' or '.join(repr(each) for each in found)}?" if found else ""
