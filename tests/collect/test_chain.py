# SPDX-License-Identifier: Apache-2.0
"""Which source of a chain is read, by what the others said."""

from __future__ import annotations

from tests.collect.world import source

from muster.collect.chain import ABSENT, Chains, Word, word
from muster.collect.pace import IDLE_S
from muster.domain.model.attributes import Level
from muster.domain.model.observation import Interpretation, Observation, Subject
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Outcome, Source, SourceId

LEADER = source("lead", provides=["power.draw"], cadence=10)
SECOND = source("second", after="lead", provides=["power.draw"], cadence=60)
THIRD = source("third", after="second", provides=["power.draw", "fan.rpm"], cadence=60)


def due(chains: Chains, words: dict[str, Word], now: float = 0.0) -> list[str]:
    return [str(each.id) for each in chains.due({SourceId(key): value for key, value in words.items()}, now)]


def said(outcome: Outcome, at: float = 0.0, spoken: tuple[str, ...] = (), elsewhere: tuple[str, ...] = ()) -> Word:
    return Word(started=at, outcome=outcome, spoken=frozenset(spoken), elsewhere=frozenset(elsewhere))


def test_only_the_leader_is_read_first() -> None:
    assert due(Chains([SECOND, LEADER, THIRD]), {}) == ["lead"]


def test_a_follower_is_read_when_its_leader_is_absent() -> None:
    for outcome in Outcome:
        found = due(Chains([LEADER, SECOND]), {"lead": said(outcome)})
        assert found == (["second"] if outcome in ABSENT else []), outcome


def test_a_chain_is_gone_down_one_by_one() -> None:
    chains = Chains([LEADER, SECOND, source("last", after="second")])
    missing = said(Outcome.TOOL_MISSING)

    assert due(chains, {"lead": missing}) == ["second"]
    assert due(chains, {"lead": missing, "second": missing}) == ["last"]
    assert due(chains, {"lead": missing, "second": said(Outcome.DEVICES)}) == []


def test_a_follower_is_read_for_what_the_leader_lacks() -> None:
    chains = Chains([LEADER, SECOND, THIRD])

    assert due(chains, {"lead": said(Outcome.DEVICES)}) == ["third"]
    assert due(chains, {"lead": said(Outcome.DEVICES, spoken=("fan.rpm",))}) == []
    assert due(chains, {"lead": said(Outcome.DEVICES, elsewhere=("power.draw",))}) == ["second"]
    assert due(chains, {"lead": said(Outcome.NO_DEVICES)}) == []


def test_each_at_its_own_cadence() -> None:
    chains = Chains([LEADER, SECOND, THIRD])
    words = {"lead": said(Outcome.DEVICES, 0), "third": said(Outcome.DEVICES, 0)}

    assert due(chains, words, 9.9) == []
    assert due(chains, words, 10) == ["lead"]
    assert due(chains, words, 60) == ["lead", "third"]
    assert chains.next_at({SourceId(k): v for k, v in words.items()}, 0) == 10
    assert chains.next_at({SourceId(k): v for k, v in words.items()}, 0, idle=["acme"]) == IDLE_S
    assert chains.next_at({}, 0, busy=["acme"]) == float("inf")


def test_who_is_not_needed_stands_by() -> None:
    def standing(*sources: Source, **words: Word) -> list[str]:
        return [str(each.id) for each in Chains(sources).standing_by({SourceId(key): value for key, value in words.items()})]

    assert standing(LEADER, SECOND) == []
    assert standing(LEADER, SECOND, lead=said(Outcome.DEVICES)) == ["second"]
    assert standing(LEADER, SECOND, lead=said(Outcome.UNREACHABLE)) == []


def test_a_circle_and_a_leader_that_is_not_there() -> None:
    assert due(Chains([source("a", after="b"), source("b", after="a"), source("c", after="a")]), {}) == ["a", "b"]
    assert due(Chains([source("alone", after="gone")]), {}) == ["alone"]


def test_the_bus_is_read_first() -> None:
    assert due(Chains([LEADER, source("pci", "bus")]), {}) == ["pci", "lead"]


def test_a_word_keeps_what_is_to_be_found_elsewhere() -> None:
    def card(**readings: Known[int] | Absent) -> Observation:
        return Observation(subject=Subject(level=Level.CARD), readings=readings)

    told = Interpretation(
        outcome=Outcome.DEVICES,
        observations=(card(a=Known(1), b=Absent(Why.MOVED), c=Absent(Why.NOT_PRESENT)), card(a=Absent(Why.NOT_REPORTED))),
    )
    found = word(told, 5.0)

    assert found.spoken == {"a", "c"}
    assert found.elsewhere == {"b"}


def test_who_speaks_in_the_place_of_one_that_is_not_there() -> None:
    chains = Chains([LEADER, SECOND, THIRD])
    words = {LEADER.id: said(Outcome.TOOL_MISSING), SECOND.id: said(Outcome.TOOL_MISSING)}

    assert chains.instead(LEADER.id, words) is None
    words[THIRD.id] = said(Outcome.NO_DEVICES)
    assert chains.instead(LEADER.id, words) is None
    words[THIRD.id] = said(Outcome.PARTIAL)
    assert (chains.instead(LEADER.id, words), chains.instead(SECOND.id, words), chains.instead(THIRD.id, words)) == (THIRD.id, THIRD.id, None)
