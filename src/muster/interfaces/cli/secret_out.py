# SPDX-License-Identifier: Apache-2.0
"""A secret that goes into a file which only its user reads, instead of to stdout."""

from __future__ import annotations

from pathlib import Path

import click

from muster.domain.model.errors import Conflict, Unavailable
from muster.interfaces.cli.output import note, write
from muster.wiring.private import write_new

option = click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the token to a new file that only you can read, not to stdout.")


def check(file: Path | None) -> None:
    """Raises Conflict for a file that is there, Unavailable for a folder that is not: before a secret is made that would have no place."""
    if file is None:
        return
    if file.exists() or file.is_symlink():
        raise Conflict(f"{file} is there already", hint="name another file, or remove that one first")
    if not file.parent.is_dir():
        raise Unavailable(f"{file.parent} is no folder", hint="make it, or name another file")


def put(file: Path | None, secret: str, *, quiet: bool) -> None:
    """The secret alone: to the file, or to stdout."""
    if file is None:
        write(f"{secret}\n")
        return
    if not write_new(file, f"{secret}\n".encode()):
        raise Conflict(f"{file} is there by now, and the token was not written", hint="end that token, and make another")
    if not quiet:
        note(f"muster: the token is in {file}, which only you can read")
