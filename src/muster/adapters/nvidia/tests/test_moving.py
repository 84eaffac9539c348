# SPDX-License-Identifier: Apache-2.0
"""The short way of the library's snapshot says what the long one says, for whatever numbers the library gives."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.adapters.nvidia import library
from muster.adapters.nvidia.moving import MOVING, nvml
from muster.adapters.nvidia.tests.test_library import Binding
from muster.domain.model.attributes import Level
from muster.domain.model.reading import Known
from muster.domain.model.source import Capture
from muster.wiring.adapters import adapter

LACKS = {"error": 3, "name": "Not Supported"}
ODD = st.sampled_from([-1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, LACKS, None, True, "text"])


def number(low: int, high: int) -> st.SearchStrategy[Any]:
    return st.one_of(st.integers(low, high), st.integers(low, high), st.integers(low, high), ODD)


CARD = st.fixed_dictionaries(
    {
        "name": st.just("Stand-in 80GB"),
        "uuid": st.just("GPU-5ac0ffee-1111-4222-8333-444400000000"),
        "temperature_c": number(0, 200),
        "temperature_memory_c": number(0, 110),
        "fan_percent": number(0, 120),
        "power_usage_mw": number(0, 900_000),
        "power_instant_mw": number(0, 900_000),
        "power_average_mw": number(0, 900_000),
        "power_limit_enforced_mw": st.sampled_from([400_000, 700_000, LACKS, 0]),
        "clock_graphics_mhz": number(0, 3000),
        "clock_sm_mhz": number(0, 3000),
        "clock_memory_mhz": number(0, 9000),
        "clock_video_mhz": number(0, 3000),
        "energy_mj": number(0, 10**12),
        "utilization": st.one_of(st.fixed_dictionaries({"gpu": number(0, 110), "memory": number(0, 100)}), st.just(LACKS)),
        "encoder_percent": st.one_of(st.fixed_dictionaries({"0": number(0, 100), "1": st.integers(0, 10**6)}), st.just(LACKS)),
        "memory": st.fixed_dictionaries({"total": st.just(80 * 2**30), "used": number(0, 90 * 2**30), "free": number(0, 80 * 2**30)}),
        "processes": st.just([]),
        "mig_devices": st.just([]),
    }
)


def snapshot(cards: list[dict[str, Any]]) -> bytes:
    rows = [{"index": place, **card, "uuid": f"GPU-5ac0ffee-1111-4222-8333-44440000{place:04d}"} for place, card in enumerate(cards)]
    return json.dumps({"driver_version": "565.57.01", "count": len(rows), "gpus": rows}).encode()


def long_way(payload: bytes) -> list[dict[str, Any]]:
    """Readings of the cards as they are interpreted."""
    nvidia = adapter("nvidia")
    told = nvidia.interpret([Capture(source=nvidia.sources[0].id, locator=(), format="nvml-json", payload=payload)])
    return [dict(each.readings) for each in told.observations if each.subject.level is Level.CARD]


@given(st.lists(CARD, min_size=1, max_size=2), st.data())
def test_where_it_answers_it_says_the_same(cards: list[dict[str, Any]], data: st.DataObject) -> None:
    payload = snapshot(cards)
    told = nvml(payload)
    if told is None:
        return
    for numbers, readings in zip(told[1], long_way(payload), strict=True):
        assert {key: readings[key] for key in numbers} == {key: Known(value) for key, value in numbers.items()}

    later = snapshot(data.draw(st.lists(CARD, min_size=len(cards), max_size=len(cards))))
    again = nvml(later)
    if again is None or again[0] != told[0] or [set(each) for each in again[1]] != [set(each) for each in told[1]]:
        return
    for numbers, before, now in zip(again[1], long_way(payload), long_way(later), strict=True):
        assert {**before, **{key: Known(value) for key, value in numbers.items()}} == now


PLAIN = {
    "name": "Stand-in",
    "temperature_c": 44,
    "power_usage_mw": 61_500,
    "power_limit_enforced_mw": 400_000,
    "memory": {"total": 8 * 2**30, "used": 5, "free": 7},
}


def test_plain_numbers_go_the_short_way() -> None:
    told = nvml(snapshot([PLAIN, {**PLAIN, "temperature_c": 51}]))

    assert told is not None
    assert told[1][1] == {"power.draw": 61.5, "temperature.core": 51, "memory.used": 5, "memory.free": 7}
    assert set(MOVING) == {"nvml-json"}


@pytest.mark.parametrize(
    "odd",
    [
        {"temperature_c": 999},
        {"power_usage_mw": 900_000},
        {"memory": {"total": 8, "used": 2**63, "free": 0}},
        {"mig_devices": [{"index": 0}]},
        {"error": 15, "name": "lost"},
    ],
)
def test_what_is_not_plain_goes_the_long_way(odd: dict[str, Any]) -> None:
    assert nvml(snapshot([PLAIN, {**PLAIN, **odd}])) is None


@pytest.mark.parametrize("text", [b"[]", b'{"error": {"error": 12, "name": "x"}}', b'{"gpus": [7]}'])
def test_what_is_no_listing_goes_the_long_way(text: bytes) -> None:
    assert nvml(text) is None


def test_who_a_card_is_is_asked_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    binding = Binding()
    monkeypatch.setitem(sys.modules, "pynvml", binding)
    monkeypatch.setattr(library, "_kept", {})
    first = library.snapshot()
    asked = len(binding.calls)
    assert library.snapshot() == first
    again = binding.calls[asked:]

    assert "nvmlDeviceGetSerial" not in again
    assert {"nvmlDeviceGetUUID", "nvmlDeviceGetTemperature", "nvmlDeviceGetEnforcedPowerLimit"} <= set(again)
    monkeypatch.setattr(library, "SELDOM_S", 0.0)
    library.snapshot()
    assert binding.calls.count("nvmlDeviceGetSerial") == 2
