# SPDX-License-Identifier: Apache-2.0
"""Signing in at an issuer from the command line, by the device grant: a real provider, a real server, and a person who does this or that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.cli.conftest import Muster
from tests.interfaces.cli.provider import CLIENT, Provider

from muster.domain.model.errors import NotAllowed
from muster.interfaces.api.app import build
from muster.interfaces.cli import device, known
from muster.interfaces.cli.device import sign_in
from muster.wiring.server import Server
from muster.wiring.settings import load_settings


@pytest.fixture
def provider() -> Iterator[Provider]:
    found = Provider()
    yield found
    found.stop()


@pytest.fixture
def people(tmp_path: Path, provider: Provider) -> Iterator[Server]:
    """A server whose people sign in at the provider."""
    told = load_settings(
        port=0,
        runtime=tmp_path / "run",
        state=tmp_path / "state",
        loopback_open=False,
        oidc_issuer=provider.issuer,
        oidc_client_id=CLIENT,
        oidc_roles={"gpu-ops": "operator", "staff": "viewer"},
        outgoing_http=("oidc",),
        outgoing_networks={"oidc": ("127.0.0.0/8",)},
    )
    with Server(told, build) as server:
        yield server


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited, instead of waiting."""
    waits: list[float] = []
    monkeypatch.setattr(device.sign_in, "__kwdefaults__", {**(device.sign_in.__kwdefaults__ or {}), "sleep": waits.append})
    return waits


def let(provider: Provider, at: int, decision: bool) -> None:
    """The person at the browser decides at that poll."""

    def after(polls: int) -> None:
        if polls >= at:
            provider.granted = decision

    provider.after = after


def test_a_person_signs_in_at_the_issuer(people: Server, provider: Provider, alone: Muster, slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    let(provider, 3, True)
    said = alone("login", people.url, "--oidc")

    assert said.code == 0, said.err
    code = next(iter(provider.credentials.values()))["user_code"]
    assert f"{provider.issuer}/activate?user_code={code}" in said.err
    assert code in said.err.split("enter the code")[1]
    assert "as ann@example.org (operator)" in said.err
    assert slept == [5.0, 5.0, 5.0]
    who = json.loads(alone("whoami", "-o", "json").out)
    assert (who["via"], who["role"]) == ("oidc", "operator")
    assert alone("set", "card", "x", "asset.owner=y").code == 3
    assert alone("token", "list").code == 4
    secret = json.loads(known.file().read_text())["servers"][people.url]["token"]
    assert alone("logout").code == 0
    monkeypatch.setenv("MUSTER_TOKEN", secret)
    ended = alone("whoami", "--server", people.url)
    monkeypatch.delenv("MUSTER_TOKEN")
    assert (ended.code, "revoked" in ended.err) == (4, True), "signing out ends the session at the server"
    told = json.loads(alone("audit", "-o", "json", "--server", people.socket).out)["items"]
    assert [each["what"] for each in told] == ["sign_out", "sign_in"]


def test_slow_down_is_honoured(people: Server, provider: Provider, alone: Muster, slept: list[float]) -> None:
    provider.slow = 2
    let(provider, 4, True)

    assert alone("login", people.url, "--oidc").code == 0
    assert slept == [5.0, 10.0, 15.0, 15.0]


def test_an_issuer_that_fails_in_between(people: Server, provider: Provider, alone: Muster, slept: list[float]) -> None:
    provider.broken = 2
    let(provider, 3, True)

    assert alone("login", people.url, "--oidc").code == 0
    assert slept == [5.0, 10.0, 20.0]


def test_a_person_refuses(people: Server, provider: Provider, alone: Muster, slept: list[float]) -> None:
    let(provider, 2, False)
    said = alone("login", people.url, "--oidc")

    assert (said.code, "refused" in said.err) == (4, True)
    assert not known.file().exists()


def test_nobody_decides(people: Server, provider: Provider, alone: Muster, slept: list[float]) -> None:
    provider.lifetime = 60
    said = alone("login", people.url, "--oidc")

    assert (said.code, "in time" in said.err) == (7, True)
    assert sum(slept) <= 60


def test_the_code_ended_at_the_issuer(people: Server, provider: Provider, alone: Muster, slept: list[float]) -> None:
    def after(polls: int) -> None:
        for each in provider.credentials.values():
            each["expires_at"] = 1

    provider.after = after
    assert alone("login", people.url, "--oidc").code == 7


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"aud": "another"}, "another program"),
        ({"groups": ["strangers"]}, "no group"),
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"exp": 1}, "expired"),
        ({"nonce": "replayed"}, "another sign-in"),
    ],
)
def test_identities_that_do_not_count(people: Server, provider: Provider, alone: Muster, slept: list[float], claims: dict[str, Any], why: str) -> None:
    provider.granted = True
    provider.nonce = "nonce" not in claims
    provider.claims |= claims
    said = alone("login", people.url, "--oidc")

    assert (said.code, why in said.err) == (4, True), said.err
    assert not known.file().exists()


def test_keys_that_changed_between_two_sign_ins(people: Server, provider: Provider, alone: Muster, slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    provider.granted = True
    assert alone("login", people.url, "--oidc").code == 0
    provider.signing = "e1"
    provider.keys = {"e1": provider.keys["e1"]}
    assert alone("login", people.url, "--oidc").code == 0


def test_the_issuer_is_down(people: Server, provider: Provider, alone: Muster, slept: list[float]) -> None:
    provider.stop()
    said = alone("login", people.url, "--oidc")

    assert (said.code, "does not answer" in said.err) == (6, True)


def test_an_issuer_without_tls_is_not_followed() -> None:
    with pytest.raises(NotAllowed, match="not https"):
        sign_in("http://192.0.2.1", "muster", lambda page, code: None)
