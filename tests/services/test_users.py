# SPDX-License-Identifier: Apache-2.0
"""Tokens on a real store: made once, kept as a digest, looked up, used, ended; each change in the audit or not at all."""

from __future__ import annotations

import hashlib
import os
import pickle
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muster.domain.model.access import Grade, Part, User
from muster.domain.model.errors import Conflict, InputError, NotAllowed, NotFound, Unavailable
from muster.services.users import COARSE_S, ENDED_S, KNOWN_S, PREFIX, Tokens
from muster.services.users_near import NearTokens
from muster.services.users_oidc import Person
from muster.spi.users import NewToken
from muster.store import open_store
from muster.store.opening import Store

T0 = 1_790_000_000.0
ROOT = User(name="root", grade=Grade.ADMIN, via="local")
DAY = 86_400.0


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the store is: what holds for one database holds for the other."""
    return tmp_path / "roll.sqlite" if request.param == "file" else str(request.getfixturevalue("postgres_store_url"))


@pytest.fixture
def store(place: Path | str) -> Iterator[Store]:
    found = open_store(place)
    yield found
    found.close()


@pytest.fixture
def tokens(store: Store) -> Tokens:
    return Tokens(store.users, os.urandom)


def viewer(name: str = "ann", **more: Any) -> NewToken:
    return NewToken(name=name, grade=Grade.VIEWER, **more)


def test_a_token_lets_its_user_in(tokens: Tokens, store: Store) -> None:
    row, secret = tokens.create(viewer(nodes=("rack1-*",), reads=frozenset({Part.ROLL})), ROOT, T0)

    assert secret.startswith(PREFIX)
    assert len(secret) == len(PREFIX) + 43
    assert tokens.user(secret, T0) == User(name="ann", grade=Grade.VIEWER, via="token", token=row.id, nodes=("rack1-*",), reads=frozenset({Part.ROLL}))
    entry = store.reader.audit()[0]
    assert (entry["by"], entry["what"], entry["asked_by"], entry["tokens"][0]["id"]) == ("root", "create_token", "local root", row.id)
    assert store.verify().broken is None


def test_two_secrets_are_never_one(tokens: Tokens) -> None:
    secrets = {tokens.create(viewer(f"n{number}"), ROOT, T0)[1] for number in range(200)}

    assert len(secrets) == 200


def test_the_store_has_a_digest_and_no_secret(tmp_path: Path) -> None:
    store = open_store(tmp_path / "roll.sqlite")
    _, secret = Tokens(store.users, os.urandom).create(viewer(), ROOT, T0)
    store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert hashlib.sha256(secret.encode()).hexdigest().encode() in kept
    for piece in (secret, secret.removeprefix(PREFIX), secret[-20:]):
        assert piece.encode() not in kept


@pytest.mark.parametrize("token", ["", "muster_", "muster_" + "A" * 43, "x" * 500, "Muster_abc", "muster_\ud800", "muster_\0"])
def test_what_is_no_token(tokens: Tokens, token: str) -> None:
    tokens.create(viewer(), ROOT, T0)
    with pytest.raises(NotAllowed, match="not known"):
        tokens.user(token, T0)


def test_near_misses_of_a_token(tokens: Tokens) -> None:
    _, secret = tokens.create(viewer(), ROOT, T0)
    for near in (secret[:-1], secret + "A", secret.swapcase(), secret.lower(), secret + "=", " " + secret, hashlib.sha256(secret.encode()).hexdigest()):
        with pytest.raises(NotAllowed):
            tokens.user(near, T0)


def test_a_token_ends_to_the_second(tokens: Tokens) -> None:
    _, secret = tokens.create(viewer(lifetime=3600.0), ROOT, T0)

    assert tokens.user(secret, T0 + 3599.9).name == "ann"
    with pytest.raises(NotAllowed, match="expired"):
        tokens.user(secret, T0 + 3600.0)
    assert tokens.tokens(T0 + 3600.0) == []
    assert [row.name for row in tokens.tokens(T0 + 3600.0, ended=True)] == ["ann"]


def test_a_revoked_token_is_refused_at_once(tokens: Tokens, store: Store) -> None:
    row, secret = tokens.create(viewer(), ROOT, T0)
    assert tokens.user(secret, T0).name == "ann"

    assert [each.id for each in tokens.revoke("ann", ROOT, T0)] == [row.id]
    with pytest.raises(NotAllowed, match="revoked"):
        tokens.user(secret, T0)
    with pytest.raises(NotFound):
        tokens.revoke("ann", ROOT, T0)
    assert [entry["what"] for entry in store.reader.audit()] == ["revoke_token", "create_token"]
    assert tokens.tokens(T0, ended=True)[0].revoked_by == "root"


def test_a_revocation_elsewhere_is_known_within_a_second(tokens: Tokens, store: Store) -> None:
    _, secret = tokens.create(viewer(), ROOT, T0)
    tokens.user(secret, T0)
    Tokens(store.users, os.urandom).revoke("ann", ROOT, T0)
    with pytest.raises(NotAllowed, match="revoked"):
        tokens.user(secret, T0 + KNOWN_S)


def test_the_last_use_is_kept_to_the_hour_and_written_later(tokens: Tokens, store: Store) -> None:
    _, secret = tokens.create(viewer(), ROOT, T0)
    tokens.user(secret, T0 + 10)
    tokens.user(secret, T0 + 20)

    assert tokens.tokens(T0 + 20)[0].used_at == T0 + 10
    assert store.users.tokens()[0].used_at is None
    tokens.flush(T0 + 30)
    assert store.users.tokens()[0].used_at == T0 + 10
    tokens.user(secret, T0 + 10 + COARSE_S)
    assert tokens.tokens(T0 + 10 + COARSE_S)[0].used_at == T0 + 10 + COARSE_S


def test_tokens_that_ended_long_ago_are_forgotten(tokens: Tokens, store: Store) -> None:
    tokens.create(viewer("gone", lifetime=60.0), ROOT, T0)
    tokens.create(viewer("stays"), ROOT, T0)
    tokens.flush(T0 + 60 + ENDED_S - 1)
    assert len(store.users.tokens()) == 2
    tokens.flush(T0 + 61 + ENDED_S)
    assert [row.name for row in store.users.tokens()] == ["stays"]


def test_a_name_is_of_one_living_token(tokens: Tokens) -> None:
    tokens.create(viewer(), ROOT, T0)
    with pytest.raises(Conflict, match="called ann"):
        tokens.create(viewer(), ROOT, T0)
    tokens.revoke("ann", ROOT, T0)
    tokens.create(viewer(), ROOT, T0)


@pytest.mark.parametrize(
    "asked",
    [
        viewer(""),
        viewer("a b"),
        viewer("-x"),
        viewer("a\x1b[2J"),
        viewer("a\nb"),
        viewer("x" * 101),
        viewer(lifetime=1.0),
        viewer(lifetime=1e12),
        viewer(lifetime=float("nan")),
        viewer(nodes=("a b",)),
        viewer(nodes=("",)),
        NewToken(name="a", grade=Grade.ADMIN, nodes=("rack1-*",)),
        NewToken(name="a", grade=Grade.ADMIN, reads=frozenset({Part.ROLL})),
        NewToken(name="a", grade=Grade.OPERATOR, reads=frozenset({Part.ROLL})),
    ],
)
def test_tokens_that_cannot_be(tokens: Tokens, store: Store, asked: NewToken) -> None:
    with pytest.raises(InputError) as refused:
        tokens.create(asked, ROOT, T0)

    assert refused.value.hint
    assert store.users.tokens() == []
    assert store.reader.audit() == []


class Door:
    """Someone who says who signed in."""

    def check(self, proof: str, nonce: str, now: float) -> Person:
        if proof == "bad":
            raise NotAllowed("no")
        return Person(name="bea@example.org", grade=Grade.OPERATOR, subject="s1")

    def issuer(self) -> tuple[str, str]:
        return "https://issuer.example", "muster"


def test_a_sign_in_gives_a_session_once(store: Store) -> None:
    tokens = Tokens(store.users, os.urandom, Door())
    row, secret = tokens.sign_in("proof", "", T0)

    user = tokens.user(secret, T0)
    assert (user.name, user.grade, user.via, user.token) == ("bea@example.org", Grade.OPERATOR, "oidc", row.id)
    with pytest.raises(NotAllowed, match="used before"):
        tokens.sign_in("proof", "", T0 + 1)
    with pytest.raises(NotAllowed):
        tokens.sign_in("bad", "", T0)
    with pytest.raises(NotAllowed, match="expired"):
        tokens.user(secret, T0 + 12 * 3600)
    assert [entry["what"] for entry in store.reader.audit()] == ["sign_in"]
    assert tokens.issuer() == ("https://issuer.example", "muster")


def test_one_proof_shown_twice_at_once_gives_one_session(store: Store) -> None:
    tokens = Tokens(store.users, os.urandom, Door())
    done: list[str] = []

    def sign() -> None:
        try:
            done.append(tokens.sign_in("proof", "", T0)[1])
        except NotAllowed:
            done.append("")

    threads = [threading.Thread(target=sign) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(bool(each) for each in done) == 1


def test_without_an_issuer_nobody_signs_in(tokens: Tokens) -> None:
    with pytest.raises(NotAllowed, match="issuer"):
        tokens.sign_in("proof", "", T0)
    assert tokens.issuer() == ("", "")


@pytest.mark.parametrize("spoil", ["DROP TABLE audit", "DROP TABLE audit_head"])
def test_nothing_changes_when_the_audit_cannot_be_written(tokens: Tokens, store: Store, spoil: str) -> None:
    tokens.create(viewer("kept"), ROOT, T0)
    with store.connections.transaction() as session:
        session.execute(spoil)
    with pytest.raises((Unavailable, sqlite3.Error, psycopg.Error)):
        tokens.create(viewer("new"), ROOT, T0)
    with pytest.raises((Unavailable, sqlite3.Error, psycopg.Error)):
        tokens.revoke("kept", ROOT, T0)

    assert [(row.name, row.revoked_at) for row in store.users.tokens()] == [("kept", None)]


def test_who_lost_the_lease_changes_no_token(tokens: Tokens, place: Path | str) -> None:
    other = open_store(place)
    assert other.lease.acquire("other", 0.0)
    with pytest.raises(Unavailable, match="written by other"):
        tokens.create(viewer(), ROOT, T0)
    other.close()


def test_a_door_of_its_own_reads_and_lets_the_writer_change(tmp_path: Path) -> None:
    path = tmp_path / "roll.sqlite"
    writing, reading = open_store(path), open_store(path)
    far = Tokens(writing.users, os.urandom, Door())
    near = NearTokens(Tokens(reading.users, os.urandom, Door()), far)
    row, secret = near.create(viewer(), ROOT, T0)

    assert near.user(secret, T0).token == row.id
    assert [each.id for each in near.tokens(T0)] == [row.id]
    near.flush(T0)
    far.flush(T0)
    assert writing.users.tokens()[0].used_at == T0
    near.revoke("ann", ROOT, T0)
    with pytest.raises(NotAllowed, match="revoked"):
        near.user(secret, T0)
    _, session = near.sign_in("proof", "", T0)
    near.sign_out(near.user(session, T0), T0)
    with pytest.raises(NotAllowed, match="revoked"):
        near.user(session, T0)
    assert near.issuer() == far.issuer()
    assert pickle.loads(pickle.dumps((row, ROOT, viewer()))) == (row, ROOT, viewer())
    assert [entry["what"] for entry in reading.reader.audit()] == ["sign_out", "sign_in", "revoke_token", "create_token"]
    for each in (reading, writing):
        each.close()
