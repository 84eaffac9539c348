# SPDX-License-Identifier: Apache-2.0
"""The roll held against what is true: places, presence, history, findings, gauges, and what was acknowledged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from muster.domain.model.roll import CardRecord, FindingKind, NodeRecord, Presence
from muster.services.arrivals import Arrivals
from muster.spi.rows import FindingRow
from muster.store import Store
from tests.sim.model import Gauges, Model
from tests.sim.server import POLICY
from tests.sim.world import CADENCE, DRIVER, SHARED_SERIAL, START, Board, Machine, World

SETTLED = 2 * CADENCE + POLICY.promise(CADENCE) + POLICY.settle + 120.0
"""Seconds after a change until the roll must know it: the promise of whoever saw it as it was, and rounds of those who see it as it is."""
ABOUT = 150.0
"""Seconds of grace where a promise runs out."""
K = FindingKind
OF_SOURCES = frozenset({K.SOURCE_SILENT, K.SOURCE_FAILED, K.SOURCE_HUNG})
SITE = frozenset({K.CLOCK_WRONG, K.SEQUENCE_CONFLICT, K.NODE_CLONED, K.PLACEHOLDER_ID})


class Seen:
    """Every card as it was written last: a look reads those that were written since the one before."""

    def __init__(self) -> None:
        self.cards: dict[str, CardRecord] = {}
        self._version = 0

    def fresh(self, store: Store) -> list[CardRecord]:
        """All cards now."""
        news = store.reader.fresh(self._version)
        if self._version == 0 or news.regrounded:
            self.cards.clear()
        for gone in news.gone:
            self.cards.pop(gone, None)
        self.cards |= {card.id: card for card in news.cards}
        self._version = news.version
        return [card for card in self.cards.values() if not card.aside]


class Look:
    """One look at the whole roll, at a moment."""

    def __init__(self, world: World, model: Model, store: Store, now: float, seen: Seen) -> None:
        self.world, self.model, self.store, self.now = world, model, store, now
        reader = store.reader
        self.nodes = reader.nodes()
        self.machine_of = {node.id: self._machine(node) for node in self.nodes}
        self.cards = seen.fresh(store)
        self.by_uuid: dict[str, list[CardRecord]] = defaultdict(list)
        for card in self.cards:
            for uuid in card.ids.get("vendor_uuid", ()):
                self.by_uuid[uuid].append(card)
        self.findings = reader.findings()
        self.calm = [machine for machine in world.machines if model.calm(machine, now, SETTLED)]

    def _machine(self, node: NodeRecord) -> int:
        return int(node.system.upper().removeprefix("SYS") or -1) if node.system else -1

    def faults(self) -> list[str]:
        """All that is not as it must be."""
        found = [*self._boards(), *self._places(), *self._shelf(), *self._findings()]
        return [f"{(self.now - START) / 3600:.2f} h: {each}" for each in found]

    def _boards(self) -> Iterator[str]:
        """No card is invented, none is two."""
        known = {board.uuid for board in self.world.boards}
        yield from (f"invented {uuid}" for uuid in self.by_uuid if uuid not in known)
        yield from (f"{uuid} is {len(cards)} cards" for uuid, cards in self.by_uuid.items() if len(cards) > 1)

    def _places(self) -> Iterator[str]:
        calm = {machine.number for machine in self.calm}
        for machine in self.calm:
            for board in self.world.at(machine):
                yield from self._place(machine, board)
        for machine in self.world.machines:
            if machine.number not in calm and self._cut_off(machine):
                yield from (f"board {b.number} is missing by a cut path" for b in self.world.at(machine) if self._is(b, Presence.MISSING, Presence.REMOVED))
        here = {board.uuid for machine in self.calm for board in self.world.at(machine)}
        for card in self.cards:
            number = self.machine_of.get(card.node or "", -1)
            if number in calm and card.presence is Presence.PRESENT and not here & set(card.ids.get("vendor_uuid", ())):
                yield f"{card.id} ({dict(card.ids)}) is in m{number}, where no such board is"

    def _cut_off(self, machine: Machine) -> bool:
        """True when it has a path no more, and nothing was done to it since long before."""
        return machine.cut_until > self.now and machine.changed < self.now - 2 * 86400.0

    def _is(self, board: Board, *presence: Presence) -> bool:
        return any(card.presence in presence for card in self.by_uuid.get(board.uuid, ()))

    def _place(self, machine: Machine, board: Board) -> Iterator[str]:
        cards = self.by_uuid.get(board.uuid, [])
        if not cards:
            if self.model.told[machine.number, DRIVER].uuids:
                yield f"board {board.number} in {machine.own_name} is lost"
            return
        card, name = cards[0], f"board {board.number} in {machine.own_name}/{board.slot}"
        if card.presence is not Presence.PRESENT or self.machine_of.get(card.node or "") != machine.number:
            yield f"{name}: the roll says {card.presence} {card.node_name}"
        elif card.node_name != machine.name or card.slot != f"S{board.slot}":
            yield f"{name}: the roll says {card.node_name}/{card.slot}, it is called {machine.name}"
        told = self.model.told[machine.number, DRIVER]
        if told.uuids:
            if len(card.partitions) != board.cut:
                yield f"{name}: {board.cut} partitions, the roll has {len(card.partitions)}"
            words = {v.words["driver.version"].value for v in card.voices if v.source == DRIVER and v.node == card.node and "driver.version" in v.words}
            if words != {machine.driver}:
                yield f"{name}: its driver is {machine.driver}, the roll says {sorted(map(str, words))}"

    def _shelf(self) -> Iterator[str]:
        calm = {machine.number for machine in self.calm}
        for board in self.world.boards:
            if board.node is None and board.last in calm and self._is(board, Presence.PRESENT, Presence.UNKNOWN):
                yield f"board {board.number} was taken out of m{board.last}, the roll says {self.by_uuid[board.uuid][0].presence}"

    def _findings(self) -> Iterator[str]:
        silent: set[tuple[FindingKind, int, str]] = set()
        others: list[FindingRow] = []
        site: list[FindingRow] = []
        for row in self.findings:
            finding = row.finding
            if finding.kind in OF_SOURCES:
                silent.add((finding.kind, self.machine_of.get(finding.node, -1), finding.source))
            else:
                (site if finding.kind in SITE else others).append(row)
        yield from self._of_sources(silent)
        yield from self._of_cards(others)
        yield from self._of_site(site)

    def _of_sources(self, found: set[tuple[FindingKind, int, str]]) -> Iterator[str]:
        promise = POLICY.promise(CADENCE)
        for machine in self.world.machines:
            for source in self.model.sources(machine):
                told = self.model.told[machine.number, source]
                if told.at == 0.0:
                    continue
                silent = self.model.silent(machine, source, self.now, promise, ABOUT)
                wanted = {K.SOURCE_SILENT: silent, K.SOURCE_FAILED: told.failed, K.SOURCE_HUNG: told.stuck}
                for kind, want in wanted.items():
                    if want is not None and want != ((kind, machine.number, source) in found):
                        yield f"{machine.own_name}/{source}: {kind} is {'not ' if want else ''}found, last heard {self.now - told.at:.0f} s ago"

    def _of_cards(self, rows: list[FindingRow]) -> Iterator[str]:
        calm = {machine.number for machine in self.calm}
        owner = {card.id: int(uuid[4:12], 16) for uuid, cards in self.by_uuid.items() for card in cards}
        found: Counter[int] = Counter()
        for row in rows:
            finding = row.finding
            numbers = [owner[card] for card in finding.cards if card in owner]
            if finding.kind is K.CARD_MISSING and numbers:
                found[numbers[0]] += 1
            elif self.machine_of.get(finding.node, -1) in calm:
                yield f"{finding.kind}: {finding.about}"
        for board in self.world.boards:
            if board.last in calm:
                want = board.node is None and not board.said and not board.followed and board.uuid in self.by_uuid
                if found[board.number] != want and not (board.followed and board.slot not in self.world.inside[board.last]):
                    yield f"board {board.number} of m{board.last}: card_missing is {'not ' if want else ''}found; it is {self.by_uuid[board.uuid][0].presence}"

    def _of_site(self, rows: list[FindingRow]) -> Iterator[str]:
        about = {(row.finding.kind, row.finding.subject) for row in rows}
        for kind, wanted in ((K.CLOCK_WRONG, self.model.clock_wrong), (K.SEQUENCE_CONFLICT, self.model.clashed)):
            found = {subject for each, subject in about if each is kind}
            yield from (f"{each}: {kind} is {'not ' if each in wanted else ''}found" for each in sorted(found ^ wanted))
        cloned = {subject for kind, subject in about if kind is K.NODE_CLONED}
        for machine in self.calm:
            others = [each for each in self.calm if each is not machine and each.machine_id == machine.machine_id]
            if others and machine.machine_id not in cloned:
                yield f"{machine.own_name} and {others[0].own_name} have one machine id: node_cloned is not found"
        told = [m for m in self.calm if any(b.serial == SHARED_SERIAL for b in self.world.at(m)) and self.model.told[m.number, DRIVER].uuids]
        shared = any(kind is K.PLACEHOLDER_ID for kind, _ in about)
        if len(told) >= POLICY.placeholder_nodes and not shared:
            yield f"serial {SHARED_SERIAL} is told by {len(told)} nodes: placeholder_id is not found"


def gauges(look: Look, counted: Callable[[int], bool]) -> Iterator[str]:
    """Newest numbers of sampled boards, and of those that are to be ``counted`` how many rounds their minutes count."""
    world, model, store, now = look.world, look.model, look.store, look.now
    ids = {uuid: look.by_uuid[uuid][0].id for uuid in model.gauges if look.by_uuid.get(uuid)}
    words: dict[str, dict[str, tuple[float, object]]] = defaultdict(dict)
    for value in store.reader.current(ids.values()):
        if value.source == DRIVER and value.word.at is not None and value.word.at > words[value.subject].get(value.key, (0.0, None))[0]:
            words[value.subject][value.key] = (value.word.at, value.word.value)
    calm = {machine.number for machine in look.calm}
    for uuid, card in ids.items():
        mine, board = model.gauges[uuid], world.boards[int(uuid[4:12], 16)]
        if board.node in calm:
            yield from _newest(board, mine, words[card])
        if counted(board.number):
            rounds = sum(each["count"] for each in store.reader.minutes(card, "power.draw", 0.0, now + 60) if each["source"] == DRIVER)
            if not mine.rounds <= rounds <= mine.rounds + len(model.doubt):
                yield f"board {board.number}: {mine.rounds} rounds were acknowledged, minutes count {rounds}"


def _newest(board: Board, mine: Gauges, told: dict[str, tuple[float, object]]) -> Iterator[str]:
    for key, value in mine.values.items():
        at, shown = told.get(key, (0.0, None))
        if abs(at - mine.at) > 1.0 or not isinstance(shown, int | float) or abs(shown - value) > 1e-6:
            yield f"board {board.number} {key}: {value} at {mine.at - START:.1f}, the roll has {shown} at {at - START:.1f}"


def numbering(model: Model, store: Store) -> Iterator[str]:
    """Every reporter's numbers: what was acknowledged was taken, once, and nothing that nobody sent."""
    loaded = store.writer.load()
    arrivals = Arrivals(loaded.reporters)
    for slot in loaded.slots:
        arrivals.reach(slot)
    doubt: Counter[tuple[str, str]] = Counter(key[:2] for key in model.doubt)
    for (reporter, incarnation), taken in model.taken.items():
        known = arrivals._known.get(reporter)
        life = known.window.lives.get(incarnation) if known else None
        if life is None:
            if known is None or len(known.window.lives) < 8:
                yield f"{reporter} {incarnation}: {taken} reports were acknowledged, the server knows of none"
            continue
        counted = sum(high - low + 1 for low, high in life.ranges)
        if not taken <= counted <= taken + doubt[reporter, incarnation]:
            yield f"{reporter} {incarnation}: {taken} reports were acknowledged, the server has {counted}: {life.ranges[:5]}"


