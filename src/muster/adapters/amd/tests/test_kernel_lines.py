# SPDX-License-Identifier: Apache-2.0
"""The driver's lines in the kernel log. All values are ours."""

from __future__ import annotations

from muster.adapters.amd import interpret, recognise
from muster.adapters.amd.parse_kernel import Line, parse
from muster.domain.model.source import Capture, SourceId

LOG = b"""[  101.000001] usb 1-1: new device
[  513.100001] amdgpu 0000:a3:00.0: amdgpu: socket: 0, die: 0 3 correctable hardware errors detected in umc block, no user action is needed.
[  513.100002] amdgpu 0000:a3:00.0: amdgpu: socket: 0, die: 0 0 uncorrectable hardware errors detected in umc block
[  514.200001] amdgpu 0000:a3:00.0: {4}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!
[  514.200002] amdgpu 0000:c3:00.0: {4}[Hardware Error]: Accelerator Check Architecture events logged
[  514.200003] amdgpu 0000:c3:00.0: {4}[Hardware Error]: aca entry[00].STATUS=0xbc00000000000117
[  514.200004] amdgpu 0000:c3:00.0: {4}[Hardware Error]: aca entry[00].ADDR=0x0000000000000a40
[  514.200005] amdgpu 0000:c3:00.0: {4}[Hardware Error]: aca entry[00].IPID=0x0000009600050f00
[  515.300001] amdgpu 0000:a3:00.0: amdgpu: GPU reset begin!
[  516.300001] amdgpu 0000:a3:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE
[  516.300002] amdgpu 0000:a3:00.0: amdgpu: failed to unmap legacy queue
[  541.300001] amdgpu 0000:a3:00.0: amdgpu: GPU reset(2) succeeded!
[  600.000001] amdgpu 0000:c5:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=7, emitted seq=9
[  601.000001] amdgpu 0000:c5:00.0: amdgpu: Ring gfx_0.0.0 reset failed
"""


def test_one_event_per_fact() -> None:
    told = [(line.kind, line.address, line.repeats) for line in parse(LOG)]

    assert told == [
        ("ras_corrected", "0000:a3:00.0", 1),
        ("athub_uncorrectable", "0000:a3:00.0", 1),
        ("aca_event", "0000:c3:00.0", 1),
        ("gpu_reset_begin", "0000:a3:00.0", 1),
        ("reset_detail", "0000:a3:00.0", 2),
        ("gpu_reset_ok", "0000:a3:00.0", 1),
        ("ring_timeout", "0000:c5:00.0", 1),
        ("ring_reset_failed", "0000:c5:00.0", 1),
    ]


def test_a_logged_hardware_error_keeps_its_words_and_its_number() -> None:
    (event,) = (line for line in parse(LOG) if line.kind == "aca_event")

    assert event.code == "0xbc00000000000117"
    assert event.text.startswith("{4}")
    assert "IPID=0x0000009600050f00" in event.text


def test_events_of_a_capture() -> None:
    told = interpret([Capture(source=SourceId("t"), locator=(), format=recognise(LOG) or "", payload=LOG)], {})

    assert told.format == "kernel-log"
    assert not told.observations
    assert not told.complete
    assert len(told.events) == 8


def test_lines_of_others_say_nothing() -> None:
    assert list(parse(b"[1.000000] amdgpu: module loaded\n[2.000000] nothing 0000:a3:00.0: GPU reset begin!\n")) == list[Line]()
    assert recognise(b"[1.000000] usb 1-1: amdgpu\n") is None
