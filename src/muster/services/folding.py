# SPDX-License-Identifier: Apache-2.0
"""Words as they go into the roll: first what the part's sources went on saying, then the word; what comes of it is gathered for the store."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from muster.domain.decide.merge import Merged, Roll, at_rest, merge, names_of, next_due, tick
from muster.domain.decide.merge.again import Ahead
from muster.domain.decide.merge.nodes import find, keys
from muster.domain.model.errors import InputError
from muster.domain.model.names import NameKind, canonical
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Act, Again, Listing, NodeNames
from muster.services import room
from muster.services import sources as known
from muster.services.gathered import Gathered
from muster.services.journal import Stored, keep_again, restated
from muster.services.regions import DamagedError, Regions
from muster.services.sources import Source, Sources
from muster.services.standing import Standing
from muster.spi.store import Heard, Loaded, RollWriter, Said
from muster.wire.report import FactsDoc

Names = set[tuple[str, str]]
MOMENT = 0.001
"""Seconds after which a word is tried once more."""
MOST_AT_ONCE = 32
"""So many parts of a site may one listing make one: more nodes than that do not give cards to one node at once."""
CATCHING_UP = 10
"""So many times the least promise a reporter may take to deliver what waited, before it is held to its promises again."""
FEW = 200
"""So many parts of a site are looked through for a card that is not named by a name of its own."""


def never() -> bool:
    """There is all the time that is needed."""
    return False


class Folding:
    """The roll in the writer's hands. One thing at a time; `gathered` is what the store does not have yet."""

    def __init__(self, writer: RollWriter, loaded: Loaded, policy: Policy) -> None:
        self._policy = policy
        self.order = loaded.next_order
        self.regions = Regions(writer, policy)
        self.sources = Sources(loaded.slots, loaded.next_slot)
        self.standing = Standing(loaded.findings)
        self.gathered = Gathered()
        self._rest: dict[str, float] = dict(loaded.due)
        self._heap = [(due, part) for part, due in loaded.due.items()]
        heapq.heapify(self._heap)
        self._steady: dict[str, list[Source]] = defaultdict(list)
        for source in self.sources:
            if source.steady:
                self._steady[source.region].append(source)
        self._behind: dict[str, tuple[float, float]] = {}
        """Parts of which old words come in: since when, and until when nobody there is called silent, since more of them are on their way."""
        for part in self._steady:
            self._wake(part)
        self._turn: dict[str, None] = {}
        """Parts that were due when time last passed, and are still to be looked at."""

    def again(self, source: Source, numbers: known.Numbers, at: float, row: Heard) -> None:
        """A round that only moved numbers. One that comes after its source was held silent, as those do that waited, has the part looked at: that is over."""
        if row.received_at - source.last > source.promise:
            self._soon(source.region, row.received_at)
        source.again_at = at
        source.took(numbers)
        self.gathered.heard.append(row)
        self._note_behind(source.region, at, row.received_at)

    def listing(self, word: Listing, stored: Stored, facts: FactsDoc, row: Heard) -> bool:
        """A round in full. True when it brought news."""
        run = self._run_around(word, row)
        merged = self._word(word, stored, "listing", row.received_at)
        part = next(iter(merged.touched))
        self._note_behind(part, word.at, row.received_at)
        source = self._source(word, part)
        where = known.places(facts, word.observations)
        fresh = [sample for sample in merged.samples if sample.reading is not None]
        columns, whole = known.columns(fresh, where)
        self.gathered.step(merged, (s for s in merged.samples if s.reading is None or s.value is None or id(s.reading) not in where))
        self._told(source, word, row, columns, whole, merged)
        if run is not None:
            self._restate(source, word, run, row.received_at)
        self._lay(source, columns, row)
        self._rested(part, row.received_at)
        return merged.news

    def bound(self, word: Listing, now: float) -> None:
        """Raises InputError for a listing that brings more of its node than there is room for, or would make one part of too many.

        Parts are never parted again, and a large one is dear.
        """
        source = self.sources.get((word.reporter, word.witness.source, word.node.name))
        wide = len(word.observations) >= MOST_AT_ONCE
        parts = set(self.regions.index(names_of(word, self._policy)).values()) if wide or source is None or not source.region else {source.region}
        if len(parts) > MOST_AT_ONCE:
            about = f"listing of {word.witness.source}: it names cards or nodes that {len(parts)} other groups of nodes have"
            raise InputError(about, hint="a node lists its own cards; if they have names that other nodes' cards have too, mend the tool that reads them")
        before = room.size((self.regions.get(part).site for part in parts), word.node, self._policy)
        if room.close(before, len(word.observations)):
            merged = self._tried(self.regions.roll(names_of(word, self._policy)), word, now)
            room.fits(word.node.name, before, room.size((each.site for each in merged.roll.regions.values()), word.node, self._policy))

    def _run_around(self, word: Listing, row: Heard) -> float | None:
        """Until when its own source is known to have said something else around this word; None where it is not."""
        source = self.sources.get((word.reporter, word.witness.source, word.node.name))
        if source is None or source.again_at is None or word.at >= source.again_at or row.facts == source.facts:
            return None
        return source.again_at

    def _restate(self, source: Source, late: Listing, at: float, now: float) -> None:
        """Tells what a source said before a late word once more, at the end of the run that the word fell into: that is what it says now."""
        place = (late.node.name, late.witness.source)
        told = [e.said for e in self.regions.get(source.region).journal if isinstance(e.said, Listing) and e.said is not late and e.at <= at]
        mine = [said for said in told if (said.node.name, said.witness.source) == place]
        if not mine:
            source.steady = False
            return
        self.recall(source, *restated(max(mine, key=lambda said: said.at), at, now), now)

    def recall(self, source: Source, word: Listing, stored: Stored, now: float) -> None:
        """A round that went by numbers alone, in full after all: its numbers are kept already."""
        merged = self._word(word, stored, "listing", now)
        self.gathered.step(merged, (sample for sample in merged.samples if sample.reading is None))
        source.at = word.at
        self.gathered.folded_to[source.slot] = word.at

    def act(self, word: Act, stored: Stored, now: float, *, dry_run: bool = False) -> list[str]:
        """An operator's word; ids of the cards that it changes."""
        merged = self._tried(self.regions.roll(names_of(word, self._policy)), word, now) if dry_run else self._word(word, stored, "act", now)
        touched = sorted({card.id for card in merged.cards} | set(merged.gone.values()))
        if not dry_run:
            self.gathered.step(merged, merged.samples)
            part = next(iter(merged.touched))
            self._unsettle(part, None)
            self._rested(part, now)
        return touched

    def pass_time(self, now: float, enough: Callable[[], bool] = never) -> bool:
        """Looks at the parts that are due, each once: what falls due at this very moment waits for the next turn.

        ``enough`` is asked after each part. True when it broke the turn off: the next call goes on with the parts that are left.
        """
        if not self._turn:
            while self._heap and self._heap[0][0] <= now:
                self._turn[heapq.heappop(self._heap)[1]] = None
        while self._turn:
            part = next(iter(self._turn))
            del self._turn[part]
            if part in self._rest and self._look(part, now) and enough():
                break
        return bool(self._turn)

    def _look(self, part: str, now: float) -> bool:
        """Lets time pass in a part. False when nothing is due there any more, or when it is damaged."""
        if self._due(part) > now:
            self._wake(part)
            return False
        self._behind.pop(part, None)
        try:
            region = self.regions.get(part)
        except DamagedError:
            return False  # told where damage is told; the other parts go on
        roll = self._catch_up(Roll(regions={part: region}), now, now)
        self._step(tick(roll, self._policy, now), set())
        self._rested(part, now)
        return True

    @property
    def parts(self) -> int:
        """Parts of the site."""
        return len(self._rest)

    def committed(self) -> None:
        """What was gathered is in the store."""
        self.regions.committed()
        self.standing.committed(self.gathered)
        self.gathered = Gathered()

    def roll(self, names: Iterable[tuple[str, str]]) -> Roll:
        """As much of the roll as these names reach, as it is in the records."""
        return self.regions.roll(names)

    def everything(self) -> Roll:
        """The whole roll, where it is small. Raises InputError where it is not: what is asked for must be named so that it can be found."""
        if len(self._rest) > FEW:
            raise InputError("that name is no card's alone on a site of this size", hint="name the card by our id, its UUID or serial, or name its node too")
        return Roll(regions={part: self.regions.get(part) for part in sorted(self._rest)})

    def _tried(self, roll: Roll, word: Listing | Act, now: float) -> Merged:
        """What would come of a word."""
        return merge(roll, word, self.order, self._policy, now, self._ahead(roll.regions))

    def _word(self, word: Listing | Act, stored: Stored, kind: str, now: float) -> Merged:
        names = names_of(word, self._policy)
        roll = self.regions.roll(names)
        merged = self._tried(self._catch_up(roll, self._until(roll, word, now), now), word, now)
        self.gathered.said.append(self._said(stored, kind, next(iter(merged.touched))))
        self._take(merged, names)
        return merged

    def _note_behind(self, part: str, at: float, now: float) -> None:
        """Notes that an old word came; a reporter that was cut off delivers what waited in its order, and silence is judged when it is through."""
        known = self._behind.get(part)
        if now - at <= self._policy.timely:
            if known is not None:  # it is through: the part is looked at, whatever its sources go on saying by numbers alone
                del self._behind[part]
                self._soon(part, now)
            return
        floor = self._policy.stale_floor
        since = known[0] if known is not None and now - known[1] <= floor else now
        self._behind[part] = since, min(now + floor, since + CATCHING_UP * floor)

    def _until(self, roll: Roll, word: Listing | Act, now: float) -> float:
        """Up to when runs are told before this word. All of them where it is told out of its turn: who reads the part anew must know that nobody was silent."""
        late = now - word.at > self._policy.stale_floor / 2 or any(word.at < region.site.clock for region in roll.regions.values())
        return float("inf") if late else word.at

    def _catch_up(self, roll: Roll, until: float, now: float) -> Roll:
        """The roll with what the sources of these parts went on saying, up to ``until``."""
        for part in roll.regions:
            told = [(source, same) for source in self.sources.of(part) if (same := known.same(source, until)) is not None]
            if not told:
                continue
            clock = roll.regions[part].site.clock
            word = Again(at=max(clock, *(same.at for _, same in told)), received_at=now, same=tuple(same for _, same in told))
            index = dict.fromkeys(names_of(word, self._policy), part)
            merged = merge(Roll(regions=roll.regions, index={**roll.index, **index}), word, self.order, self._policy, now, self._ahead(roll.regions))
            self.gathered.said.append(self._said(keep_again(word), "again", part))
            self._step(merged, set())
            for source, same in told:
                source.at = same.at
                self.gathered.folded_to[source.slot] = same.at
            roll = replace(merged.roll, index=roll.index)
        return roll

    def _ahead(self, parts: Iterable[str]) -> Ahead:
        """What the sources of these parts said again and is not in the roll yet: time that passes does not make them silent."""
        told = (known.same(source, float("inf")) for part in parts for source in self.sources.of(part))
        return {(same.node, same.source): same for same in told if same is not None}

    def _said(self, stored: Stored, kind: str, part: str) -> Said:
        order, self.order = self.order, self.order + 1
        return Said(order=order, at=stored.at, received_at=stored.received_at, kind=kind, body=stored.packed(), region=part)

    def _step(self, merged: Merged, names: Names) -> None:
        self._take(merged, names)
        self.gathered.step(merged, merged.samples)

    def _take(self, merged: Merged, names: Names) -> None:
        part = next(iter(merged.touched), "")
        self.gathered.names |= self.regions.take(merged, names)
        for old in merged.dropped:
            self.sources.unite(old, part)
            self._rest.pop(old, None)
        self.standing.take(merged, self.gathered)

    def _source(self, word: Listing, part: str) -> Source:
        key = (word.reporter, word.witness.source, word.node.name)
        source = self.sources.get(key) or self.sources.new(key, word.node)
        if source.region != part:
            self.sources.move(source, part)
            self.gathered.regions[str(source.slot)] = part
        site = self.regions.get(part).site
        node = find(site, *keys(word.node, self._policy))
        source.names = word.node
        source.place = (node.id if node is not None else "", word.witness.source)
        source.promise = self._policy.promise(word.witness.cadence)
        return source

    def _told(self, source: Source, word: Listing, row: Heard, columns: tuple[tuple[str, str, str, int], ...], whole: bool, merged: Merged) -> None:
        """What a full word makes of its source: it may say the same again from now on, or not."""
        part = next(iter(merged.touched))
        site = self.regions.get(part).site
        numbers = np.frombuffer(row.numbers) if row.numbers else np.zeros(0)
        late = word.at < source.last
        repeat = row.facts == source.facts and not merged.news
        if merged.news:
            self._unsettle(part, source)
        compared = frozenset(key for _, _, key, _ in columns if key in self._policy.compare)
        watched = self._watched(source, compared)
        source.bounds = known.bounds(numbers.size, columns, compared, watched=watched, whole=whole)
        able = not late and source.bounds.whole and not word.standing_by and at_rest(site, row.received_at, self._policy)
        source.steady = able and (repeat or (not watched and self._would_repeat(word, part, row.received_at)))
        if not late:
            source.facts, source.at, source.again_at, source.whole_at = row.facts, word.at, None, word.at
            source.took(numbers)

    def _would_repeat(self, word: Listing, part: str, now: float) -> bool:
        """True when nothing would come of this word if it were said once more: found out by saying it, while the part is at hand."""
        region = self.regions.get(part)
        later = max(word.at, region.site.clock) + MOMENT
        index = dict.fromkeys(names_of(word, self._policy), part)
        roll = Roll(regions={part: region}, index=index)
        return not merge(roll, replace(word, at=later), self.order, self._policy, max(now, later), self._ahead((part,))).news

    def _watched(self, source: Source, compared: frozenset[str]) -> bool:
        """True when another source of the part tells an attribute that this one's are held to."""
        return bool(compared) and any(each is not source and each.bounds.compared & compared for each in self.sources.of(source.region))

    def _lay(self, source: Source, columns: tuple[tuple[str, str, str, int], ...], row: Heard) -> None:
        if not source.place[0]:
            return
        made = known.layout(source, columns, row.at, len(row.numbers) // 8, len(self.gathered.heard))
        if made is not None:
            self.gathered.layouts.append(made)
        self.gathered.heard.append(replace(row, slot=source.slot))

    def _unsettle(self, part: str, but: Source | None) -> None:
        """Every source of the part is to be heard in full once more."""
        for source in self.sources.of(part):
            if source is not but:
                source.steady = False

    def _rested(self, part: str, now: float) -> None:
        """Finds out when the part is due next, and which of its sources run on by themselves."""
        site = self.regions.get(part).site
        if not at_rest(site, now, self._policy):
            self._unsettle(part, None)
        for source in self.sources.of(part):
            source.steady = source.steady and now - source.last <= source.promise
        running = [source for source in self.sources.of(part) if source.steady]
        self._steady[part] = running
        if not running:
            del self._steady[part]
        self._rest[part] = next_due(site, {source.place for source in running}, now, self._policy)
        unsaid = (source.last + source.promise for source in running if source.again_at is None)
        self.gathered.due[part] = min(self._rest[part], min(unsaid, default=float("inf")))
        self._wake(part)

    def _due(self, part: str) -> float:
        runs = (source.last + source.promise for source in self._steady.get(part, ()) if source.steady)
        return max(min(self._rest[part], min(runs, default=float("inf"))), self._behind.get(part, (0.0, 0.0))[1])

    def _soon(self, part: str, now: float) -> None:
        """Has the part looked at when time passes next, whatever its sources go on saying by numbers alone."""
        self._rest[part] = min(self._rest.get(part, now), now)
        self._wake(part)

    def _wake(self, part: str) -> None:
        due = self._due(part)
        if due < float("inf"):
            heapq.heappush(self._heap, (due, part))


def node_names(node: NodeNames, policy: Policy) -> Names:
    """Names by which the part of a node is found."""
    system, machine, name = keys(node, policy)
    told = (("system", system), ("machine_id", machine), ("name", name))
    return {(kind, value) for kind, value in told if value} | ({("node", node.name)} if node.name else set())


def id_names(ids: Iterable[tuple[str, str]]) -> Names:
    """Names by which the part of a card is found: our id, and strong ids."""
    found: Names = set()
    for kind, value in ids:
        if kind == "id":
            found.add(("card", value))
        elif kind in (NameKind.VENDOR_UUID, NameKind.SERIAL):
            found.add((kind, canonical(NameKind(kind), value)))
    return found
