# SPDX-License-Identifier: Apache-2.0
"""`muster server`: runs the server in this process until it is told to end; and what keeps its store well."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import click

from muster.interfaces.cli.lazy import Lazy
from muster.interfaces.cli.output import note

_UPKEEP = "muster.interfaces.cli.upkeep"


class _Server(Lazy):
    table: ClassVar[Mapping[str, tuple[str, str]]] = {
        "backup": (f"{_UPKEEP}:backup", "A copy of the store in one file, while the server runs."),
        "restore": (f"{_UPKEEP}:restore", "Puts a copy in the place of the store."),
        "check": (f"{_UPKEEP}:check", "Goes over the store: is it whole?"),
        "upgrade": (f"{_UPKEEP}:upgrade", "Brings the store to this version, after showing what that does."),
    }


@click.group(cls=_Server, invoke_without_command=True)
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Settings file; left out: MUSTER_CONFIG, else the usual places.")
@click.option("--host", metavar="ADDRESS", help="Address to listen on; beyond loopback with TLS and tokens.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Port to listen on; 0 takes any free one.")
@click.option("--ingest-port", type=click.IntRange(0, 65535), metavar="PORT", help="Port for reporters; 0 takes any free one. Left out: 7461, beyond loopback.")
@click.option("--door", "door_", type=click.Choice(["inside", "apart"]), help="The API in this process, or in one of its own.")
@click.option("--state", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder of the store.")
@click.option("--runtime", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder of the socket and of the file by which clients find the server.")
@click.option("--in-memory", is_flag=True, default=None, help="Keep the store in memory: everything is forgotten at the end.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="What is logged at least.")
@click.option("--log-format", type=click.Choice(["console", "json"]), help="Form of the log on stderr.")
@click.pass_context
def server(context: click.Context, /, file: Path | None, door_: str | None, **flags: object) -> int | None:
    """Run the server until SIGTERM or Ctrl-C. `muster config` shows its settings and where each comes from."""
    if context.invoked_subcommand is not None:
        return None
    from muster.wiring.logs import configure_logs
    from muster.wiring.server import Server, serve
    from muster.wiring.settings import load_settings

    settings = load_settings(file, **flags, door=door_)
    configure_logs(settings)
    _warn_of(file)

    def ready(running: Server) -> None:
        note(f"muster: serving at {running.url} and {running.socket}")
        if running.url.startswith("https://") and running.authority is not None:
            note(f"  people sign in by: muster login {running.url} --ca {running.authority.fingerprint}")

    return serve(settings, context.obj["door"], context.obj["ingest"], ready=ready)


def _warn_of(file: Path | None) -> None:
    """Says when a password stands in a settings file that others on this machine can read."""
    from muster.wiring.settings import exposed

    path = exposed(file)
    if path is not None:
        note(f"muster: warning: {path} has the password of the database, and every user of this machine can read it")
        note(f"  chmod 600 {path}, as the user of the server owns it; if others had access to it, take another password")
