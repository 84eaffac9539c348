# SPDX-License-Identifier: Apache-2.0
"""Clocks that leap, of the server or of an agent: nobody is called silent for it, nothing comes in the wrong order, and it is shown."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from tests.faults.clocks import Hand, Site, site
from tests.faults.voices import Voice

from muster.wire.report import pack
from muster.wiring.clock import PATIENCE, SLEW

HOUR, YEARS = 3600.0, 10 * 365 * 86_400.0
LEAPS = [HOUR, -HOUR, YEARS, "zero"]
VOICES = 3
STEP = 60.0


def away(now: float, leap: float | str) -> float:
    """By how much a clock leaps."""
    return -now if isinstance(leap, str) else leap


def told(there: Site, voice: Voice, off: float = 0.0) -> None:
    """The next report of a voice whose clock is off by so much."""
    number = voice.sequence + 1
    made = voice.report(number, there.hand.mono + there.real + off, there.hand.mono + there.real + off)
    body = pack(msgspec.structs.replace(made, events=[]))
    said = voice.post(body)
    if said.status == 401:
        voice.known(there.now)
        said = voice.post(body)
    assert (said.status, said.answer) == (200, "applied"), said
    voice.sequence, voice.said[number] = number, body


def rounds(there: Site, these: list[Voice], seconds: float) -> None:
    """Time goes on, and everybody reports."""
    for _ in range(int(seconds / STEP)):
        there.pass_(STEP)
        for voice in these:
            told(there, voice)


def calm(there: Site, these: list[Voice]) -> None:
    """Nobody is silent or stale, every card is present with its newest number."""
    assert there.findings("source_silent") == []
    assert there.findings("card_missing") == []
    cards = {card["ids"]["serial"][0]: card for card in there.all("cards")}
    for voice in these:
        card = cards[voice.serial]
        assert card["presence"] == "present", card["presence"]
        reading = there.get(f"cards/{voice.serial}")["readings"]["temperature.core"]
        assert reading["value"] == voice.sequence
        assert not reading.get("stale"), reading


def ordered(there: Site, voice: Voice) -> None:
    """Each entry of the firmware's history begins where the one before ended; every version is there once."""
    rows = [each for each in there.all(f"cards/{voice.serial}/history") if each["kind"] == "firmware_changed" and each["superseded_at"] is None]
    rows.sort(key=lambda each: each["number"])
    now = [each["detail"]["now"] for each in rows]
    assert [each["detail"]["was"] for each in rows] == ["v1", *now[:-1]], rows
    assert now == [f"v{number}" for number in range(2, (voice.sequence + 2) // 3 + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("leap", LEAPS)
def test_the_clock_of_the_server_leaps_and_is_set_right(tmp_path: Path, leap: float | str) -> None:
    with site(tmp_path) as there:
        these = there.voices(VOICES)
        rounds(there, these, 4 * STEP)
        off = away(there.hand.wall, leap)
        there.hand.wall += off
        rounds(there, these, 300)
        calm(there, these)
        assert "leapt" in there.server.notes()["clock"]
        there.hand.wall -= off
        rounds(there, these, 120)
        calm(there, these)
        assert "clock" not in there.server.notes()
        for voice in these:
            ordered(there, voice)


@pytest.mark.slow
@pytest.mark.parametrize("leap", [HOUR, -HOUR])
def test_the_clock_of_the_server_is_set_for_good(tmp_path: Path, leap: float) -> None:
    """It is followed little by little: nobody is silent meanwhile, however seldom they speak, and no number stands still."""
    with site(tmp_path) as there:
        these, seldom = there.voices(VOICES), there.voices(1, "seldom")[0]
        seldom.cadence = 10 * STEP
        rounds(there, [*these, seldom], STEP)
        there.hand.wall += leap
        for _ in range(int((PATIENCE + HOUR / SLEW) / (10 * STEP)) + 2):
            rounds(there, these, 9 * STEP)
            calm(there, these)
            rounds(there, [*these, seldom], STEP)
            calm(there, [*these, seldom])
        assert "clock" not in there.server.notes()
        assert there.now == there.hand.wall
        assert len(there.findings("clock_wrong")) == VOICES + 1  # the agents' clocks are the ones that are off now, and it is said of each
        print(f"the server's clock was set by {leap:.0f} s for good: every agent is said to be off, none is silent")


@pytest.mark.slow
@pytest.mark.parametrize("leap", [YEARS, "zero"])
def test_the_clock_of_the_server_is_set_too_far_to_be_followed(tmp_path: Path, leap: float | str) -> None:
    with site(tmp_path) as there:
        these = there.voices(VOICES)
        rounds(there, these, STEP)
        there.hand.wall += away(there.hand.wall, leap)
        rounds(there, these, PATIENCE + 10 * STEP)
        calm(there, these)
        assert there.findings("clock_wrong") == []
        assert "too far" in there.server.notes()["clock"]


@pytest.mark.slow
def test_a_server_that_starts_with_its_clock_set_back_goes_on_from_what_it_wrote(tmp_path: Path) -> None:
    hand = Hand()
    with site(tmp_path, hand) as there:
        these = there.voices(VOICES)
        rounds(there, these, 4 * STEP)
        before, real = there.now, there.real
        hand.wall -= HOUR
        there.after.clear()
    with site(tmp_path, hand) as there:
        there.after.extend(these)
        there.real = real
        assert there.now >= before
        assert there.server.ingest is not None
        for voice in these:
            voice.close()
            voice.way.port = there.server.ingest.port
        rounds(there, these, 10 * STEP)
        calm(there, these)
        assert "behind" in there.server.notes()["clock"]


@pytest.mark.slow
@pytest.mark.parametrize("leap", LEAPS)
def test_the_clock_of_an_agent_leaps(tmp_path: Path, leap: float | str) -> None:
    with site(tmp_path) as there:
        these = there.voices(3)
        rounds(there, these, 4 * STEP)
        one, others = these[0], these[1:]
        off = away(there.hand.wall, leap)
        for _ in range(10):
            there.pass_(STEP)
            told(there, one, off)
            for voice in others:
                told(there, voice)
        calm(there, these)
        (finding,) = there.findings("clock_wrong")
        assert one.reporter in finding["about"]
        assert abs(finding["evidence"]["skew_s"] + off) < 2
        seen = there.get(f"cards/{one.serial}")["readings"]["temperature.core"]
        assert 0 <= seen["age"] < 5, seen
        ordered(there, one)
        rounds(there, these, 120)
        calm(there, these)
        assert there.findings("clock_wrong") == []
        for voice in these:
            ordered(there, voice)


@pytest.mark.slow
@pytest.mark.parametrize("leap", LEAPS)
def test_what_waited_while_the_agents_clock_leapt_has_its_times(tmp_path: Path, leap: float | str) -> None:
    """Its rounds were seen before the leap and are sent after: the monotonic clock says how long ago that was."""
    with site(tmp_path) as there:
        (voice,) = there.voices(1)
        voice.cadence = 60.0
        rounds(there, [voice], 2 * STEP)
        off = away(there.hand.wall, leap)
        waiting = []
        for step in range(1, 7):
            there.pass_(60)
            number, wall, mono = voice.sequence + step, there.hand.wall, there.hand.mono
            made = msgspec.structs.replace(voice.report(number, wall), events=[], boot_id=f"boot-{voice.name}")
            made.heard[0].observed_mono = mono
            waiting.append((made, wall))
        there.pass_(5)
        for made, _ in waiting:
            sent = msgspec.structs.replace(made, sent_at=max(0.0, there.hand.wall + off), sent_mono=there.hand.mono)
            said = voice.post(pack(sent))
            assert (said.status, said.answer) == (200, "applied"), said
        voice.sequence += len(waiting)
        calm(there, [voice])
        ordered(there, voice)
        rows = [each for each in there.all(f"cards/{voice.serial}/history") if each["kind"] == "firmware_changed"]
        seen = [each["at"] for each in rows]
        want = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(wall)) for made, wall in waiting if made.sequence % 3 == 1]
        assert {each[:19] for each in seen} >= set(want), (seen, want)
