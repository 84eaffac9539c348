# SPDX-License-Identifier: Apache-2.0
"""`muster capture`: the bytes that a value or finding rests on, as they were read."""

from __future__ import annotations

import sys
from typing import Any

import click

from muster.domain.model.errors import InputError
from muster.interfaces.cli.calls import connect, server_options
from muster.interfaces.cli.client import segment
from muster.interfaces.cli.output import safe_lines, to_json, write


@click.command()
@click.argument("digest", metavar="DIGEST")
@click.option("--info", is_flag=True, help="Where it comes from instead of its bytes, as JSON.")
@click.option("--raw", is_flag=True, help="The bytes to a terminal too, control characters and all.")
@server_options
def capture(digest: str, info: bool, raw: bool, **options: Any) -> int:
    """The bytes that a value rests on. `describe -o json` shows the digests.

    To a file or pipe they go unchanged; on a terminal control characters are shown as escapes.
    """
    if not digest.strip():
        raise InputError("the digest is empty", hint="`muster describe card NAME -o json` shows the digests")
    client = connect(options["server"], options["timeout"], options["verbose"])
    path = f"/captures/{segment(digest)}"
    if info:
        write(to_json(client.get(path)) + "\n")
        return 0
    payload = client.raw("GET", path, {"raw": "true"})[1]
    if sys.stdout.isatty() and not raw:
        write(safe_lines(payload.decode("utf-8", errors="backslashreplace")))
    else:
        sys.stdout.buffer.write(payload)
        sys.stdout.buffer.flush()
    return 0
