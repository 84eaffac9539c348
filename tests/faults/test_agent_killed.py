# SPDX-License-Identifier: Apache-2.0
"""The agent is killed at any moment, while its server comes and goes: its spool stays whole, nothing that it wrote down is lost, and little is told twice."""

from __future__ import annotations

import contextlib
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.faults.agents import NODE, agent_of
from tests.faults.site import RUNS, until

from muster.collect.spool import Spool
from muster.domain.model.access import Reach, Scope, Speaker
from muster.domain.model.errors import MusterError, Unavailable
from muster.domain.model.policy import Policy
from muster.interfaces.ingest.listener import Ingest
from muster.services.enrolment import Enrolment
from muster.services.inventory import Inventory
from muster.store import open_store
from muster.wire.report import AnswerDoc, unpack
from muster.wiring.authority import Authority, dice, state_of
from muster.wiring.joining import join


@dataclass
class Book:
    """The writer's half, which writes down what came and what became of it. ``away``: it takes nothing now."""

    inventory: Inventory
    away: bool = False
    rows: list[tuple[str, int, str]] = field(default_factory=list)

    def take(self, posts: Sequence[tuple[Speaker, bytes]], now: float) -> list[AnswerDoc | MusterError]:
        """Takes them in."""
        if self.away:
            return [Unavailable("away", hint="later")] * len(posts)
        answers = self.inventory.take(posts, now)
        for (_, body), answer in zip(posts, answers, strict=True):
            told = unpack(body)
            self.rows.append((told.incarnation, told.sequence, answer.answer if isinstance(answer, AnswerDoc) else answer.message))
        return answers


@contextlib.contextmanager
def listening(state: Path, to: Path) -> Iterator[Book]:
    """A listener with a store, and an agent's folder that has joined it."""
    with contextlib.ExitStack() as held:
        store = open_store(state / "roll.sqlite")
        held.callback(store.close)
        now = time.time()
        authority = Authority.open(state_of(state), ["127.0.0.1"], now)
        gate = Enrolment(store.enrolment, authority.signer, authority.authority, authority.fingerprint, now, dice)
        book = Book(Inventory(store.writer, Policy(), now, bounds=gate))
        door = Ingest(gate, book, time.time, authority.context(), version="test")
        door.start("127.0.0.1", 0)
        held.callback(door.stop)
        token = gate.mint(Scope(reach=Reach.NODE), 1, 600, "admin", now)[1]
        join(to, f"https://127.0.0.1:{door.port}", authority.fingerprint, token, NODE)
        yield book


def spooled(folder: Path, copy: Path) -> list[tuple[str, int]]:
    """The reports in the spool, read from a copy of it. Each must be whole."""
    shutil.rmtree(copy, ignore_errors=True)
    if not folder.is_dir():
        return []
    shutil.copytree(folder, copy)
    spool, found = Spool(copy), []
    while (kept := spool.oldest(time.time())) is not None:
        found.append((kept[1].incarnation, kept[1].sequence))
        spool.done(kept[0])
    assert not [path.name for path in copy.iterdir() if path.suffix in (".broken", ".aside")]
    return found


@pytest.mark.slow
def test_an_agent_that_is_killed_loses_nothing_and_tells_little_twice(tmp_path: Path) -> None:
    agent, random_ = agent_of(tmp_path / "agent", MUSTER_CADENCE="1"), random.Random(11)
    state = tmp_path / "agent" / "state"
    owed = set[tuple[str, int]]()
    with listening(tmp_path / "server", state) as book:
        try:
            for run in range(RUNS):
                book.away = run % 3 == 1
                agent.start()
                time.sleep(0.4 + random_.random() * 2.2)
                agent.kill()
                waiting = spooled(state / "spool", tmp_path / "copy")
                assert len(waiting) == len(set(waiting))
                owed |= set(waiting)
            book.away = False
            agent.start()
            until(lambda: book.rows and not spooled(state / "spool", tmp_path / "copy"), "all is delivered")
        finally:
            agent.kill()
        counted = Counter((incarnation, sequence) for incarnation, sequence, _ in book.rows)
        outcomes = Counter(answer for *_, answer in book.rows)
        assert set(outcomes) <= {"applied", "duplicate"}, outcomes
        assert owed <= set(counted), f"lost: {owed - set(counted)}"
        for life in {incarnation for incarnation, *_ in book.rows}:
            numbers = sorted(sequence for incarnation, sequence in counted if incarnation == life)
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), (life, numbers)
        applied = Counter((incarnation, sequence) for incarnation, sequence, answer in book.rows if answer == "applied")
        assert set(applied.values()) == {1}
        assert outcomes["duplicate"] <= RUNS, "a death makes one more copy at most"
        lives = len({life for life, *_ in book.rows})
        print(f"killed {RUNS} times: {outcomes['applied']} reports of {lives} lives applied once, {outcomes['duplicate']} told twice, {len(owed)} had waited")
