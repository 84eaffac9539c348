# SPDX-License-Identifier: Apache-2.0
"""Sources as the writer knows them between two rounds: the facts they told last, the numbers that came with them, and whether they may say "the same again"."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import msgspec
import numpy as np
from numpy.typing import NDArray

from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.observation import Observation
from muster.domain.model.reading import Known
from muster.domain.model.roll import NodeNames, Same, Sample
from muster.spi.store import Layout, Slot
from muster.wire.mapping import LEVELS
from muster.wire.report import FactsDoc

Numbers = NDArray[np.float64]
Key = tuple[str, str, str]
"""Reporter, source, name of the node."""
FACTS = 16
"""Bytes of the digest of facts."""
LOOK_AGAIN = 30.0
"""Seconds after which a source whose numbers are held to another's is taken in whole again."""
_EMPTY: Numbers = np.zeros(0)


class _Kept(msgspec.Struct):
    """`Layout.bounds` as it is kept."""

    low: bytes
    high: bytes
    counters: bytes
    watched: bool
    whole: bool
    compared: list[str] = []


@dataclass(slots=True, weakref_slot=True)
class Bounds:
    """What new numbers are held against, by place: outside of low..high, or a counter that fell, and the round is taken in whole."""

    low: Numbers = field(default_factory=lambda: _EMPTY)
    high: Numbers = field(default_factory=lambda: _EMPTY)
    counters: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    watched: bool = False
    """Some of them are held to another source's."""
    whole: bool = False
    """Every number has its place on a card or part: only then they can go without the facts."""
    compared: frozenset[str] = frozenset()
    """Attributes among them in which sources are held to each other."""

    form: bytes = b""
    """Their packed form, once it is known."""

    def packed(self) -> bytes:
        """As the store keeps them."""
        if self.form:
            return self.form
        kept = _Kept(self.low.tobytes(), self.high.tobytes(), self.counters.tobytes(), self.watched, self.whole, sorted(self.compared))
        return msgspec.msgpack.encode(kept)

    @classmethod
    def of(cls, told: bytes) -> Bounds:
        """From their packed form. Equal bounds are one object: the nodes of a site are much alike."""
        if not told:
            return cls()
        known = _SHARED.get(told)
        if known is None:
            kept = msgspec.msgpack.decode(told, type=_Kept)
            low, high, counters = np.frombuffer(kept.low), np.frombuffer(kept.high), np.frombuffer(kept.counters, dtype=np.bool_)
            known = _SHARED[told] = cls(low, high, counters, kept.watched, kept.whole, frozenset(kept.compared), told)
        return known


_SHARED: WeakValueDictionary[bytes, Bounds] = WeakValueDictionary()
_MADE: WeakValueDictionary[tuple[object, ...], Bounds] = WeakValueDictionary()
"""By what they are made of."""


@dataclass(slots=True)
class Source:
    """One source of one reporter on one node."""

    key: Key
    slot: int
    names: NodeNames
    region: str = ""
    place: tuple[str, str] = ("", "")
    """Node id and source id."""
    facts: bytes = b""
    at: float = float("-inf")
    """Up to when the records have its words."""
    again_at: float | None = None
    """Until when it said the same again."""
    steady: bool = False
    """It said the same once more and nothing came of it."""
    promise: float = 0.0
    bounds: Bounds = field(default_factory=Bounds)
    numbers: Numbers = field(default_factory=lambda: _EMPTY)
    """Those of its last round."""
    whole_at: float = float("-inf")
    laid: bytes = b""
    """Digest of the columns that its numbers are of; empty when not known."""
    _fit: tuple[Numbers, Bounds] | None = None
    """Numbers that were found to be within these bounds since the last round: one is looked at before anything is done for its report, and then taken."""

    @property
    def last(self) -> float:
        """When it last spoke."""
        return self.at if self.again_at is None else max(self.at, self.again_at)

    def takes(self, facts: bytes, numbers: Numbers, at: float) -> bool:
        """True when this round only moves numbers, within bounds, in its turn."""
        if not self.steady or facts != self.facts or at <= self.last or numbers.size != self.numbers.size:
            return False
        if at - self.last > self.promise:
            return False  # it was silent: that it speaks again is news
        if self.bounds.watched and at - self.whole_at >= LOOK_AGAIN:
            return False
        if not numbers.size:
            return True
        if self._fit is not None and self._fit[0] is numbers and self._fit[1] is self.bounds:
            return True
        within = (numbers >= self.bounds.low) & (numbers <= self.bounds.high)
        fit = bool(within.all()) and not self._fell(numbers)
        self._fit = (numbers, self.bounds) if fit else None
        return fit

    def _fell(self, numbers: Numbers) -> bool:
        return bool((self.bounds.counters & (numbers < self.numbers)).any())

    def fell(self, facts: bytes, numbers: Numbers) -> bool:
        """True when a counter of the same facts is below where it stood in a round that went by numbers alone: merge must hear of that one first."""
        ran = self.again_at is not None and self.again_at > self.whole_at
        return ran and facts == self.facts and 0 < numbers.size == self.numbers.size and self._fell(numbers)

    def took(self, numbers: Numbers) -> None:
        """Keeps what counters must not fall below."""
        self._fit = None
        if numbers.size != self.bounds.low.size:
            self.numbers, self.steady = _EMPTY, False
            return
        self.numbers = numbers


def digest(facts: bytes) -> bytes:
    """What facts are compared by."""
    return hashlib.blake2b(facts, digest_size=FACTS).digest()


