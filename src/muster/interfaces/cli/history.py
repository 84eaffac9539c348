# SPDX-License-Identifier: Apache-2.0
"""`muster history`: what happened to a card, in order, and when we learnt it."""

from __future__ import annotations

from typing import Any

import click

from muster.domain.model.errors import InputError, NotFound
from muster.interfaces.cli.calls import at_time, connect, form_options, server_options
from muster.interfaces.cli.client import Client, segment
from muster.interfaces.cli.documents import as_of
from muster.interfaces.cli.lookup import newest, one
from muster.interfaces.cli.names import complete_name, complete_noun
from muster.interfaces.cli.nouns import CARDS, CHANGES, noun
from muster.interfaces.cli.output import check_form, render

_COLUMNS = tuple(column for column in CHANGES.columns if column.key != "subject")


@click.command()
@click.argument("what", metavar="card", shell_complete=complete_noun)
@click.argument("name", metavar="NAME", shell_complete=complete_name)
@form_options
@click.option("--limit", type=click.IntRange(min=1), help="At most so many entries, the newest.")
@click.option("--at", metavar="TIME", help="What was believed at TIME (RFC 3339), or so long ago (2h).")
@click.option("-w", "--watch", is_flag=True, help="Go on with what happens to it from now on. Ctrl-C ends it.")
@server_options
def history(what: str, name: str, output: str, no_headers: bool, limit: int | None, at: str | None, watch: bool, **options: Any) -> int:
    """What happened to a card: installed, moved, readdressed, missing, returned and the rest."""
    check_form(output)
    kind = noun(what)
    if kind is not CARDS:
        raise InputError(f"{kind.names[0]} have no history", hint="`muster history card NAME`")
    client = connect(options["server"], options["timeout"], options["verbose"])
    if watch:
        return _watch(client, name, output, no_headers, limit, at)
    moment = at_time(at)
    try:
        body = _entries(client, name, limit, moment)
    except NotFound:
        body = _entries(client, one(client, kind, name, moment, quiet=options["quiet"])["id"], limit, moment)
    as_of(body)
    render(body["items"], _COLUMNS, output, no_headers=no_headers, document=body, empty="" if options["quiet"] else "no history")
    return 0


def _entries(client: Client, name: str, limit: int | None, at: str | None) -> dict[str, Any]:
    path = f"{CARDS.path}/{segment(name)}/history"
    return newest(client, path, limit, at=at) if limit else client.all(path, at=at)


def _watch(client: Client, name: str, form: str, no_headers: bool, limit: int | None, at: str | None) -> int:
    if at:
        raise InputError("what was believed at a time does not change", hint="leave --at out to watch")
    from muster.interfaces.cli.stream import News
    from muster.interfaces.cli.watch import Watch

    watched = Watch(lambda: _entries(client, name, limit, None), _COLUMNS, form, no_headers=no_headers)
    watched.go_on(News(client, what="change", subject=name), only=False)
    return 0
