# SPDX-License-Identifier: Apache-2.0
"""Events of the kernel's own sentences, in every style of log, folded, and from mutated captures."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from muster.adapters.kernel_log import interpret, recognise
from muster.adapters.kernel_log.parse_lines import parse_line
from muster.domain.model.attributes import Level
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, Outcome, SourceId
from muster.formats.kernel_log import Entry
from muster.readers.recorded import load_machine

MACHINES = Path(__file__).parent.parent / "machines"

OLD_AER = """\
[ 3107.218840] pcieport 0000:40:03.1: AER: Corrected error received: id=4019
[ 3107.218857] pcieport 0000:40:03.1: PCIe Bus Error: severity=Corrected, type=Physical Layer, id=4019(Receiver ID)
[ 3107.218871] pcieport 0000:40:03.1:   device [7e57:1a2b] error status/mask=00000040/00006000
[ 3107.218902] pcieport 0000:40:03.1:    [ 6] Bad TLP
[ 3311.000417] pcieport 0000:40:03.1: AER: Uncorrected (Fatal) error received: id=4019
[ 3311.000433] pcieport 0000:40:03.1: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, id=4019(Receiver ID)
[ 3311.000490] pcieport 0000:40:03.1:    [18] Malformed TLP          (First)
[ 3311.000552] acme 0000:43:00.0: device has no AER-aware driver
"""


def read(text: str | bytes, **context: str) -> Interpretation:
    payload = text.encode() if isinstance(text, str) else text
    return interpret([Capture(source=SourceId("x"), locator=(), format="kernel-log", payload=payload, context=context)], {})


def told(text: str | bytes) -> list[tuple[object, ...]]:
    return [(e.kind, e.code, next((n.value for n in e.subject.names), e.subject.level), e.repeats) for e in read(text).events]


def test_an_error_of_several_lines_is_one_event() -> None:
    assert told(OLD_AER) == [
        ("aer", "corrected", "0000:40:03.1", 1),
        ("aer", "fatal", "0000:40:03.1", 1),
        ("aer", "no_aware_driver", "0000:43:00.0", 1),
    ]
    assert read(OLD_AER).events[1].text == "PCIe Bus Error: severity=fatal, type=Transaction Layer: Malformed TLP"


def test_the_requester_is_not_the_device() -> None:
    text = "[1.000001] pcieport 0000:00:01.1: AER: Corrected error received: 0000:00:00.0\n"
    lines = "[1.000002] acme 0000:09:00.0: AER: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)\n"

    assert told(text) == [("aer", "corrected", "0000:00:01.1", 1)]
    assert told(text + lines) == [("aer", "corrected", "0000:09:00.0", 1)]


def test_severities_of_other_kernels() -> None:
    text = "".join(
        f"[{n}.000000] acme 0000:09:00.0: PCIe Bus Error: severity={word}, type=Transaction Layer, (Requester ID)\n"
        for n, word in enumerate(("Correctable", "Uncorrectable (Non-Fatal)", "Uncorrected (Non-Fatal)", "Uncorrectable (Fatal)"))
    )

    assert told(text) == [("aer", "corrected", "0000:09:00.0", 1), ("aer", "nonfatal", "0000:09:00.0", 2), ("aer", "fatal", "0000:09:00.0", 1)]


STYLES = {
    "kmsg": "4,1234,52904118207,-;{}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:60:01.2\n",
    "seconds": "[52904.118207] {}\n",
    "raw level": "<4>[52904.118207] {}\n",
    "caller": "[52904.118207][ T1234] {}\n",
    "decoded": "kern  :err   : [52904.118207] {}\n",
    "ctime": "[Tue Mar  4 07:21:09 2025] {}\n",
    "iso": "2025-03-04T07:21:09,118207+00:00 {}\n",
    "short": "Mar  4 07:21:09 node-a kernel: {}\n",
    "short-iso": "2025-03-04T07:21:09+0000 node-a kernel: {}\n",
    "short-full": "Tue 2025-03-04 07:21:09 UTC node-a kernel: {}\n",
    "short-monotonic": "[52904.118207] node-a kernel: {}\n",
    "syslog with uptime": "Mar  4 07:21:09 node-a kernel: [52904.118207] {}\n",
    "time": "07:21:09  {}\n",
    "none": "{}\n",
}


@pytest.mark.parametrize("style", STYLES)
def test_styles(style: str) -> None:
    text = STYLES[style].format("INFO: task acme-mon:3318 blocked for more than 120 seconds.")
    text += STYLES[style].format("pcieport 0000:60:01.2: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)")
    text += STYLES[style].format("pcieport 0000:60:01.2:    [12] Timeout")

    assert recognise(text.encode()) == "kernel-log"
    assert told(text) == [("hung_task", None, Level.NODE, 1), ("aer", "corrected", "0000:60:01.2", 1)]
    assert read(text).events[1].text.endswith(": Timeout")


def test_journal_objects() -> None:
    message = "INFO: task acme-mon:3318 blocked for more than 120 seconds."
    rows = [
        {"_TRANSPORT": "kernel", "MESSAGE": message, "__REALTIME_TIMESTAMP": "1741072869118207", "_BOOT_ID": "x"},
        {"_TRANSPORT": "kernel", "MESSAGE": list(b"EDAC MC0: 1 UE on DIMM \xff"), "__REALTIME_TIMESTAMP": "x"},
        {"_TRANSPORT": "syslog", "MESSAGE": message},
        {"_TRANSPORT": "kernel", "MESSAGE": None},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows) + '{"broken\n' + "[" * 2000 + "\n"

    assert told(text)[:2] == [("hung_task", None, Level.NODE, 1), ("edac", "uncorrected", Level.NODE, 1)]
    assert read(text).events[0].at == datetime(2025, 3, 4, 7, 21, 9, 118207, UTC)


def test_times() -> None:
    line = "[100.500000] INFO: task a:1 blocked for more than 120 seconds.\n"

    assert read(line).events[0].at is None
    assert read(line, booted_at="2026-01-01T00:00:00+00:00").events[0].at == datetime(2026, 1, 1, 0, 1, 40, 500000, UTC)
    assert read(line, booted_at="yesterday").events[0].at is None
    assert read("[Sat Feb 30 18:38:44 2024] INFO: task a:1 blocked for more than 120 seconds.\n").events[0].at is None


def test_repeats_are_folded_whatever_varies() -> None:
    text = "".join(f"[{100 + n}.000000] INFO: task acme-mon:{6000 + n} blocked for more than {120 * (n + 1)} seconds.\n" for n in range(5))
    other = "[300.000000] INFO: task python3:77 blocked for more than 120 seconds.\n"

    assert told(text + other) == [("hung_task", None, Level.NODE, 5), ("hung_task", None, Level.NODE, 1)]
    assert told(OLD_AER * 3)[0] == ("aer", "corrected", "0000:40:03.1", 3)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [acme:41]", ("lockup", "soft", "", "")),
        ("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:", ("lockup", "rcu", "", "")),
        ("mce: [Hardware Error]: Machine check events logged", ("mce", None, "", "")),
        ("EDAC MC1: 1 CE memory read error on DIMM_A1", ("edac", "corrected", "", "")),
        ("EDAC MC1: Giving out device to module skx_edac controller", None),
        ("Memory failure: 0x7a51c: recovery action for dirty page: Recovered", ("mce", "memory_failure", "", "")),
        ("pcieport 0000:00:1c.0: pciehp: Slot(2-1): Card not present", ("hotplug", "card_not_present", "", "2-1")),
        ("xhci_hcd 0000:09:00.2: Refused to change power state, currently in D3", ("pci", "power_state", "0000:09:00.2", "")),
        ("acme 0000:3b:00.0: Unable to change power state from D3cold to D0, device inaccessible", ("pci", "power_state", "0000:3b:00.0", "")),
        ("DMAR: [DMA Write NO_PASID] Request device [3b:00.0] fault addr 0x7f00 [fault reason 0x05]", ("iommu", "fault", "3b:00.0", "")),
        ("acme 0000:3b:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0011 address=0x7f00]", ("iommu", "fault", "0000:3b:00.0", "")),
        ("acme 0000:3b:00.0: all is well", None),
    ],
)
def test_sentences(line: str, expected: tuple[str | None, ...] | None) -> None:
    said = parse_line(Entry(line))

    assert (said and (said.kind, said.code, said.address, said.slot)) == expected


def test_other_texts_are_not_claimed() -> None:
    texts = (
        b"",
        b"hello\n",
        b"Mar  4 07:21:09 node-a sshd[12]: Accepted publickey\nOct 12 18:38:45 node-a cron[13]: x\n",
        b"[    33.123] (II) Loading extension GLX\n",
        b"2020/08/10 19:09:42 something: else\n",
    )

    assert [recognise(text) for text in texts] == [None] * len(texts)


def test_outcomes() -> None:
    assert read("").outcome is Outcome.DEVICES
    assert read('{"a": 1}\n').outcome is Outcome.UNREADABLE
    assert not read(OLD_AER).complete


@pytest.mark.parametrize("machine", sorted(path.name for path in MACHINES.iterdir()))
def test_machines(machine: str) -> None:
    (document,) = json.loads((MACHINES / machine / "expected.json").read_text())
    events = interpret(load_machine(MACHINES / machine).captures, {}).events

    assert [(e.kind, e.code, e.text, e.repeats) for e in events] == [(e["kind"], e["code"], e["text"], e["repeats"]) for e in document["events"]]


def test_mutated_captures_never_raise() -> None:
    data = (MACHINES / "port-errors-and-hung-task" / "kmsg.txt").read_bytes()
    whole = told(data)

    for cut in range(0, len(data), 41):
        begun = [event[:3] for event in told(data[:cut])[:-1]]
        assert begun == [event[:3] for event in whole][: len(begun)]
    for turn in range(80):
        spoiled = bytearray(data)
        for step in range(6):
            spoiled[(turn * 7919 + step * 104729) % len(spoiled)] = (turn * 31 + step * 57) % 256
        read(bytes(spoiled))
        recognise(bytes(spoiled))
    assert told(data.replace(b"\n", b"\r\n")) == whole
    assert told(data.replace(b"pcieport", b"\x1b[33mpcieport\x1b[0m")) == whole
    assert [event[:3] for event in told(data + data)] == [event[:3] for event in whole]
    read(b"[1.000000] " + b"x" * (1 << 20))
