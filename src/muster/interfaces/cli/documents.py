# SPDX-License-Identifier: Apache-2.0
"""Where things stand in the API's documents: readings, times, names. The one place of the command line that knows their keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import click

from muster.interfaces.cli.cells import Missing, age, moment, plain, quantity, rfc3339, safe
from muster.interfaces.cli.output import Column, Row

_AT = "muster.at"


def now() -> float:
    """The time of which ages are told: that of the document being shown (`as_of`), else of this machine."""
    context = click.get_current_context(silent=True)
    at: float | None = context.meta.get(_AT) if context else None
    return time.time() if at is None else at  # noqa: TID251 - a door owns a clock


def as_of(document: Row) -> None:
    """Tells ages from now on as of the time for which the server made ``document``, so that one screen knows one clock."""
    click.get_current_context().meta[_AT] = _made_at(document)


def _made_at(document: Row) -> float | None:
    """When a document was made: what its page says, else what its own age or that of a reading tells."""
    if "learnt_at" not in document and (page := moment(document.get("at"))) is not None:
        return page.timestamp()
    for each in (document, *(document.get("items") or ())[:1]):
        whole = (each.get("last_at") or each.get("opened_at"), each.get("age"))
        for at, old in (whole, *((told.get("observed_at"), told.get("age")) for told in (each.get("readings") or {}).values())):
            if old is not None and (found := moment(at)) is not None:
                return found.timestamp() + float(old)
    return None


def at_path(row: Row, path: str) -> Any:
    """The value at ``a.b.c``, or None."""
    value: Any = row
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def told(each: Any) -> Any:
    """The value of one reading, or why there is none."""
    if not isinstance(each, Mapping):
        return Missing("no_source_says") if each is None else each
    if "value" in each and each["value"] is not None:
        return each["value"]
    why = each.get("absent")
    return Missing(why if isinstance(why, str) and why else "not_sampled", str(each.get("detail") or ""))


def reading(row: Row, key: str) -> Any:
    """The value of a row's reading ``key``, or why there is none."""
    return told((row.get("readings") or {}).get(key))


def field(title: str, path: str, *, wide: bool = False, right: bool = False, name: bool = False, show: Callable[[Any], str] = plain) -> Column:
    """A column for a plain key of the document."""
    return Column(title=title, key=path, value=lambda row: at_path(row, path), show=show, wide=wide, right=right, name=name, needs=_root(path))


def _root(path: str) -> tuple[str, ...]:
    return (path.partition(".")[0],)


def measured(title: str, key: str, unit: str, *, wide: bool = False) -> Column:
    """A column for a reading in ``unit``."""
    return Column(title=title, key=key, value=lambda row: reading(row, key), show=lambda value: quantity(value, unit), wide=wide, right=unit != "text")


def of_card(row: Row, key: str) -> Any:
    """The value of a card's reading, else what its devices say together, as the server told it; else why there is none."""
    own = reading(row, key)
    return ((row.get("together") or {}).get(key) or {}).get("value", own) if isinstance(own, Missing) else own


def on_card(title: str, key: str, unit: str) -> Column:
    """A column for a reading of a card, its own or that of its devices together."""
    return Column(title=title, key=key, value=lambda row: of_card(row, key), show=lambda value: quantity(value, unit), right=True, needs=(key, "together"))


def ago(value: Any) -> str:
    """A time of the API as its age."""
    return age(value, now())


def when(title: str, path: str, *, wide: bool = False) -> Column:
    """A column for a time: its age in a table, RFC 3339 in data."""
    return Column(title=title, key=path, value=lambda row: at_path(row, path), show=ago, data=rfc3339, wide=wide, needs=_root(path), passes=True)


def names(row: Row, kind: str) -> Any:
    """The ids of one kind, as one text."""
    return ", ".join(map(str, (row.get("ids") or {}).get(kind, ()))) or None


def identity(title: str, kind: str, *, wide: bool = True) -> Column:
    """A column for ids of one kind."""
    return Column(title=title, key=f"ids.{kind}", value=lambda row: names(row, kind), wide=wide, needs=("ids",))


def seen(row: Row) -> str | None:
    """When a hardware source last saw the card."""
    return max((str(claim["last_at"]) for claim in row.get("claims") or () if claim.get("last_at")), default=None)


def card_place(row: Row) -> str | None:
    """Slot, else address, else index: what a person finds the card by on its node."""
    index = row.get("index")
    return row.get("slot") or row.get("address") or (f"index {index}" if index is not None else None)


def sentence(value: Any) -> str:
    """Text of the server for a line."""
    return safe(str(value))
