# SPDX-License-Identifier: Apache-2.0
"""Goes over every row of every table and reads it as a server would: what cannot be read is told by table and key."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import BigInteger, Boolean, Connection, Double, Integer, LargeBinary, Table, Text, column, select, tuple_
from sqlalchemy import table as named

from muster.domain.model.errors import MusterError, Unavailable
from muster.store import access, evidence, gauges_rows, mapping, pack, users
from muster.store.connections import Connections
from muster.store.mapping import Row
from muster.store.schema import metadata
from muster.store.schema_gauges import layouts
from muster.store.segments import FileSegments, Segments, TableSegments
from muster.store.statements import SQLITE
from muster.store.unread import UNREADABLE, lenient

Decoders: TypeAlias = Mapping[str, Callable[[Row], object]]
"""By table: reads a row, and raises what a row raises that is not what was once written there."""
Progress: TypeAlias = Callable[[str, int], None]
"""Is told a table, and how many of its rows were read so far."""
AT_ONCE = 500
"""Rows that are read together."""
MOST = 50
"""Rows of one table that are named; the others are counted."""
_RAISED = (*UNREADABLE, zlib.error, LookupError, ArithmeticError, AttributeError, MusterError)
_MAY_BE: tuple[tuple[type[Any], tuple[type, ...]], ...] = (
    (Text, (str,)),
    (LargeBinary, (bytes, memoryview)),
    (Boolean, (bool, int)),
    (Integer, (int,)),
    (BigInteger, (int,)),
    (Double, (int, float)),
)


class _Damaged(str):
    """A text whose bytes are no UTF-8."""

    __slots__ = ()


def _marking(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return _Damaged(lenient(text))


def look(connections: Connections, decoders: Decoders, progress: Progress, lost: set[str]) -> Iterator[str]:
    """What is wrong with rows, one sentence each; ``decoders`` are those of tables that the store itself does not understand. Tables ``lost`` are left out."""
    widths: dict[int, int] = {}
    every = {**_own(widths), **decoders}
    for table in sorted(metadata.sorted_tables, key=lambda each: (each.name != layouts.name, each.name)):
        if table.name not in lost:
            yield from _bounded(table.name, _over(connections, table, every.get(table.name), progress))
    if not lost:
        yield from _bounded("minutes", _segments(connections, sorted(widths), progress))


def _bounded(name: str, problems: Iterator[str]) -> Iterator[str]:
    more = 0
    for count, problem in enumerate(problems):
        if count < MOST:
            yield problem
        else:
            more += 1
    if more:
        yield f"{more} more rows of the table {name} cannot be read"


def _over(connections: Connections, table: Table, decode: Callable[[Row], object] | None, progress: Progress) -> Iterator[str]:
    """Row by row, in the order of its key, some at a time: who writes meanwhile is not held up."""
    keys: list[Any] = [column(each.name) for each in table.primary_key]
    asked: Any = select(*(column(each.name) for each in table.columns)).select_from(named(table.name)).order_by(*keys).limit(AT_ONCE)
    after, done = None, 0
    while True:
        some = asked if after is None else asked.where(tuple_(*keys) > tuple_(*after))
        with _reading(connections) as connection:
            rows = [dict(row) for row in connection.execute(some).mappings()]
        for row in rows:
            if why := _wrong(table, row, decode):
                yield f"row {'/'.join(str(row[each.name]) for each in keys)} of the table {table.name} cannot be read: {why}"
        done += len(rows)
        progress(table.name, done)
        if len(rows) < AT_ONCE:
            return
        after = [rows[-1][each.name] for each in keys]


def _wrong(table: Table, row: Row, decode: Callable[[Row], object] | None) -> str:
    for each in table.columns:
        if why := _unlike(row[each.name], each.type, maybe=bool(each.nullable)):
            return f"{each.name} {why}"
    try:
        if decode is not None:
            decode(row)
    except _RAISED as error:
        return (error.message if isinstance(error, MusterError) else str(error).partition("\n")[0][:200]) or type(error).__name__
    return ""


def _unlike(value: Any, kind: Any, *, maybe: bool) -> str:
    """Why a value cannot be one of its column; empty when it can."""
    if value is None:
        return "" if maybe else "is empty"
    if isinstance(value, _Damaged):
        return "is no text"
    may_be = next((types for each, types in _MAY_BE if isinstance(kind, each)), (object,))
    return "" if isinstance(value, may_be) else f"is of another kind ({type(value).__name__})"


@contextmanager
def _reading(connections: Connections) -> Iterator[Connection]:
    """A connection for reading, on which texts that are damaged are marked."""
    with connections.reading() as connection:
        if connection.dialect.name != SQLITE:
            yield connection
            return
        raw: Any = connection.connection.driver_connection
        before, raw.text_factory = raw.text_factory, _marking
        try:
            yield connection
        finally:
            raw.text_factory = before


def _own(widths: dict[int, int]) -> Decoders:
    """The decoders of the store's own tables. ``widths``: of the layouts that were read, filled as they are."""

    def layout(row: Row) -> None:
        gauges_rows.columns(row["columns"])
        msgspec.json.decode(row["names"], type=tuple[str, str, str])
        widths[row["number"]] = row["width"]

    def slot(row: Row) -> None:
        width = row["width"]
        if row["layout"] not in widths:
            raise ValueError(f"its layout {row['layout']} is missing or cannot be read")
        if len(row["numbers"]) != 8 * width or len(row["told"]) not in (0, 8 * width):
            raise ValueError(f"its numbers are not {width}")
        if row["open"]:
            gauges_rows.spread([row["open"]], width, gauges_rows.nothing(width))

    def minute_row(row: Row) -> None:
        if row["layout"] in widths:
            gauges_rows.spread([row["packed"]], widths[row["layout"]])

    card, node = (lambda row: mapping.card(row["record"])), (lambda row: mapping.node(row["record"]))
    return {
        "layouts": layout,
        "slots": slot,
        "minute_rows": minute_row,
        "cards": card,
        "card_versions": card,
        "nodes": node,
        "node_versions": node,
        "sources": lambda row: mapping.source(row["record"]),
        "changes": mapping.change_row,
        "findings": mapping.finding_row,
        "events": mapping.event_row,
        "captures": evidence.unpack,
        "audit": lambda row: mapping.entry(row["entry"]),
        "current": lambda row: mapping.word(row["said"], row["value_at"], row["why_at"], row["capture"]),
        "minutes": lambda row: None if row["said"] is None else mapping.word(row["said"], row["value_at"], None),
        "members": access.member_of,
        "join_tokens": access.token_of,
        "tokens": users.token_of,
    }


def _segments(connections: Connections, known: Sequence[int], progress: Progress) -> Iterator[str]:
    """Packed minutes, hour by hour."""
    place = connections.place
    segments: Segments = TableSegments(connections, connections.transaction) if place is None else FileSegments(_minutes(place))
    try:
        for done, hour in enumerate(segments.hours(), 1):
            try:
                blocks = segments.read([hour], known)
            except ValueError as error:
                yield f"segment {hour} cannot be read: {error}"
                continue
            for block in blocks:
                try:
                    pack.unpack(block.packed)
                except _RAISED as error:
                    yield f"block {block.block} of layout {block.layout} in segment {hour} cannot be read: {str(error)[:200]}"
            progress("segments", done)
    except Unavailable as error:
        yield error.message


def _minutes(place: Path) -> Path:
    return place.with_name(f"{place.name}-minutes")
