# SPDX-License-Identifier: Apache-2.0
"""rocm-smi in JSON, CSV, lines and summary tables. All values are ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.adapters.amd import interpret, recognise
from muster.domain.decide.fold import FoldedCard, fold, ids
from muster.domain.model.observation import Interpretation
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Capture, Outcome, SourceId


def read(text: str) -> Interpretation:
    payload = text.encode()
    return interpret([Capture(source=SourceId("t"), locator=(), format=recognise(payload) or "", payload=payload)], {})


def cards(text: str) -> tuple[FoldedCard, ...]:
    return fold(read(text).observations)


def value(card: FoldedCard, key: str) -> Any:
    reading = card.readings[key]
    return reading.value if isinstance(reading, Known) else reading.why


CARD = {
    "Device Name": "Navi 31 [Radeon RX 7900 XT]",
    "Device ID": "0x744c",
    "Unique ID": "0x5d1a77c20b9e4410",
    "Serial Number": "N/A",
    "PCI Bus": "0000:2D:00.0",
    "Average Graphics Package Power (W)": "17.0",
    "Current Socket Graphics Package Power (W)": "N/A",
    "GPU use (%)": "20.3",
    "GPU Memory Read/Write Activity (%)": "4",
    "Memory Activity": "N/A",
    "VRAM Total Memory (B)": "21458059264",
    "VRAM Total Used Memory (B)": "805306368",
    "GTT Total Memory (B)": "66571993088",
    "pcie clock level": "1 (16.0GT/s x16)",
    "sclk clock speed:": "(500Mhz)",
    "Voltage (mV)": "6",
    "0": "2.5GT/s x1",
    "VCN firmware version": "0x00000000",
    "SMC firmware version": "00.78.92.00",
    "(Topology) Numa Node": "0",
    "(Topology) Numa Affinity": "4294967295",
}


def test_json() -> None:
    told = read(json.dumps({"card0": CARD, "system": {"Driver version": "6.14.14", "PID71": "train, 1, 1048576, 0, 0"}}))
    (card,) = fold(told.observations)

    assert told.complete
    assert ids(card.names) == {"index": "0", "pci_address": "0000:2d:00.0", "vendor_uuid": "0x5d1a77c20b9e4410"}
    assert value(card, "memory.total") == 21458059264
    assert value(card, "power.draw") == value(card, "power.draw.average") == 17
    assert value(card, "utilization.memory_bandwidth") == 0.04
    assert value(card, "voltage.core") is Why.NOT_SAMPLED
    assert value(card, "numa.node") is Why.NOT_PRESENT
    assert value(card, "firmware.components") == {"SMC": "00.78.92.00"}
    assert (value(card, "pci.link.generation"), value(card, "pci.link.width")) == (4, 16)
    assert value(card, "driver.version") == "6.14.14"
    assert value(card, "processes") == [{"pid": 71, "name": "train", "memory.used": 1048576}]


@pytest.mark.parametrize("order", [("Average", "Current Socket"), ("Current Socket", "Average")])
def test_a_later_absence_never_wipes_a_value(order: tuple[str, str]) -> None:
    told = {f"{name} Graphics Package Power (W)": "212.0" if name == "Current Socket" else "N/A" for name in order}
    (card,) = cards(json.dumps({"card0": {"GPU use (%)": "1", **told}}))

    assert value(card, "power.draw") == 212
    assert value(card, "power.draw.average") is Why.NOT_SUPPORTED


CSV = """device,Temperature (Sensor edge) (C),Average Graphics Package Power (W),Current Socket Graphics Package Power (W),GPU use (%)
card0,42.0,19.5,N/A,0
card1,44.0,N/A,208.0,96
card2,41.0,N/A,N/A,0
"""


def test_csv_with_two_columns_for_power() -> None:
    found = cards(CSV)

    assert [value(card, "power.draw") for card in found] == [19.5, 208, Why.NOT_SUPPORTED]
    assert value(found[0], "power.draw.average") == 19.5
    assert all(not (isinstance(card.readings["power.draw"], Known) and value(card, "power.draw") == 0) for card in found)


def test_csv_with_decimal_commas() -> None:
    text = CSV.replace(",", ";").replace(".", ",").replace("device,", "device;")
    found = cards(text)

    assert [value(card, "power.draw") for card in found][:2] == [19.5, 208]


def test_a_fan_at_rest_and_no_fan() -> None:
    fan = {"Fan speed (%)": "0", "Fan RPM": "0", "GPU use (%)": "0"}
    active, passive = cards(json.dumps({"card0": {"Card Series": "Navi 31 [Radeon RX 7900 XT]", **fan}, "card1": {"Card Series": "AMD Instinct MI210", **fan}}))

    assert value(active, "fan.rpm") == 0
    assert value(passive, "fan.rpm") is value(passive, "fan.speed") is Why.NOT_PRESENT


def test_a_number_is_no_name() -> None:
    (card,) = cards(json.dumps({"card0": {"Card series": "0x1002", "GPU use (%)": "0"}}))

    assert isinstance(card.readings["product.name"], Absent)


def test_long_text() -> None:
    text = (
        "============================ ROCm System Management Interface ============================\n"
        "GPU[0]\t\t: Device Name: \t\tAMD Instinct MI210\n"
        "GPU[0]\t\t: PCI Bus: 0000:C1:00.0\n"
        "GPU[0]\t\t: sclk clock level: 1: (800Mhz)\n"
        "GPU[1]\t\t: Temperature (Sensor edge) (C): 40.0\n"
        "Driver version: 6.8.5\n"
        "================================== End of ROCm SMI Log ===================================\n"
    )
    one, other = cards(text)

    assert ids(one.names)["pci_address"] == "0000:c1:00.0"
    assert value(one, "clock.core") == 800_000_000
    assert value(other, "temperature.core") == 40
    assert read(text[: text.index("Driver")]).outcome is Outcome.PARTIAL


def test_summary_tables() -> None:
    frame = "========= ROCm System Management Interface =========\n{body}========= End of ROCm SMI Log =========\n"
    oldest = "GPU  Temp   AvgPwr   SCLK     MCLK    Fan     Perf  PwrCap  VRAM%  GPU%\n0    35.0c  51.191W  1300Mhz  300Mhz  16.86%  auto  152.0W    6%   0%\n"
    newest = (
        "Device  Node  IDs              Temp        Power     Partitions          SCLK     MCLK    Fan  Perf  PwrCap       VRAM%  GPU%\n"
        "              (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)\n"
        "0       2     0x74a1,   29631  44.0°C      153.0W    NPS1, SPX, 0        132Mhz   900Mhz  0%   auto  750.0W       8%     100%\n"
        "1       3     0x74a1,   33535  N/A         N/A       N/A, N/A, 0         None     None    0%   unknown  Unsupported  0%   0%\n"
    )
    (old,) = cards(frame.format(body=oldest))
    new, silent = cards(frame.format(body=newest))

    assert (value(old, "temperature.core"), value(old, "power.draw.average"), value(old, "fan.speed")) == (35, 51.191, 0.1686)
    assert (value(new, "temperature.hotspot"), value(new, "power.draw"), value(new, "partition.mode")) == (44, 153, "spx")
    assert (value(new, "pci.device_id"), value(new, "memory.used.ratio")) == ("74a1", 0.08)
    assert all(isinstance(silent.readings[key], Absent) for key in ("temperature.hotspot", "power.draw", "power.limit", "clock.core"))


def test_peers_only_between_cards_that_are_there() -> None:
    key = "(Topology) Link type between DRM devices {} and {}"
    system = {key.format(0, 1): "PCIE", key.format(0, 7): "PCIE"}
    one, other = cards(json.dumps({"card0": {"GPU use (%)": "0"}, "card1": {"GPU use (%)": "0"}, "system": system}))

    assert value(one, "link.peers") == {"1": "PCIE"}
    assert value(other, "link.peers") == {"0": "PCIE"}


def test_a_cut_json_keeps_its_cards() -> None:
    told = read(json.dumps({f"card{n}": CARD | {"PCI Bus": f"0000:2{n}:00.0", "Unique ID": "N/A"} for n in range(3)})[:-200])

    assert told.outcome is Outcome.PARTIAL
    assert len(fold(told.observations)) == 3
