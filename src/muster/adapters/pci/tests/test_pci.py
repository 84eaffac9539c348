# SPDX-License-Identifier: Apache-2.0
"""The bus: texts of lspci in their forms, the flattened tree, what is a card, and mutated captures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.adapters.pci import interpret, recognise
from muster.adapters.pci.choose import Verdict, choose
from muster.adapters.pci.function import Function, generation
from muster.adapters.pci.parse_lspci import parse_lspci
from muster.adapters.pci.parse_sysfs import parse_sysfs
from muster.domain.model.observation import Interpretation, Observation, Role
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Capture, Outcome, SourceId
from muster.readers.recorded import load_machine

MACHINES = Path(__file__).parent.parent / "machines"
KNOWN = "7e59,7e60"

NN = """\
0000:00:00.0 Host bridge [0600]: Acme Corp. Device [7e57:0a01]
0000:03:00.0 VGA compatible controller [0300]: ASPEED Technology, Inc. ASPEED Graphics Family [1a03:2000] (rev 41)
0000:18:00.0 Ethernet controller [0200]: Acme Corp. Net 10 [7e59:1572] (rev 02)
0001:3b:00.0 3D controller [0302]: Acme Corp. AX100 [Acme X100 80GB] [7e59:ac01] (rev a1)
0001:3b:00.1 Audio device [0403]: Acme Corp. Device [7e59:ac02] (rev a1)
0001:5e:00.0 Bridge [0680]: Acme Corp. Device [7e59:af01] (rev a1)
10000:af:00.0 Processing accelerators [1200]: Acme Corp. Device [7e59:ac01] (rev ff)
"""

VV = """\
3b:00.0 Display controller [0380]: Acme Corp. AX200 [7e59:ac20] (rev 02)
\tSubsystem: Acme Corp. Device [7e59:0102]
\tPhysical Slot: 4
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr+ Stepping- SERR+ FastB2B- DisINTx+
\tNUMA node: 1
\tRegion 0: Memory at 21f000000000 (64-bit, prefetchable) [size=64G]
\tRegion 2: Memory at 21f000000000 (64-bit, prefetchable) [size=2M]
\tCapabilities: [64] Express (v2) Endpoint, MSI 00
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <64us
\t\t\tClockPM- Surprise- LLActRep- BwNot- ASPMOptComp+
\t\tLnkCtl:\tASPM Disabled; RCB 64 bytes, Disabled- CommClk+
\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)
\t\tLnkCap2: Supported Link Speeds: 2.5-32GT/s, Crosslink- Retimer+ 2Retimers+ DRS-
\tKernel driver in use: acmeacc
\tKernel modules: acmeacc

