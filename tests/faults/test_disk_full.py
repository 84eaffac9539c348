# SPDX-License-Identifier: Apache-2.0
"""The disk is full, of the server or of an agent: neither ends, both say so, and both go on by themselves when there is room again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.faults.agents import MACHINE, agent_of, joined
from tests.faults.site import Server, server, until
from tests.faults.voices import Said, Voice, replayed, voices, whole

from muster.wire.report import CaptureDoc, pack

Disk = Callable[[str, int], Path]
MIB = 1024 * 1024


def heavy(voice: Voice) -> bytes:
    """The next report, with a capture that no packing makes smaller."""
    payload = os.urandom(300_000)
    capture = CaptureDoc(digest=hashlib.sha256(payload).hexdigest(), source="test.status", format="f", locator=[], taken_at=1.0, payload=payload)
    return pack(msgspec.structs.replace(voice.report(voice.sequence + 1), captures=[capture]))


def filled(voice: Voice) -> Said:
    """Posts heavy reports until one is not taken, and gives the answer to that one."""
    for _ in range(200):
        body = heavy(voice)
        said = voice.post(body)
        if said.status != 200:
            voice.pending = body
            return said
        voice.sequence += 1
        voice.said[voice.sequence] = body
    raise AssertionError("the disk was never full")


def fill(file: Path) -> None:
    """Takes all the room that is left."""
    with file.open("wb", buffering=0) as opened, contextlib.suppress(OSError):
        while opened.write(bytes(4096)):
            pass


def begun(site: Server) -> subprocess.Popen[bytes]:
    """Starts it, and returns when it answers or has ended."""
    site.begin()
    process = site.process
    assert process is not None
    told = site.runtime / "server.json"
    until(lambda: process.poll() is not None or (told.exists() and str(process.pid) in told.read_text()), "it answers or ends")
    return process


@pytest.mark.slow
def test_the_disk_of_the_server_is_full_and_has_room_again(tmp_path: Path, small_disk: Disk) -> None:
    disk = small_disk("disk", 24)
    ballast = disk / "ballast"
    ballast.write_bytes(os.urandom(8 * MIB))
    with server(tmp_path, disk / "state") as site:
        voice, other = voices(site, 2)
        for each in (voice, other):
            for _ in range(4):
                each.say()
        said = filled(voice)
        assert (said.status, "disk is full" in said.detail, said.retry > 0) == (503, True, True), said
        for _ in range(20):
            time.sleep(0.15)
            assert "disk is full" in site.ready()
            assert site.ask("/healthz")[0] == 200
            assert voice.post(voice.pending or b"").status == 503
            site.get(f"cards/{voice.serial}")
        log = len(site.log)
        assert log < 100_000, f"the log grew to {log} bytes"
        assert site.process is not None
        assert site.process.poll() is None

        ballast.unlink()
        began = time.monotonic()
        until(lambda: not site.ready(), "/readyz is well again")
        took = time.monotonic() - began
        for each in (voice, other):
            for _ in range(3):
                each.say()
            replayed(each)
            whole(site, each)
        assert site.checked().problems == ()
        print(f"{voice.sequence} reports; refused while full: {said.detail[:120]}; well {took:.1f} s after there was room; log {log} bytes")


@pytest.mark.slow
def test_the_server_is_killed_and_started_on_a_full_disk(tmp_path: Path, small_disk: Disk) -> None:
    disk = small_disk("disk", 24)
    ballast = disk / "ballast"
    ballast.write_bytes(os.urandom(8 * MIB))
    with server(tmp_path, disk / "state") as site:
        (voice,) = voices(site, 1)
        voice.say()
        filled(voice)
        site.kill()
        fill(disk / "last")
        process = begun(site)
        assert process.poll() is None, f"it serves, whatever room there is: {site.log[-2000:]}"
        assert site.ask("/healthz")[0] == 200
        assert site.get(f"cards/{voice.serial}")["readings"]["temperature.core"]["value"] == voice.sequence
        voice.close()
        fill(disk / "more")  # where it found room: what the log before the store held is in the store now
        said = filled(voice)
        assert (said.status, "disk is full" in said.detail, said.retry > 0) == (503, True, True), said
        until(lambda: "disk is full" in site.ready(), "it says so")
        assert process.poll() is None
        assert "Traceback" not in site.log
        ballast.unlink()
        until(lambda: not site.ready(), "it is well again")
        voice.say()
        replayed(voice)
        whole(site, voice)
        assert site.checked().problems == ()


@pytest.mark.slow
def test_the_disk_of_an_agent_is_full_and_has_room_again(tmp_path: Path, small_disk: Disk) -> None:
    disk = small_disk("disk", 2)
    with server(tmp_path / "server") as site:
        agent = agent_of(tmp_path / "agent", MUSTER_CADENCE="1")
        agent.environment = {**agent.environment, "MUSTER_SPOOL_MIB": "64"}
        state = disk / "state"
        joined(site, state)
        agent.program = ("-m", "muster.interfaces.agent", "--machine", str(MACHINE), "--state", str(state))
        agent.start()
        try:
            until(lambda: site.all("cards"), "the agent's cards are there")
            site.kill()
            ballast = disk / "ballast"
            fill(ballast)
            until(lambda: "cannot be written" in agent.log, "the agent says that its disk is full")
            time.sleep(3)
            assert agent.process is not None
            assert agent.process.poll() is None, agent.log[-2000:]
            assert agent.log.count("cannot be written") < 10, agent.log[-3000:]
            assert "Traceback" not in agent.log
            spooled = len(list((state / "spool").glob("*.report")))
            ballast.unlink()
            until(lambda: len(list((state / "spool").glob("*.report"))) > spooled, "it writes again")
            site.start()
            until(lambda: not list((state / "spool").glob("*.report")), "all is delivered")
            assert agent.process.poll() is None
            rows = site.all("cards")
            assert len(rows) == 8
        finally:
            agent.kill()
