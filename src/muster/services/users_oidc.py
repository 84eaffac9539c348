# SPDX-License-Identifier: Apache-2.0
"""Checks the identity tokens of an issuer (OpenID Connect): signed by one of its keys, for us, in time, and once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from muster.domain.decide.sight import highest
from muster.domain.model.access import Grade
from muster.domain.model.errors import InputError, MusterError, NotAllowed, Unavailable

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""By a key of which only the issuer has the half that signs. Never `none`, never by a secret that both sides have."""
KEYS_KEPT_S = 3600.0
KEYS_AGAIN_S = 10.0
"""Seconds after which keys are fetched again for a token by an unknown key: the issuer may have changed them."""
LEEWAY_S = 60
OLDEST_S = 600.0
"""Seconds since an identity token was made after which it is no sign-in any more, however long it says that it lasts."""
LONGEST = 16 * 1024
DISCOVERY = "/.well-known/openid-configuration"

Fetch = Callable[[str], bytes]
"""The document at a URL. Raises Unavailable or NotAllowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Someone whom the issuer knows."""

    name: str
    grade: Grade
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Whom we take, and what they may. ``roles`` by group; the highest counts."""

    issuer: str
    client_id: str
    roles: Mapping[str, Grade]
    groups_claim: str = "groups"
    name_claim: str = "email"


class Issuer:
    """One issuer. Its keys are fetched when they are needed, and again when it changed them. Safe for several threads."""

    def __init__(self, rules: Rules, fetch: Fetch) -> None:
        self._rules = rules
        self._fetch = fetch
        self._lock = threading.Lock()
        self._keys: KeySet | None = None
        self._fetched_at = -1e18

    def issuer(self) -> tuple[str, str]:
        """The issuer, and our name there."""
        return self._rules.issuer, self._rules.client_id

    def check(self, proof: str, nonce: str, now: float) -> Person:
        """Who signed in. Raises NotAllowed with the reason, or Unavailable when the issuer does not answer."""
        if not proof or len(proof) > LONGEST:
            raise NotAllowed("that is no identity token")
        claims = self._verified(proof, now)
        wrong = self._wrong(claims, nonce, now)
        if wrong:
            raise NotAllowed(f"the sign-in does not count: {wrong}", hint="sign in again; else look at the server's settings oidc_* and its clock")
        return self._person(claims)

    def _verified(self, proof: str, now: float) -> Mapping[str, Any]:
        try:
            header = jws.extract_compact(proof.encode("ascii")).headers()
        except (JoseError, ValueError) as error:
            raise NotAllowed("that is no identity token") from error
        if header.get("alg") not in ALGORITHMS:
            raise NotAllowed(f"the sign-in is signed by {str(header.get('alg'))[:20]!r}, which is not taken")
        kid = header.get("kid")
        try:
            return self._decoded(proof, kid, self._known(now, kid))
        except JoseError as error:
            raise NotAllowed(f"the sign-in is not signed by a key of {self._rules.issuer}", hint="sign in again") from error

    def _decoded(self, proof: str, kid: Any, keys: KeySet) -> Mapping[str, Any]:
        if kid is None and len(keys.keys) != 1:
            raise NotAllowed("the sign-in does not say by which key it is signed")
        return jwt.decode(proof, keys if kid is not None else keys.keys[0], algorithms=list(ALGORITHMS)).claims

    def _known(self, now: float, kid: Any) -> KeySet:
        """The issuer's keys; fetched anew when they are old, or when one is asked for that is not among them."""
        with self._lock:
            keys, age = self._keys, now - self._fetched_at
            missing = keys is None or (kid is not None and all(key.kid != kid for key in keys.keys))
            if keys is None or not 0 <= age < KEYS_KEPT_S or (missing and age >= KEYS_AGAIN_S):
                try:
                    keys = self._keys = self._fresh()
                    self._fetched_at = now
                except MusterError:
                    if keys is None or missing:
                        raise
            return keys

    def _fresh(self) -> KeySet:
        told = _document(self._fetch(self._rules.issuer.rstrip("/") + DISCOVERY))
        if told.get("issuer") != self._rules.issuer:
            raise Unavailable(f"{self._rules.issuer} says that it is {str(told.get('issuer'))[:200]!r}", hint="set oidc_issuer to that very text")
        found = _document(self._fetch(str(told.get("jwks_uri") or "")))
        keys = [key for key in found.get("keys") or () if isinstance(key, dict) and key.get("kty") in ("RSA", "EC", "OKP") and key.get("use") in (None, "sig")]
        try:
            return KeySet.import_key_set(cast(Any, {"keys": keys}))
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise Unavailable(f"the keys of {self._rules.issuer} cannot be read") from error

    def _wrong(self, claims: Mapping[str, Any], nonce: str, now: float) -> str:
        """What does not fit; empty when all does."""
        rules = self._rules
        audience = claims.get("aud")
        named = [audience] if isinstance(audience, str) else list(audience) if isinstance(audience, list) else []
        expires, made, begins = (claims.get(name) for name in ("exp", "iat", "nbf"))
        if claims.get("iss") != rules.issuer:
            return "it is of another issuer"
        if rules.client_id not in named or (len(named) > 1 and claims.get("azp") != rules.client_id) or claims.get("azp", rules.client_id) != rules.client_id:
            return "it is for another program"
        if not _time(expires) or now > cast(float, expires) + LEEWAY_S:
            return "it has expired"
        if not _time(made) or not -LEEWAY_S <= now - cast(float, made) <= OLDEST_S:
            return "it was not made just now"
        if begins is not None and (not _time(begins) or now < cast(float, begins) - LEEWAY_S):
            return "it does not hold yet"
        if "nonce" in claims and claims["nonce"] != nonce:
            return "it answers another sign-in"
        if not isinstance(claims.get("sub"), str) or not claims["sub"]:
            return "it names nobody"
        return ""

    def _person(self, claims: Mapping[str, Any]) -> Person:
        rules = self._rules
        told = claims.get(rules.groups_claim)
        groups = [told] if isinstance(told, str) else [each for each in told if isinstance(each, str)] if isinstance(told, list) else []
        grade = highest([rules.roles[group] for group in groups if group in rules.roles])
        name = self._name(claims)
        if grade is None:
            raise NotAllowed(f"{name} is in no group that may come in here", hint=f"the setting oidc_roles names them; {rules.groups_claim} is looked at")
        return Person(name=name, grade=grade, subject=claims["sub"])

    def _name(self, claims: Mapping[str, Any]) -> str:
        """What they are called: an address only where the issuer says that it is theirs."""
        names = (self._rules.name_claim, "preferred_username", "sub")
        usable = [each for each in names if each != "email" or claims.get("email_verified", True) is True]
        found = next(str(claims[each]) for each in usable if isinstance(claims.get(each), str) and claims[each].strip())
        return "".join(sign if sign.isprintable() else "?" for sign in found)[:200]