def places(facts: FactsDoc, told: Sequence[Observation]) -> dict[int, int]:
    """The places of numbers in the lane, by the identity of the reading that was made of each."""
    found: dict[int, int] = {}
    rows = [row for row in facts.observations if row.level in LEVELS]
    for row, each in zip(rows, told, strict=True):
        for key, reading in row.readings.items():
            made = each.readings.get(key)
            if "n" in reading and isinstance(made, Known):
                found[id(made)] = reading["n"]
    return found


def bounds(width: int, columns: Iterable[tuple[str, str, str, int]], compared: frozenset[str], *, watched: bool, whole: bool) -> Bounds:
    """Bounds of the numbers in these columns: the range of each attribute in the dictionary."""
    told = tuple([(key, place) for _, _, key, place in columns])
    asked = (width, told, compared, watched, whole)
    found = _MADE.get(asked)
    if found is None:
        found = _MADE[asked] = _bounds(width, told, compared, watched=watched, whole=whole)
    return found


def _bounds(width: int, told: Iterable[tuple[str, int]], compared: frozenset[str], *, watched: bool, whole: bool) -> Bounds:
    low, high = np.full(width, -np.inf), np.full(width, np.inf)
    counters, bound = np.zeros(width, dtype=np.bool_), np.zeros(width, dtype=np.bool_)
    for key, place in told:
        entry = ATTRIBUTES[key]
        bound[place] = True
        counters[place] = entry.kind is Kind.COUNTER
        low[place] = max(low[place], entry.low if entry.low is not None else -np.inf)
        high[place] = min(high[place], entry.high if entry.high is not None else np.inf)
    return Bounds.of(Bounds(low, high, counters, watched, whole and bool(bound.all()), compared).packed())


def columns(samples: Iterable[Sample], where: Mapping[int, int]) -> tuple[tuple[tuple[str, str, str, int], ...], bool]:
    """(subject, card, key, place) of each number that has a place, and whether all numbers have one."""
    found: list[tuple[str, str, str, int]] = []
    whole = True
    for sample in samples:
        if sample.value is None:
            continue
        place = where.get(id(sample.reading))
        if place is None:
            whole = False
        else:
            found.append((sample.subject, sample.card, sample.key, place))
    return tuple(sorted(found, key=lambda c: (c[3], c[0], c[2]))), whole


class Sources:
    """All sources, by who tells of what and by part of the site."""

    def __init__(self, slots: Iterable[Slot], next_slot: int) -> None:
        self._by_key: dict[Key, Source] = {}
        self._by_region: dict[str, set[Key]] = defaultdict(set)
        self._next = next_slot
        for each in slots:
            self._add(_known(each))

    def get(self, key: Key) -> Source | None:
        """The source, if it ever spoke."""
        return self._by_key.get(key)

    def new(self, key: Key, names: NodeNames) -> Source:
        """A source that speaks for the first time."""
        made = Source(key=key, slot=self._next, names=names)
        self._next += 1
        self._add(made)
        return made

    def of(self, region: str) -> list[Source]:
        """Sources of a part of the site, in the order of their slots."""
        return sorted((self._by_key[key] for key in self._by_region.get(region, ())), key=lambda s: s.slot)

    def move(self, source: Source, region: str) -> None:
        """Says to which part the source belongs now."""
        self._by_region[source.region].discard(source.key)
        source.region = region
        self._by_region[region].add(source.key)

    def unite(self, old: str, new: str) -> None:
        """Gives the sources of a part that is no more to the one that took it in."""
        for source in self.of(old):
            self.move(source, new)
        self._by_region.pop(old, None)

    def __iter__(self) -> Iterator[Source]:
        return iter(self._by_key.values())

    def _add(self, source: Source) -> None:
        self._by_key[source.key] = source
        self._by_region[source.region].add(source.key)


def _known(slot: Slot) -> Source:
    name, machine, system = slot.node_names
    numbers = np.frombuffer(slot.numbers) if slot.numbers else _EMPTY
    made = Source(
        key=(slot.reporter, slot.source, name),
        slot=slot.slot,
        names=NodeNames(name=name, machine_id=machine, system=system),
        region=slot.region,
        place=(slot.node, slot.source),
        facts=slot.facts,
        at=slot.at,
        again_at=slot.again_at,
        steady=slot.again_at is not None,
        promise=slot.promise,
        bounds=Bounds.of(slot.bounds),
    )
    made.took(numbers)
    return made


def layout(source: Source, told: tuple[tuple[str, str, str, int], ...], since: float, width: int, before: int) -> Layout | None:
    """What the source's numbers are of from now on; None when nothing is new."""
    names = source.names
    said = msgspec.msgpack.encode((told, width, source.place, source.promise, source.bounds.packed(), names))
    laid = hashlib.blake2b(said, digest_size=FACTS).digest()
    if laid == source.laid:
        return None
    source.laid = laid
    return Layout(
        slot=source.slot,
        node=source.place[0],
        source=source.place[1],
        reporter=source.key[0],
        since=since,
        columns=told,
        width=width,
        before=before,
        promise=source.promise,
        bounds=source.bounds.packed(),
        node_names=(names.name, names.machine_id, names.system),
    )


def same(source: Source, until: float) -> Same | None:
    """What the source said again up to ``until`` and is not in the records yet."""
    at = min(source.again_at, until) if source.again_at is not None else source.at
    return Same(node=source.names, source=source.key[1], since=source.at, at=at) if at > source.at else None
