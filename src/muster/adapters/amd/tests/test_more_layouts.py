# SPDX-License-Identifier: Apache-2.0
"""Layouts that come up less often: link tables, partition listings, clock levels, firmware text, values in odd spellings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.adapters.amd import interpret, recognise
from muster.adapters.amd.values import generation, hex_id, measure, text_reading, whole
from muster.domain.decide.fold import FoldedCard, fold, ids
from muster.domain.model.observation import Interpretation
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Capture, Outcome, SourceId


def read(*texts: str) -> Interpretation:
    payloads = [text.encode() for text in texts]
    return interpret([Capture(source=SourceId("t"), locator=(), format=recognise(p) or "", payload=p) for p in payloads], {})


def cards(*texts: str) -> tuple[FoldedCard, ...]:
    return fold(read(*texts).observations)


def value(card: FoldedCard, key: str) -> Any:
    reading = card.readings[key]
    return reading.value if isinstance(reading, Known) else reading.why


XGMI = """LINK METRIC TABLE:
       bdf          bit_rate max_bandwidth link_type 0000:1b:00.0 0000:2d:00.0
GPU0   0000:1b:00.0 28 Gb/s  448 Gb/s      XGMI
 Read                                                N/A          6 KB
 Write                                               N/A          5 KB
GPU1   0000:2d:00.0 28 Gb/s  448 Gb/s      XGMI
 Read                                                9 KB         N/A
"""


def test_link_table() -> None:
    one, other = cards(XGMI)

    assert ids(one.names) == {"index": "0", "pci_address": "0000:1b:00.0"}
    assert value(one, "link.peers") == {"0000:2d:00.0": "XGMI"}
    assert value(other, "link.peers") == {"0000:1b:00.0": "XGMI"}
    assert read(XGMI[: XGMI.index("GPU1")]).outcome is Outcome.PARTIAL


def test_links_in_json() -> None:
    metric = {
        "gpu": 0,
        "bdf": "0000:1b:00.0",
        "link_metrics": {"max_bandwidth": {"value": 512, "unit": "Gb/s"}, "links": [{"bdf": "0000:2d:00.0", "read": "N/A"}]},
    }
    status = {"link_status": [{"gpu": 0, "bdf": "0000:1b:00.0", "link_status": ["X", "U", "U", "D"]}]}
    (card,) = cards(json.dumps({"xgmi_metric": [metric]}), json.dumps(status))

    assert value(card, "link.speed") == 64_000_000_000
    assert value(card, "link.peers") == {"0000:2d:00.0": "XGMI"}
    assert (value(card, "link.active"), value(card, "link.total")) == (2, 3)


def test_partition_listing_in_json() -> None:
    listing = {
        "current_partition": [{"gpu_id": 0, "memory": "NPS1", "accelerator_type": "SPX", "accelerator_profile_index": 0, "partition_id": "0"}],
        "memory_partition": [{"gpu_id": 0, "memory_partition_caps": "NPS1,NPS4", "current_partition": "NPS1"}],
        "partition_profiles": [{"gpu_id": 0, "profile_index": 0, "accelerator_type": "SPX"}],
    }
    (card,) = cards(json.dumps(listing))

    assert (value(card, "partition.mode"), value(card, "partition.memory_mode")) == ("spx", "nps1")


def test_versions_go_to_every_card() -> None:
    version = [{"tool": "AMDSMI Tool", "version": "26.1.0+5df6c765", "amdsmi_library_version": "26.1.0", "rocm_version": "7.1.0", "amdgpu_version": "6.14.14"}]
    rows = [{"gpu": n, "bdf": f"0000:0{n}:00.0", "kfd_id": n} for n in (1, 2)]
    told = read(json.dumps(version), json.dumps(rows))

    assert told.tool_version == "26.1.0+5df6c765"
    assert [(value(card, "runtime.version"), value(card, "driver.version")) for card in fold(told.observations)] == [("7.1.0", "6.14.14")] * 2


def test_static_text_with_levels_firmware_and_states() -> None:
    text = """GPU: 0
    ASIC:
        MARKET_NAME: 0x7550
        NUM_COMPUTE_UNITS: 64
        TARGET_GRAPHICS_VERSION: gfx1201
    BUS:
        BDF: 0000:2d:00.0
        MAX_PCIE_SPEED: N/A
        PCIE_INTERFACE_VERSION: Gen 5
    BOARD:
        PRODUCT_NAME: Radeon RX 9070
    RAS:
        ECC_BLOCK_STATE:
            UMC: ENABLED
    CLOCK:
        SYS:
            CURRENT LEVEL: 1
            FREQUENCY_LEVELS:
                LEVEL 0: 500 MHz
                LEVEL 1: 2900 MHz
    FW_LIST:
        FW 0:
            FW_ID: SMU
            FW_VERSION: 00.104.66.00
        FW 1:
            FW_ID: VCN
            FW_VERSION: 0
