# SPDX-License-Identifier: Apache-2.0
"""The tool's failure texts: each its own outcome, none of them "no cards, all well"."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from muster.domain.model.source import Outcome

if TYPE_CHECKING:
    from muster.adapters.nvidia.tests.conftest import Ask

UUID = "GPU-1b2c3d4e-5f60-4172-8394-a5b6c7d8e9f0"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 560.35\n", Outcome.DRIVER_UNUSABLE),
        ("Failed to initialize NVML: Driver Not Loaded\n", Outcome.DRIVER_UNUSABLE),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that\n", Outcome.DRIVER_UNUSABLE),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", Outcome.TOOL_MISSING),
        ("sh: 1: nvidia-smi: not found\n", Outcome.TOOL_MISSING),
        ("Failed to initialize NVML: Unknown Error\n", Outcome.NOT_PERMITTED),
        ("Failed to initialize NVML: Insufficient Permissions\n", Outcome.NOT_PERMITTED),
        ("Failed to initialize NVML: GPU access blocked by the operating system\n", Outcome.NOT_PERMITTED),
        ("Failed to initialize NVML: Something new\n", Outcome.DRIVER_UNUSABLE),
        ("No devices were found\n", Outcome.NO_DEVICES),
    ],
)
def test_texts(ask: Ask, text: str, outcome: Outcome) -> None:
    for told in (ask(text), ask(text, "nvidia-smi-xml"), ask("", "nvidia-smi-xml", stderr=text.encode())):
        assert told.told.outcome is outcome
        assert told.told.complete is (outcome is Outcome.NO_DEVICES)
        assert told.cards == []
        assert told.told.detail
        assert told.node == {}


def test_exit_codes_are_a_hint_where_nothing_is_printed(ask: Ask) -> None:
    assert ask("", "nvidia-smi-xml", exit_status=9).told.outcome is Outcome.DRIVER_UNUSABLE
    assert ask("", "nvidia-smi-xml", exit_status=127).told.outcome is Outcome.TOOL_MISSING
    assert ask("", "nvidia-smi-xml", exit_status=255).told.outcome is Outcome.UNREADABLE
    assert ask("", "nvidia-smi-xml", failure=Outcome.TIMED_OUT).told.outcome is Outcome.TIMED_OUT


@pytest.mark.parametrize("gap", ["", " "])
def test_a_lost_card_among_others(ask: Ask, gap: str) -> None:
    lost = f"Unable to determine the device handle for GPU{gap}0000:6B:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
    told = ask(f"GPU 0: NVIDIA A30 (UUID: {UUID})\n{lost}")
    assert told.told.outcome is Outcome.PARTIAL
    assert [told.names(card).get("pci_address") for card in told.cards] == [None, "0000:6b:00.0"]
    assert told.values("temperature.core") == [None, "!device_lost"]
    assert told.values("recovery.action") == [None, "reboot"]
    alone = ask(lost)
    assert alone.told.outcome is Outcome.DEVICE_LOST
    assert len(alone.cards) == 1
    assert ask("", "nvidia-smi-xml", stderr=lost.encode()).told.outcome is Outcome.DEVICE_LOST


def test_a_lost_card_of_a_query_and_one_that_needs_a_reset(ask: Ask) -> None:
    head = "index, uuid, temperature.gpu, power.draw [W], utilization.gpu [%]\n"
    told = ask(f"{head}0, {UUID}, 40, 50.00 W, 0 %\n1, {UUID[:-1]}1, [GPU is lost], [GPU is lost], [GPU is lost]\n")
    assert told.told.outcome is Outcome.PARTIAL
    assert told.values("power.draw") == [50, "!device_lost"]
    told = ask(f"{head}0, {UUID}, [GPU requires reset], [GPU requires reset], [GPU requires reset]\n")
    assert told.values("recovery.action") == ["reset"]


def _error(code: int, name: str = "text") -> dict[str, object]:
    return {"error": code, "name": name}


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (9, Outcome.DRIVER_UNUSABLE),
        (18, Outcome.DRIVER_UNUSABLE),
        (12, Outcome.TOOL_MISSING),
        (4, Outcome.NOT_PERMITTED),
        (17, Outcome.NOT_PERMITTED),
        (10, Outcome.TIMED_OUT),
        (15, Outcome.DEVICE_LOST),
        (20, Outcome.DRIVER_UNUSABLE),
    ],
)
def test_the_library_does_not_start(ask: Ask, code: int, outcome: Outcome) -> None:
    told = ask(json.dumps({"error": _error(code)}), "nvml-json")
    assert told.told.outcome is outcome
    assert told.told.detail == "text"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (3, "not_supported"),
        (4, "not_permitted"),
        (10, "timed_out"),
        (13, "not_supported"),
        (15, "device_lost"),
        (16, "device_lost"),
        (21, "not_sampled"),
        (26, "moved"),
        (27, "not_sampled"),
        (999, "error"),
    ],
)
def test_codes_of_refused_calls(ask: Ask, code: int, why: str) -> None:
    gpus = [{"index": 0, "uuid": UUID, "temperature_c": 40, "power_usage_mw": _error(code), "memory": _error(code)}]
    told = ask(json.dumps({"nvml_version": "12.1", "count": 1, "gpus": gpus}))
    assert told.values("power.draw") == [f"!{why}"]
    assert told.values("memory.total") == [f"!{why}"]
    assert told.values("temperature.core") == [40]


def test_cards_that_the_library_cannot_open(ask: Ask) -> None:
    good = {"index": 0, "uuid": UUID, "temperature_c": 40}
    told = ask(json.dumps({"nvml_version": "12.1", "count": 2, "gpus": [good, {"index": 1, **_error(15, "GPU is lost")}]}))
    assert told.told.outcome is Outcome.PARTIAL
    assert told.values("power.draw") == [None, "!device_lost"]
    told = ask(json.dumps({"nvml_version": "12.1", "count": 1, "gpus": [{"index": 0, **_error(4, "Insufficient Permissions")}]}))
    assert told.told.outcome is Outcome.NOT_PERMITTED
    assert told.values("power.draw") == ["!not_permitted"]
    assert ask(json.dumps({"nvml_version": "12.1", "count": 0, "gpus": []})).told.outcome is Outcome.NO_DEVICES
    short = ask(json.dumps({"nvml_version": "12.1", "count": 2, "gpus": [good]}))
    assert short.told.outcome is Outcome.PARTIAL
