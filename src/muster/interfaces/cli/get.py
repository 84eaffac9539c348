# SPDX-License-Identifier: Apache-2.0
"""`muster get`: lists of the roll in every form of output."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import chain, repeat
from typing import Any

import click

from muster.domain.model.errors import InputError
from muster.interfaces.cli.calls import Seconds, at_time, connect, form_options, server_options
from muster.interfaces.cli.client import Client
from muster.interfaces.cli.documents import as_of
from muster.interfaces.cli.exits import OK
from muster.interfaces.cli.labels import narrowed
from muster.interfaces.cli.lookup import newest, one
from muster.interfaces.cli.names import complete_name, complete_noun
from muster.interfaces.cli.nouns import CHANGES, NOUNS, Noun, needed, noun
from muster.interfaces.cli.output import check_form, note, render

TABLE_ROWS = 10_000
"""Rows of a table where no limit is given; data forms have none."""
CHANGES_ROWS = 100
"""Changes of a table, the newest, where no limit is given."""


@click.command(epilog="Names: " + "; ".join(", ".join(each.names) for each in NOUNS) + ".")
@click.argument("what", metavar="WHAT", shell_complete=complete_noun)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_name)
@form_options
@click.option("--filter", "filter_", metavar="EXPRESSION", help="Only rows for which it holds, e.g. 'presence == \"present\"'.")
@click.option("-l", "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only rows in which the field or reading KEY is VALUE; may be repeated.")
@click.option("--sort-by", metavar="KEY", help="Order by a key of the document; with - in front from high to low.")
@click.option("--limit", type=click.IntRange(min=1), help=f"At most so many rows, of changes the newest; a table has {TABLE_ROWS}, of changes {CHANGES_ROWS}.")
@click.option("--all", "all_", is_flag=True, help="Retired and display cards too; closed findings too; all changes.")
@click.option("--at", metavar="TIME", help="As it was believed at TIME (RFC 3339), or so long ago (2h).")
@click.option("-w", "--watch", is_flag=True, help="Go on: a terminal shows the list anew, a pipe gets the rows that change. Ctrl-C ends it.")
@click.option("--watch-only", is_flag=True, help="Go on as --watch does, with the rows that change and not with those there are.")
@click.option(
    "--interval",
    type=Seconds(min=0.2),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest time between two looks of --watch.",
)
@server_options
def get(what: str, names: tuple[str, ...], output: str, no_headers: bool, **options: Any) -> int:
    """List cards, devices, partitions, nodes, sources, adapters, findings, events or changes.

    With a NAME only that one, as the API tells it. An unknown value is the cell "-"; `-o wide` adds the reason.
    """
    check_form(output)
    kind = noun(what)
    query = _query(kind, options, names)
    client = connect(options["server"], options["timeout"], options["verbose"])
    if options["watch"] or options["watch_only"]:
        return _watch(client, kind, names, output, query, options | {"no_headers": no_headers})
    document = _ask(client, kind, names, output, query, options)
    as_of(document)
    render(document.get("items", [document]), kind.columns, output, no_headers=no_headers, document=document, empty="" if options["quiet"] else kind.empty)
    return OK


def _ask(client: Client, kind: Noun, names: tuple[str, ...], form: str, query: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    return _named(client, kind, names, query, quiet=options["quiet"]) if names else _list(client, kind, form, query, options)


def _watch(client: Client, kind: Noun, names: tuple[str, ...], form: str, query: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    """Goes on until it is interrupted; what is said on stderr of a list is said once."""
    if options["at"]:
        raise InputError("what was believed at a time does not change", hint="leave --at out to watch")
    from muster.interfaces.cli.stream import News
    from muster.interfaces.cli.watch import Watch

    again = chain([options["quiet"]], repeat(True))

    def ask() -> dict[str, Any]:
        return _ask(client, kind, names, form, query, {**options, "quiet": next(again)})

    watched = Watch(ask, kind.columns, form, no_headers=options["no_headers"])
    news = News(client, what=kind.told_by) if kind.told_by else News(client)
    if kind is CHANGES and not names:
        watched.go_on(news, only=options["watch_only"])
    if sys.stdout.isatty() and form in ("table", "wide") and not options["watch_only"]:
        watched.redraw(options["interval"], news)
    watched.follow(None if kind.told_by else options["interval"], news, only=options["watch_only"])
    return OK


def _query(kind: Noun, options: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The parameters for the API. Raises InputError for what this list cannot do: it is never passed over in silence."""
    at = at_time(options["at"])
    plural = kind.names[0]
    if at and not (kind.page_timed if names else kind.timed):
        raise InputError(f"{plural} are told as they are now, not as they were", hint="leave --at out")
    if names:
        return {"at": at}
    if not kind.filtered and (options["filter_"] or options["sort_by"] or options["labels"]):
        raise InputError(f"{plural} come in their own order and unfiltered", hint="leave --filter, -l and --sort-by out; -o json and jq help")
    if options["all_"] and not kind.more and kind is not CHANGES:
        raise InputError(f"all {plural} are listed already", hint="leave --all out; it is for cards, findings and changes")
    sort = options["sort_by"] or kind.order or None
    return {"filter": narrowed(kind, options["filter_"], options["labels"]), "sort": sort, "at": at, **dict(kind.more if options["all_"] else ())}


def _named(client: Client, kind: Noun, names: tuple[str, ...], query: Mapping[str, Any], *, quiet: bool) -> dict[str, Any]:
    if not kind.paged:
        raise InputError(f"one of the {kind.names[0]} cannot be asked for by name", hint="use --filter 'id == \"...\"'")
    found = [one(client, kind, each, query["at"], quiet=quiet) for each in names]
    return found[0] if len(found) == 1 else {"items": found}


def _list(client: Client, kind: Noun, form: str, query: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """All pages as one document of the API's shape."""
    most = options["limit"] or (TABLE_ROWS if form in ("table", "wide") else None)
    if kind is CHANGES and most and (options["limit"] or not options["all_"]):
        body = newest(client, kind.path, options["limit"] or CHANGES_ROWS, **query)
        more = f"the newest {CHANGES_ROWS} changes; --limit N shows more, --all and -o csv all of them"
    else:
        body = client.all(kind.path, most, **query, fields=_fields(kind, form))
        more = f"the first {most} rows; use --limit, --filter or -o csv for more"
    if body["next"] is not None and not options["limit"] and not options["quiet"]:
        note(f"muster: {more}")
    return body


def _fields(kind: Noun, form: str) -> str | None:
    """What the columns of this form need, so that the table of a large roll stays small; documents come whole."""
    if not kind.filtered:
        return None
    if form == "name":
        return needed(column for column in kind.columns if column.name)
    if form in ("table", "wide", "csv"):
        return needed(column for column in kind.columns if form != "table" or not column.wide)
    return None
