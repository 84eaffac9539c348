# SPDX-License-Identifier: Apache-2.0
"""The roll in columns, kept beside the store for the door: what was written since the last look is taken in, one look at a time.

A small roll is brought up to date by whoever asks. A large one is kept by a thread of its own, off the way of requests, a few times a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import structlog

from muster.domain.decide.pick_fields import CARD_FIELDS, PART_FIELDS
from muster.domain.decide.pick_numbers import devices_together, merged
from muster.domain.decide.pick_order import prepare
from muster.domain.decide.pick_rows import End, Row, card_row, part_row
from muster.domain.decide.pick_table import Table
from muster.domain.decide.view import OF_DEVICES, Apart
from muster.domain.model.errors import MusterError, Unavailable
from muster.domain.model.policy import Policy
from muster.domain.model.roll import CardRecord, Finding, Voice
from muster.domain.model.snapshot import Column, Ints, Mask, Numbers, Snapshot
from muster.spi.adapter import Adapter
from muster.spi.numbers import Numbers as NumbersPort
from muster.spi.store import RollReader
from muster.store.reader import Reader
from muster.wire import shown
from muster.wiring.snapshot_clocks import on_time
from muster.wiring.snapshot_columns import Showing, apart_of, chunks, moves, numbers_of, owners_of, padded, unswept
from muster.wiring.snapshot_findings import Opened
from muster.wiring.snapshot_lists import Lists
from muster.wiring.snapshot_names import Index, candidates
from muster.wiring.snapshot_numbers import BEAT, MOVING, Moving, Voices, number
from muster.wiring.snapshot_printing import Plates
from muster.wiring.snapshot_records import Records
from muster.wiring.snapshot_sources import Adapters, makers
from muster.wiring.snapshot_turns import Turns

FEW_CARDS, FEW_KEYS = 8, 5
"""From so many cards on, and up to so many attributes, numbers are taken from the columns and not from the store."""
_USUAL = ("node", "slot", "address", "index")
log = structlog.get_logger("muster.columns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How columns are kept. ``small`` rolls are looked at whenever somebody asks."""

    small: int = 5000
    beat: float = BEAT


