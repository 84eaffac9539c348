# SPDX-License-Identifier: Apache-2.0
"""The driver's lines in the kernel log."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from muster.domain.model.attributes import Level
from muster.domain.model.source import Outcome

if TYPE_CHECKING:
    from muster.adapters.nvidia.tests.conftest import Ask


@pytest.mark.parametrize(
    ("line", "code", "address"),
    [
        ("NVRM: Xid (PCI:0000:4e:00): 13, pid=77, name=python3, Graphics Exception", "13", "0000:4e:00.0"),
        ("NVRM: Xid (0000:04:00): 14, Channel 00000002", "14", "0000:04:00.0"),
        ("[ 12.345678] NVRM: Xid (PCI:00000018:01:00.0): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 03", "149", "0018:01:00.0"),
        ("kern  :warn  : [Mon May  4 05:06:07 2026] NVRM: Xid (PCI:0000:C1:00): 031, pid='<unknown>'", "31", "0000:c1:00.0"),
        ("4,1,2,-;NVRM: Xid (PCI:0000:4e:00): 99999, a code of tomorrow", "99999", "0000:4e:00.0"),
        ("May 04 05:06:07 box kernel: NVRM: Xid (PCI:0000:10:1c): 63, pid=9, Row Remapper", "63", "0000:10:1c.0"),
        ("NVRM: Xid (PCI:0000:00:00): 149, the driver did not know the card", "149", None),
    ],
)
def test_codes_and_addresses(ask: Ask, line: str, code: str, address: str | None) -> None:
    told = ask(line + "\n")
    assert told.told.outcome is Outcome.DEVICES
    assert told.events == [("xid", code, address)]
    assert told.told.events[0].text.startswith("NVRM: Xid")
    assert told.told.events[0].subject.level is Level.CARD


def test_switch_codes_are_a_family_of_their_own(ask: Ask) -> None:
    told = ask("nvidia-nvswitch1: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 05 egress non-posted PRIV error\n")
    assert told.events == [("sxid", "12028", "0000:85:00.0")]


def test_the_log_names_the_card_before_its_code(ask: Ask) -> None:
    told = ask(
        "NVRM: GPU at PCI:0000:4e:00: GPU-1b2c3d4e-5f60-4172-8394-a5b6c7d8e9f0\nNVRM: GPU Board Serial Number: 1320055512345\n"
        "NVRM: Xid (PCI:0000:4e:00): 79, pid=0, GPU has fallen off the bus.\nNVRM: GPU 0000:4e:00.0: GPU has fallen off the bus.\n"
    )
    assert len(told.told.events) == 1
    names = {name.kind.value: name.value for name in told.told.events[0].subject.names}
    assert names == {"pci_address": "0000:4e:00.0", "vendor_uuid": "GPU-1b2c3d4e-5f60-4172-8394-a5b6c7d8e9f0", "serial": "1320055512345"}


def test_a_card_falls_off_the_bus_without_a_code(ask: Ask) -> None:
    three = "NVRM: The NVIDIA GPU 0000:4e:00.0\nNVRM: (PCI ID: 10de:2237) installed in this system has\n"
    three += "NVRM: fallen off the bus and is not responding to commands.\n"
    told = ask(three + "NVRM: The NVIDIA probe routine failed for 1 device(s).\nNVRM: loading NVIDIA UNIX x86_64 Kernel Module  560.35.03\n")
    assert told.events == [("fallen_off_bus", None, "0000:4e:00.0"), ("probe_failed", None, None), ("driver_loaded", None, None)]
    assert told.told.events[1].subject.level is Level.NODE
    assert ask("NVRM: GPU 0000:4e:00.0: GPU has fallen off the bus.\n").events == [("fallen_off_bus", None, "0000:4e:00.0")]
    assert ask("NVRM: The NVIDIA GPU 0000:4e:00.0\nNVRM: installed in this system is not supported\n").events == []


def test_lost_lines_and_times(ask: Ask) -> None:
    limited = "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:4e:00 (printing 1 of every 30).\n"
    assert ask(limited).events == [("events_lost", None, "0000:4e:00.0")]
    told = ask("4,1,60000000,-;NVRM: Xid (PCI:0000:4e:00): 13, x\n", context={"booted_at": "2026-03-01T00:00:00+00:00"})
    assert told.told.events[0].at == datetime.fromisoformat("2026-03-01T00:01:00+00:00")
    assert ask("NVRM: Xid (PCI:0000:4e:00): 13, x\n", context={"booted_at": "no time"}).told.events[0].at is None
