# SPDX-License-Identifier: Apache-2.0
"""`muster completion`: prints the script for a shell, and edits no file."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from muster.domain.model.errors import InputError
from muster.interfaces.cli.exits import OK
from muster.interfaces.cli.output import write


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of SHELL; no file is edited.

    bash: eval "$(muster completion bash)" in ~/.bashrc; zsh the same in ~/.zshrc; fish: muster completion fish > ~/.config/fish/completions/muster.fish
    """
    from muster.interfaces.cli.main import muster

    kind = get_completion_class(shell)
    if kind is None:
        raise InputError(f"no completion for {shell}", hint="bash, zsh or fish")
    write(kind(muster, {}, "muster", "_MUSTER_COMPLETE").source() + "\n")
    return OK
