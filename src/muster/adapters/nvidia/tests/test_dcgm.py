# SPDX-License-Identifier: Apache-2.0
"""Texts of the data-centre manager's own command."""

from __future__ import annotations

from muster.adapters.nvidia import interpret, recognise
from muster.domain.model.attributes import Level
from muster.domain.model.names import NameKind
from muster.domain.model.observation import Interpretation, Observation
from muster.domain.model.reading import Known
from muster.domain.model.source import Capture, Outcome, SourceId

UUIDS = ("GPU-5a0e7d10-1111-4a2b-9c3d-0123456789ab", "GPU-5a0e7d10-2222-4a2b-9c3d-0123456789ab")
RULER = "+--------+----------------------------------------------------------------------+\n"
HEADER = "| {} ID | Device Information                                                   |\n"


def _card(ident: int, bus: str, uuid: str) -> str:
    texts = (f"{ident}", "Name: NVIDIA H100 80GB HBM3"), ("", f"PCI Bus ID: 00000000:{bus}:00.0"), ("", f"Device UUID: {uuid}")
    return "".join(f"| {first:<6} | {text:<68} |\n" for first, text in texts) + RULER


LISTING = (
    f"2 GPUs found.\n{RULER}{HEADER.format('GPU')}{RULER}{_card(0, '4B', UUIDS[0])}{_card(1, 'CA', UUIDS[1])}"
    f"1 NvSwitches found.\n+-----------+\n| Switch ID |\n+-----------+\n| 7         |\n+-----------+\n0 CPUs found.\n{RULER}{HEADER.format('CPU')}{RULER}"
)
SAMPLES = """\
#Entity   GPUTL   POWER    TMPTR   FBUSD   TENSO   GRACT   EDVTL
ID                W        C
GPU 0     3       71.500   33      512     0.000   0.010   0
GPU 1     N/A     70.250   34      2048    N/A     N/A     2
GPU-I 9   50      N/A      N/A     100     0.900   0.900   N/A
GPU 0     98      611.000  64      70000   0.625   0.990   0
GPU 1     5       70.5"""
REPORT = """\
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
| Driver Version Detected   | 570.86.15                                      |
| Deployment                | Pass                                           |
| GPU Memory                | Pass - GPUs: 1, 2                              |
|                           | Fail - GPU: 0                                  |
| Warning                   | GPU 0 Clocks were held down for 7.5 seconds o  |
|                           | ver the limit, and then again later for GPU 0  |
| memory                    | Fail                                           |
|                           | GPU2: Fail                                     |
+---------------------------+------------------------------------------------+
"""
HEALTH = """\
+---------------------------+----------------------------------------------------------+
| Health Monitor Report                                                                |
+===========================+==========================================================+
| Overall Health            | Warning                                                  |
| GPU                       |                                                          |
| -> 1                      | Warning                                                  |
|    -> Errors              |                                                          |
|       -> PCIe system      | Warning                                                  |
|                           | Replays above the limit                                  |
+---------------------------+----------------------------------------------------------+
"""


def read(text: str) -> Interpretation:
    form = recognise(text.encode())
    assert form == "dcgmi-text"
    return interpret([Capture(source=SourceId(""), locator=("file",), format=form, payload=text.encode())], {})


def cards(found: Interpretation) -> list[Observation]:
    return [each for each in found.observations if each.subject.level is Level.CARD]


def ids(card: Observation) -> dict[str, str]:
    return {name.kind.value: name.canonical if name.kind is NameKind.PCI_ADDRESS else name.value for name in card.subject.names}


def test_the_list_names_cards() -> None:
    found = read(LISTING)

    assert (found.outcome, found.complete, found.counts) == (Outcome.DEVICES, True, {Level.CARD: 2})
    assert [ids(card) for card in cards(found)] == [
        {"index": "0", "pci_address": "0000:4b:00.0", "vendor_uuid": UUIDS[0]},
        {"index": "1", "pci_address": "0000:ca:00.0", "vendor_uuid": UUIDS[1]},
    ]
    assert cards(found)[0].readings["product.name"] == Known("NVIDIA H100 80GB HBM3")


def test_a_list_that_was_cut_is_partial_and_invents_nothing() -> None:
    whole = [ids(card) for card in cards(read(LISTING))]
    for place in range(LISTING.index("Device Information") + 75, LISTING.index("1 NvSwitches")):
        found = read(LISTING[:place])
        told = [ids(card) for card in cards(found)]
        assert all(card.items() <= wanted.items() for card, wanted in zip(told, whole, strict=False))
        assert len(told) == 2 or found.outcome in (Outcome.PARTIAL, Outcome.UNREADABLE)
        assert not found.complete or told == whole
    assert read(LISTING.split("2 GPUs")[0] + "0 GPUs found.\n" + RULER + "| GPU ID | Device Information |\n" + RULER).outcome is Outcome.NO_DEVICES


def test_the_last_sample_of_each_card() -> None:
    found = read(SAMPLES)
    first, second = cards(found)

    assert (found.outcome, found.complete, [ids(card) for card in (first, second)]) == (Outcome.DEVICES, False, [{"index": "0"}, {"index": "1"}])
    keys = ("utilization.core", "power.draw", "temperature.core", "memory.used", "utilization.tensor")
    assert [first.readings[key] for key in keys] == [Known(0.98), Known(611.0), Known(64), Known(70000 * 1024**2), Known(0.625)]
    assert not isinstance(second.readings["utilization.core"], Known)
    assert second.readings["power.draw"] == Known(70.25)
    assert first.vendor["GRACT"] == "0.990"


def test_reports_are_kept_as_the_vendor_s_words() -> None:
    found = read(REPORT)
    told = {ids(card)["index"]: dict(card.vendor) for card in cards(found)}

    assert sorted(told) == ["0", "1", "2"]
    assert told["0"]["dcgm GPU Memory"] == "Fail"
    assert told["0"]["dcgm Warning"] == "GPU 0 Clocks were held down for 7.5 seconds over the limit, and then again later for GPU 0"
    assert (told["1"], told["2"]) == ({"dcgm GPU Memory": "Pass"}, {"dcgm GPU Memory": "Pass", "dcgm memory": "Fail"})
    (node,) = (each for each in found.observations if each.subject.level is Level.NODE)
    assert node.vendor["dcgm Deployment"] == "Pass"
    assert node.readings["driver.version"] == Known("570.86.15")
    assert not found.complete


def test_health_report() -> None:
    found = read(HEALTH)

    assert [(ids(card), dict(card.vendor)) for card in cards(found)] == [
        ({"index": "1"}, {"dcgm health": "Warning", "dcgm PCIe system": "Warning Replays above the limit"})
    ]
    assert read(HEALTH.split("| GPU  ")[0]).outcome is Outcome.DEVICES
