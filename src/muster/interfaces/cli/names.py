# SPDX-License-Identifier: Apache-2.0
"""Names for the shell's completion: live ones come from the server, are kept for 60 seconds, and never hold the shell up."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from muster.domain.model.errors import InputError, MusterError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

KEPT_S = 60
WAIT_S = 0.5
"""Seconds that the shell waits for names at most."""
_MOST = 500
_FIELDS = {"/cards": "name,node,slot,index,address", "/nodes": "name", "/sources": "node,source", "/findings": "about"}
"""What is asked of each list, so that the answer is small."""
_PARTS = frozenset(": \t/")


def complete_noun(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of the lists."""
    del context, parameter
    from muster.interfaces.cli.nouns import NOUNS

    return [_item(each.names[0], each.about) for each in NOUNS if any(name.startswith(begun) for name in each.names)]


def complete_card(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Cards as NODE/PLACE, and by their ids once such a one is begun; each with its name."""
    del parameter
    return _items("/cards", context, begun)


def complete_name(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of whatever the word before asks for."""
    del parameter
    from muster.interfaces.cli.nouns import noun

    try:
        kind = noun(str(context.params.get("what") or ""))
    except InputError:
        return []
    return _items(kind.path, context, begun) if kind.paged else []


def complete_source(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Sources as NODE/SOURCE."""
    del parameter
    return _items("/sources", context, begun)


def complete_node(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of nodes."""
    del parameter
    return _items("/nodes", context, begun)


def complete_finding(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Ids of open findings, each with its sentence."""
    del parameter
    return _items("/findings", context, begun)


def _items(path: str, context: click.Context, begun: str) -> list[CompletionItem]:
    found = live(path, context.params.get("server"))
    return [_item(name, about) for name, about in found if name.startswith(begun) and (begun or not _is_second(path, name))]


def _is_second(path: str, name: str) -> bool:
    """Cards are offered by their place first, by their id to who begins one."""
    return path == "/cards" and "/" not in name


def _item(name: str, about: str) -> CompletionItem:
    from click.shell_completion import CompletionItem

    return CompletionItem(name, help=about)


def live(path: str, server: str | None = None) -> list[tuple[str, str]]:
    """Names and what they are called, of at most so many rows of a list; what was kept where it is young enough, nothing where the server is away."""
    from muster.interfaces.cli.client import Client, locate
    from muster.interfaces.cli.preferences import preferred

    try:
        address = locate(server, *preferred("server"))
        file = _cache(f"{address.url} {address.socket} {path}")
        kept = _kept(file)
        if kept is not None:
            return kept
        client = Client(address, WAIT_S)
        try:
            rows = client.get(path, limit=_MOST, fields=_FIELDS.get(path))["items"]
        finally:
            client.close()
    except (MusterError, OSError, ValueError, KeyError, TypeError):
        return []
    found = [each for row in rows for each in _named(path, row)]
    _keep(file, found)
    return found


def _named(path: str, row: dict[str, object]) -> list[tuple[str, str]]:
    """What a row can be called, each with what it is."""
    from muster.interfaces.cli.cells import safe

    names = [row.get("name") if path == "/nodes" else f"{row.get('node')}/{row.get('source')}" if path == "/sources" else row.get("id")]
    if path == "/cards":
        names += _at_place(row)
    about = row.get("about") or (row.get("name") if path != "/nodes" else "") or row.get("title") or ""
    return [(safe(str(name)), safe(str(about))[:80]) for name in names]


def _at_place(row: dict[str, object]) -> list[object]:
    """NODE/SLOT or NODE/INDEX, else NODE/ADDRESS: words of bash end at a colon, so that it completes an address as far as its first."""
    places = [str(row.get(key) or "") for key in ("slot", "index")]
    place = next((each for each in places if each and not set(each) & _PARTS), None) or row.get("address")
    return [f"{row['node']}/{place}"] if row.get("node") and place else []


def _cache(key: str) -> Path:
    import hashlib

    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muster"
    return folder / f"names-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _kept(file: Path) -> list[tuple[str, str]] | None:
    try:
        if time.time() - file.stat().st_mtime > KEPT_S:  # noqa: TID251 - a door owns a clock
            return None
        return [(str(name), str(about)) for name, about in json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return None


def _keep(file: Path, found: list[tuple[str, str]]) -> None:
    """Writes the names aside and puts them in place at once, for several shells may ask."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = file.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(found), encoding="utf-8")
        aside.replace(file)
    except OSError:
        return
