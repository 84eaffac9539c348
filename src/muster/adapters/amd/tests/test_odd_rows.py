# SPDX-License-Identifier: Apache-2.0
"""Rows whose GPU number does not read: the others stand, and the listing is not whole. All values are ours."""

from __future__ import annotations

import json

import pytest

from muster.adapters.amd import interpret, recognise
from muster.domain.decide.fold import fold
from muster.domain.model.observation import Interpretation
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Capture, SourceId

BLOCK = "GPU: {}\n    ASIC:\n        MARKET_NAME: AMD Instinct MI210\n    BUS:\n        BDF: 0000:{}:00.0\n\n"
TEXT = BLOCK.format(0, 43) + BLOCK.format(1, 83)
SUMMARY = """\
======================== ROCm System Management Interface ========================
GPU  Temp   AvgPwr  SCLK    MCLK    Fan     Perf  PwrCap  VRAM%  GPU%
0    35.0c  39.0W   930Mhz  350Mhz  21.96%  auto  225.0W    3%   0%
1    71.0c  201.0W  1440Mhz 945Mhz  41.18%  auto  225.0W   88%   99%
============================ End of ROCm SMI Log =================================
"""


def read(text: str | bytes) -> Interpretation:
    payload = text if isinstance(text, bytes) else text.encode()
    return interpret([Capture(source=SourceId("t"), locator=(), format=recognise(payload) or "", payload=payload)], {})


@pytest.mark.parametrize(
    ("whole", "odd"),
    [
        (TEXT, TEXT.replace("GPU: 1", "GPU: -")),
        (TEXT, TEXT.replace("GPU: 1", "GPU: ")),
        (TEXT, TEXT.replace("GPU: 1", "xGPU: 1")),
        (SUMMARY, SUMMARY.replace("1    71.0c", "-    71.0c")),
        (SUMMARY, SUMMARY.replace("1    71.0c", "1    71.0c  x")),
        (
            json.dumps(
                [
                    {"gpu": 0, "bdf": "0000:43:00.0", "uuid": "a1ff74a1-0000-1000-80b2-c3d4e5f60718"},
                    {"gpu": 1, "bdf": "0000:83:00.0", "uuid": "b2ff74a1-0000-1000-80b2-c3d4e5f60719"},
                ]
            ),
            None,
        ),
        (json.dumps({"card0": {"GPU use (%)": "5", "Unique ID": "0x1a2b"}, "card1": {"GPU use (%)": "6", "Unique ID": "0x3c4d"}}), None),
    ],
)
def test_a_row_that_does_not_read_is_missed(whole: str, odd: str | None) -> None:
    odd = odd if odd is not None else whole.replace('"gpu": 1', '"gpu": "N/A"').replace('"card1"', '"c1"')

    assert (len(fold(read(whole).observations)), read(whole).complete) == (2, True)
    assert not read(odd).complete
    assert 1 <= len(fold(read(odd).observations)) <= 2


def test_blocks_of_processors_and_network_cards_are_not_missed() -> None:
    assert read(TEXT + "CPU: 0\n    POWER:\n        SOCKET_POWER: 90 W\n").complete


def test_a_clock_table_with_a_row_that_does_not_read_has_no_maximum() -> None:
    root = "/sys/class/drm/card0/device"
    rows = ("vendor: 0x1002", "uevent: DRIVER=amdgpu", "uevent: PCI_SLOT_NAME=0000:03:00.0", "pp_dpm_sclk: 0: 500Mhz *", "pp_dpm_sclk: 1: 900Mhz")
    tree = "".join(f"{root}/{row}\n" for row in rows)
    (card,) = fold(read(tree).observations)
    (odd,) = fold(read(tree.replace("1: 900Mhz", "1: N/A")).observations)

    assert card.readings["clock.core.max"] == Known(900_000_000)
    assert odd.readings["clock.core.max"] == Absent(Why.UNREADABLE, "1: N/A")
    assert odd.readings["clock.core"] == Known(500_000_000)
