# SPDX-License-Identifier: Apache-2.0
"""`muster describe`: one card, node, source or finding, with everything that is known, where it comes from and how old it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from muster.domain.model.errors import InputError
from muster.interfaces.cli import sections
from muster.interfaces.cli.calls import at_time, connect, server_options
from muster.interfaces.cli.cells import age, quantity, rfc3339, word
from muster.interfaces.cli.client import Client, segment
from muster.interfaces.cli.documents import as_of, field, now, when
from muster.interfaces.cli.lookup import one
from muster.interfaces.cli.names import complete_name, complete_noun
from muster.interfaces.cli.nouns import CARDS, CHANGES, EVENTS, FINDINGS, NODES, SOURCES, Noun, noun
from muster.interfaces.cli.output import Column, render

HISTORY_ROWS = 20
EVENT_ROWS = 10


@click.command()
@click.argument("what", metavar="card|node|source|finding", shell_complete=complete_noun)
@click.argument("name", metavar="NAME", shell_complete=complete_name)
@click.option(
    "-o",
    "--output",
    default="text",
    show_default=True,
    metavar="FORM",
    help="text, wide (with the captures that values rest on), json, yaml, or jsonpath={PATH}.",
)
@click.option("--at", metavar="TIME", help="As it was believed at TIME (RFC 3339), or so long ago (2h).")
@server_options
def describe(what: str, name: str, output: str, at: str | None, **options: Any) -> int:
    """Everything about one card, node, source or finding.

    NAME is any name of it: an id of ours, a UUID, a serial, NODE/SLOT; of a source NODE/SOURCE.
    """
    kind = noun(what)
    if kind not in _PAGES:
        raise InputError(f"{kind.names[0]} have no page of their own", hint="describe a card, node, source or finding; `muster get` lists the rest")
    moment = at_time(at)
    if moment and not kind.page_timed:
        raise InputError(f"a {kind.names[1]} is told as it is now, not as it was", hint="leave --at out")
    client = connect(options["server"], options["timeout"], options["verbose"])
    document = one(client, kind, name, moment, quiet=options["quiet"])
    as_of(document)
    if output in ("text", "wide"):
        _PAGES[kind](client, document, moment)
        if output == "wide":
            sections.evidence(each.get("readings") or {} for each in (document, *(document.get("devices") or ()), *(document.get("partitions") or ())))
    else:
        render([document], kind.columns, output, no_headers=False, document=document)
    return 0


def _since(text: Any) -> str:
    return f"{rfc3339(text)} ({age(text, now())} ago)" if text else ""


def _card(client: Client, card: Mapping[str, Any], at: str | None) -> None:
    sections.heading(card["name"])
    sections.pairs(
        "",
        (
            ("id", card["id"]),
            ("presence", f"{word(card['presence'])} since {_since(card.get('presence_since'))}"),
            ("known by", card.get("rung")),
            ("role", card.get("role")),
            ("vendor", card.get("vendor")),
            ("model", card.get("model")),
            ("on the roll since", _since(card.get("created_at"))),
            ("seen by", card.get("seen_by") or "no hardware source now"),
            ("ids in conflict", card.get("conflicts")),
            ("kept aside", "a view of a card that another source names better" if card.get("aside") else None),
        ),
    )
    where = ("node", "slot", "address", "index", "place")
    sections.pairs("WHERE", [(key, card.get(key)) for key in where])
    sections.pairs("IDS", (card.get("ids") or {}).items())
    sections.pairs("FORMER IDS", (card.get("former_ids") or {}).items())
    sections.rows("FINDINGS", _findings(client, card), _FINDINGS)
    sections.readings("READINGS", card.get("readings") or {})
    sections.rows("ALL DEVICES TOGETHER", [{"key": key, **each} for key, each in (card.get("together") or {}).items()], _TOGETHER)
    for kind in ("devices", "partitions"):
        for part in card.get(kind) or ():
            _part(kind[:-1], part)
    sections.rows("SOURCES THAT SAW IT", card.get("claims") or (), _CLAIMS)
    for source, told in (card.get("details") or {}).items():
        sections.pairs(f"IN THE WORDS OF {source}", [(key, value) for key, value in told.items() if not isinstance(value, dict | list)])
    _processes(card)
    events = client.all(EVENTS.path, EVENT_ROWS, card=card["id"], at=at)
    more = events["next"] is not None
    sections.rows(f"EVENTS (the newest {EVENT_ROWS} of {events['total']})" if more else "EVENTS", events["items"], _EVENTS)
    _history(client, card, at)


def _part(kind: str, part: Mapping[str, Any]) -> None:
    sections.readings(f"{kind.upper()} {part.get('ordinal', '')} {part.get('id', '')}", part.get("readings") or {})


def _processes(card: Mapping[str, Any]) -> None:
    found = ((card.get("readings") or {}).get("processes") or {}).get("value") or []
    sections.rows("PROCESSES", [each for each in found if isinstance(each, dict)], _PROCESSES)


def _findings(client: Client, card: Mapping[str, Any]) -> list[Any]:
    return [client.get(f"/findings/{segment(each['id'])}") for each in card.get("findings") or ()]


def _history(client: Client, card: Mapping[str, Any], at: str | None) -> None:
    found = client.all(f"/cards/{segment(card['id'])}/history", at=at)["items"]
    left_out = len(found) - HISTORY_ROWS
    sections.rows("HISTORY" if left_out <= 0 else f"HISTORY (the last {HISTORY_ROWS} of {len(found)})", found[-HISTORY_ROWS:], _HISTORY)


def _node(client: Client, node: Mapping[str, Any], at: str | None) -> None:
    sections.heading(node["name"])
    keys = ("id", "machine_id", "system", "former_names", "cards")
    sections.pairs("", [(key.replace("_", " "), node.get(key)) for key in keys] + [("last heard", _since(node.get("last_at")))])
    sections.readings("READINGS", node.get("readings") or {})
    wanted = f"node_id == {_quoted(node['id'])}"
    sections.rows("CARDS", _all(client, CARDS.path, wanted, at), [column for column in CARDS.columns if not column.wide])
    sections.rows("SOURCES", _all(client, SOURCES.path, wanted, None), [column for column in SOURCES.columns if not column.wide])
    sections.rows("FINDINGS", _all(client, FINDINGS.path, f"node in [{_quoted(node['name'])}, {_quoted(node['id'])}]", at), _FINDINGS)


def _source(client: Client, source: Mapping[str, Any], at: str | None) -> None:
    del at
    sections.heading(f"{source['node']}/{source['source']}")
    keys = ("state", "outcome", "detail", "adapter", "channel", "witness", "reporter", "cards", "unknown_shape")
    times = [(key.replace("_", " "), _since(source.get(key))) for key in ("first_at", "last_at", "listed_at")]
    cadence = [("cadence", f"{source['cadence']:g} s"), ("promise", f"{source['promise']:g} s")]
    cost = source.get("cost")
    work = [("cost", f"{cost:g} s for its last round"), ("worker", source.get("worker") or "waits")] if cost is not None else [("worker", source.get("worker"))]
    sections.pairs("", [(key.replace("_", " "), source.get(key)) for key in keys] + cadence + work + times)
    sections.rows("FINDINGS", _all(client, FINDINGS.path, f"subject == {_quoted(source['id'])}", None), _FINDINGS)


def _finding(client: Client, finding: Mapping[str, Any], at: str | None) -> None:
    sections.heading(finding["about"])
    keys = ("id", "kind", "subject", "node", "source", "attribute", "acknowledged_by")
    times = [(key.replace("_", " "), _since(finding.get(key))) for key in ("opened_at", "last_seen_at", "acknowledged_at", "closed_at")]
    sections.pairs("", [(key.replace("_", " "), finding.get(key)) for key in keys] + times)
    sections.pairs("EVIDENCE", (finding.get("evidence") or {}).items())
    cards = [client.get(f"/cards/{segment(each)}", at=at) for each in finding.get("cards") or ()]
    sections.rows("CARDS", cards, [column for column in CARDS.columns if not column.wide])


def _all(client: Client, path: str, wanted: str, at: str | None) -> list[Any]:
    found: list[Any] = client.all(path, filter=wanted, at=at)["items"]
    return found


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_PAGES: dict[Noun, Callable[[Client, Mapping[str, Any], str | None], None]] = {CARDS: _card, NODES: _node, SOURCES: _source, FINDINGS: _finding}
_FINDINGS = tuple(column for column in FINDINGS.columns if not column.wide)
_HISTORY = tuple(column for column in CHANGES.columns if column.key in ("at", "kind", "detail", "learnt_at"))
_EVENTS = tuple(column for column in EVENTS.columns if column.key in ("last_at", "kind", "code", "repeats", "text"))
_TOGETHER = (
    Column(title="ATTRIBUTE", key="key", value=lambda row: row["key"]),
    Column(title="VALUE", key="value", value=lambda row: quantity(row["value"], str(row.get("unit", "text"))), show=str),
    field("HOW", "how"),
)
_CLAIMS = (
    field("SOURCE", "source"),
    field("NODE", "node"),
    field("CHANNEL", "channel"),
    Column(title="SEES IT NOW", key="sees", value=lambda row: row.get("sees")),
    when("LAST", "last_at"),
    when("DENIED", "denied_at"),
    field("SLOT", "slot"),
    Column(title="ADDRESSES", key="addresses", value=lambda row: row.get("addresses") or None),
)
_PROCESSES = (
    field("PID", "pid", right=True),
    field("KIND", "kind"),
    Column(title="MEMORY", key="memory.used", value=lambda row: row.get("memory.used"), show=lambda value: quantity(value, "bytes"), right=True),
    field("NAME", "name"),
)