af:00.0 3D controller [0302]: Acme Corp. AX100 [7e59:ac01] (rev ff) (prog-if ff)
\t!!! Unknown header type 7f
\tKernel driver in use: acmeacc
"""


def read(text: str | bytes, form: str = "lspci", known: str = KNOWN, cut: bool = False) -> Interpretation:
    payload = text.encode() if isinstance(text, str) else text
    capture = Capture(source=SourceId("x"), locator=(), format=form, payload=payload, cut=cut, context={"known_vendors": known})
    return interpret([capture], {})


def ids(told: Interpretation, role: Role | None = None) -> list[str]:
    return [name.value for each in told.observations if role is None or each.role is role for name in each.subject.names if name.kind == "pci_address"]


def values(observation: Observation) -> dict[str, object]:
    return {key: reading.value if isinstance(reading, Known) else reading.why for key, reading in observation.readings.items()}


def test_numbered_listing() -> None:
    told = read(NN)

    assert ids(told, Role.ACCELERATOR) == ["0001:3b:00.0", "10000:af:00.0"]
    assert ids(told, Role.DISPLAY) == ["0000:03:00.0"]
    assert (told.outcome, told.complete) == (Outcome.DEVICE_LOST, True)
    assert values(told.observations[1]) == {"pci.class": "0302", "pci.vendor_id": "7e59", "pci.device_id": "ac01"}
    assert told.observations[1].vendor["name"] == "Acme Corp. AX100 [Acme X100 80GB]"


def test_a_filtered_listing_is_not_complete() -> None:
    assert not read("\n".join(NN.splitlines()[1:])).complete
    assert not read(NN, cut=True).complete


def test_details() -> None:
    told = read(VV)
    first, lost = told.observations

    assert values(first) == {
        "pci.class": "0380",
        "pci.vendor_id": "7e59",
        "pci.device_id": "ac20",
        "pci.subsystem_vendor_id": "7e59",
        "pci.subsystem_device_id": "0102",
        "pci.link.generation": 4,
        "pci.link.generation.max": 5,
        "pci.link.width": 8,
        "pci.link.width.max": 16,
        "numa.node": 1,
        "driver.name": "acmeacc",
    }
    assert {name.kind: name.value for name in first.subject.names} == {"pci_address": "0000:3b:00.0", "chassis_slot": "4"}
    assert first.role is Role.ACCELERATOR
    assert lost.readings["pci.link.width"] == Absent(Why.DEVICE_LOST, "the device does not answer on the bus")
    assert values(lost)["driver.name"] == "acmeacc"


def test_other_forms_of_a_line() -> None:
    text = '3b:00.0 0302: 7e59:ac01 (rev a1)\n09:00.0 "Display controller [0380]" "Acme [7e59]" "Z1 [K1] [6320]" -r0a "Acme [7e59]" "Device [0011]"\n'
    words = "3d:00.0 Processing accelerators: Acme Technologies Co., Ltd. Device d801 (rev 20)\n0001:3e:00.0 3D controller: Acme AX100 (rev ff)\n"

    found = parse_lspci((text + words).encode())

    assert [(f.address, f.class_, f.vendor, f.device, f.revision) for f in found.values()] == [
        ("0000:3b:00.0", "0302", "7e59", "ac01", "a1"),
        ("0000:09:00.0", "0380", "7e59", "6320", "0a"),
        ("0000:3d:00.0", "1200", "", "d801", "20"),
        ("0001:3e:00.0", "0302", "", "", "ff"),
    ]
    assert (found["0000:09:00.0"].name, found["0000:09:00.0"].subsystem_device) == ("Z1 [K1]", "0011")


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (Function("a", class_="120000", vendor="ffff"), Verdict.CARD),
        (Function("a", class_="088000", vendor="7e59", largest_bar=1 << 34), Verdict.CARD),
        (Function("a", class_="118000", vendor="7e59", largest_bar=1 << 19, accel=True), Verdict.CARD),
        (Function("a", class_="088000", vendor="7e59", largest_bar=1 << 14), Verdict.NEITHER),
        (Function("a", class_="088000", vendor="7e59"), Verdict.UNDECIDED),
        (Function("a", class_="088000", vendor="ffff", largest_bar=1 << 34), Verdict.NEITHER),
        (Function("a", class_="0880"), Verdict.UNDECIDED),
        (Function("a", class_="020000", vendor="7e59", largest_bar=1 << 34), Verdict.NEITHER),
        (Function("a", class_="068000", vendor="7e59", largest_bar=1 << 34), Verdict.NEITHER),
        (Function("a", class_="120000", vendor="7e59", virtual_of="0000:01:00.0"), Verdict.NEITHER),
        (Function("a", class_="120000", vendor="7e59", driver="acme_zip"), Verdict.NEITHER),
        (Function("a", class_="1200", vendor="7e59", name="Acme ZIP Engine"), Verdict.NEITHER),
    ],
)
def test_what_is_a_card(function: Function, verdict: Verdict) -> None:
    assert choose(function, {"7e59"}) is verdict


def test_virtual_displays_are_displays() -> None:
    told = read(
        "00:01.0 Display controller [0380]: Red Hat, Inc. Virtio 1.0 GPU [1af4:1050] (rev 01)\n00:02.0 VGA compatible controller [0300]: Device [1234:1111]\n"
    )

    assert (ids(told, Role.ACCELERATOR), len(ids(told, Role.DISPLAY)), told.outcome) == ([], 2, Outcome.NO_DEVICES)


def test_generations() -> None:
    speeds = ("2.5 GT/s PCIe", "5 GT/s", "8.0 GT/s", "16GT/s", "32.0 GT/s PCIe", "64.0 GT/s PCIe", "Unknown", "7 GT/s")

    assert [generation(speed) for speed in speeds] == [1, 2, 3, 4, 5, 6, None, None]


def test_tree_marks() -> None:
    base = "/sys/bus/pci/devices/0000:3b:00.0"
    told_of = ("class: 0x120000", "vendor: 0x7e59", "current_link_width: !not_permitted", "numa_node: -1", "max_link_width: 300", "max_link_speed: fast")
    text = "".join(f"{base}/{line}\n" for line in told_of)

    told = read(text, "sysfs-tree")
    found = values(told.observations[0])

    assert (found["pci.link.width"], found["numa.node"], found["pci.link.generation.max"], found["pci.link.width.max"]) == (
        Why.NOT_PERMITTED,
        Why.NOT_PRESENT,
        Why.UNREADABLE,
        Why.UNREADABLE,
    )
    assert told.observations[0].vendor["current_link_width"] == "!not_permitted"
    assert parse_sysfs(b"/sys/bus/pci/devices/0000:3b:00.0/device: !error ENODEV\n")["0000:3b:00.0"].gone


def test_recognised() -> None:
    tree = (MACHINES / "no-accelerator" / "sysfs.txt").read_bytes()

    assert [recognise(head) for head in (NN.encode(), VV.encode(), tree, b"", b"hello\nworld\n", b"/sys/class/drm/card0/device/vendor: 0x7e59\n")] == [
        "lspci",
        "lspci",
        "sysfs-tree",
        None,
        None,
        None,
    ]


@pytest.mark.parametrize("machine", sorted(path.name for path in MACHINES.iterdir()))
def test_machines(machine: str) -> None:
    captures = load_machine(MACHINES / machine).captures
    (expected,) = json.loads((MACHINES / machine / "expected.json").read_text())
    told = interpret(captures, {})

    assert (told.outcome, told.complete, ids(told)) == (
        expected["outcome"],
        expected["complete"],
        [card["ids"]["pci_address"] for card in expected["cards"]],
    )


def test_nothing_to_read() -> None:
    assert [read(text).outcome for text in ("", "hello", "\x00" * 100)] == [Outcome.UNREADABLE] * 3


@pytest.mark.parametrize("form", ["lspci", "sysfs-tree"])
def test_mutated_captures_never_raise(form: str) -> None:
    whole = NN + VV if form == "lspci" else (MACHINES / "one-of-two-lost" / "sysfs.txt").read_text()
    data = whole.encode()
    good = set(ids(read(data, form)))

    for cut in range(0, len(data), 37):
        assert set(ids(read(data[:cut], form))) <= good | {""}
    for turn in range(60):
        spoiled = bytearray(data)
        for step in range(5):
            spoiled[(turn * 7919 + step * 104729) % len(spoiled)] = (turn * 31 + step * 57) % 256
        read(bytes(spoiled), form)
    doubled = "".join(line + "\r\n" + line + "\r\n" for line in whole.splitlines()).encode()
    assert set(ids(read(doubled, form))) == good
    assert set(ids(read(b"\x1b[1m" + data.replace(b"\n", b"\x00\n"), form))) == good
    read(b"x" * (1 << 20), form)
