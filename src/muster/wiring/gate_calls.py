# SPDX-License-Identifier: Apache-2.0
"""How a node asks the listener of a server: TLS with a pinned authority, and errors that say what to do. Standard library and msgspec alone."""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from muster.collect.link import Response
from muster.collect.words import plain
from muster.domain.model.errors import Conflict, InputError, MusterError, NotAllowed, NotFound, Unavailable
from muster.wire.enrol import AuthorityDoc
from muster.wire.report import OLDEST, SCHEMA

TIMEOUT_S = 20.0
MOST = 1 << 20
"""Bytes of an answer."""
PORT = 7461
"""Where a server listens for reporters when nothing else is said."""
MARK = "sha256:"
_KINDS: dict[int, type[MusterError]] = {400: InputError, 401: NotAllowed, 403: NotAllowed, 404: NotFound, 409: Conflict, 413: InputError}
_NOT_YET, _ENDED, _OTHER_NAME, _OTHER_ADDRESS = 9, 10, 62, 64
Doc = TypeVar("Doc")


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: its status, when the server says it is (None: it does not), and the body."""

    status: int
    at: float | None
    body: bytes


def server_url(text: str) -> str:
    """The address of a listener: https, with its port. Raises InputError."""
    url = text if "://" in text else f"https://{text}"
    wrong = InputError(f"{text.rpartition('@')[2]!r} is no address to join at", hint=f"give https://HOST:{PORT}, as the server prints it")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise wrong from error
    if host is None or parts.scheme != "https" or parts.path.strip("/") or parts.query or parts.username:
        raise wrong
    return f"https://[{host}]:{port or PORT}" if ":" in host else f"https://{host}:{port or PORT}"


def fingerprint(pem: bytes) -> str:
    """``sha256:`` and the digest of the certificate's DER. Raises Unavailable for what is no certificate."""
    try:
        return MARK + hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode("ascii"))).hexdigest()
    except (ValueError, UnicodeDecodeError) as error:
        raise Unavailable("the server shows no certificate of an authority", hint="is it a muster server?") from error


def mark_of(text: str) -> str:
    """A fingerprint as it is compared, also of the form in which openssl prints it. Raises InputError for what is none."""
    digits = text.strip().lower().removeprefix("sha256 fingerprint=").removeprefix(MARK).replace(":", "")
    if len(digits) != 64 or any(sign not in "0123456789abcdef" for sign in digits):
        raise InputError(f"{text[:100]!r} is no fingerprint", hint="give sha256: and 64 hex digits, as `muster server` prints them, or the colons of openssl")
    return MARK + digits


def pinned(ca: bytes) -> ssl.SSLContext:
    """A context that believes this authority alone, and the host name only by it. Raises Unavailable."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=ca.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise Unavailable("the pinned authority cannot be read", hint="join again: `muster agent leave --keep-enrolment`, then `muster agent join`") from error
    return context


def unpinned() -> ssl.SSLContext:
    """A context that believes nobody: to ask who a server is, before anything is told to it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def ask(url: str, context: ssl.SSLContext, method: str, path: str, body: bytes | None = None, timeout: float = TIMEOUT_S) -> Told:
    """One request. Raises Unavailable when there is no answer, NotAllowed when the server is not the one that is pinned."""
    parts = urlsplit(url)
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout, context=context)
    connection.response_class = Response
    try:
        connection.request(method, path, body=body, headers={"Content-Type": "application/msgpack", "Accept": "application/msgpack, application/problem+json"})
        answer = connection.getresponse()
        return Told(answer.status, _dated(answer.getheader("Date") or ""), answer.read(MOST))
    except ssl.SSLCertVerificationError as error:
        raise _unproven(url, error) from error
    except ssl.SSLError as error:
        raise Unavailable(f"{url} does not speak TLS as it should: {error.reason or error}", hint=f"is it the port of reporters ({PORT})?") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Unavailable(f"{url} does not answer: {reason}", hint="is the server running, and may this node reach that port?") from error
    finally:
        connection.close()


def _dated(text: str) -> float | None:
    with suppress(ValueError, TypeError, OverflowError):
        return parsedate_to_datetime(text).timestamp()
    return None


def _unproven(url: str, error: ssl.SSLCertVerificationError) -> MusterError:
    """What a certificate that does not fit means."""
    host = urlsplit(url).hostname
    if error.verify_code == _NOT_YET:
        return NotAllowed(f"the certificate of {url} is not valid yet, by this node's clock", hint="set the clock of this node (NTP): it is behind")
    if error.verify_code == _ENDED:
        return NotAllowed(f"the certificate of {url} has ended, by this node's clock", hint="look at this node's clock first, then at the server's certificate")
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        return NotAllowed(f"the certificate of {url} is not for {host}", hint="use a name that the server knows as its own, or add this one to its settings")
    return NotAllowed(
        f"{url} is not the server whose authority is pinned: {error.verify_message or error}",
        hint="if the server was set up anew, take its new fingerprint and join again; else somebody stands between",
    )


def document(told: Told, kind: type[Doc], url: str) -> Doc:
    """The document of an answer. Raises the error that the server tells, or Unavailable for what is no answer of a listener."""
    if told.status >= 300:
        raise problem(told, url)
    try:
        return msgspec.msgpack.decode(told.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unavailable(f"{url} answers with something else", hint=f"is it the port of reporters ({PORT}) of a muster server of this version?") from error


def problem(told: Told, url: str) -> MusterError:
    """The error that a problem document tells."""
    try:
        said: Any = json.loads(told.body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or "code" not in said:
        return Unavailable(f"{url} answers {told.status}", hint=f"is it the port of reporters ({PORT}) of a muster server?")
    kind = _KINDS.get(told.status, Unavailable)
    return kind(plain(str(said.get("detail") or told.status)), hint=plain(str(said.get("hint") or "")))


def authority_of(url: str, context: ssl.SSLContext) -> AuthorityDoc:
    """Who the server says it is. Raises Unavailable, also for one whose reports are of another age."""
    found = document(ask(url, context, "GET", "/v1/authority"), AuthorityDoc, url)
    if found.newest < OLDEST or found.oldest > SCHEMA:
        raise Unavailable(
            f"{url} runs Muster {found.version}, which takes reports of schema {found.oldest} to {found.newest}; this agent's are {OLDEST} to {SCHEMA}",
            hint="bring both to the same version",
        )
    return found
