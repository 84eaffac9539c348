# SPDX-License-Identifier: Apache-2.0
"""A store whose rows cannot be read at start: which row it is and what to do, instead of a traceback."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec

from muster.domain.decide.merge.state import Site
from muster.domain.model.errors import InputError, Unavailable
from muster.services.journal import entry
from muster.services.windows import Window
from muster.spi.store import Loaded, RollWriter, Said
from muster.store.looking_rows import Decoders

DAMAGED = (InputError, zlib.error, msgspec.MsgspecError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""What a row raises that is not what was once written there."""
_HINT = "stop here and keep the file; put a backup in its place, or name another folder with --state to begin anew (agents report again by themselves)"


@contextmanager
def whole(name: str, writer: RollWriter) -> Iterator[None]:
    """Runs a start that reads the store ``name``. Raises Unavailable with the first row that cannot be read in the place of what the row raised."""
    try:
        yield
    except DAMAGED as error:
        where, why = next(_bad(writer), ("", f"{type(error).__name__}: {error}"))
        at = f" in {where}" if where else ""
        raise Unavailable(f"the store {name} is damaged{at}: {why}", hint=_HINT) from error


def _bad(writer: RollWriter) -> Iterator[tuple[str, str]]:
    """Rows that cannot be read, each with the reason."""
    try:
        loaded = writer.load()
    except DAMAGED as error:
        yield "its lists of reports", str(error)
        return
    for where, read in _rows(loaded):
        try:
            read()
        except DAMAGED as error:
            yield where, str(error) or type(error).__name__


def decoders() -> Decoders:
    """How the rows are read that only services understand."""
    return {
        "base": lambda row: msgspec.msgpack.decode(row["state"], type=Site) if row["state"] else None,
        "journal": _said,
        "reporters": lambda row: (Window(bytes(row["recent"])), msgspec.msgpack.decode(row["state"]) if row["state"] else None),
    }


def _said(row: Mapping[str, Any]) -> object:
    told = {name: row[name] for name in ("at", "received_at", "kind")}
    return entry(Said(order=row["number"], body=bytes(row["body"]), region=row["region"], **told))


def _rows(loaded: Loaded) -> Iterator[tuple[str, Callable[[], object]]]:
    for part, state in loaded.base.items():
        yield f"table base, part {part}", partial(msgspec.msgpack.decode, state, type=Site)
    for each in loaded.reporters:
        yield f"table reporters, row {each.reporter}", partial(Window, each.recent)
    for said in loaded.said:
        yield f"table journal, row {said.order}", partial(entry, said)
