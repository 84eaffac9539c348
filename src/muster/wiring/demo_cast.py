# SPDX-License-Identifier: Apache-2.0
"""Who plays which part in the demo, chosen among the recorded machines by what they are, so that no vendor is named and any set of machines will do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.domain.model.attributes import Level
from muster.domain.model.names import NameKind
from muster.domain.model.observation import Observation
from muster.domain.model.reading import Known
from muster.domain.model.source import Outcome
from muster.wiring.demo_fleet import Machine
from muster.wiring.demo_stage import same_card


@dataclass(frozen=True, slots=True)
class Part:
    """One card on one machine."""

    machine: Machine
    card: Observation


@dataclass(frozen=True, slots=True)
class Mover:
    """A card that moves, and the machine that it moves to, which holds cards of the same product."""

    machine: Machine
    card: Observation
    to: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """The parts. One that no machine can play is None, and its step is left out."""

    sliced: Part | None
    mover: Mover | None
    silent: Part | None
    doubted: Part | None
    logged: Part | None
    missing: Part | None
    broken: Machine | None


def cast(machines: Sequence[Machine]) -> Cast:
    """Gives each part to a machine that no other part has, the largest first where several would do."""
    large = sorted(machines, key=lambda each: -len(each.cards))
    taken: list[Machine] = []

    def free() -> list[Machine]:
        return [each for each in large if each not in taken]

    logged = next(_logged(free()), None)
    taken += [logged.machine] if logged else []
    mover = next(_movers(free()), None)
    taken += [mover.machine, mover.to] if mover else []
    sliced = next(_sliced(free()), None)
    taken += [sliced.machine] if sliced else []
    missing = next(_whole([each for each in free() if _one_voice(each)]), None) or next(_whole(free()), None)
    taken += [missing.machine] if missing else []
    silent = next((Part(each, each.cards[0]) for each in free() if each.cards), None)
    taken += [silent.machine] if silent else []
    doubted = next(_with_memory(free()), None)
    broken = next((each for each in machines if each.told and each.told.outcome is Outcome.DRIVER_UNUSABLE), None)
    return Cast(sliced=sliced, mover=mover, silent=silent, doubted=doubted, logged=logged, missing=missing, broken=broken)


def product(card: Observation) -> str:
    """What the card is called; empty when its source does not say."""
    found = card.readings.get("product.name")
    return str(found.value) if isinstance(found, Known) else ""


def _listed_whole(machine: Machine) -> bool:
    """True when the lead shows every card it can see, so that one it does not show is denied."""
    return machine.told is not None and machine.told.complete and machine.told.outcome is Outcome.DEVICES


def _one_voice(machine: Machine) -> bool:
    """True when a single source lists its cards, so that what it denies is in doubt at once."""
    return sum(bool(each.told.observations) for each in machine.rounds) == 1


def _marked(machine: Machine) -> Iterator[Observation]:
    """Cards that carry an identity of their own and have no parts."""
    for card in machine.cards:
        if {each.kind for each in card.subject.names} & {NameKind.VENDOR_UUID, NameKind.SERIAL} and not machine.parts(card):
            yield card


def _logged(machines: Sequence[Machine]) -> Iterator[Part]:
    for machine in machines:
        for event in machine.events:
            yield from (Part(machine, card) for card in machine.cards if same_card(card.subject.names, event.subject.names))


def _movers(machines: Sequence[Machine]) -> Iterator[Mover]:
    for machine in machines:
        if _listed_whole(machine):
            for card in list(_marked(machine))[2:]:
                others = (other for other in machines if other is not machine and any(product(each) == product(card) for each in other.cards))
                yield from (Mover(machine, card, other) for other in others if product(card))


def _sliced(machines: Sequence[Machine]) -> Iterator[Part]:
    for machine in machines:
        parts = (Part(machine, card) for card in machine.cards)
        yield from (part for part in parts if any(each.subject.level is Level.PARTITION for each in machine.parts(part.card)))


def _whole(machines: Sequence[Machine]) -> Iterator[Part]:
    for machine in machines:
        if _listed_whole(machine) and len(machine.cards) > 1:
            yield from (Part(machine, card) for card in list(_marked(machine))[-1:])


def _with_memory(machines: Sequence[Machine]) -> Iterator[Part]:
    for machine in machines:
        yield from (Part(machine, card) for card in machine.cards if isinstance(card.readings.get("memory.total"), Known))
