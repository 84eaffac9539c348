# SPDX-License-Identifier: Apache-2.0
"""A membership over time: its token is renewed early, a new key takes the place of the old one, and what is wrong is said once and asked seldom."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.wiring.gatehouse import Gatehouse, come, gatehouse, post

from muster.domain.model.errors import NotAllowed, Unavailable
from muster.wiring.joining import leave, renew, status
from muster.wiring.membership import Membership, folder_of, joined


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Gatehouse]:
    with gatehouse(tmp_path / "server") as found:
        yield found


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "agent"


def test_a_token_is_asked_for_once_and_renewed_early_each_time_at_another_part_of_its_life(house: Gatehouse, state: Path) -> None:
    member = come(house, state)
    clock = 1000.0
    member.mono = lambda: clock
    first = member.headers()
    held = member._held
    assert held is not None
    assert 0.7 * 3590 <= held.renew_at - clock <= 0.9 * 3600
    clock = held.renew_at - 1
    assert member.headers() == first
    clock = held.renew_at + 1
    house.off = 3000
    assert member.headers() != first


def test_while_the_server_is_away_the_old_token_serves_until_its_end(house: Gatehouse, state: Path) -> None:
    member = come(house, state)
    clock = 1000.0
    member.mono = lambda: clock
    first = member.headers()
    house.lose = "/v1/token"
    clock = 1000.0 + 0.95 * 3600
    assert member.headers() == first
    assert "does not answer" in member.trouble
    assert status(state)["wrong"] == [member.trouble]
    clock = 1000.0 + 3600
    with pytest.raises(Unavailable):
        member.headers()
    house.lose = ""
    with pytest.raises(Unavailable):
        member.headers()
    clock += 120
    house.off = 100
    assert member.headers() != first
    assert (member.trouble, status(state)["wrong"]) == ("", [])


def test_a_revoked_node_is_told_so_and_asks_seldom(house: Gatehouse, state: Path) -> None:
    member = come(house, state)
    assert post(member)[0] == 200
    house.gate.revoke("gpu-1", "op", "", house.now())
    assert post(member)[0] == 401
    member.refused()
    with pytest.raises(NotAllowed, match="was revoked") as told:
        member.headers()
    assert "muster agent reenrol gpu-1" in told.value.hint
    before = time.monotonic()
    for _ in range(1000):
        with pytest.raises(NotAllowed):
            member.headers()
    assert time.monotonic() - before < 1.0, "no child, no request"
    assert "was revoked" in status(state)["wrong"][0]


def test_a_server_that_refuses_what_it_gave_is_not_asked_in_a_loop(house: Gatehouse, state: Path) -> None:
    member = come(house, state)
    for _ in range(3):
        member.headers()
        member.refused()
    member.headers()
    member.refused()
    with pytest.raises(NotAllowed, match="does not take the access token that it gave"):
        member.headers()


def test_a_new_key_takes_the_place_of_the_old_one_while_the_agent_runs(house: Gatehouse, state: Path) -> None:
    member = come(house, state)
    headers = member.headers()
    before = (folder_of(state) / "key").read_bytes()
    renew(state)
    assert (folder_of(state) / "key").read_bytes() != before
    assert not (folder_of(state) / "key.new").exists()
    assert post(member, headers=headers)[0] == 401
    member._held = None
    assert post(member)[0] == 200


def test_a_renewal_whose_answer_is_lost_is_found_out(house: Gatehouse, state: Path) -> None:
    member = come(house, state)
    house.lose = "/v1/renew"
    with pytest.raises(Unavailable):
        renew(state)
    house.lose = ""
    assert (folder_of(state) / "key.new").exists()
    member.refused()
    assert post(member)[0] == 200, "the agent finds by itself that the server knows the new key"
    assert not (folder_of(state) / "key.new").exists()
    house.lose = "/v1/renew"
    with pytest.raises(Unavailable):
        renew(state)
    house.lose = ""
    assert renew(state).reporter == member.reporter
    again = joined(state)
    assert post(again)[0] == 200


def test_damage_is_said_and_can_be_left(house: Gatehouse, state: Path) -> None:
    member = come(house, state)
    (folder_of(state) / "key").chmod(0o644)
    with pytest.raises(Unavailable, match="read by others"):
        member.headers()
    (folder_of(state) / "key").unlink()
    again = Membership.open(state)
    assert again is not None
    with pytest.raises(Unavailable, match="there is no key"):
        again.headers()
    (folder_of(state) / "ca.pem").write_bytes(b"x")
    again = Membership.open(state)
    assert again is not None
    with pytest.raises(Unavailable, match="pinned authority cannot be read"):
        again.headers()
    (folder_of(state) / "membership.json").write_bytes(b"{")
    with pytest.raises(Unavailable, match="cannot be read"):
        Membership.open(state)
    with pytest.raises(Unavailable, match="it is gone"):
        leave(state, tell=True)
    assert not folder_of(state).exists()


def test_the_agent_stays_light() -> None:
    heavy = "{'cryptography','joserfc','sqlalchemy','pydantic','click','structlog','httpx2','numpy'}"
    code = f"import sys, muster.wiring.joining; print({heavy} & {{name.partition('.')[0] for name in sys.modules}})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
