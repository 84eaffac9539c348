# SPDX-License-Identifier: Apache-2.0
"""`muster config`: every setting, its value, and where the value comes from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from muster.interfaces.cli.calls import form_options
from muster.interfaces.cli.documents import field
from muster.interfaces.cli.exits import OK
from muster.interfaces.cli.output import check_form, render, write
from muster.interfaces.cli.preferences import PREFERENCES, VARIABLES, files, preferred

_PASSWORD = re.compile(r"(?<=[?&]password=)[^&]+")
_COLUMNS = (field("OF", "of"), field("SETTING", "setting", name=True), field("VALUE", "value"), field("FROM", "from"), field("ABOUT", "about", wide=True))


@click.group(invoke_without_command=True)
@form_options
@click.pass_context
def config(context: click.Context, /, output: str, no_headers: bool) -> int:
    """Each setting, its value, and where it comes from: an environment variable, a file, or the default.

    Options of a command win over the environment, the environment over files.
    """
    if context.invoked_subcommand is None:
        check_form(output)
        render([*_of_client(), *_of_agent(), *_of_server()], _COLUMNS, output, no_headers=no_headers)
    return OK


@config.command()
def path() -> int:
    """Files that are read where they are there, the one that wins first."""
    from muster.wiring.settings import setting_files

    for file in (*files(), *setting_files(os.environ)):
        write(f"{file}{'' if file.is_file() else '  (not there)'}\n")
    return OK


def _row(of: str, setting: str, value: Any, origin: str, about: str) -> dict[str, Any]:
    told = str(value) if isinstance(value, Path) else value
    return {"of": of, "setting": setting, "value": told, "from": origin, "about": about}


def _of_client() -> Iterator[dict[str, Any]]:
    for each in PREFERENCES:
        value, origin = preferred(each.name)
        shown = _without_password(value) if isinstance(value, str) else value
        yield _row("client", each.name, shown or None, origin, each.about)


def _of_agent() -> Iterator[dict[str, Any]]:
    from muster.wiring.agent import Settings, state_folder

    for each in VARIABLES:
        said = os.environ.get(each.variable)
        value: Any = "(set)" if said and each.secret else said or each.default or None
        if each.setting == "state":
            value = state_folder(Settings.of(os.environ), os.environ)
        if each.setting == "server" and value:
            value = _without_password(value)
        yield _row(each.of, each.setting, value, each.variable if said else "default", each.about)


def _of_server() -> Iterator[dict[str, Any]]:
    import tomllib

    from muster.wiring.settings import ServerSettings, load_settings, setting_files

    settings = load_settings()
    file = next((each for each in setting_files(os.environ) if each.is_file()), None)
    told = tomllib.loads(file.read_text(encoding="utf-8")) if file else {}
    for name, about in ServerSettings.model_fields.items():
        variable = f"MUSTER_{name.upper()}"
        origin = variable if os.environ.get(variable) else str(file) if name in told else "default"
        value = getattr(settings, name)
        yield _row("server", name, value if about.repr else _without_password(value), origin, about.description or "")


def _without_password(url: str) -> str:
    """The URL as it may be shown: whoever looks over a shoulder, or reads a ticket with this list in it, is not to have the database."""
    user, at, rest = url.rpartition("@")
    scheme, slashes, name = user.rpartition("//")
    shown = f"{scheme}{slashes}{name.partition(':')[0]}:(set){at}{rest}" if at and ":" in name else url
    return _PASSWORD.sub("(set)", shown)
