# SPDX-License-Identifier: Apache-2.0
"""`muster version`: what runs here, without a server."""

from __future__ import annotations

import sys

import click


def version_here() -> str:
    """The version of the installed package."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("musterroll")
    except PackageNotFoundError:
        return "0 (run from its source tree)"


def line() -> str:
    """What is installed, in one line."""
    return f"muster {version_here()}, Python {_python()}"


def _python() -> str:
    return ".".join(map(str, sys.version_info[:3]))


@click.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the output.")
def version(output: str) -> int:
    """Version of muster and of Python."""
    if output == "json":
        import json

        print(json.dumps({"version": version_here(), "python": _python()}))
    else:
        print(line())
    return 0
