# SPDX-License-Identifier: Apache-2.0
"""All of it together: a node joins at the real listener, and its agent's poster goes by the membership through renewals, revocation and restarts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from muster.collect.post import Address, Fate, Posted, Poster
from muster.domain.model.access import Reach, Scope, Speaker
from muster.domain.model.errors import MusterError
from muster.interfaces.ingest.listener import Ingest
from muster.services.enrolment import Enrolment
from muster.store import open_store
from muster.wire.report import AnswerDoc, NodeDoc, ReportDoc, unpack
from muster.wiring.authority import Authority, dice, state_of
from muster.wiring.joining import join, renew
from muster.wiring.membership import Membership

NODE = NodeDoc(name="gpu-1", machine_id="machine-gpu-1")


@dataclass
class Intake:
    """Takes reports that are within their speaker's bounds."""

    gate: Enrolment

    def take(self, posts: Sequence[tuple[Speaker, bytes]], now: float) -> list[AnswerDoc | MusterError]:
        del now
        return [self._one(speaker, unpack(body)) for speaker, body in posts]

    def _one(self, speaker: Speaker, report: ReportDoc) -> AnswerDoc | MusterError:
        try:
            self.gate.check(speaker, report.reporter, report.node)
        except MusterError as error:
            return error
        return AnswerDoc(answer="applied")


@contextmanager
def listening(state: Path, port: int = 0) -> Iterator[tuple[Enrolment, Authority, str]]:
    """A server's gate behind the real listener."""
    store = open_store(state / "roll.sqlite")
    authority = Authority.open(state_of(state), ["127.0.0.1"], time.time())
    gate = Enrolment(store.enrolment, authority.signer, authority.authority, authority.fingerprint, time.time(), dice)
    door = Ingest(gate, Intake(gate), time.time, authority.context(), version="1.0")
    door.start("127.0.0.1", port)
    try:
        yield gate, authority, f"https://127.0.0.1:{door.port}"
    finally:
        door.stop()
        store.close()


def posts(poster: Poster, member: Membership, node: NodeDoc = NODE) -> Posted:
    return poster(ReportDoc(reporter=member.reporter, incarnation="i", sequence=1, node=node, sent_at=time.time()))


def test_the_life_of_a_membership(tmp_path: Path) -> None:
    state = tmp_path / "agent"
    with contextlib.ExitStack() as held:
        gate, authority, url = held.enter_context(listening(tmp_path / "server"))
        token = gate.mint(Scope(reach=Reach.NODE), 1, 600, "admin", time.time())[1]
        join(state, url, authority.fingerprint, token, NODE)
        member = Membership.open(state)
        assert member is not None
        poster = held.enter_context(contextlib.closing(Poster(lambda: member.address, member=member)))
        assert posts(poster, member).fate is Fate.TAKEN
        assert posts(poster, member, NodeDoc(name="gpu-2")).fate is not Fate.TAKEN
        renew(state)
        told = [posts(poster, member).fate for _ in range(2)]
        assert told[-1] is Fate.TAKEN, "the token of the old key is refused once, then there is one of the new key"
        gate.revoke("gpu-1", "op", "", time.time())
        told = [posts(poster, member).fate for _ in range(3)]
        assert set(told) == {Fate.LATER}, "its reports wait: an operator may let it in again"
        assert "was revoked" in member.trouble


def test_a_server_that_comes_back_knows_its_reporters_and_whom_it_revoked(tmp_path: Path) -> None:
    members = []
    with listening(tmp_path / "server") as (gate, authority, url):
        for name in ("gpu-1", "gpu-2"):
            token = gate.mint(Scope(reach=Reach.NODE), 1, 600, "admin", time.time())[1]
            node = NodeDoc(name=name)
            join(tmp_path / name, url, authority.fingerprint, token, node)
            member = Membership.open(tmp_path / name)
            assert member is not None
            headers = member.headers()
            members.append((member, node, headers))
        gate.revoke("gpu-2", "op", "", time.time())
    port = int(url.rpartition(":")[2])
    with listening(tmp_path / "server", port):
        found = []
        for member, node, headers in members:
            address = member.address
            with contextlib.closing(Poster(partial(Address, address.url), member=member)) as poster:
                found.append(posts(poster, member, node).fate)
            assert node.name == "gpu-2" or headers == member.headers()
    assert found == [Fate.TAKEN, Fate.LATER]


@pytest.mark.slow
def test_many_nodes_join_at_once_and_each_is_one(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with listening(tmp_path / "server") as (gate, authority, url):
        token = gate.mint(Scope(reach=Reach.NODE), 40, 600, "admin", time.time())[1]

        def comes(number: int) -> str:
            return join(tmp_path / f"n{number}", url, authority.fingerprint, token, NodeDoc(name=f"n{number}")).reporter

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(comes, range(40)))
        assert sorted(found) == sorted(each.reporter for each in gate.members())
        assert len(set(found)) == 40
        assert gate.tokens(time.time()) == []
