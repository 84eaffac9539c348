# SPDX-License-Identifier: Apache-2.0
"""A store whose rows cannot be read at start: which row it is and what to do, instead of a traceback."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from muster.domain.decide.merge.state import Site
from muster.domain.model.errors import InputError, Unavailable
from muster.services.journal import entry
from muster.spi.store import Loaded, RollWriter

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


def _rows(loaded: Loaded) -> Iterator[tuple[str, Callable[[], object]]]:
    for part, state in loaded.base.items():
        yield f"table base, part {part}", partial(msgspec.msgpack.decode, state, type=Site)
    for said in loaded.said:
        yield f"table journal, row {said.order}", partial(entry, said)
