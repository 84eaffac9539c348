# SPDX-License-Identifier: Apache-2.0
"""The node's own files."""

from __future__ import annotations

from muster.collect.node import FORMAT, NodeAdapter, node_of
from muster.domain.model.names import NameKind
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Capture, Outcome, SourceId
from muster.wire.report import NodeDoc

WHOLE = b"""/etc/machine-id: 5d6f00aa11bb22cc33dd44ee55ff6677
/etc/os-release: NAME="Testos"
/etc/os-release: PRETTY_NAME="Testos 7 (seven)"
/proc/meminfo: MemTotal:       16384 kB
/proc/meminfo: MemFree:        99 kB
/proc/sys/kernel/hostname: node-9
/proc/sys/kernel/osrelease: 6.1.0-7
/proc/sys/kernel/random/boot_id: 0f0e0d0c-1111-4222-8333-444455556666
/sys/devices/system/cpu/online: 0-3,8
/sys/class/dmi/id/product_name: Box 2000
/sys/class/dmi/id/product_serial: SN77A1
/sys/class/dmi/id/product_uuid: 4c4c4544-0051-3510-8057-b5c04f4d3232
/sys/class/dmi/id/sys_vendor: Acme
"""


def capture(payload: bytes, failure: Outcome | None = None) -> Capture:
    return Capture(source=SourceId("node.files"), locator=(), format=FORMAT, payload=payload, failure=failure, detail="why")


def test_everything_a_root_reads() -> None:
    told = NodeAdapter().interpret([capture(WHOLE)])
    (node,) = told.observations

    assert {n.kind: n.value for n in node.subject.names} == {
        NameKind.HOSTNAME: "node-9",
        NameKind.MACHINE: "5d6f00aa11bb22cc33dd44ee55ff6677",
        NameKind.SYSTEM: "4c4c4544-0051-3510-8057-b5c04f4d3232",
    }
    assert node.readings["node.os"] == Known("Testos 7 (seven)")
    assert node.readings["node.cpu.count"] == Known(5)
    assert node.readings["node.memory.total"] == Known(16384 * 1024)
    assert node.readings["server.serial"] == Known("SN77A1")
    assert (told.outcome, told.complete) == (Outcome.NO_DEVICES, False)


def test_what_is_not_permitted_or_names_nothing_is_left_out_of_the_names() -> None:
    text = b"""/proc/sys/kernel/hostname: node-9
/sys/class/dmi/id/product_serial: To be filled by O.E.M.
/sys/class/dmi/id/product_uuid: !not_permitted
/sys/devices/system/cpu/online: 0-x
/proc/meminfo: MemTotal: lots
"""
    (node,) = NodeAdapter().interpret([capture(text)]).observations

    assert node_of([capture(text)]) == NodeDoc(name="node-9")
    assert node.readings["server.uuid"] == Absent(Why.NOT_PERMITTED, "!not_permitted")
    assert node.readings["server.serial"] == Absent(Why.NOT_REPORTED, "To be filled by O.E.M.")
    assert node.readings["node.cpu.count"] == Absent(Why.UNREADABLE, "0-x")
    assert node.readings["node.memory.total"] == Absent(Why.UNREADABLE, "MemTotal: lots")
    assert "node.kernel" not in node.readings


def test_the_serial_stands_in_for_the_uuid() -> None:
    assert node_of([capture(b"/sys/class/dmi/id/product_serial: SN77A1\n")]).system == "SN77A1"
    assert node_of([capture(b"/proc/device-tree/serial-number: 1000000abc\0\n")]).system == "1000000abc"


def test_nothing_and_failure_and_noise() -> None:
    adapter = NodeAdapter()

    assert adapter.interpret([capture(b"")]).observations == ()
    assert adapter.interpret([capture(b"", Outcome.TIMED_OUT)]).outcome is Outcome.TIMED_OUT
    assert adapter.interpret([capture(b"\x00\xff: \xfe\n: :\nno colon")]).observations == ()
    assert adapter.recognise(WHOLE) == FORMAT
    assert adapter.recognise(b"anything else") is None
