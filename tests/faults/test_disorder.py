# SPDX-License-Identifier: Apache-2.0
"""Reports that come doubled, in another order, an hour late, or once more a day later: what is known is as if they had come one after the other."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.faults.clocks import Site, site
from tests.faults.site import RUNS
from tests.faults.voices import LOST, Voice

from muster.wire.report import pack

STEP = 60.0
MANY = 36


def shown(there: Site, voice: Voice) -> dict[str, Any]:
    """What is known of a reporter's card, without the names that part it from others."""
    card = there.get(f"cards/{voice.serial}")
    history = [each for each in there.all(f"cards/{voice.serial}/history") if each["superseded_at"] is None]
    history.sort(key=lambda each: (each["at"], each["kind"]))
    events = sorted(there.all(f"events?node={voice.name}"), key=lambda each: each["text"])
    series = there.get(f"cards/{voice.serial}/series?key=temperature.core")
    return {
        "readings": {key: (each["value"], each["observed_at"]) for key, each in card["readings"].items()},
        "presence": card["presence"],
        "history": [(each["kind"], each["at"], {key: each["detail"].get(key) for key in ("was", "now")}) for each in history],
        "events": [(each["text"], each["first_at"], each["last_at"], each["repeats"]) for each in events],
        "series": {key: value for key, value in series.items() if key not in ("card", "subject")},
    }


def bodies(voice: Voice, began: float, sent: float) -> dict[int, bytes]:
    """Reports of an hour, one each minute."""
    voice.cadence = 2 * STEP
    return {number: pack(voice.report(number, began + number * STEP, sent)) for number in range(1, MANY + 1)}


def posted(voice: Voice, body: bytes) -> str:
    """The answer; it must be one. A server ends a connection on which nothing came for long: it is made anew, then."""
    try:
        said = voice.post(body)
    except LOST:
        said = voice.post(body)
    assert said.status == 200, said
    return said.answer


@pytest.mark.slow
def test_doubled_reordered_late_and_replayed_reports_change_nothing(tmp_path: Path) -> None:
    with site(tmp_path) as there:
        orders = max(2, RUNS // 10)
        ordered, *others = there.voices(1 + orders)
        began = there.now - MANY * STEP - 60
        for number, body in bodies(ordered, began, there.now).items():
            assert posted(ordered, body) == "applied", number
        want = shown(there, ordered)
        assert [each[2]["now"] for each in want["history"][1:]] == [f"v{number}" for number in range(2, (MANY + 2) // 3 + 1)], want["history"]
        dice = random.Random(3)
        told: list[tuple[Voice, dict[int, bytes]]] = [(ordered, bodies(ordered, began, there.now))]
        for seed, voice in enumerate(others):
            made = bodies(voice, began, there.now)
            order = [number for number in made for _ in range(dice.choice((1, 1, 2, 3)))]
            dice.shuffle(order)
            answers = [posted(voice, made[number]) for number in order]
            assert answers.count("applied") == MANY
            assert answers.count("duplicate") == len(order) - MANY
            found = shown(there, voice)
            for part, value in want.items():
                assert found[part] == value, (seed, part)
            told.append((voice, made))
        there.pass_(86_400)
        for voice, made in told:
            voice.known(there.now)
            before = shown(there, voice)
            for number in dice.sample(sorted(made), 20):
                assert posted(voice, made[number]) == "duplicate"
            assert shown(there, voice) == before
        print(f"{orders} other orders of {MANY} reports, doubled and an hour late: the same state as in order; a day later all of them are known")
