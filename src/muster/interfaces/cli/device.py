# SPDX-License-Identifier: Apache-2.0
"""Signing in at an issuer from a terminal: the device grant of OAuth 2.0 (RFC 8628). A person opens a page, enters a code, and we wait."""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from muster.domain.model.errors import InputError, NotAllowed, Unavailable
from muster.interfaces.cli.client import loopback
from muster.interfaces.cli.exits import TimedOut

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
DISCOVERY = "/.well-known/openid-configuration"
SCOPES = "openid profile email"
INTERVAL_S, SLOWER_S, LONGEST_S = 5.0, 5.0, 1800.0
TIMEOUT_S = 20.0
LIMIT = 1024 * 1024

Say = Callable[[str, str], None]
"""Told where to go, and the code to enter."""


def sign_in(issuer: str, client_id: str, say: Say, *, scopes: str = SCOPES, sleep: Callable[[float], None] = time.sleep) -> tuple[str, str]:
    """The identity token that the issuer gives once the person has let us in, and the nonce that was sent.

    Raises NotAllowed when they refuse, TimedOut when nobody answers in time, Unavailable when the issuer does not.
    """
    told = _ok(_get(issuer.rstrip("/") + DISCOVERY), "the issuer's page about itself")
    if told.get("issuer") != issuer:
        raise NotAllowed(f"{issuer} says that it is {told.get('issuer')!r}", hint="the server's setting oidc_issuer is to be that very text")
    start, end = (str(told.get(name) or "") for name in ("device_authorization_endpoint", "token_endpoint"))
    if not start or not end:
        raise InputError(f"{issuer} does not let terminals sign in", hint="allow the device grant there, or use a token: muster login URL --token-file FILE")
    nonce = secrets.token_urlsafe(24)
    asked = _ok(_post(start, {"client_id": client_id, "scope": scopes, "nonce": nonce}), "the issuer")
    code, page = str(asked.get("device_code") or ""), str(asked.get("verification_uri_complete") or asked.get("verification_uri") or "")
    if not code or not page:
        raise Unavailable("the issuer answers with a document of another shape", hint="is oidc_issuer right? A token does, too: --token-file FILE")
    say(page, str(asked.get("user_code") or ""))
    wait = Wait(_number(asked.get("interval"), INTERVAL_S), _number(asked.get("expires_in"), LONGEST_S), sleep)
    while True:
        wait.next()
        found = _poll(end, {"grant_type": GRANT, "device_code": code, "client_id": client_id}, wait)
        if found is not None:
            return found, nonce


class Wait:
    """How long is waited between two questions, and until when."""

    def __init__(self, interval: float, lifetime: float, sleep: Callable[[float], None]) -> None:
        self._interval = min(max(interval, 1.0), 60.0)
        self._left = min(max(lifetime, 1.0), LONGEST_S)
        self._sleep = sleep

    def next(self) -> None:
        """Waits. Raises TimedOut when the code has ended by then."""
        if self._left < self._interval:
            raise TimedOut("nobody let this sign-in through in time", hint="begin anew: muster login URL --oidc")
        self._left -= self._interval
        self._sleep(self._interval)

    def slower(self) -> None:
        """The issuer asks for more time between questions."""
        self._interval += SLOWER_S

    def longer(self) -> None:
        """The issuer did not answer: twice as long."""
        self._interval = min(self._interval * 2, 60.0)


def _poll(url: str, form: Mapping[str, str], wait: Wait) -> str | None:
    """The identity token; None while nobody has decided."""
    try:
        status, told = _post(url, form)
    except Unavailable:
        wait.longer()
        return None
    if status == 200:
        token = told.get("id_token")
        if not isinstance(token, str) or not token:
            raise NotAllowed("the issuer tells no identity", hint="the scope openid is to be allowed for this program there")
        return token
    match told.get("error"):
        case "authorization_pending":
            return None
        case "slow_down":
            wait.slower()
            return None
        case "access_denied":
            raise NotAllowed("the sign-in was refused", hint="begin anew, if that was not meant")
        case "expired_token":
            raise TimedOut("nobody let this sign-in through in time", hint="begin anew: muster login URL --oidc")
        case error if status >= 500 or error is None:
            wait.longer()
            return None
        case error:
            raise NotAllowed(
                f"the issuer refuses: {error} {told.get('error_description') or ''}".strip(), hint="the server's settings oidc_* are to be looked at"
            )


def _ok(answer: tuple[int, Mapping[str, Any]], what: str) -> Mapping[str, Any]:
    status, told = answer
    if status == 200:
        return told
    reason = f"{told.get('error') or ''} {told.get('error_description') or ''}".strip()
    raise (Unavailable if status >= 500 else NotAllowed)(f"{what} answers {status} {reason}".strip(), hint="the server's settings oidc_* are to be looked at")


def _number(told: Any, default: float) -> float:
    return float(told) if isinstance(told, int | float) and not isinstance(told, bool) and told == told else default


def _get(url: str) -> tuple[int, Mapping[str, Any]]:
    return _exchange("GET", url, None)


def _post(url: str, form: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]:
    return _exchange("POST", url, urlencode(form).encode())


def _exchange(method: str, url: str, body: bytes | None) -> tuple[int, Mapping[str, Any]]:
    """One exchange, without redirects. Raises Unavailable, or NotAllowed for a place to which nothing may go without TLS."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https" and not (parts.scheme == "http" and loopback(host)):
        raise NotAllowed(f"the issuer names {url!r}, which is not https", hint="signing in goes over TLS only")
    connection = http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S)
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(host, parts.port, timeout=TIMEOUT_S, context=ssl.create_default_context())
    headers = {"Accept": "application/json"} | ({"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {})
    try:
        connection.request(method, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, headers)
        answer = connection.getresponse()
        payload = answer.read(LIMIT)
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"the issuer at {host} does not answer: {getattr(error, 'strerror', None) or error}", hint="try again later") from error
    finally:
        connection.close()
    try:
        told = json.loads(payload)
    except (ValueError, RecursionError):
        told = {}
    return answer.status, told if isinstance(told, dict) else {}
