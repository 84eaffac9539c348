# SPDX-License-Identifier: Apache-2.0
"""`muster agent` on the site: one-time tokens to join by, who joined, ending a reporter, letting a node in once more. All of it by the server's API."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from muster.domain.model.errors import Ambiguous, Conflict, InputError, MusterError, NotFound
from muster.interfaces.cli import secret_out
from muster.interfaces.cli.calls import confirm, connect, form_options, server_options, yes_option
from muster.interfaces.cli.cells import plain, safe
from muster.interfaces.cli.client import Client, segment
from muster.interfaces.cli.documents import at_path, field, when
from muster.interfaces.cli.lazy import near
from muster.interfaces.cli.names import complete_node
from muster.interfaces.cli.output import Column, note, render, to_json

_LASTS = re.compile(r"^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$")
_FILE_LIMIT = 4 << 20


def _scope(row: Mapping[str, Any]) -> str:
    scope = row.get("scope") or {}
    nodes = scope.get("nodes") or []
    if scope.get("reach") == "cluster":
        return f"cluster {scope.get('cluster')}"
    if not nodes:
        return "any node"
    return f"{scope.get('reach')}: {', '.join(nodes[:3])}{f' and {len(nodes) - 3} more' if len(nodes) > 3 else ''}"


_SCOPE = Column(title="FOR", key="scope", value=_scope)
_REPORTERS = (
    field("REPORTER", "id", name=True),
    field("NODE", "node"),
    field("STATE", "state"),
    when("JOINED", "joined_at"),
    when("KEY", "keyed_at", wide=True),
    field("VERSION", "agent_version"),
    Column(title="FOR", key="scope", value=_scope, wide=True),
    field("TOKEN", "join_token", wide=True),
    Column(title="ENDED BY", key="revoked_by", value=lambda row: at_path(row, "revoked_by"), wide=True),
)
_TOKENS = (
    field("TOKEN", "id", name=True),
    _SCOPE,
    field("LEFT", "left", right=True),
    field("USES", "uses", right=True),
    when("MADE", "created_at"),
    when("EXPIRES", "expires_at"),
    field("BY", "by"),
)


def _client(options: Mapping[str, Any]) -> Client:
    return connect(options["server"], options["timeout"], options["verbose"])


def lasting(text: str) -> float:
    """How long, in seconds: ``1h``, ``2d12h``, ``30m``, or a number of seconds. Raises InputError."""
    match = _LASTS.match(text.strip())
    if text.strip().isdecimal():
        return float(text)
    if match is None or not any(match.groups()):
        raise InputError(f"{text!r} is no time to hold", hint="for example 30m, 1h or 2d12h")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


@click.group()
def token() -> None:
    """One-time tokens to join by: make, list and delete them. Their texts are shown once and kept nowhere."""


@token.command()
@click.option("--node", metavar="NAME", default="", help="For the node of this host name or machine id.")
@click.option("--nodes", "file", metavar="FILE", type=click.Path(path_type=Path), help="For the nodes that stand in the file, one name a line.")
@click.option("--cluster", metavar="UID", default="", help="For the cluster of this uid.")
@click.option("--uses", type=click.IntRange(1, 100_000), default=1, show_default=True, metavar="N", help="How many may join by it.")
@click.option("--expires", default="1h", show_default=True, metavar="TIME", help="How long it holds: 30m, 1h, 2d.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the answer.")
@secret_out.option
@server_options
def create(node: str, file: Path | None, cluster: str, uses: int, expires: str, output: str, out: Path | None, **options: Any) -> int:
    """Make a token. Without --node, --nodes and --cluster any node may join by it, each for itself."""
    asked = {"node": node, "nodes": _listed(file) if file else [], "cluster": cluster, "uses": uses, "lasts": lasting(expires)}
    secret_out.check(out)
    told = _client(options).post("/join-tokens", {name: value for name, value in asked.items() if value})
    _show(told, output, out, quiet=options["quiet"])
    return 0


def _listed(file: Path) -> list[str]:
    try:
        text = file.read_bytes()[:_FILE_LIMIT].decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}", hint="a text file with one name a line; # begins a comment") from error
    names = [name for line in text.splitlines() if (name := line.partition("#")[0].strip())]
    if not names:
        raise InputError(f"{file} names no node", hint="one name a line; # begins a comment")
    return names


def _show(told: Mapping[str, Any], output: str, out: Path | None, *, quiet: bool) -> None:
    """The token to stdout or to a file, and to stderr what to do with it."""
    if output == "json":
        secret_out.put(out, to_json(told), quiet=quiet)
        return
    secret_out.put(out, safe(told["token"]), quiet=quiet)
    if quiet:
        return
    where, mark = told.get("address") or "https://HOST:7461", told.get("authority") or "sha256:..."
    how = "--token -" if out is None else "--token-file FILE"
    note(f"muster: shown this once; it holds until {plain(told['expires_at'])}. On the node, with the token {'on stdin' if out is None else 'in a file'}:")
    note(f"  muster agent join {safe(where)} --ca {safe(mark)} {how}")


@token.command(name="list")
@form_options
@server_options
def list_tokens(output: str, no_headers: bool, **options: Any) -> int:
    """Tokens that can be used still, newest first."""
    found = _client(options).get("/join-tokens")
    render(found["items"], _TOKENS, output, no_headers=no_headers, document=found, empty="no token can be used now")
    return 0


@token.command()
@click.argument("token_id", metavar="ID")
@server_options
def delete(token_id: str, **options: Any) -> int:
    """Delete a token: nobody joins by it any more. Who did stays."""
    _client(options).raw("DELETE", f"/join-tokens/{segment(token_id)}", {})
    if not options["quiet"]:
        note(f"muster: token {safe(token_id)} is deleted")
    return 0


@click.command(name="list")
@form_options
@server_options
def list_(output: str, no_headers: bool, **options: Any) -> int:
    """All reporters that ever joined: agents, collectors, controllers, and how each stands."""
    found = _client(options).all("/reporters")
    render(found["items"], _REPORTERS, output, no_headers=no_headers, document=found, empty="nobody has joined yet: `muster agent token create`")
    return 0


@click.command()
@click.argument("node", shell_complete=complete_node)
@click.option("--reason", default="", metavar="TEXT", help="Why; it is kept in the audit.")
@yes_option
@server_options
def revoke(node: str, reason: str, yes: bool, **options: Any) -> int:
    """End the reporter of NODE (its id, host name or machine id) at once, with its access tokens."""
    client = _client(options)
    meant = _reporter(client, node)
    if meant["state"] == "revoked":
        raise Conflict(f"{safe(meant['id'])} is revoked already", hint=f"`muster agent reenrol {safe(node)}` lets it in again")
    confirm(f"End the reporter {safe(meant['id'])} ({safe(meant['state'])})? What it says is refused from now on.", yes)
    told = client.post(f"/reporters/{segment(meant['id'])}/revoke", {"reason": reason})
    if not options["quiet"]:
        note(f"muster: {safe(told['id'])} is revoked")
        note(f"  to let it in again: `muster agent reenrol {safe(shlex.quote(node))}`, which prints a token and what to do on the node")
        if again := _may_join_again(client, told["join_token"]):
            note(f"  {again}")
    return 0


def _may_join_again(client: Client, token: str) -> str:
    """What to know of the token by which somebody joined who is shut out now: while it has uses left they may come again, by other names."""
    try:
        found = [each for each in client.get("/join-tokens")["items"] if each["id"] == token]
    except MusterError:
        return ""  # who may revoke need not see join tokens
    ends = f"; `muster agent token delete {safe(token)}` ends it"
    return f"the token that it joined by lets {found[0]['left']} more in, whoever has it, until {safe(found[0]['expires_at'])}{ends}" if found else ""


def _reporter(client: Client, node: str) -> Mapping[str, Any]:
    """The reporter that is meant, looked for before anything is asked. Raises NotFound, Ambiguous."""
    known: list[Mapping[str, Any]] = client.all("/reporters")["items"]
    asked = node.strip().lower()
    found = [each for each in known if asked in (str(each.get(key) or "").lower() for key in ("id", "node", "machine_id"))]
    found = found or [each for each in known if str(each["node"]).lower().partition(".")[0] == asked.partition(".")[0]]
    if not found:
        meant = near(node, [str(each["node"]) for each in known])
        raise NotFound(f"no reporter of a node {node} has joined{meant}", hint="`muster agent list` shows all")
    if len(found) > 1:
        raise Ambiguous(f"{node} has several reporters: {', '.join(str(each['id']) for each in found)}", hint="name one of them")
    return found[0]


@click.command()
@click.argument("node", shell_complete=complete_node)
@click.option("--for", "lasts", default="1h", show_default=True, metavar="TIME", help="How long the node may take to join: 30m, 1h, 2d.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the answer.")
@secret_out.option
@server_options
def reenrol(node: str, lasts: str, output: str, out: Path | None, **options: Any) -> int:
    """Let NODE join once more with another key, after it got a new system; prints a token for that. Its old key holds until then."""
    secret_out.check(out)
    told = _client(options).post(f"/reporters/{segment(node)}/reenrol", {"lasts": lasting(lasts)})
    if output == "json":
        secret_out.put(out, to_json(told), quiet=options["quiet"])
        return 0
    if not options["quiet"]:
        note(f"muster: {safe(told['reporter']['id'])} may join once more")
    _show(told["made"], output, out, quiet=options["quiet"])
    if not options["quiet"]:
        note("  A node that has its old membership still: `muster agent leave --keep-enrolment` first")
    return 0
