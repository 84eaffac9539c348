# SPDX-License-Identifier: Apache-2.0
"""`muster token`: make, list and end the tokens by which people and programs come in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from muster.domain.model.errors import InputError, NotFound
from muster.interfaces.cli import secret_out
from muster.interfaces.cli.calls import confirm, connect, form_options, server_options, yes_option
from muster.interfaces.cli.cells import plain, safe
from muster.interfaces.cli.client import segment
from muster.interfaces.cli.documents import field, when
from muster.interfaces.cli.lazy import near
from muster.interfaces.cli.output import check_form, note, render, to_json

_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?")


def _bounds(told: Any) -> str:
    """What a scope holds a token to; a token without a scope is held to nothing."""
    return plain(told) if told else "all"


_COLUMNS = (
    field("NAME", "name", name=True),
    field("ROLE", "role"),
    field("KIND", "kind"),
    field("STATE", "state"),
    field("NODES", "nodes", show=_bounds),
    field("READS", "reads", show=_bounds),
    when("AGE", "created_at"),
    when("USED", "used_at"),
    when("EXPIRES", "expires_at"),
    field("BY", "created_by", wide=True),
    field("ID", "id", wide=True),
)


@click.group()
def token() -> None:
    """Tokens by which people and programs come in at a server. For admins: on the server's machine its user and root are."""


@token.command()
@click.argument("name", metavar="NAME")
@click.option("--role", type=click.Choice(["viewer", "operator", "admin"]), required=True, help="What who comes with it may do.")
@click.option("--expires", metavar="SPAN", help="When it ends, from now: 12h, 30d. Left out: when it is revoked.")
@click.option("--scope", multiple=True, metavar="nodes=PATTERN|read=PART", help="Only those nodes (rack1-*), or only reading those parts; may be said again.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the answer.")
@secret_out.option
@server_options
def create(name: str, role: str, expires: str | None, scope: tuple[str, ...], output: str, out: Path | None, **options: Any) -> int:
    """Make a token. It is printed this once, alone on stdout, or with --out written to a file; the server keeps its digest only.

    Parts that can be read: roll, history, findings, events, captures, metrics, audit, access.
    """
    asked = {"name": name, "role": role, **_scope(scope)} | ({"lifetime": _lifetime(expires)} if expires is not None else {})
    secret_out.check(out)
    made = connect(options["server"], options["timeout"], options["verbose"]).post("/tokens", asked)
    if output == "json":
        secret_out.put(out, to_json(made), quiet=options["quiet"])
        return 0
    secret_out.put(out, safe(str(made["secret"])), quiet=options["quiet"])
    if not options["quiet"]:
        ends = made["token"].get("expires_at")
        note(f"muster: the token of {plain(name)} ({role}), until {plain(ends) if ends else 'it is revoked'}; it is not shown again")
        note("  it is used by: muster login URL --token-file FILE")
    return 0


def _lifetime(text: str) -> float:
    match = _SPAN.fullmatch(text)
    if not text or match is None:
        raise InputError(f"--expires {text!r} is no span of time", hint="like 12h, 30d or 1d12h")
    days, hours, minutes = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60)


def _scope(words: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"nodes": [], "reads": []}
    keys = {"nodes": "nodes", "node": "nodes", "read": "reads", "reads": "reads"}
    for word in words:
        key, sign, value = word.partition("=")
        told = [each.strip() for each in value.split(",") if each.strip()]
        if not sign or key not in keys or not told:
            raise InputError(f"--scope {word!r} is none", hint="like nodes=rack1-* or read=findings,roll")
        found[keys[key]] += told
    return {key: values for key, values in found.items() if values}


@token.command(name="list")
@click.option("--ended", is_flag=True, help="Those that ended in the last 30 days too.")
@form_options
@server_options
def list_(ended: bool, output: str, no_headers: bool, **options: Any) -> int:
    """Tokens and sessions that live: whose, for what, and when they were used last (to the hour)."""
    check_form(output)
    document = connect(options["server"], options["timeout"], options["verbose"]).get("/tokens", ended="true" if ended else None)
    render(document["items"], _COLUMNS, output, no_headers=no_headers, document=document, empty="muster: no tokens")
    return 0


@token.command()
@click.argument("name", metavar="NAME|ID")
@yes_option
@server_options
def revoke(name: str, yes: bool, **options: Any) -> int:
    """End a token at once, by its id; by a name, every token and session of that name."""
    client = connect(options["server"], options["timeout"], options["verbose"])
    living = client.get("/tokens")["items"]
    meant = [each for each in living if each["id"] == name] or [each for each in living if each["name"] == name]
    if not meant:
        raise NotFound(f"no token {name!r}{near(name, {str(each['name']) for each in living})}", hint="`muster token list` lists those that live")
    what = ", ".join(f"{plain(each['id'])} ({plain(each['role'])}, {plain(each['kind'])})" for each in meant)
    confirm(f"End {'all tokens and sessions' if len(meant) > 1 else 'the token'} of {plain(meant[0]['name'])}: {what}? It cannot be taken back.", yes)
    ended = client.delete(f"/tokens/{segment(name)}")["items"]
    if not options["quiet"]:
        note(f"muster: ended {', '.join(safe(str(each['id'])) for each in ended)}; `muster token create` makes another")
    return 0