"""
    (card,) = cards(text)

    assert value(card, "product.name") == "Radeon RX 9070"
    assert value(card, "pci.link.generation.max") == 5
    assert value(card, "ecc.enabled") is True
    assert (value(card, "clock.core"), value(card, "clock.core.max")) == (2_900_000_000, 2_900_000_000)
    assert value(card, "firmware.components") == {"SMU": "00.104.66.00"}
    cut = read(text[: text.index("2900 MHz")])
    assert cut.outcome is Outcome.PARTIAL
    assert "clock.core.max" not in fold(cut.observations)[0].readings


def test_bad_pages_in_text() -> None:
    text = """GPU: 0
    RETIRED:
        PAGE_ADDRESS: 0x1000
        PAGE_SIZE: 4096
        STATUS: RESERVED
        PAGE_ADDRESS: 0x2000
        PAGE_SIZE: 4096
        STATUS: RESERVED
    PENDING: No bad pages found.
    UN_RES: No bad pages found.
"""
    (card,) = cards(text)

    assert (value(card, "memory.pages_retired"), value(card, "memory.pages_retired.pending")) == (2, False)


@pytest.mark.parametrize(("given", "found"), [("0x74A1", "74a1"), ("74a1", "74a1"), ("0x0c34", "0c34"), ("0x74a11002", "74a1"), ("0x100274a1", "74a1")])
def test_pci_ids(given: str, found: str) -> None:
    assert hex_id(given) == Known(found)


@pytest.mark.parametrize(("given", "found"), [("2.5 GT/s", 1), ("16.0 GT/s PCIe", 4), ("Gen 3", 3), ({"value": 32, "unit": "GT/s"}, 5), (64, 6)])
def test_generations(given: Any, found: int) -> None:
    assert generation(given) == Known(found)


def test_odd_values() -> None:
    assert isinstance(hex_id("0xzz"), Absent)
    assert generation("7 GT/s") == Absent(Why.UNREADABLE, "7 GT/s")
    assert whole("9" * 50) is None
    assert text_reading(["a"]) == Absent(Why.UNREADABLE, "['a']")
    assert measure("power.draw", {"value": [1], "unit": "W"}) == Absent(Why.UNREADABLE, "[1]")
    assert measure("power.draw", "171,5 W") == Absent(Why.UNREADABLE, "ambiguous number: 171,5")
    assert measure("memory.used", 1e300, "MB") == Absent(Why.IMPLAUSIBLE, "1e+300")
    assert measure("pci.replays", -1) == Absent(Why.NOT_SAMPLED, "-1")
    assert measure("power.draw", "about 12") == Absent(Why.UNREADABLE, "about 12")
    assert measure("memory.used", "10.1 GB") == Known(10844792422)


def test_csv_rows_that_do_not_fit() -> None:
    text = "device,GPU use (%),Unique ID\ncard0,3,0x51d20f6634ab9071\ncard1,4,5,6,7\n"
    one, other = cards(text)

    assert value(one, "utilization.core") == 0.03
    assert ids(other.names) == {"index": "1"}
    assert "utilization.core" not in other.readings
