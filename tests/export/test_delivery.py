# SPDX-License-Identifier: Apache-2.0
"""The courier: nothing is lost while the store is away, what is refused costs only itself, and everything is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from muster.export import delivery
from muster.export.delivery import Courier, Moving
from muster.spi.sinks import Reply

BAD = b"bad"


class World:
    """A store of metrics that answers as it is told, and a time that only pauses move on."""

    def __init__(self, answer: Callable[[list[bytes]], Reply], *, seconds_a_post: float = 0.0) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.taken: list[bytes] = []
        self.posts = 0
        self.said: list[str] = []
        self._answer = answer
        self._seconds = seconds_a_post
        self.courier = Courier(self.post, b"\0".join, Moving(pause=self.pause, clock=lambda: self.now, die=lambda: 1.0), self.said.append)

    def post(self, body: bytes) -> Reply:
        self.posts += 1
        self.now += self._seconds
        items = body.split(b"\0")
        reply = self._answer(items)
        if 200 <= reply.status < 300:
            self.taken += items
        return reply

    def pause(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.now += seconds
        return False


def lost(courier: Courier) -> dict[str, int]:
    """What was given up, by reason."""
    return {reason: count for reason, count in courier.dropped.items() if count}


def numbered(count: int) -> list[bytes]:
    return [b"i%d" % number for number in range(count)]


def after(times: int, reply: Reply) -> Callable[[Sequence[bytes]], Reply]:
    """The reply so many times, then success."""
    left = [reply] * times
    return lambda _: left.pop() if left else Reply(204)


def test_what_is_taken_is_counted() -> None:
    world = World(lambda _: Reply(204))
    world.courier.add(numbered(12_345))

    assert world.courier.deliver(10)
    assert world.taken == numbered(12_345)
    assert (world.courier.sent, world.courier.waiting, world.courier.retries, lost(world.courier)) == (12_345, 0, 0, {})
    assert world.posts == 3


def test_a_parcel_has_a_size() -> None:
    world = World(lambda _: Reply(200))
    world.courier.add([bytes([65]) * 600_000] * 5)

    assert world.courier.deliver(10)
    assert world.posts == 5


def test_a_store_that_is_away_is_tried_again_later_and_later() -> None:
    world = World(after(5, Reply(0, "away")))
    world.courier.add(numbered(3))

    assert world.courier.deliver(1000)
    assert world.taken == numbered(3)
    assert world.pauses == [0.5, 1, 2, 4, 8]
    assert world.courier.retries == 5
    assert world.said == ["it is tried again: away"]


def test_the_longest_pause_is_bounded() -> None:
    world = World(after(40, Reply(503)))
    world.courier.add(numbered(1))

    assert world.courier.deliver(10_000)
    assert max(world.pauses) == delivery.LONGEST_S


def test_a_store_that_asks_for_time_gets_it() -> None:
    world = World(after(1, Reply(429, "slow down", wait=12.0)))
    world.courier.add(numbered(3))

    assert world.courier.deliver(1000)
    assert world.pauses == [12.0]


def test_the_next_round_is_not_missed() -> None:
    world = World(lambda _: Reply(500))
    world.courier.add(numbered(3))

    assert not world.courier.deliver(15)
    assert world.now == 15
    assert world.courier.waiting == 6


def test_what_could_not_be_sent_goes_first_in_the_next_round() -> None:
    up = [False]
    world = World(lambda _: Reply(204) if up[0] else Reply(0))
    world.courier.add([b"a"])
    assert not world.courier.deliver(1)
    up[0] = True
    world.courier.add([b"b"])

    assert world.courier.deliver(100)
    assert world.taken == [b"a", b"b"]


def test_one_bad_item_costs_only_itself() -> None:
    world = World(lambda items: Reply(400, "out of order") if BAD in items else Reply(204))
    good = numbered(4999)
    world.courier.add([*good[:777], BAD, *good[777:]])

    assert world.courier.deliver(10)
    assert world.taken == good
    assert lost(world.courier) == {"refused": 1}
    assert world.courier.waiting == 0
    assert world.posts <= 2 * 13 + 1


def test_a_store_that_refuses_all_is_not_asked_for_each_item() -> None:
    world = World(lambda _: Reply(400, "no"))
    world.courier.add(numbered(5000))

    assert world.courier.deliver(10)
    assert lost(world.courier) == {"refused": 5000}
    assert world.posts <= 129
    assert world.said == ["refused: no"]


def test_what_is_not_allowed_is_given_up_at_once() -> None:
    world = World(lambda _: Reply(401, "who are you"))
    world.courier.add(numbered(10))

    assert world.courier.deliver(10)
    assert (world.posts, lost(world.courier), world.courier.waiting) == (1, {"refused": 10}, 0)


def test_a_redirect_is_no_success() -> None:
    world = World(lambda _: Reply(302))
    world.courier.add(numbered(1))

    assert world.courier.deliver(10)
    assert (world.taken, lost(world.courier)) == ([], {"refused": 1})


def test_what_waits_is_bounded_and_the_oldest_goes() -> None:
    world = World(lambda _: Reply(0))
    item = bytes(delivery.MOST_BYTES)
    world.courier.add([item] * 80)

    assert world.courier.waiting <= delivery.WAITING_BYTES
    assert lost(world.courier) == {"waited": 16}


def test_an_end_in_a_pause_is_an_end() -> None:
    world = World(lambda _: Reply(0))
    courier = Courier(world.post, b"".join, Moving(pause=lambda _: True, clock=lambda: 0.0, die=lambda: 0.0), world.said.append)
    courier.add(numbered(1))

    assert not courier.deliver(1000)
    assert world.posts == 1


def test_what_a_good_answer_did_not_take_is_counted() -> None:
    world = World(lambda _: Reply(200, body=b"3"))
    courier = Courier(world.post, b"".join, Moving(pause=world.pause, clock=lambda: 0.0, die=lambda: 0.0), world.said.append, int)
    courier.add(numbered(10))

    assert courier.deliver(1)
    assert lost(courier) == {"rejected": 3}


@given(st.lists(st.sampled_from([0, 200, 204, 302, 400, 401, 413, 429, 500, 503]), max_size=40), st.lists(st.binary(min_size=1, max_size=9), max_size=30))
def test_every_item_is_taken_waits_or_is_counted_as_lost(answers: list[int], items: list[bytes]) -> None:
    left = list(answers)
    counted: list[int] = []

    def post(body: bytes) -> Reply:
        status = left.pop() if left else 204
        counted.extend([len(body)] if 200 <= status < 300 else [])
        return Reply(status)

    now = [0.0]

    def pause(seconds: float) -> bool:
        now[0] += seconds
        return False

    courier = Courier(post, b"".join, Moving(pause=pause, clock=lambda: now[0], die=lambda: 0.5), lambda _: None)
    courier.add(items)
    done = courier.deliver(20)

    assert done == (courier.waiting == 0)
    assert sum(counted) + courier.waiting <= sum(map(len, items))
    if done:
        assert courier.sent + courier.dropped.total() == len(items)
