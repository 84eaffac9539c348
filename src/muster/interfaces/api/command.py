# SPDX-License-Identifier: Apache-2.0
"""`muster serve`: the server in the foreground, with a flag for every setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from pydantic_core import PydanticUndefined

from muster.interfaces.api.app import build
from muster.wiring.server import Server, configure_logs
from muster.wiring.server import serve as run
from muster.wiring.settings import ServerSettings, load_settings


def _options() -> list[click.Option]:
    return [_option(name, each) for name, each in ServerSettings.model_fields.items()]


def _option(name: str, field: Any) -> click.Option:
    flag = f"--{name.replace('_', '-')}"
    about = field.description or ""
    if field.annotation is bool:
        return click.Option([f"{flag}/--no-{name.replace('_', '-')}"], default=None, help=about)
    if get_origin(field.annotation) is Literal:
        kind: Any = click.Choice(get_args(field.annotation))
    else:
        kind = {int: int, float: float, Path: click.Path(path_type=Path)}.get(field.annotation, str)
    default = field.default if field.default is not PydanticUndefined else None
    return click.Option(
        [flag], type=kind, default=None, help=about + (f" [{default:g}]" if isinstance(default, int | float) else f" [{default}]" if default else "")
    )


def _serve(config: Path | None, **flags: Any) -> int:
    settings = load_settings(config, **flags)
    configure_logs(settings)
    return run(settings, build, ready=_say)


def _say(server: Server) -> None:
    click.echo(f"muster serves on {server.url} and on {server.socket}; stop it with Ctrl-C", err=True)


serve = click.Command(
    "serve",
    callback=_serve,
    params=[click.Option(["--config"], type=click.Path(path_type=Path, dir_okay=False), help="TOML file with settings."), *_options()],
    help=(
        "The server: keeps the roll, takes reports, answers the API.\n\n"
        "Settings come from a TOML file (MUSTER_CONFIG, ~/.config/muster/server.toml or /etc/muster/server.toml), from the environment "
        "(MUSTER_PORT=7460), and from flags; flags win. It listens on this machine only. Ends on SIGTERM and Ctrl-C. "
        "Exit codes: 5 when the port or the folder is in use, 6 when the folder cannot be used."
    ),
)
