# SPDX-License-Identifier: Apache-2.0
"""A second server on the same store: it reads, refuses to write and says who writes, and takes over when the first is gone. The first, come back, reads."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import pytest
from tests.faults.site import Server, server, until
from tests.faults.voices import Voice, replayed, voices, whole

SPAN = 10.0
"""Seconds for which a writer that says nothing keeps its right."""
TAKEN = SPAN + 8.0
"""Seconds in which another has taken over."""


def to(voice: Voice, other: Server) -> None:
    """The reporter goes to another server from now on."""
    voice.way.close()
    voice.port = voice.way.port = other.port


def refused(other: Server, voice: Voice) -> None:
    """It reads, and whoever wants to change something is told to go elsewhere."""
    to(voice, other)
    said = voice.post(voice.said[voice.sequence])
    assert (said.status, said.retry > 0) == (503, True), said
    assert "this one reads, and takes over when that one is gone" in said.detail or "has taken over; this one reads" in said.detail, said
    status, found = other.ask("/api/v1/acts", {"what": "set", "card": voice.serial, "values": {"asset.owner": "x"}})
    assert (status, "this one reads" in found["detail"], bool(found["hint"])) == (503, True, True), found
    assert "this one reads" in other.ready()
    assert other.get(f"cards/{voice.serial}")["readings"]["temperature.core"]["value"] == voice.sequence


def taken_over(other: Server, since: float) -> float:
    """Seconds until it writes."""
    until(lambda: not other.ready(), f"the other server takes over: {other.ready()}", TAKEN)
    return time.monotonic() - since


def story(first: Server, second: Server) -> None:
    """The first is killed, the second takes over; the first comes back and reads until the second is killed in its turn."""
    (voice,) = voices(first, 1)
    for _ in range(5):
        voice.say()
    second.start()
    refused(second, voice)
    to(voice, first)
    voice.say()

    first.kill()
    took = taken_over(second, time.monotonic())
    to(voice, second)
    replayed(voice)
    for _ in range(5):
        voice.say()
    whole(second, voice)
    first.start()
    refused(first, voice)

    second.kill()
    back = taken_over(first, time.monotonic())
    to(voice, first)
    voice.say()
    whole(first, voice)
    replayed(voice)
    assert first.checked().problems == ()
    print(f"taken over {took:.1f} s after the kill, and {back:.1f} s the second time")


@pytest.mark.slow
def test_the_second_server_of_a_state_folder_takes_over(tmp_path: Path) -> None:
    with server(tmp_path / "a", tmp_path / "state") as first:
        second = Server(tmp_path / "b", state=tmp_path / "state")
        try:
            story(first, second)
        finally:
            second.end()


@pytest.mark.slow
def test_the_second_server_of_a_database_takes_over(tmp_path: Path, postgres_store_url: str) -> None:
    with server(tmp_path / "a", database=postgres_store_url) as first:
        second = Server(tmp_path / "b", first.settings)
        shutil.copytree(first.store / "authority", second.store / "authority")
        try:
            story(first, second)
        finally:
            second.end()


@pytest.mark.slow
def test_a_writer_that_slept_finds_that_another_writes(tmp_path: Path, postgres_store_url: str) -> None:
    with server(tmp_path / "a", database=postgres_store_url) as first:
        (voice,) = voices(first, 1)
        voice.say()
        second = Server(tmp_path / "b", first.settings)
        shutil.copytree(first.store / "authority", second.store / "authority")
        try:
            second.start()
            assert first.process is not None
            first.process.send_signal(signal.SIGSTOP)
            taken_over(second, time.monotonic())
            to(voice, second)
            voice.say()
            first.process.send_signal(signal.SIGCONT)
            to(voice, first)
            said = voice.post(voice.said[voice.sequence])
            assert said.status == 503, said
            until(lambda: "this one reads" in first.ready(), "the first knows that it only reads")
            refused(first, voice)
            to(voice, second)
            voice.say()
            whole(second, voice)
            assert second.checked().problems == ()
        finally:
            second.end()
