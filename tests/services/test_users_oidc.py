# SPDX-License-Identifier: Apache-2.0
"""Identity tokens of a real provider's keys: which are taken, and all those that are not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import importlib
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from muster.domain.model.access import Grade
from muster.domain.model.errors import InputError, NotAllowed, Unavailable
from muster.services.users_oidc import KEYS_AGAIN_S, KEYS_KEPT_S, OLDEST_S, Issuer, rules
from muster.wiring.outgoing import Allowed, Outgoing, networks
from tests.interfaces.cli.provider import CLIENT, Provider

ROLES = {"gpu-ops": "operator", "gpu-admins": "admin", "staff": "viewer"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    found = Provider()
    yield found
    found.stop()


def issuer(provider: Provider, **changed: Any) -> Issuer:
    """Our side, which fetches through the one client that opens URLs."""
    client = Outgoing({"oidc": Allowed(networks=networks(["127.0.0.0/8"]), http=True)})
    told = {"issuer": provider.issuer, "client_id": CLIENT, "roles": ROLES, "groups_claim": "groups", "name_claim": "email", **changed}
    return Issuer(rules(**told), lambda url: client.get("oidc", url).body)


def test_who_signed_in(provider: Provider) -> None:
    person = issuer(provider).check(provider.id_token(), "", time.time())

    assert (person.name, person.grade, person.subject) == ("ann@example.org", Grade.OPERATOR, "s-1")


def test_another_kind_of_key(provider: Provider) -> None:
    provider.signing = "e1"

    assert issuer(provider).check(provider.id_token(), "", time.time()).name == "ann@example.org"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "other"}, "another program"),
        ({"aud": ["other"]}, "another program"),
        ({"aud": [CLIENT, "other"]}, "another program"),
        ({"aud": [CLIENT, "other"], "azp": "other"}, "another program"),
        ({"aud": CLIENT, "azp": "other"}, "another program"),
        ({"aud": None}, "another program"),
        ({"aud": {CLIENT: 1}}, "another program"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "expired"),
        ({"exp": "9999999999"}, "expired"),
        ({"exp": True}, "expired"),
        ({"iat": None}, "not made just now"),
        ({"iat": 2**40}, "not made just now"),
        ({"iat": 1}, "not made just now"),
        ({"nbf": 2**40}, "does not hold yet"),
        ({"nonce": "other"}, "another sign-in"),
        ({"sub": None}, "names nobody"),
        ({"sub": ""}, "names nobody"),
        ({"sub": 7}, "names nobody"),
    ],
)
def test_claims_that_do_not_fit(provider: Provider, changed: dict[str, Any], why: str) -> None:
    with pytest.raises(NotAllowed, match=why):
        issuer(provider).check(provider.id_token(**changed), "mine", time.time())


def test_a_nonce_is_held_to_what_was_sent(provider: Provider) -> None:
    ours = issuer(provider)

    assert ours.check(provider.id_token(nonce="mine"), "mine", time.time()).subject == "s-1"
    assert ours.check(provider.id_token(), "mine", time.time()).subject == "s-1"
    with pytest.raises(NotAllowed, match="another sign-in"):
        ours.check(provider.id_token(nonce="mine"), "", time.time())


def test_an_old_one_is_no_sign_in_however_long_it_lasts(provider: Provider) -> None:
    token = provider.id_token(exp=int(time.time()) + 10 * 86_400)
    ours = issuer(provider)
    with pytest.raises(NotAllowed, match="not made just now"):
        ours.check(token, "", time.time() + OLDEST_S + 5)
    assert ours.check(token, "", time.time() + OLDEST_S - 5).subject == "s-1"


def part(told: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


def claims_of(provider: Provider) -> dict[str, Any]:
    payload = provider.id_token().split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found


def forged(provider: Provider) -> dict[str, str]:
    """Tokens that look like the provider's."""
    claims = claims_of(provider)
    stranger = RSAKey.generate_key(2048, {"kid": "k1"})
    public = provider.keys["k1"].as_pem(private=False)
    good = provider.id_token().split(".")

    def by_secret(header: dict[str, Any], secret: bytes) -> str:
        signed = f"{part(header)}.{part(claims)}"
        return f"{signed}.{base64.urlsafe_b64encode(hmac.new(secret, signed.encode(), hashlib.sha256).digest()).decode().rstrip('=')}"

    return {
        "none": f"{part({'alg': 'none'})}.{part(claims)}.",
        "None": f"{part({'alg': 'None', 'kid': 'k1'})}.{part(claims)}.",
        "no signature": f"{good[0]}.{good[1]}.",
        "another's": f"{good[0]}.{part({**claims, 'sub': 'root'})}.{good[2]}",
        "stranger of the same name": jwt.encode({"alg": "RS256", "kid": "k1"}, claims, stranger),
        "unknown key": jwt.encode({"alg": "RS256", "kid": "k9"}, claims, stranger),
        "key in the header": jwt.encode({"alg": "RS256", "jwk": stranger.as_dict(private=False)}, claims, stranger),
        "address in the header": jwt.encode({"alg": "RS256", "kid": "k1", "jku": "http://169.254.169.254/"}, claims, stranger),
        "secret is the public key": by_secret({"alg": "HS256", "kid": "k1", "typ": "JWT"}, public),
        "secret is the public key, ended": by_secret({"alg": "HS256", "kid": "k1"}, public.strip()),
        "secret is empty": by_secret({"alg": "HS256", "kid": "k1"}, b""),
        "no kid of two": jwt.encode({"alg": "RS256"}, claims, provider.keys["k1"]),
        "list": f"{part(['RS256'])}.{part(claims)}.{good[2]}",
        "claims are a list": f"{good[0]}.{part([1])}.{good[2]}",
        "words": "three.little.words",
        "one": "x",
        "dots": "....",
        "not ascii": "é.é.é",
        "long": "x" * 20_000,
        "empty": "",
    }


