# SPDX-License-Identifier: Apache-2.0
"""The story of `muster demo`: what happens in the small world, in which words, and with which command it is seen. Printing and waiting are the door's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from muster.domain.model.errors import NotFound
from muster.domain.model.names import NameKind
from muster.domain.model.observation import Observation
from muster.domain.model.reading import Known
from muster.domain.model.roll import CardRecord, FindingKind, Happening, Presence
from muster.wiring.demo import Demo
from muster.wiring.demo_cast import Cast, cast, product
from muster.wiring.demo_fleet import Machine
from muster.wiring.settings import ServerSettings
from muster.wiring.writing import wall_clock


@dataclass(frozen=True, slots=True)
class Chapter:
    """A step begins."""

    title: str


@dataclass(frozen=True, slots=True)
class Say:
    """A few sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Show:
    """A command and what it prints; ``head`` lines of it, or those with ``grep`` in them, as the pipe behind the command has it."""

    command: tuple[str, ...]
    head: int = 0
    grep: str = ""


@dataclass(frozen=True, slots=True)
class Await:
    """Something that is true soon."""

    what: str
    done: Callable[[], bool]


Beat: TypeAlias = Chapter | Say | Show | Await


class Story:
    """The steps, in order. Each makes its change as it is told, so they are told once."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        self._cast: Cast = cast(demo.loaded.machines)
        self._before = 0.0
        self._moved: list[str] = []
        if self._cast.logged:
            demo.stage.hold_events(self._cast.logged.machine.node)

    def beats(self) -> Iterator[Beat]:
        """All that is told and shown."""
        for step in (self._roll, self._card, self._move, self._silence, self._dissent, self._event, self._missing, self._belief):
            yield from step()

    def summary(self, steps: int) -> str:
        """What was told, in one line."""
        reader = self._demo.desk.reader
        cards, changes = len([each for each in self._cards() if each.role == "accelerator"]), len(reader.changes())
        return f"{steps} steps: {cards} cards on {len(reader.nodes())} nodes, {changes} changes kept, {len(reader.findings())} findings open"

    def _cards(self) -> list[CardRecord]:
        return self._demo.desk.reader.cards()

    def _record(self, machine: Machine, card: Observation) -> CardRecord:
        """The card as it stands on the roll. Raises NotFound when its node does not have it there."""
        here = [each for each in self._cards() if each.node_name == machine.node]
        for kind in (NameKind.VENDOR_UUID, NameKind.SERIAL, NameKind.PCI_ADDRESS, NameKind.INDEX):
            wanted = {each.value for each in card.subject.names if each.kind is kind}
            found = [each for each in here if wanted & set(each.ids.get(kind, ()))]
            if len(found) == 1:
                return found[0]
        raise NotFound(f"{machine.node}: a card that it lists is not on the roll", hint="run `muster demo` again")

    def _called(self, card: CardRecord) -> str:
        """What a person calls it: its serial where no other card has it, else its UUID, else our id."""
        everyone = self._cards()
        for kind in ("serial", "vendor_uuid"):
            mine = card.ids.get(kind, ())
            if mine and sum(mine[0] in each.ids.get(kind, ()) for each in everyone) == 1:
                return mine[0]
        return card.id

    def _presence(self, card: str) -> Presence:
        return next(each.presence for each in self._demo.desk.reader.cards(ids=[card]))

    def _found(self, kind: FindingKind, subject: str) -> bool:
        return any(each.finding.kind is kind and subject in (each.finding.subject, *each.finding.cards) for each in self._demo.desk.reader.findings())

    def _roll(self) -> Iterator[Beat]:
        told = self._demo.loaded.machines
        wanted = sum(len(each.cards) for each in told)
        nodes = len({(each.node, each.eyes.node.machine_id) for each in told})
        yield Chapter("The roll: every card, whoever made it")
        yield Say(f"{nodes} nodes report, each through the drivers, tools and logs it has. The server makes one roll of them.")
        yield Await("all nodes report", lambda: sum(each.role == "accelerator" for each in self._cards()) >= wanted)
        self._before = math.ceil(wall_clock())
        yield Show(("get", "cards"))
        yield Say("\nThe same, counted:")
        yield Show(("status",), head=20)
        if self._cast.broken:
            node = self._cast.broken.node
            yield Say(f"\nA node whose driver is broken is not a node without cards. {node} says what is wrong:")
            yield Show(("get", "sources", "--filter", f'node == "{node}"'))

    def _card(self) -> Iterator[Beat]:
        if self._cast.sliced is None:
            return
        card = self._record(self._cast.sliced.machine, self._cast.sliced.card)
        yield Chapter("One card: what is known, who says so, how old it is")
        yield Say("This one is cut into partitions. A value that nobody can know is told as such, with the reason: never as zero.")
        yield Show(("describe", "card", self._called(card)), head=44)

    def _move(self) -> Iterator[Beat]:
        mover = self._cast.mover
        if mover is None:
            return
        card = self._record(mover.machine, mover.card)
        yield Await("a second is over", lambda: wall_clock() > self._before)
        yield Chapter("A card is pulled here and put in there")
        yield Say(f"Somebody takes a card ({product(mover.card)}) out of {mover.machine.node} and puts it into {mover.to.node}. Nobody tells the server.")
        self._demo.stage.pull(mover.machine.node, mover.card.subject.names)
        self._demo.stage.put(mover.to.node, mover.to.source, mover.card)
        self._moved.append(self._called(card))
        yield Await(
            "both nodes have reported, and the old one has let go",
            lambda: any(each.change.kind is Happening.MOVED for each in self._demo.desk.reader.changes(card.id)),
        )
        yield Say("It is the same card: it is known by its identity, not by its place, and its history goes with it.")
        yield Show(("history", "card", self._called(card)))
        yield Show(("get", "cards", self._called(card)))

    def _silence(self) -> Iterator[Beat]:
        part = self._cast.silent
        if part is None:
            return
        node, card = part.machine.node, self._record(part.machine, part.card)
        yield Chapter("A source falls silent")
        yield Say(f"{node} says nothing any more. Silence is not absence: the cards are kept, and their values are told with their age.")
        self._demo.fleet.silence(node)
        yield Await("the values grow old", lambda: any(each.silent for each in self._demo.desk.reader.sources() if each.node_name == node))
        yield Await("the cards are unknown", lambda: self._presence(card.id) is Presence.UNKNOWN)
        yield Show(("get", "cards", "--filter", f'node == "{node}"'))
        yield Show(("describe", "card", self._called(card)), grep="stale")
        yield Show(("get", "findings", "--filter", 'kind == "source_silent"'))

    def _dissent(self) -> Iterator[Beat]:
        part = self._cast.doubted
        if part is None:
            return
        card = self._record(part.machine, part.card)
        memory = part.card.readings["memory.total"]
        half = max(1, int(memory.value) // 2**31) if isinstance(memory, Known) else 1
        yield Chapter("The books say something else than the driver")
        yield Say(f"The asset register has this card with {half} GiB. Both words are kept: the one that was measured is shown, the other stands beside it.")
        yield Show(("set", "card", self._called(card), f"memory.total={half}GiB", "--by", "asset-register"))
        yield Show(("describe", "card", self._called(card)), grep="operator says")
        yield Await("the settle time is over", lambda: self._found(FindingKind.VALUES_DISAGREE, card.id))
        yield Say("\nIt is still so after the settle time, so a person should know:")
        yield Show(("get", "findings", "--filter", f'kind == "values_disagree" && subject == "{card.id}"'))

    def _event(self) -> Iterator[Beat]:
        part = self._cast.logged
        if part is None:
            return
        card = self._record(part.machine, part.card)
        yield Chapter("A line in the kernel log lands on its card")
        yield Say(f"The log of {part.machine.node} names a bus address. The roll knows which card stood there.")
        self._demo.stage.release_events(part.machine.node)
        yield Await("the log is read", lambda: bool(self._demo.desk.reader.events(card.id)))
        yield Show(("get", "events", "--filter", f'card == "{card.id}"'))

    def _missing(self) -> Iterator[Beat]:
        part = self._cast.missing
        if part is None:
            return
        card = self._record(part.machine, part.card)
        called = self._called(card)
        yield Chapter("A card is missing, not gone")
        yield Say(f"{part.machine.node} lists one card less than before.")
        self._demo.stage.pull(part.machine.node, part.card.subject.names)
        self._moved.append(called)
        yield Await("the node has reported", lambda: self._presence(card.id) in (Presence.UNKNOWN, Presence.MISSING))
        yield Show(("get", "cards", called))
        yield Say("\nOne look is no proof. The next ones, after the settle time, are:")
        yield Await("the settle time is over", lambda: self._presence(card.id) is Presence.MISSING and self._found(FindingKind.CARD_MISSING, card.id))
        yield Show(("get", "cards", called))
        yield Show(("get", "findings", "--filter", f'kind == "card_missing" && subject == "{card.id}"'))

    def _belief(self) -> Iterator[Beat]:
        if not self._moved or not self._before:
            return
        then = datetime.fromtimestamp(self._before, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        yield Chapter("What we believed before")
        yield Say("Nothing is overwritten. This is what the roll said before the first change, about the card that moved and the one that is missing:")
        yield Show(("get", "cards", *self._moved, "--at", then))
        yield Say("\nAnd now:")
        yield Show(("get", "cards", *self._moved))


def preface(demo: Demo) -> list[str]:
    """What a reader must know before: that times are short here."""
    pace, real = demo.pace, {key: field.default for key, field in ServerSettings.model_fields.items()}
    return [
        f"Times are short here: every source is read each {pace.cadence:g} s, a value is stale after {pace.stale_floor:g} s,",
        f"and an absence or a contradiction is a finding after {pace.settle:g} s. A real server takes {real['stale_floor']:g} s and {real['settle']:g} s.",
    ]
