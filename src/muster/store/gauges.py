# SPDX-License-Identifier: Apache-2.0
"""The writer's half of the gauges: rounds of numbers go into one row a source, and minutes that are over into rows that wait to be packed.

What is in memory changes only when the batch was committed (`Gauges.settle`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import bindparam, delete, select, update

from muster.domain.model.roll import Sample, Word
from muster.spi.store import Batch, Slot
from muster.store import gauges_round, gauges_rows, intake, mapping, series
from muster.store.gauges_map import NONE
from muster.store.gauges_pool import SHUT, Meta, Pool, Scratch, Seat
from muster.store.gauges_round import Left, Plan, Shut
from muster.store.gauges_rows import Rolled
from muster.store.pack import BLOCK
from muster.store.schema import aliases
from muster.store.schema_gauges import layout_subjects, layouts, minute_rows, slots
from muster.store.statements import Session, adding, compiled, each, replacing
from muster.store.unread import Unread

LAYOUT, ROW, SLOT, JOIN = "layout", "minute_row", "slot", "join"
"""Counters: the next layout, row of a minute, and slot; how often cards were joined or vanished."""
_LATE = 4096
"""Minutes of the past that are remembered, so that what comes after goes into the same row."""

_HOT = ("layout", "width", "at", "since", "again_at", "received_at", "incarnation", "sequence", "facts", "capture", "minute", "numbers", "told", "open")
_SAY = compiled(update(slots).where(slots.c.slot == bindparam("slot_")).values({name: bindparam(name) for name in _HOT}))
_SLOT = adding(slots)
_PLACE = compiled(
    _SLOT.on_conflict_do_update(index_elements=[slots.c.slot], set_={name: _SLOT.excluded[name] for name in ("node", "source", "reporter", "layout", "width")})
)
_REGION = compiled(update(slots).where(slots.c.slot == bindparam("slot_")).values(region=bindparam("part")))
_UNITE = compiled(update(slots).where(slots.c.region == bindparam("old")).values(region=bindparam("new")))
_LAYOUT = compiled(adding(layouts))
_UNTIL = compiled(update(layouts).where(layouts.c.slot == bindparam("slot_"), layouts.c.until.is_(None)).values(until=bindparam("since")))
_SUBJECT = replacing(layout_subjects, [layout_subjects.c.subject, layout_subjects.c.layout])
_HOLDING = select(layout_subjects.c.layout).where(layout_subjects.c.card == bindparam("card_"))
_OF_CARD = compiled(select(layouts.c.number, layouts.c.columns).where(layouts.c.number.in_(_HOLDING)))
_RENAME = compiled(update(layouts).where(layouts.c.number == bindparam("number_")).values(columns=bindparam("columns")))
_NO_SUBJECT = compiled(delete(layout_subjects).where(layout_subjects.c.card == bindparam("card_")))
_COLUMNS = compiled(select(layouts.c.columns).where(layouts.c.number == bindparam("number_")))
_JOINS = compiled(select(aliases.c.old, aliases.c.new))
_ROW = compiled(adding(minute_rows))
_MORE = compiled(update(minute_rows).where(minute_rows.c.number == bindparam("number_")).values(at=bindparam("at"), packed=bindparam("packed")))
_KEPT = ("columns", "promise", "bounds", "names")
"""Of a layout, what a starting writer takes up again."""
_ALL = compiled(select(slots, *(layouts.c[name] for name in _KEPT)).join(layouts, layouts.c.number == slots.c.layout).order_by(slots.c.slot))


class Gauges:
    """Newest numbers and open minutes of all sources. ``path``: where other processes of the machine find the numbers. Not ``rolled``: no history of them."""

    def __init__(self, path: Path | None, unread: Unread, *, rolled: bool = True) -> None:
        self.pool = Pool(path)
        self.rolled = rolled
        self._readable = unread.readable
        self._layout = self._row = 1
        self._frozen = 0
        self._late: dict[tuple[int, int], Shut] = {}
        self._plan: Plan | None = None
        self._joins = 0
        self._loaded = False
        self.wrote = False
        """True when this process wrote since it loaded: what is in memory is what is newest."""

    def load(self, session: Session) -> tuple[list[Slot], int]:
        """Begins anew with what the store has. Returns the sources, and the next slot to give."""
        rows = [dict(zip([*slots.c.keys(), *_KEPT], row, strict=True)) for row in session.execute(_ALL)]
        found = self._readable("slots", ("slot",), rows, _restored, whole=True)
        self.pool.open([seat for seat, _, _ in found], max((seat.meta.slot for seat, _, _ in found), default=0) + 1)
        for seat, newest, rolled in found:
            mine = slice(seat.offset, seat.offset + seat.width)
            self.pool.arrays.newest[mine], self.pool.arrays.told[mine] = newest
            told = rolled.count > 0
            self.pool.count[mine], self.pool.total[mine] = rolled.count, np.where(told, rolled.total, 0.0)
            self.pool.low[mine], self.pool.high[mine] = np.where(told, rolled.low, np.inf), np.where(told, rolled.high, -np.inf)
        self._layout, self._row = (max(intake.counted(session, name), 1) for name in (LAYOUT, ROW))
        self._frozen, self._late, self._plan, self.wrote = self._row - 1, {}, None, False
        self._joins = self.pool.arrays.joins = intake.counted(session, JOIN)
        self._loaded = True
        return [_slot(seat.meta, self.pool) for seat, _, _ in found], max(intake.counted(session, SLOT), 1)

    def freeze(self, session: Session) -> int:
        """Rows of minutes up to the number that this returns are changed no more."""
        if not self._loaded:
            self.load(session)
        self._frozen = self._row - 1
        self._late = {}
        return self._frozen

    def write(self, session: Session, batch: Batch) -> None:
        """Writes the layouts and rounds of a batch. Raises InputError for numbers that fit no layout."""
        if not self._loaded:
            self.load(session)
        if batch.gone or batch.vanished:
            self._joins += 1
            intake.count(session, JOIN, self._joins)
            self._forget(session, batch.vanished)
        each(session, _UNITE, ({"old": old, "new": intake.last(old, batch.united)} for old in batch.united))
        plan = gauges_round.plan(batch, self.pool, self._next_layout, self._late, lambda layout: _columns(session, layout))
        self._lay(session, plan, batch)
        if plan.scratch is not None and plan.seats:
            each(session, _SAY, self._said(plan, plan.scratch))
        if self.rolled:
            self._roll(session, plan)
        known = self.pool.seats.keys() | {seat.meta.slot for seat in plan.seats}
        regions = [(int(slot), part) for slot, part in batch.regions.items() if slot.isdecimal() and int(slot) in known] if batch.regions else []
        each(session, _REGION, ({"slot_": slot, "part": part} for slot, part in regions))
        self._plan = plan

    def settle(self) -> None:
        """The batch of the last `write` was committed."""
        plan, self._plan = self._plan, None
        if plan is None or plan.scratch is None:
            return
        self.pool.share()
        if plan.seats:
            self.pool.settle(plan.seats, plan.scratch)
        if len(self._late) > _LATE:
            self._late = {}
        self._late.update({key: shut for key, shut in plan.late.items() if shut.number > self._frozen})
        self.pool.arrays.joins, self.wrote = self._joins, True

    def _forget(self, session: Session, cards: Sequence[str]) -> None:
        """Takes the columns of cards that never were out of the layouts they stand in; nothing stands for them."""
        for card in cards:
            for number, blob in session.execute(_OF_CARD, {"card_": card}).fetchall():
                left = [column for column in gauges_rows.columns(blob) if column[1] != card]
                session.execute(_RENAME, {"number_": number, "columns": gauges_rows.columns_blob(left)})
            session.execute(_NO_SUBJECT, {"card_": card})

    def _next_layout(self) -> int:
        self._layout += 1
        return self._layout - 1

    def _lay(self, session: Session, plan: Plan, batch: Batch) -> None:
        if not plan.layouts:
            return
        intake.count(session, LAYOUT, self._layout)
        intake.count(session, SLOT, max(layout.slot for layout, _ in plan.layouts) + 1)
        for layout, seat in plan.layouts:
            session.execute(_UNTIL, {"slot_": layout.slot, "since": layout.since})
            row = {"number": seat.layout, "slot": layout.slot, "node": layout.node, "source": layout.source, "since": layout.since, "until": None}
            kept = {"promise": layout.promise, "bounds": layout.bounds, "names": mapping.text(layout.node_names)}
            session.execute(_LAYOUT, {**row, **kept, "width": layout.width, "columns": gauges_rows.columns_blob(layout.columns)})
            cards = {subject: card for subject, card, _, _ in layout.columns}
            each(session, _SUBJECT, ({"subject": subject, "layout": seat.layout, "card": card} for subject, card in cards.items()))
        each(session, _PLACE, (_blank(seat, batch.regions.get(str(seat.meta.slot), "")) for _, seat in plan.layouts))
        if plan.left:
            joins = dict(session.execute(_JOINS).fetchall())
            series.left(session, [_word(left, joins) for left in plan.left])

    def _said(self, plan: Plan, scratch: Scratch) -> Iterator[dict[str, Any]]:
        last = {seat.meta.slot: index for index, seat in enumerate(plan.seats)}
        by_width: defaultdict[int, list[int]] = defaultdict(list)
        for index in last.values():
            by_width[plan.seats[index].width].append(index)
        for width, indexes in by_width.items():
            mine = scratch.starts[indexes][:, None] + np.arange(width)
            rolled = Rolled(*(getattr(scratch, name)[mine] for name in ("count", "low", "high", "total", "newest")))
            exact = np.stack([plan.seats[index].exact for index in indexes])
            opened = gauges_rows.squeeze(rolled, exact, last=False) if self.rolled else [b""] * len(indexes)
            newest, told = scratch.newest[mine].astype("<f8"), scratch.told[mine]
            at = np.fromiter((plan.seats[index].meta.at for index in indexes), np.float64, len(indexes))
            apart = ((told != at[:, None]) & (told != NONE)).any(axis=1)
            for row, index in enumerate(indexes):
                times = told[row].astype("<f8").tobytes() if apart[row] else b""
                yield _hot(plan.seats[index], newest[row].tobytes(), times, opened[row])

    def _roll(self, session: Session, plan: Plan) -> None:
        if not plan.shut and not plan.late:
            return
        new = [*plan.shut, *(shut for shut in plan.late.values() if not shut.number)]
        each(session, _MORE, _rows([shut for shut in plan.late.values() if shut.number]))
        numbered = [replace(shut, number=self._row + index) for index, shut in enumerate(new)]
        self._row += len(new)
        each(session, _ROW, _rows(numbered))
        intake.count(session, ROW, self._row)
        plan.late.update({(shut.layout, shut.minute): shut for shut in numbered[len(plan.shut) :]})


def _rows(shuts: Sequence[Shut]) -> Iterable[dict[str, Any]]:
    by_width: defaultdict[int, list[Shut]] = defaultdict(list)
    for shut in shuts:
        by_width[len(shut.exact)].append(shut)
    for mine in by_width.values():
        rolled = Rolled(*(np.stack([getattr(shut.rolled, name) for shut in mine]) for name in ("count", "low", "high", "total", "last")))
        for shut, packed in zip(mine, gauges_rows.squeeze(rolled, np.stack([shut.exact for shut in mine])), strict=True):
            row = {"number": shut.number, "number_": shut.number, "layout": shut.layout, "block": shut.minute // BLOCK, "minute": shut.minute}
            yield {**row, "at": shut.at, "packed": bytes(packed)}


def _hot(seat: Seat, newest: bytes, told: bytes, opened: bytes | memoryview) -> dict[str, Any]:
    meta = seat.meta
    return {
        "slot_": meta.slot,
        "layout": seat.layout,
        "width": seat.width,
        "at": _maybe(meta.at),
        "since": _maybe(meta.since),
        "again_at": meta.again_at,
        "received_at": _maybe(meta.received_at),
        "incarnation": meta.incarnation,
        "sequence": meta.sequence,
        "facts": meta.facts,
        "capture": meta.capture,
        "minute": None if seat.minute == SHUT else seat.minute,
        "numbers": newest,
        "told": told,
        "open": bytes(opened),
    }


def _blank(seat: Seat, region: str) -> dict[str, Any]:
    meta = seat.meta
    hot = _hot(seat, np.full(seat.width, np.nan).astype("<f8").tobytes(), b"", b"")
    return {**hot, "slot": meta.slot, "node": meta.node, "source": meta.source, "reporter": meta.reporter, "region": region}


_names = msgspec.json.Decoder(tuple[str, str, str]).decode


def _maybe(at: float) -> float | None:
    return None if at == NONE else at


def _never(at: float | None) -> float:
    return NONE if at is None else at


def _restored(row: dict[str, Any]) -> tuple[Seat, tuple[Any, Any], Rolled]:
    """A row as it is in memory: the source, its numbers with their times, and its open minute."""
    said = {name: row[name] for name in ("slot", "node", "source", "reporter", "region", "again_at", "incarnation", "sequence", "facts", "capture")}
    said |= {"promise": row["promise"], "bounds": row["bounds"], "node_names": _names(row["names"])}
    meta = Meta(**said, at=_never(row["at"]), since=_never(row["since"]), received_at=_never(row["received_at"]))
    columns, width = gauges_rows.columns(row["columns"]), row["width"]
    minute = SHUT if row["minute"] is None else row["minute"]
    seat = Seat(meta, row["layout"], width, gauges_rows.exact(columns, width), minute)
    newest = np.frombuffer(row["numbers"], "<f8")
    told = np.frombuffer(row["told"], "<f8") if row["told"] else np.where(np.isnan(newest), NONE, meta.at)
    nothing = np.zeros(width)
    rolled = Rolled(nothing.astype(np.int64), nothing, nothing, nothing, newest)
    if row["open"]:
        opened = gauges_rows.spread([row["open"]], width, newest[None])
        rolled = Rolled(*(getattr(opened, name)[0] for name in ("count", "low", "high", "total", "last")))
    return seat, (newest, told), rolled


def _slot(meta: Meta, pool: Pool) -> Slot:
    seat = pool.seats[meta.slot]
    numbers = pool.arrays.newest[seat.offset : seat.offset + seat.width].astype("<f8").tobytes()
    said = {name: getattr(meta, name) for name in ("slot", "node", "source", "reporter", "incarnation", "sequence", "again_at", "facts", "region")}
    said |= {"promise": meta.promise, "bounds": meta.bounds, "node_names": meta.node_names}
    return Slot(**said, at=meta.since, received_at=meta.received_at, numbers=numbers, width=seat.width)


def _columns(session: Session, layout: int) -> list[tuple[str, str, str, int]]:
    """Those of a layout in the store; none of one that is damaged."""
    found = session.execute(_COLUMNS, {"number_": layout}).fetchone()
    with suppress(ValueError):
        return gauges_rows.columns(found[0]) if found else []
    return []


def _word(left: Left, joins: Mapping[str, str]) -> Sample:
    """A last number as a word of its own. Its roll-ups are those of the round it came with."""
    word = Word(value=gauges_rows.plain(left.value), at=left.at)
    subject, card = intake.last(left.subject, joins), intake.last(left.card, joins)
    node, source = left.meta.node, left.meta.source
    return Sample(subject=subject, card=card, node=node, source=source, key=left.key, at=left.at, value=left.value, word=word, rollup=False)
