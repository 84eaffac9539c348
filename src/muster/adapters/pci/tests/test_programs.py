# SPDX-License-Identifier: Apache-2.0
"""The forms of lspci beside its plain list: records, one -v, words without numbers; and lines that do not read."""

from __future__ import annotations

from muster.adapters.pci import interpret, recognise
from muster.adapters.pci.parse_lspci import parse_lspci, strangers
from muster.domain.model.observation import Interpretation, Role
from muster.domain.model.reading import Known
from muster.domain.model.source import Capture, Outcome, SourceId

RECORDS = """\
Device:\t0000:3b:00.0
Class:\t3D controller [0302]
Vendor:\tAcme Corp. [7e59]
Device:\tAX100 [X100] [ac01]
SVendor:\tAcme Corp. [7e59]
SDevice:\tDevice [0102]
PhySlot:\t4
Rev:\ta1
Driver:\tacmeacc
Module:\tacmeacc
NUMANode:\t1

Slot:\t3c:00.0
Class:\tProcessing accelerators
Vendor:\tAcme Corp.
Device:\tAX200
Rev:\tff
"""
VERBOSE = """\
0000:00:00.0 Host bridge [0600]: Acme Corp. Device [7e57:0a01]
3b:00.0 Display controller [0380]: Acme Corp. AX200 [7e59:ac20] (rev 02)
\tFlags: bus master, fast devsel, latency 0, IRQ 147, NUMA node 1, IOMMU group 77
\tMemory at b7000000 (32-bit, non-prefetchable) [size=16M]
\tMemory at 39f000000000 (64-bit, prefetchable) [size=64G]
"""


def read(text: str) -> Interpretation:
    capture = Capture(source=SourceId("x"), locator=(), format="lspci", payload=text.encode(), context={"known_vendors": "7e59"})
    return interpret([capture], {})


def test_records() -> None:
    first, second = parse_lspci(RECORDS.encode()).values()

    assert recognise(RECORDS.encode()) == "lspci"
    assert (first.address, first.class_, first.vendor, first.device, first.subsystem_device) == ("0000:3b:00.0", "0302", "7e59", "ac01", "0102")
    assert (first.slot, first.revision, first.driver, first.numa, first.name) == ("4", "a1", "acmeacc", "1", "AX100 [X100]")
    assert (second.address, second.class_, second.gone) == ("0000:3c:00.0", "1200", True)
    assert read(RECORDS).outcome is Outcome.DEVICE_LOST


def test_records_without_an_address_are_none() -> None:
    assert parse_lspci(b"Class:\t3D controller [0302]\nVendor:\tAcme\n") == {}
    assert recognise(b"Class:\t3D controller [0302]\nVendor:\tAcme\nRev:\ta1\n") is None


def test_memory_windows_of_one_v() -> None:
    (card,) = read(VERBOSE).observations

    assert card.role is Role.ACCELERATOR
    assert card.readings["numa.node"] == Known(1)
    assert "pci.link.width" not in card.readings
    assert read(VERBOSE).complete


def test_a_small_window_is_a_screen_and_an_untold_one_is_not() -> None:
    small = VERBOSE.replace("\tMemory at 39f000000000 (64-bit, prefetchable) [size=64G]\n", "")
    untold = "\n".join(VERBOSE.splitlines()[:2]) + "\n"

    assert read(small).observations[0].role is Role.DISPLAY
    assert read(untold).observations[0].role is Role.ACCELERATOR
    assert read(untold.replace("3b:00.0 Display", "00:02.0 Display")).observations[0].role is Role.DISPLAY
    assert read(untold.replace("7e59:ac20", "1af4:1050")).observations[0].role is Role.DISPLAY


def test_a_line_that_does_not_read_is_missed() -> None:
    odd = VERBOSE + "3c:00.0 3D controller [N/A]: Acme Corp. AX100 [7e59:ac01]\n"

    assert strangers(odd.encode())
    assert not read(odd).complete
    assert not strangers(b"# lspci\n" + VERBOSE.encode() + b"00:1f.4 SMBus: Acme Corp. Device\n")