def _time(told: Any) -> bool:
    return isinstance(told, int | float) and not isinstance(told, bool) and 0 <= told < 2**53


def _document(raw: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unavailable("the issuer answers with something that is no JSON") from error
    if not isinstance(found, dict):
        raise Unavailable("the issuer answers with a document of another shape")
    return found


def rules(issuer: str, client_id: str, roles: Mapping[str, str], groups_claim: str, name_claim: str) -> Rules:
    """Rules from settings. Raises InputError for a role that there is not, or where something is lacking."""
    if not client_id:
        raise InputError("oidc_issuer is set, and oidc_client_id is not", hint="the name under which the issuer knows Muster")
    if not roles:
        raise InputError("oidc_issuer is set, and oidc_roles is not: nobody can come in", hint='oidc_roles = { "gpu-admins" = "admin", "staff" = "viewer" }')
    wrong = _wrong_role(roles.values())
    if wrong is not None:
        raise InputError(f"oidc_roles: {wrong!r} is no role", hint=f"one of {', '.join(Grade)}")
    grades = {group: Grade(role) for group, role in roles.items()}
    return Rules(issuer=issuer, client_id=client_id, roles=grades, groups_claim=groups_claim, name_claim=name_claim)


def _wrong_role(told: Sequence[str] | Any) -> str | None:
    return next((each for each in told if each not in set(Grade)), None)