def biographies(look: Look, boards: Iterable[int]) -> Iterator[str]:
    """The history of each board: where it was, in that order, installed once, and in the order of time."""
    nodes = {node.id: node for node in look.nodes}
    for number in boards:
        board = look.world.boards[number]
        if not look.by_uuid.get(board.uuid):
            continue
        card = look.by_uuid[board.uuid][0]
        rows = sorted((r.change for r in look.store.reader.changes(card.id, limit=100_000) if r.superseded_at is None), key=lambda c: c.at)
        told = [nodes.get(str(c.detail.get("node"))) for c in rows if c.kind.value in ("installed", "moved", "returned") and c.detail.get("node")]
        names = [f"m{int(n.system.upper().removeprefix('SYS'))}" for n in told if n is not None and n.system]
        truth = iter(f"m{n}" for n in board.been)
        shorter = [t for i, t in enumerate(names) if i == 0 or t != names[i - 1]]
        if not all(any(t == each for each in truth) for t in shorter):
            yield f"board {number} was in {board.been}, its history says {names}"
        installed = sum(1 for c in rows if c.kind.value == "installed")
        if installed != 1:
            yield f"board {number} was installed {installed} times"


def snapshot(store: Store, *, counters: bool = True) -> dict[str, object]:
    """State and history of every card and what is open, by names that do not depend on the order of arrival.

    Without ``counters`` what was counted is left out: it is counted at words in full, and which words are in full depends on the order of arrival.
    """
    found: dict[str, object] = {}
    nodes = {node.id: node.system or node.name for node in store.reader.nodes()}
    for card in store.reader.cards():
        rows = [
            r.change for r in store.reader.changes(card.id, limit=100_000) if r.superseded_at is None and (counters or r.change.kind.value != "counter_reset")
        ]
        history = sorted((round(c.at - START, 2), c.kind.value, nodes.get(str(c.detail.get("node")), "")) for c in rows)
        ids = sorted((kind, tuple(sorted(values))) for kind, values in card.ids.items())
        cut = sorted(str(part.ids) for part in card.partitions)
        key = repr(ids)
        state = (card.presence.value, card.node_name, card.slot, card.address, card.rung.value, dict(card.increase) if counters else {}, cut, history)
        found[key if key not in found else f"{key} {card.created_at}"] = state
    found["findings"] = sorted((row.finding.kind.value, row.finding.about) for row in store.reader.findings() if row.finding.kind not in SITE)
    return found


def apart(mine: dict[str, object], theirs: dict[str, object], who: str) -> list[str]:
    """Where two snapshots differ."""
    keys = sorted(mine.keys() | theirs.keys())
    return [f"{who} says of {k}: {theirs.get(k)}; this says {mine.get(k)}" for k in keys if mine.get(k) != theirs.get(k)]