class Views:
    """Snapshots of cards, devices, partitions, nodes and sources. Safe for several threads."""

    def __init__(
        self,
        reader: RollReader,
        policy: Policy,
        clock: Callable[[], float],
        adapters: Sequence[Adapter] = (),
        numbers: NumbersPort | None = None,
        settings: Settings = Settings(),
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reader = reader
        self._policy = policy
        self._clock = clock
        self._ticks = ticks
        self.settings = settings
        self._makers = makers(adapters)
        self.adapters = Adapters(adapters)
        self._moving = Moving(numbers, policy, ticks) if numbers is not None else None
        self._cards, self._devices, self._partitions = Table(CARD_FIELDS), Table(PART_FIELDS), Table(PART_FIELDS)
        self._parts: dict[str, tuple[str, ...]] = {}
        self._index = Index()
        self._turns = Turns(numbers)
        self.records = Records(reader, numbers)
        self.plates = Plates(self.records, reader, numbers, policy, self._makers) if numbers is not None and isinstance(reader, Reader) else None
        self.lists = Lists(reader, policy, clock, self.adapters, ticks, self._pace)
        self._voices: Voices = {}
        self._homes: dict[str, str] = {}
        self._on: dict[str, set[str]] = {}
        """Cards that are spoken of on each node."""
        self._stamps = count(1)
        self._turn = threading.Lock()
        self._news = threading.Condition()
        self._version = 0
        self.took = 0.0
        """Seconds of the last look."""
        self.opened = Opened(reader)
        self._shown: Showing | None = None
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    # keeping

    def refresh(self) -> None:
        """Takes in what was written since the last look. One at a time; who comes meanwhile waits for it and looks again where there is more."""
        with self._turn:
            began = self._ticks()
            with unswept(first=self._shown is None):
                self._look()
            self.took = self._ticks() - began
        with self._news:
            self._news.notify_all()

    def _look(self) -> None:
        now = self._clock()
        version = self.reader.version()
        old = self._shown
        due = self._due(now)
        due += [id_ for node in self._turns.stirred() for id_ in self._on.get(node, ())]
        if old is not None and version == self._version and self._moving is not None and not due:
            return
        fresh = self.records.fresh(self._version)
        self._drop(fresh.gone)
        seen = self._take_in(fresh.cards, now)
        if fresh.regrounded or self._version == 0:
            self._drop(self._cards.places.keys() - seen)
        for ids in chunks(id_ for id_ in dict.fromkeys(due) if id_ not in seen and id_ in self._cards.places):
            found = self._take_in(self.records.read(ids), now)
            self._drop(set(ids) - found)
        if old is None or fresh.version != self._version or version != self._version:
            self.opened.look()
        self._version = fresh.version
        self._publish(now)

    def _due(self, now: float) -> list[str]:
        """Ids of cards that time may have changed; all of a small roll where nobody has columns of what moves."""
        if self._moving is None:
            return [] if self._large else list(self._cards.places)
        return self._turns.due(self._cards, now)

    def _take_in(self, cards: Iterable[CardRecord], now: float) -> set[str]:
        """Makes rows of these cards; returns their ids."""
        seen: set[str] = set()
        for some in chunks(cards):
            apart = self._apart([card.id for card in some])
            times = self.records.times()
            for card in some:
                self._put(card, card if times is None else on_time(card, times), apart, now)
                seen.add(card.id)
                if self._large and (self._shown is not None or len(seen) % 50 == 0):
                    time.sleep(0)  # a request may go before
        return seen

    def _apart(self, ids: Sequence[str]) -> Apart:
        values = self.reader.current(ids, numbers=self._moving is None)
        if self._moving is not None:
            values = [each for each in values if not (moves(each) and self._turns.tells(each.node, each.source, each.word.at or 0.0))]
        return apart_of(values)

    def _put(self, written: CardRecord, card: CardRecord, apart: Apart, now: float) -> None:
        made = card_row(card, apart, self._policy, now, self._makers, shown.card_name)
        ends: list[End] = list(made.ends)
        parts = [(self._devices, part) for part in card.devices] + [(self._partitions, part) for part in card.partitions]
        for table, part in parts:
            row = part_row(part, card, apart, self._policy, now)
            ends += row.ends
            table.put(part.id, self._still(part.id, row.row, row.voices))
            self._heard(part.voices)
        self._cards.put(card.id, self._still(card.id, made.row, made.voices), self._turns.put(card.id, ends, now))
        self.records.written(written)
        self._heard(card.voices)
        for node in {each.node for each in card.claims} | {each.node for each in card.voices}:
            self._on.setdefault(node, set()).add(card.id)
        if card.node:
            self._homes[card.node] = card.node_name
        self._index.put(card)
        told = tuple(part.id for _, part in parts)
        for gone in set(self._parts.get(card.id, ())) - set(told):
            self._drop_part(gone)
        if told:
            self._parts[card.id] = told
        else:
            self._parts.pop(card.id, None)

    def _still(self, subject: str, row: Row, voices: Sequence[Voice]) -> Row:
        """The row without numbers that move: those stand in columns of their own."""
        if self._moving is not None:
            self._moving.beside.put(subject, voices, self._turns.tells)
            for key in row.keys() & MOVING:
                if number(row[key]):
                    del row[key]
        return row

    def _heard(self, voices: Sequence[Voice]) -> None:
        for voice in voices:
            self._voices[voice.node, voice.source] = (voice.promise, voice.witness)

    def _drop(self, ids: Iterable[str]) -> None:
        for id_ in list(ids):
            self._cards.drop(id_)
            self._turns.drop(id_)
            self.records.gone(id_)
            self._forget(id_)
            for part in self._parts.pop(id_, ()):
                self._drop_part(part)

    def _forget(self, subject: str) -> None:
        if self._moving is not None:
            self._moving.beside.drop(subject)

    def _drop_part(self, id_: str) -> None:
        self._forget(id_)
        self._devices.drop(id_)
        self._partitions.drop(id_)

    def _publish(self, now: float) -> None:
        tables = {"cards": self._cards, "devices": self._devices, "partitions": self._partitions}
        told = {name: table.columns() for name, table in tables.items()}
        told["cards"] = (told["cards"][0], {**told["cards"][1], "findings": self.opened.column(self._cards)})
        self._shown = Showing(self._version, now, next(self._stamps), told, owners_of(told["devices"][1].get("card"), self._cards.places), self.opened.by_card)
        if self._large:
            prepare(self.cards(), _USUAL)
            if self._moving is not None:
                self._moving.prepare("cards", self._cards)

    # asking

    def ready(self) -> bool:
        """True when what stands needs no look first."""
        if self._shown is None:
            return False
        if self._large:
            return True
        known = self._moving is not None and self._shown.version == self.reader.version()
        return known and self._turns.still() and not self._cards.due(self._clock())

    @property
    def size(self) -> int:
        """How many cards there are."""
        return len(self._cards)

    @property
    def version(self) -> int:
        """The last commit that was taken in."""
        return self._version

    @property
    def _large(self) -> bool:
        return len(self._cards) > self.settings.small

    def settle(self, patience: float = 30.0) -> None:
        """Makes what stands good enough to answer from. Raises Unavailable when a large roll is still being read."""
        if self.ready():
            self._keep()
            return
        if self._thread is None:
            self.refresh()
            self._keep()
            return
        self._await(lambda: self._shown is not None, patience)

    def caught_up(self, patience: float = 1.0) -> None:
        """Waits until what stands has all that is committed now, for one who has just written; no longer than ``patience``."""
        wanted = self.reader.version()
        if self._thread is None:
            self.refresh()
        else:
            with self._news:
                self._news.wait_for(lambda: self._version >= wanted, patience)

    def _pace(self) -> tuple[int, bool]:
        """The last commit that stands here, and whether lists that are read whole must be spared."""
        return self._version, self._large

    def _await(self, there: Callable[[], bool], patience: float) -> None:
        with self._news:
            if not self._news.wait_for(there, patience):
                raise Unavailable("the columns of the roll are being read", hint="ask again in a few seconds; /readyz says when they are there")

    def _keep(self) -> None:
        """Starts the thread that keeps a large roll."""
        if self._large and self._thread is None:
            self.start()

    def start(self) -> None:
        """Keeps the columns from now on, in a thread of its own."""
        with self._news:
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(target=self._run, name="muster-columns", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        trouble = ""
        while not self._ending.wait(self.settings.beat):
            try:
                self.refresh()
                self.lists.keep()
                if self._moving is not None:
                    self._moving.tidy()
                if trouble:
                    log.info("columns are kept again")
                trouble = ""
            except MusterError as error:
                if error.message != trouble:
                    log.warning("columns are not kept", problem=error.message, hint=error.hint)
                trouble = error.message

    def close(self) -> None:
        """Ends the thread."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(5.0)

    @property
    def now(self) -> Showing:
        """What stands. Raises Unavailable before the first look."""
        if self._shown is None:
            raise Unavailable("the columns of the roll are being read", hint="ask again in a few seconds")
        return self._shown

    def cards(self, paths: Collection[str] = ()) -> Snapshot:
        """The cards, with the columns that ``paths`` need."""
        told = self.now
        live, columns = told.tables["cards"]
        made = self._with_numbers("cards", self._cards, live, columns, paths)
        for path in OF_DEVICES.keys() & paths:
            devices = self.devices((path,)).columns.get(path)
            own = made.get(path)
            size = len(live)
            made[path] = devices_together(numbers_of(own), OF_DEVICES[path], padded(told.owners, devices), numbers_of(devices), size)
        return Snapshot(version=told.version, at=told.at, live=live, columns=made, stamp=told.stamp)

    def own(self, path: str) -> tuple[Numbers | None, Ints, Numbers | None]:
        """A column of numbers as cards tell it themselves, the row of each device's card, and the column of devices."""
        told = self.now
        live, columns = told.tables["cards"]
        own = self._with_numbers("cards", self._cards, live, columns, (path,)).get(path)
        devices = self.devices((path,)).columns.get(path)
        return numbers_of(own), padded(told.owners, devices), numbers_of(devices)

    def devices(self, paths: Collection[str] = ()) -> Snapshot:
        """The devices."""
        return self._part("devices", self._devices, paths)

    def partitions(self, paths: Collection[str] = ()) -> Snapshot:
        """The partitions."""
        return self._part("partitions", self._partitions, paths)

    def _part(self, name: str, table: Table, paths: Collection[str]) -> Snapshot:
        told = self.now
        live, columns = told.tables[name]
        return Snapshot(version=told.version, at=told.at, live=live, columns=self._with_numbers(name, table, live, columns, paths), stamp=told.stamp)

    def _with_numbers(self, name: str, table: Table, live: Mask, columns: Mapping[str, Column], paths: Collection[str]) -> dict[str, Column]:
        made = dict(columns)
        moving = self._moving
        if moving is None:
            return made
        for key in moving.keys() & set(paths):
            keep = self.settings.beat if self._large else 0.0
            made[key] = merged(numbers_of(made.get(key)), moving.column(key, name, table, len(live), self._voices, self._clock(), keep=keep))
        return made

    def findings(self) -> Mapping[str, Sequence[Finding]]:
        """Open findings by card."""
        return self.now.findings

    def wrong(self) -> dict[str, str]:
        """What is not well with the columns."""
        return {"columns": "the roll is being read; lists answer when it stands in columns"} if self._thread is not None and self._shown is None else {}

    def apart(self, ids: Sequence[str], keys: frozenset[str] | None) -> Apart:
        """The words kept apart from these cards, of some attributes or of all."""
        if keys is None or self._moving is None or not self._large or len(ids) < FEW_CARDS or len(keys & self._moving.keys()) > FEW_KEYS or self._devices:
            return apart_of(self.reader.current(ids), keys)
        said = [each for each in self.reader.current(ids, numbers=False) if each.key in keys]
        return apart_of([*said, *self._moving.words(ids, keys, "cards", self._cards)])

    def knows(self, id_: str) -> bool:
        """True for the id of a card."""
        return id_ in self._cards.places

    def candidates(self, word: str) -> Iterator[list[str]]:
        """Ids of the cards that a short name may mean, the likelier first."""
        if self.knows(word.strip()):
            return iter([[word.strip()]])
        return candidates(word, self.cards(), self._index)

    def node_names(self, ids: Iterable[str]) -> dict[str, str]:
        """Names of nodes; those that are none are left out."""
        wanted = set(ids)
        found = {id_: self._homes[id_] for id_ in wanted if id_ in self._homes}
        missing = [id_ for id_ in wanted - found.keys() if id_ and id_ not in self._cards.places]
        return found | {node.id: node.name for node in (self.reader.nodes(None, missing) if missing else ())}

    def home(self, id_: str) -> str | None:
        """Name of the node that a card or part stands in, or that a node has; None where there is none."""
        for table in (self._cards, self._devices, self._partitions):
            if id_ in table.places:
                return str(table.value(id_, "node") or "") or None
        return self.node_names([id_]).get(id_)
