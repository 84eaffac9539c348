# SPDX-License-Identifier: Apache-2.0
"""`muster interpret`: captured output in, what an adapter makes of it out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from muster.interfaces.cli.cells import safe
from muster.wiring.offline import interpret_file, interpret_folder, unreadable, why_unreadable
from muster.wiring.together import together


@click.command()
@click.argument("path", metavar="FILE|DIR", type=click.Path(path_type=Path))
@click.option("--adapter", metavar="NAME", help="The adapter to use; recognised when left out.")
@click.option("--format", "format_", metavar="FORMAT", help="The format of the file; recognised when left out.")
@click.option("--by-source", is_flag=True, help="Of a DIR one entry per source, as `expected.json` of a recorded machine keeps them.")
@click.option("-o", "--output", type=click.Choice(["json"]), default="json", show_default=True, help="Form of the output.")
def interpret(path: Path, adapter: str | None, format_: str | None, by_source: bool, output: str) -> int:
    """What an adapter makes of captured output, offline.

    FILE holds one capture, DIR a recorded machine or the captures of one round (a list is printed then, one entry per adapter).
    Exit code 1 when a document's outcome is unreadable: the JSON is printed all the same, and stderr says the tool's version, what did not fit
    and which formats are known. Exit code 2 when a DIR has no file in it.
    """
    del output
    if path.is_dir():
        rounds = interpret_folder(path, adapter)
        documents = rounds if by_source else together(rounds)
        print(json.dumps(documents, ensure_ascii=False, indent=1))
    else:
        documents = [interpret_file(path, adapter, format_)]
        print(json.dumps(documents[0], ensure_ascii=False, indent=1))
    bad = unreadable(documents)
    for each in bad:
        print(f"muster: {path}: {safe(why_unreadable(each))}", file=sys.stderr)
    return 1 if bad else 0
