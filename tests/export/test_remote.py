# SPDX-License-Identifier: Apache-2.0
"""Remote write as bytes: what a round tells, when a series ends, and that readers of others read it."""

from __future__ import annotations

import struct
import sys
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.export.fleets import T0, card, fleet, fleets, told

from muster.export import protobuf, remote
from muster.export.families import READINGS
from muster.export.fleet import Fleet, Told
from muster.export.remote import Lines
from muster.export.series import Names, points
from muster.export.snappy import packed
from muster.wiring import exporting

POWER = frozenset({"power.draw"})
Sent = dict[str, tuple[float, int]]


def fields(message: bytes) -> list[tuple[int, bytes]]:
    """The blocks of a message, in order."""
    found, at = [], 0
    while at < len(message):
        assert message[at] & 7 == 2, message[at:]
        size, start = _varint(message, at + 1)
        found.append((message[at] >> 3, message[start : start + size]))
        at = start + size
    assert at == len(message)
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        byte = message[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def series(message: bytes) -> tuple[dict[str, str], float, int]:
    """Labels, value and time of one series with one sample."""
    told_ = fields(message)
    labels = {}
    for number, body in told_[:-1]:
        assert number == 1
        (_, name), *value = fields(body)
        labels[name.decode()] = value[0][1].decode() if value else ""
    assert list(labels) == sorted(labels)
    number, sample = told_[-1]
    assert number == 2
    assert sample[0] == 9
    assert sample[9] == 16
    at, end = _varint(sample, 10)
    assert end == len(sample)
    return labels, struct.unpack("<d", sample[1:9])[0], at


def power(lines: Lines, this: Fleet, at: float) -> Sent:
    """Samples of power by card; an end is a not-a-number."""
    sent = [series(each) for each in lines.told(points(this, POWER, Names()), at)]
    return {labels["card"]: (value, moment) for labels, value, moment in sent if labels["__name__"] == "muster_power_draw_watts"}


def watts(value: Any, second: int, **more: Any) -> dict[str, Any]:
    return {"power.draw": remote_told(value, second, **more)}


def remote_told(value: Any, second: int, **more: Any) -> Told:
    return Told(value=value, observed_at=f"2026-09-21T14:13:{20 + second:02d}Z", **more)


def ms(second: float) -> int:
    return round((T0 + second) * 1000)


def test_a_value_has_the_time_of_its_reading_and_is_told_once() -> None:
    lines = Lines()

    assert power(lines, fleet(card(1, watts(300.5, 2))), T0 + 9) == {card(1).id: (300.5, ms(2))}
    assert power(lines, fleet(card(1, watts(300.5, 2))), T0 + 19) == {}
    assert power(lines, fleet(card(1, watts(300.5, 20))), T0 + 29) == {card(1).id: (300.5, ms(20))}


def test_a_reading_from_the_time_to_come_is_of_now() -> None:
    assert power(Lines(), fleet(card(1, watts(1, 30))), T0 + 9) == {card(1).id: (1.0, ms(9))}


def is_end(value: float) -> bool:
    return struct.pack("<d", value) == remote.STALE


def test_a_series_that_ends_is_marked_once_and_may_come_back() -> None:
    lines = Lines()
    power(lines, fleet(card(1, watts(5, 0)), card(2, watts(6, 0))), T0 + 1)
    ended = power(lines, fleet(card(1, watts(5, 11)), card(2, watts(6, 0, stale=True))), T0 + 11)

    assert ended[card(1).id] == (5.0, ms(11))
    assert is_end(ended[card(2).id][0])
    assert ended[card(2).id][1] == ms(11)
    assert power(lines, fleet(card(1, watts(5, 11))), T0 + 21) == {}
    assert power(lines, fleet(card(1, watts(5, 11)), card(2, watts(7, 10))), T0 + 31) == {}, "what comes late does not stand before the end"
    assert power(lines, fleet(card(1, watts(5, 11)), card(2, watts(7, 32))), T0 + 33) == {card(2).id: (7.0, ms(32))}


def test_all_ends_when_there_is_nothing_to_tell() -> None:
    lines = Lines()
    power(lines, fleet(card(1, watts(5, 0))), T0 + 1)
    ended = [series(each) for each in lines.told([], T0 + 99)]

    assert all(is_end(value) for _, value, _ in ended)
    assert {labels["__name__"] for labels, _, _ in ended} >= {"muster_power_draw_watts", "muster_card_info", "muster_card_presence"}
    assert list(lines.told([], T0 + 199)) == []


def test_an_end_comes_after_the_last_sample_when_a_clock_goes_back() -> None:
    lines = Lines()
    power(lines, fleet(card(1, watts(5, 20))), T0 + 21)
    ended = power(lines, fleet(), T0 + 9)

    assert is_end(ended[card(1).id][0])
    assert ended[card(1).id][1] == ms(20) + 1


def test_ends_are_forgotten_after_an_hour() -> None:
    lines = Lines()
    power(lines, fleet(card(1, watts(5, 0))), T0 + 1)
    list(lines.told([], T0 + 2))
    list(lines.told([], T0 + 3700))

    assert power(lines, fleet(card(1, watts(5, 1))), T0 + 3701) == {card(1).id: (5.0, ms(1))}


def test_a_fact_is_told_while_it_is_believed() -> None:
    lines = Lines()
    this = fleet(card(1, {"memory.total": told(1024)}))
    first, later = ([series(each) for each in lines.told(points(this, frozenset({"memory.total"}), Names()), T0 + second)] for second in (10, 400))

    for sent, second in ((first, 10), (later, 400)):
        assert [moment for labels, _, moment in sent if labels["__name__"] == "muster_memory_size_bytes"] == [ms(second)]


@given(fleets())
def test_any_fleet_is_a_request_that_reads_back(this: Fleet) -> None:
    told_ = list(points(this, frozenset(READINGS), Names()))
    items = list(Lines().told(told_, T0 + 100))
    message = bytes(cramjam.snappy.decompress_raw(remote.sealed(items)))
    back = [series(body) for _, body in fields(message)]

    assert len(back) == len(told_)
    expected = {(each.family.name, each.labels.text): float(each.value) for each in told_}
    for (labels, value, _), each in zip(back, told_, strict=True):
        assert labels == {**dict(each.labels.pairs), "__name__": each.family.name}
        assert value == expected[each.family.name, each.labels.text]


@given(st.binary(max_size=300).map(lambda some: some * 700))
def test_a_block_of_snappy_is_what_was_packed(payload: bytes) -> None:
    assert bytes(cramjam.snappy.decompress_raw(packed(payload))) == payload


@given(st.binary(max_size=300).map(lambda some: some * 700))
def test_what_is_packed_by_others_is_the_same(payload: bytes) -> None:
    told = exporting.packer()(payload)

    assert bytes(cramjam.snappy.decompress_raw(told)) == payload
    assert len(payload) < 2000 or len(told) < len(payload) / 5


def test_without_others_it_is_packed_by_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)

    assert exporting.packer() is packed


@given(st.binary(max_size=64))
def test_any_answer_can_be_looked_into(answer: bytes) -> None:
    assert isinstance(protobuf.read(answer), dict)