def test_forged_ones(provider: Provider) -> None:
    ours = issuer(provider)
    for name, token in forged(provider).items():
        with pytest.raises(NotAllowed):
            pytest.fail(f"{name} was taken: {ours.check(token, '', time.time())}")


def test_keys_that_change_are_fetched_anew_and_not_for_every_guess(provider: Provider) -> None:
    ours, now = issuer(provider), time.time()
    ours.check(provider.id_token(), "", now)
    assert provider.fetched == 1
    provider.keys = {"k2": RSAKey.generate_key(2048, {"kid": "k2"})}
    provider.signing = "k2"
    with pytest.raises(NotAllowed):
        ours.check(provider.id_token(), "", now + 1)
    assert provider.fetched == 1
    assert ours.check(provider.id_token(), "", now + KEYS_AGAIN_S).subject == "s-1"
    assert provider.fetched == 2
    old = RSAKey.generate_key(2048, {"kid": "k1"})
    for _ in range(20):
        with pytest.raises(NotAllowed):
            ours.check(jwt.encode({"alg": "RS256", "kid": "k1"}, claims_of(provider), old), "", now + KEYS_AGAIN_S + 1)
    assert provider.fetched == 2


def test_an_issuer_that_is_down(provider: Provider) -> None:
    ours, now = issuer(provider), time.time()
    fresh = issuer(provider)
    ours.check(provider.id_token(), "", now)
    provider.stop()
    token = provider.id_token()

    assert ours.check(token, "", now + 5).subject == "s-1", "keys that are known hold on"
    with pytest.raises(Unavailable, match="does not answer"):
        fresh.check(token, "", now)
    late = provider.id_token(iat=int(now + KEYS_KEPT_S), exp=int(now + KEYS_KEPT_S) + 300)
    assert ours.check(late, "", now + KEYS_KEPT_S + 1).subject == "s-1"


def test_an_issuer_that_calls_itself_otherwise(provider: Provider) -> None:
    provider.issuer += "/"
    with pytest.raises((Unavailable, NotAllowed)):
        issuer(provider, issuer=provider.issuer.rstrip("/")).check(provider.id_token(), "", time.time())


