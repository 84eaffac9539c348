# SPDX-License-Identifier: Apache-2.0
"""Words that are older than all that is kept in full: a node that was cut off from its first day on tells where its cards were before they were moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muster.domain.decide.merge import Roll, merge, tick
from muster.domain.decide.merge.nodes import resolve
from muster.domain.decide.merge.state import Site
from muster.domain.model.attributes import Level
from muster.domain.model.names import NameKind, names
from muster.domain.model.observation import Observation, Subject
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Change, Finding, Happening, Listing, NodeNames, Presence, Witness
from muster.domain.model.source import Channel, Outcome, WitnessClass

POLICY = Policy(late_listings=32, late_window=300.0)
T0 = 1_700_000_000.0
ROUND = 60.0
SOURCES = {
    "driver": Witness(source="driver", channel=Channel.IN_BAND, witness=WitnessClass.DRIVER, cadence=ROUND),
    "bus": Witness(source="bus", channel=Channel.IN_BAND, witness=WitnessClass.PCI, cadence=ROUND),
    "bmc": Witness(source="bmc", channel=Channel.OUT_OF_BAND, witness=WitnessClass.BMC, cadence=ROUND),
}
PLACES = frozenset({Happening.INSTALLED, Happening.MOVED, Happening.MISSING, Happening.FOUND, Happening.REMOVED, Happening.RETURNED})
SOURCE = frozenset({Happening.SOURCE_LOST, Happening.SOURCE_BACK})
Boards = dict[int, int]
"""Slots and the boards in them."""


def listing(node: str, source: str, at: float, boards: Boards) -> Listing:
    """All boards of a node as a source tells them: the bus knows no board by a name of its own."""
    rows = []
    for slot, board in sorted(boards.items()):
        told = {"pci_address": f"0000:{slot + 1:02x}:00.0"}
        if source == "driver":
            told |= {"vendor_uuid": f"GPU-{board:04d}-77aa", "serial": f"SN{board:05d}"}
        elif source == "bmc":
            told = {"serial": f"SN{board:05d}", "chassis_slot": f"S{slot}"}
        else:
            told |= {"chassis_slot": f"S{slot}"}
        rows.append(Observation(subject=Subject(level=Level.CARD, names=names(**told)), readings={}))
    return Listing(
        node=NodeNames(name=node),
        witness=SOURCES[source],
        reporter=f"bmc@{node}" if source == "bmc" else f"agent@{node}",
        incarnation="i",
        sequence=int(at),
        at=T0 + at,
        received_at=T0 + at,
        complete=True,
        outcome=Outcome.DEVICES if rows else Outcome.NO_DEVICES,
        observations=tuple(rows),
    )


@dataclass
class Heard:
    """The roll, and its history as a store would have it."""

    roll: Roll = field(default_factory=Roll)
    rows: dict[str, Change] = field(default_factory=dict)
    untrue: list[Change] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()
    order: int = 0

    def hear(self, word: Listing, policy: Policy) -> None:
        merged = merge(self.roll, word, self.order, policy, word.received_at)
        self.roll, self.order = merged.roll, self.order + 1
        self.untrue += [self.rows.pop(i) for i in merged.superseded]
        self.rows |= {change.id: change for change in merged.changes}

    def end(self, at: float, policy: Policy) -> None:
        merged = tick(self.roll, policy, T0 + at)
        self.roll, self.findings = merged.roll, merged.findings
        self.rows |= {change.id: change for change in merged.changes}

    def been(self, serial: str) -> list[tuple[Happening, float]]:
        """Where the card was, as its history says."""
        (card,) = [c for r in self.roll.regions.values() for c in r.site.cards.values() if any(serial in told for told in c.names.values())]
        return [(c.kind, c.at - T0) for c in sorted(card.history, key=lambda c: c.at) if c.kind in PLACES]


def heard(words: Iterable[Listing], end: float, policy: Policy = POLICY) -> Heard:
    found = Heard()
    for word in words:
        found.hear(word, policy)
    found.end(end, policy)
    return found


def picture(told: Heard) -> list[str]:
    """Every card by its strong names, its presence and place, and what is open."""
    lines = [f"{f.kind} {f.about}" for f in told.findings]
    for region in told.roll.regions.values():
        for card in region.site.cards.values():
            node = region.site.nodes[card.node].name if card.node else None
            strong = sorted(value for kind in (NameKind.VENDOR_UUID, NameKind.SERIAL) for value in card.values(kind))
            if strong or card.presence is not Presence.REMOVED:
                lines.append(f"{strong} {card.presence} {node}")
    return sorted(lines)


def moved_while_cut_off(sources: Sequence[str], until: float, moved: float) -> tuple[list[Listing], list[Listing]]:
    """What b says all the time, and what a says, which is heard at the end only: board 1 goes from a to b, board 2 stays in a."""
    rounds = [ROUND * n for n in range(int(until // ROUND))]
    b = [listing("b", s, at, {1: 3} if at < moved else {0: 1, 1: 3}) for at in rounds for s in sources]
    a = [listing("a", s, at, {0: 1, 1: 2} if at < moved else {1: 2}) for at in rounds for s in sources]
    return b, sorted((replace(word, received_at=T0 + until) for word in a), key=lambda word: word.reporter)


@pytest.mark.parametrize("sources", [("driver", "bus"), ("bus", "driver"), ("driver", "bus", "bmc"), ("bmc", "driver"), ("driver",)])
def test_a_board_that_moved_before_its_first_node_was_heard(sources: tuple[str, ...]) -> None:
    b, a = moved_while_cut_off(sources, 6000.0, 3000.0)
    told = heard([*b, *a], 6001.0)
    in_turn = heard(sorted([*b, *a], key=lambda w: w.at), 6001.0)

    assert picture(told) == picture(in_turn)
    assert told.findings == ()
    assert told.been("sn00001") == in_turn.been("sn00001") == [(Happening.INSTALLED, 0.0), (Happening.MOVED, 3000.0)]
    assert not [c for c in told.rows.values() if c.kind in SOURCE], "nobody was silent"


NODES = ("a", "b", "c")
ROUNDS = 60
MOVES = st.lists(st.tuples(st.integers(5, 40), st.sampled_from((0, 1, 0, 1, 2, 4)), st.sampled_from(NODES)), min_size=1, max_size=3)
SPEAK = st.sampled_from([("driver", "bus"), ("bus", "driver"), ("driver", "bus", "bmc"), ("driver",)])


def lived(moves: Sequence[tuple[int, int, str]], sources: dict[str, tuple[str, ...]], rounds: int) -> list[Listing]:
    """What three nodes with two boards each say while boards are moved into free slots."""
    where: dict[int, tuple[str, int]] = {n: (NODES[n // 2], n % 2) for n in range(6)}
    words = []
    for turn in range(rounds):
        for at, board, node in moves:
            free = [slot for slot in range(3) if (node, slot) not in where.values()]
            if at == turn and free:
                where[board] = (node, free[0])
        for node in NODES:
            boards = {slot: board for board, (there, slot) in where.items() if there == node}
            words += [listing(node, source, ROUND * turn, boards) for source in sources[node]]
    return words


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=12)
@given(MOVES, st.tuples(SPEAK, SPEAK, SPEAK), st.integers(0, 5))
@example([(20, 0, "b"), (40, 0, "c")], (("driver", "bus"),) * 3, 0)
def test_a_node_that_was_cut_off_for_long_tells_what_it_would_have_told(
    moves: list[tuple[int, int, str]], speak: tuple[tuple[str, ...], ...], cut: int
) -> None:
    words = lived(moves, dict(zip(NODES, speak, strict=True)), ROUNDS)
    end = T0 + ROUND * ROUNDS
    waited = [replace(word, received_at=end) for word in words if word.reporter == "agent@a" and word.at >= T0 + ROUND * cut]
    in_time = [word for word in words if word.reporter != "agent@a" or word.at < T0 + ROUND * cut]

    assert picture(heard([*in_time, *waited], ROUND * ROUNDS + 1)) == picture(heard(words, ROUND * ROUNDS + 1))


MACHINES = [f"9f3c{number}d1e77a24b05a6c8e0f1b2d3c4e5"[:32] for number in range(3)]


def test_a_node_is_called_by_what_it_says_last_whichever_word_comes_last() -> None:
    site = Site()
    system = "4c4c4544-0051-4d10-8056-b7c04f4b4e32"
    resolve(site, NodeNames(name="b", machine_id=MACHINES[1], system=system), 100.0, POLICY)
    late = resolve(site, NodeNames(name="a", machine_id=MACHINES[0], system=system), 50.0, POLICY)
    assert (late.name, late.machine_id, late.former, late.last_at) == ("b", MACHINES[1], {"a"}, 100.0)
    now = resolve(site, NodeNames(name="c", machine_id=MACHINES[2], system=system), 150.0, POLICY)
    assert now is late
    assert (now.name, now.machine_id, now.former, now.last_at) == ("c", MACHINES[2], {"a", "b"}, 150.0)
