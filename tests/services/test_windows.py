# SPDX-License-Identifier: Apache-2.0
"""No report is taken twice, and none is acknowledged that was not taken: over lives, replays, other orders, clocks that are set, and restarts."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.services.lives import BOOTS, RANGES, RECENT, SIZE, Made
from muster.services.windows import FORMER, FULL, Copy, Window

KIB = 1024
Key = tuple[str, int]


def words(key: Key) -> bytes:
    """What the report of that number says."""
    return (hash(key) % 2**60 + 1).to_bytes(SIZE, "little")


@dataclass
class Talk:
    """A reporter and its server: every report with when it was made, and what was taken."""

    window: Window = field(default_factory=Window)
    made: dict[Key, Made | None] = field(default_factory=dict)
    taken: set[Key] = field(default_factory=set)

    def say(self, key: Key, made: Made | None = None) -> Copy:
        """Hands a report to the server, for the first time or again; what it makes of it must not double nor lose."""
        made = self.made.setdefault(key, made)
        copy = self.window.judge(*key, words(key), made)
        if key in self.taken:
            assert copy is not Copy.NEW, f"{key} is taken a second time"
            assert copy is not Copy.OTHER, f"{key} said the same"
        else:
            assert copy not in (Copy.SAME, Copy.OTHER), f"{key} was never taken, and is called {copy.value}"
        if copy is Copy.NEW:
            self.window.add(*key, words(key), made)
            self.taken.add(key)
        return copy

    def restart(self) -> None:
        """The server starts anew with what it kept."""
        self.window = Window(self.window.packed())


def at(second: float, boot: int = 0, *, ahead: float = 0.0) -> Made:
    """A report of that second, made in a boot whose clock is so far ahead."""
    return Made(wall=1e9 + second + ahead, boot=boot.to_bytes(SIZE, "big"), mono=second, right=abs(ahead) < 5)


def test_a_crash_loop_of_a_thousand_lives_goes_on_being_heard_and_nothing_of_it_is_taken_twice() -> None:
    talk = Talk()
    keys = [(f"life-{life}", number) for life in range(1000) for number in (1, 2)]
    for second, key in enumerate(keys):
        assert talk.say(key, at(5 * second)) is Copy.NEW, key
        if second % 97 == 0:
            talk.restart()
    assert {talk.say(key) for key in keys[-2 * FULL :]} == {Copy.SAME}
    assert {talk.say(key) for key in keys[-2 * (FULL + FORMER) : -2 * FULL]} == {Copy.UNTOLD}
    assert {talk.say(key) for key in keys[: -2 * (FULL + FORMER)]} == {Copy.FORGOTTEN}
    assert talk.say(("life-next", 1), at(99_999)) is Copy.NEW


def test_what_waited_in_a_former_life_is_taken_whatever_spoke_since() -> None:
    talk = Talk()
    talk.say(("first", 1), at(1))
    talk.made[("first", 2)], talk.made[("first", 3)] = at(2), at(3)
    for life in range(FULL + FORMER - 1):
        talk.say((f"later-{life}", 1), at(10 + life))
    assert talk.say(("first", 2)) is Copy.NEW
    for life in range(FORMER):
        talk.say((f"later-still-{life}", 1), at(1000 + life))
    talk.restart()
    assert talk.say(("first", 3)) is Copy.NEW
    assert talk.say(("first", 1)) is Copy.UNTOLD


def test_what_waits_in_a_life_that_is_known_from_its_beginning_is_taken_whatever_was_forgotten_since() -> None:
    talk = Talk()
    for life in range(2 * (FULL + FORMER)):
        talk.say((f"before-{life}", 1), at(life))
    talk.say(("long", 1), at(1000))
    talk.made[("long", 2)] = at(1001)
    for life in range(2 * (FULL + FORMER)):
        talk.say((f"later-{life}", 1), at(2000 + life))
        talk.say(("long", 3 + life), at(2000.5 + life))
    talk.restart()
    assert talk.say(("long", 2)) is Copy.NEW


def test_a_thousand_lives_that_waited_for_a_server_come_in_their_order() -> None:
    """The oldest first, while new lives begin at the end: none of them was told before."""
    talk = Talk()
    for life in range(1000):
        for number in range(1, 4):
            assert talk.say((f"life-{life}", number), at(60 * life + number)) is Copy.NEW


@pytest.mark.parametrize("ahead", [86400.0 * 365, -1e9 + 60, 0.0, -3600.0])
def test_a_clock_that_is_set_silences_no_life_of_another_boot(ahead: float) -> None:
    """Lives under a clock that was off, so many that they are forgotten; then it is right, and each boot begins anew."""
    talk = Talk()
    for life in range(3 * (FULL + FORMER)):
        talk.say((f"off-{life}", 1), at(5.0 * life, boot=0, ahead=ahead))
    for boot in range(1, 3 * (FULL + FORMER)):
        began = 100_000.0 + 600 * boot
        assert talk.say((f"right-{boot}", 1), Made(wall=1e9 + began, boot=boot.to_bytes(SIZE, "big"), mono=10.0)) is Copy.NEW
        assert talk.say((f"right-{boot}", 2), Made(wall=1e9 + began + 60, boot=boot.to_bytes(SIZE, "big"), mono=70.0)) is Copy.NEW
    assert len(talk.window.past.boots) <= BOOTS


def test_a_machine_whose_clock_begins_in_1970_at_each_boot_is_heard() -> None:
    talk = Talk()
    for boot in range(300):
        for number in (1, 2):
            made = Made(wall=60.0 * number, boot=boot.to_bytes(SIZE, "big"), mono=60.0 * number, right=False)
            assert talk.say((f"life-{boot}", number), made) is Copy.NEW


def test_a_clock_that_leaps_back_within_a_boot_silences_nobody() -> None:
    talk = Talk()
    for life in range(200):
        talk.say((f"before-{life}", 1), at(life, ahead=1e6))
    for life in range(200):
        assert talk.say((f"after-{life}", 1), at(200 + life)) is Copy.NEW


def test_a_machine_that_was_put_back_to_an_earlier_moment_is_heard() -> None:
    """A snapshot: its monotonic clock goes on from where it stood, its wall clock is right."""
    talk = Talk()
    for life in range(200):
        talk.say((f"before-{life}", 1), at(1000 + life))
    for life in range(200):
        assert talk.say((f"after-{life}", 1), at(500 + life, ahead=10_000)) is Copy.NEW
    assert talk.say(("before-3", 1)) is Copy.FORGOTTEN


def test_other_words_are_told_from_the_same_as_long_as_they_are_remembered() -> None:
    talk = Talk()
    for number in range(1, 200):
        talk.say(("life", number), at(number))
    judged = {number: talk.window.judge("life", number, words(("another", number)), at(number)) for number in range(1, 200)}
    assert {judged[number] for number in range(200 - RECENT, 200)} == {Copy.OTHER}
    assert {judged[number] for number in range(1, 200 - RECENT)} == {Copy.UNTOLD}


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), lives=st.integers(1, 220), boots=st.integers(1, 30), shuffled=st.sampled_from([0, 0, 3, 400]))
def test_nothing_is_taken_twice_and_nothing_is_acknowledged_that_was_not_taken(seed: int, lives: int, boots: int, shuffled: int) -> None:
    """Lives of a few reports each over boots whose clocks are off by anything; delivered in about their order, some never, replayed at any time."""
    dice = random.Random(seed)
    talk, clock = Talk(), 0.0
    wrong = [dice.choice((0.0, 0.0, 0.0, 1.0, -40.0, 3600.0, -1e9)) if boots <= BOOTS else 0.0 for _ in range(boots)]
    order: list[tuple[float, Key]] = []
    for life in range(lives):
        boot = life * boots // lives
        for number in range(1, dice.choice((1, 1, 2, 3, 90)) + 1):
            clock += dice.uniform(0.1, 60)
            talk.made[(f"life-{life}", number)] = at(clock, boot, ahead=wrong[boot])
            order.append((len(order) + dice.uniform(0, shuffled), (f"life-{life}", number)))
    order.sort()
    keys = [key for _, key in order]
    for place, key in enumerate(keys):
        if dice.random() < 0.05:
            continue
        answer = talk.say(key)
        assert shuffled or answer is Copy.NEW, "what comes in its order is taken"
        if dice.random() < 0.3:
            talk.say(dice.choice(keys[: place + 1]))
        if dice.random() < 0.02:
            talk.restart()
    talk.restart()
    for key in dice.sample(keys, min(len(keys), 300)):
        talk.say(key)
    assert len(talk.window.packed()) <= 24 * KIB


def test_what_is_kept_of_a_reporter_is_bounded() -> None:
    usual, worst = Window(), Window()
    for number in range(1, 1000):
        usual.add("1f0c2d7be1a94b63", number, words(("life", number)), at(number))
    for life in range(FULL + FORMER + 3 * BOOTS):
        for number in range(RANGES * 3):
            worst.add(f"{life}" * 60, 2**40 + 2 * number, words(("life", number)), at(2**40 + number, boot=life + 2**50))
    assert len(usual.packed()) < 700
    assert 10 * KIB < len(worst.packed()) <= 24 * KIB


def test_numbers_with_many_holes_are_taken_once() -> None:
    talk = Talk()
    for number in range(0, 400, 2):
        talk.say(("life", number), at(number))
    for number in range(1, 401, 2):
        copy = talk.window.judge("life", number, words(("life", number)), at(number))
        assert copy is (Copy.NEW if number > 2 * (200 - RANGES) else Copy.UNTOLD), number
        if copy is Copy.NEW:
            talk.say(("life", number), at(number))
    for number in range(400):
        assert talk.window.judge("life", number, words(("life", number)), at(number)) is not Copy.NEW


def test_the_form_of_before_is_read() -> None:
    digests = bytearray(RECENT * SIZE)
    digests[7 * SIZE : 8 * SIZE] = words(("old", 7))
    window = Window(msgspec.msgpack.encode([("older", [[1, 3]], bytes(RECENT * SIZE)), ("old", [[0, 7]], bytes(digests))]))
    assert (window.incarnation, window.high) == ("old", 7)
    assert window.judge("old", 7, words(("old", 7))) is Copy.SAME
    assert window.judge("old", 7, words(("old", 8))) is Copy.OTHER
    assert window.judge("old", 6, words(("old", 6))) is Copy.UNTOLD
    assert window.judge("older", 4, words(("older", 4))) is Copy.NEW
    assert Window(window.packed()).packed() == window.packed()
