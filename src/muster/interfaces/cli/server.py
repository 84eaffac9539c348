# SPDX-License-Identifier: Apache-2.0
"""`muster server`: runs the server in this process until it is told to end."""

from __future__ import annotations

from pathlib import Path

import click

from muster.interfaces.cli.output import note
from muster.wiring.server import Server, configure_logs, serve
from muster.wiring.settings import load_settings


@click.command()
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Settings file; left out: MUSTER_CONFIG, else the usual places.")
@click.option("--host", metavar="ADDRESS", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Port to listen on; 0 takes any free one.")
@click.option("--state", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder of the store.")
@click.option("--runtime", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder of the socket and of the file by which clients find the server.")
@click.option("--in-memory", is_flag=True, default=None, help="Keep the store in memory: everything is forgotten at the end.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="What is logged at least.")
@click.option("--log-format", type=click.Choice(["console", "json"]), help="Form of the log on stderr.")
@click.pass_context
def server(context: click.Context, /, file: Path | None, **flags: object) -> int:
    """Run the server until SIGTERM or Ctrl-C. `muster config` shows its settings and where each comes from."""
    settings = load_settings(file, **flags)
    configure_logs(settings)

    def ready(running: Server) -> None:
        note(f"muster: serving at {running.url} and {running.socket}")

    return serve(settings, context.obj["door"], ready=ready)