@pytest.mark.parametrize(
    ("claims", "grade"),
    [
        ({"groups": ["staff"]}, Grade.VIEWER),
        ({"groups": "staff"}, Grade.VIEWER),
        ({"groups": ["staff", "gpu-admins", "gpu-ops"]}, Grade.ADMIN),
        ({"groups": []}, None),
        ({"groups": ["STAFF", "gpu-admins "]}, None),
        ({"groups": [7, None, ["staff"]]}, None),
        ({"groups": {"staff": True}}, None),
        ({"groups": None}, None),
    ],
)
def test_groups_tell_the_role(provider: Provider, claims: dict[str, Any], grade: Grade | None) -> None:
    if grade is None:
        with pytest.raises(NotAllowed, match="no group"):
            issuer(provider).check(provider.id_token(**claims), "", time.time())
    else:
        assert issuer(provider).check(provider.id_token(**claims), "", time.time()).grade is grade


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"email_verified": False}, "s-1"),
        ({"email_verified": "true"}, "s-1"),
        ({"email_verified": None}, "ann@example.org"),
        ({"email": None, "preferred_username": "ann"}, "ann"),
        ({"email": "a\x1b[2J\u202e\n"}, "a?[2J??"),
        ({"email": "  "}, "s-1"),
        ({"email": ["x"]}, "s-1"),
    ],
)
def test_what_people_are_called(provider: Provider, claims: dict[str, Any], name: str) -> None:
    assert issuer(provider).check(provider.id_token(**claims), "", time.time()).name == name


@pytest.mark.parametrize(
    ("changed", "why"), [({"client_id": ""}, "oidc_client_id"), ({"roles": {}}, "oidc_roles"), ({"roles": {"a": "root"}}, "'root' is no role")]
)
def test_settings_that_lack_something(changed: dict[str, Any], why: str) -> None:
    told: dict[str, Any] = {"issuer": "https://i.example", "client_id": "m", "roles": ROLES, "groups_claim": "groups", "name_claim": "email", **changed}
    with pytest.raises(InputError, match=why):
        rules(**told)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_provider_that_another_wrote() -> None:
    """oidc-provider-mock, by the code flow, which it knows: its token names no key, and it has but one."""
    mock = importlib.import_module("oidc_provider_mock")
    person = mock.User(sub="bea", claims={"groups": ["staff"], "email": "bea@example.org"})
    form = {"content-type": "application/x-www-form-urlencoded"}
    asked = {"client_id": CLIENT, "redirect_uri": "http://localhost/cb", "response_type": "code", "scope": "openid email", "nonce": "n1"}
    with mock.run_server_in_thread(user_claims=(person,)) as server:
        name = f"http://localhost:{server.server_port}"
        connection = http.client.HTTPConnection("localhost", server.server_port)
        connection.request("POST", "/oauth2/authorize?" + urlencode(asked), "sub=bea", form)
        answer = connection.getresponse()
        answer.read()
        (code,) = parse_qs(urlsplit(str(answer.getheader("location"))).query)["code"]
        grant = {"grant_type": "authorization_code", "code": code, "redirect_uri": "http://localhost/cb", "client_id": CLIENT, "client_secret": "x"}
        connection.request("POST", "/oauth2/token", urlencode(grant), form)
        token = json.loads(connection.getresponse().read())["id_token"]
        connection.close()
        client = Outgoing({"oidc": Allowed(networks=networks(["127.0.0.0/8", "::1/128"]), http=True)})
        told = rules(name, CLIENT, ROLES, "groups", "email")
        ours = Issuer(told, lambda url: client.get("oidc", url).body)

        found = ours.check(token, "n1", time.time())
        assert (found.name, found.grade, found.subject) == ("bea@example.org", Grade.VIEWER, "bea")
        with pytest.raises(NotAllowed, match="another sign-in"):
            ours.check(token, "n2", time.time())
