# SPDX-License-Identifier: Apache-2.0
"""The server is killed at any moment, while reporters post and an operator acts: what it acknowledged is there afterwards, once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.site import RUNS, Server, few, server, until
from tests.faults.voices import LOST, Voice, replayed, voices, whole
from tests.postgres import Postgres

VOICES = 4


class Operator:
    """Says who owns a card, each time another; each word with a key of its own, said again until it is acknowledged."""

    def __init__(self, server: Server, serial: str) -> None:
        self.server, self.serial = server, serial
        self.said = 0

    def say(self, ended: threading.Event) -> None:
        """One word."""
        words = {"what": "set", "card": self.serial, "by": "tester", "values": {"asset.owner": f"owner {self.said + 1}"}}
        while not ended.is_set():
            try:
                status, found = self.server.ask("/api/v1/acts", words, {"Idempotency-Key": f"word-{self.said + 1}"}, timeout=20)
            except LOST:
                time.sleep(0.05)
                continue
            if status == 200:
                self.said += 1
                return
            assert status in (409, 429, 503), found
            time.sleep(0.1)


@contextmanager
def at_work(these: Sequence[Voice], operator: Operator | None = None) -> Iterator[list[Future[None]]]:
    """All of them talk while this lasts. What goes wrong is raised at the end."""
    ended = threading.Event()

    def talk(one: Voice | Operator, pause: float) -> None:
        while not ended.is_set():
            one.say(ended)
            ended.wait(pause)

    with ThreadPoolExecutor(len(these) + 1) as hands:
        talks = [hands.submit(talk, voice, 0.01) for voice in these] + ([hands.submit(talk, operator, 0.1)] if operator else [])
        try:
            yield talks
        finally:
            ended.set()
    for each in talks:
        each.result()


def heard(these: Sequence[Voice], talks: Sequence[Future[None]]) -> None:
    """Waits until each was acknowledged something more."""
    before = [voice.sequence for voice in these]

    def more() -> bool:
        for each in talks:
            if each.done():
                each.result()
        return all(voice.sequence > was for voice, was in zip(these, before, strict=True))

    until(more, "every reporter is heard")


def killed(site: Server, these: Sequence[Voice], operator: Operator, runs: int) -> int:
    """Kills it so many times, a quarter of them while it starts; looks over the store after each. Returns how many were while it started."""
    dice, starting = random.Random(7), 0
    with at_work(these, operator) as wrong:
        for run in range(runs):
            time.sleep(dice.random() * 0.8)
            site.kill()
            if run % 4 == 3:
                site.begin()
                time.sleep(dice.random() * 1.5)
                site.kill()
                starting += 1
            found = site.checked()
            assert (found.problems, found.audit is not None and found.audit.broken) == ((), None), found
            site.start()
            heard(these, wrong)
            for voice in these:
                replayed(voice, last=3)
    return starting


def settled(site: Server, these: Sequence[Voice], operator: Operator) -> None:
    """After all of it: each says one more, so that nothing is under way; then all that was acknowledged is there, once."""
    for voice in these:
        assert voice.say()
        whole(site, voice)
        replayed(voice)
    operator.say(threading.Event())
    acts = [each["detail"]["values"]["asset.owner"] for each in site.all("audit") if each["what"] == "set"]
    assert sorted(acts) == sorted(f"owner {number}" for number in range(1, operator.said + 1))
    assert site.get("audit/verify")["whole"] is True
    assert site.checked().problems == ()


def run(site: Server, runs: int) -> None:
    """The story on one server."""
    these = voices(site, VOICES)
    for voice in these:
        voice.say()
    operator = Operator(site, these[0].serial)
    starting = killed(site, these, operator, runs)
    settled(site, these, operator)
    print(f"killed {runs} times ({starting} more while starting): {sum(each.sequence for each in these)} reports and {operator.said} acts acknowledged,")
    print(f"none lost, none doubled; {sum(each.again for each in these)} had been taken though their answer was lost")


@pytest.mark.slow
def test_a_server_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with server(tmp_path) as site:
        run(site, RUNS)


@pytest.mark.slow
def test_a_server_on_a_database_that_is_killed_loses_and_doubles_nothing(tmp_path: Path, postgres: Postgres, postgres_store_url: str) -> None:
    with server(tmp_path, database=postgres_store_url) as site:
        run(site, few(8))
