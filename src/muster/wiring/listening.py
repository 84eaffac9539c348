# SPDX-License-Identifier: Apache-2.0
"""How the server listens, from its settings: on loopback without ceremony, beyond it with TLS and tokens. What would let strangers in is refused."""

from __future__ import annotations

import re
import socket

from muster.domain.model.errors import InputError, Unavailable
from muster.services.users_oidc import Issuer, rules
from muster.wiring.authority import Authority, Theirs, own_names, state_of
from muster.wiring.entrance import Entrance
from muster.wiring.holds import address_of
from muster.wiring.outgoing import Allowed, Outgoing, networks
from muster.wiring.settings import ServerSettings

KINDS = ("oidc", "prometheus", "webhook", "bmc")
"""Kinds of peers to which the server opens URLs."""
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*", re.IGNORECASE)
_PLAIN = "plain_http_beyond_loopback"


def beyond(settings: ServerSettings) -> bool:
    """True when others than this machine can reach the server."""
    return not address_of(settings.host).is_loopback


def secure(settings: ServerSettings) -> bool:
    """True when TCP is served with TLS."""
    return settings.tls_certificate is not None or (beyond(settings) and not settings.plain_http_beyond_loopback)


def check(settings: ServerSettings) -> None:
    """Raises InputError for settings that do not go together, with what to do instead."""
    certificate, key = settings.tls_certificate, settings.tls_key
    if (certificate is None) != (key is None):
        raise InputError("tls_certificate and tls_key go together", hint="give both, or none: the server then makes its own")
    if settings.plain_http_beyond_loopback and certificate is not None:
        raise InputError(f"{_PLAIN} and tls_certificate contradict each other", hint="with a certificate, leave the other out")
    if settings.plain_http_beyond_loopback and not beyond(settings):
        raise InputError(f"{_PLAIN} is set, but the server listens on loopback only", hint="leave it out, or name another address with --host")
    if secure(settings) and settings.in_memory:
        raise InputError("a server in memory has no folder in which its authority could last", hint="leave --in-memory out, or listen on loopback without TLS")
    wrong = next((name for name in settings.names if not _NAME.fullmatch(name)), None)
    if wrong is not None:
        raise InputError(f"names: {wrong!r} is no host name", hint="like muster.example.org: no scheme, no port; addresses need no name")
    unknown = sorted({*settings.outgoing_networks, *settings.outgoing_http} - set(KINDS))
    if unknown:
        raise InputError(f"no kind of URL is called {unknown[0]!r}", hint=f"kinds are {', '.join(KINDS)}")
    if (settings.oidc_client_id or settings.oidc_roles) and not settings.oidc_issuer:
        raise InputError("oidc_client_id or oidc_roles is set, and oidc_issuer is not", hint="name the issuer, or leave them out")


def entrance(settings: ServerSettings) -> Entrance:
    """Who comes in without a token, and the names that the server answers to."""
    return Entrance(
        loopback=settings.loopback_open and not beyond(settings), beyond=beyond(settings), names=frozenset(name.lower() for name in names(settings))
    )


def names(settings: ServerSettings) -> tuple[str, ...]:
    """The names of the server, those of the settings first; its machine's own only where others can reach it."""
    own = (socket.gethostname(),) if beyond(settings) else ()
    return tuple(dict.fromkeys((*settings.names, *(name for name in own if _NAME.fullmatch(name)))))


def url(settings: ServerSettings, listener: socket.socket) -> str:
    """Where the server is found: by its first name where it listens on every address."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if secure(settings) else "http"
    if address_of(host).is_unspecified:
        host = next(iter(names(settings)), "localhost")
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def authority(settings: ServerSettings, now: float) -> Authority:
    """The server's authority and certificate: its own, or the one that was given. Raises InputError or Unavailable."""
    here = [] if address_of(settings.host).is_unspecified else [str(address_of(settings.host))]
    return Authority.open(state_of(settings.state), own_names([*settings.names, *here]), now, theirs(settings))


def theirs(settings: ServerSettings) -> Theirs | None:
    """The certificate that was given; None where the server makes its own."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    return Theirs(chain=settings.tls_certificate, key=settings.tls_key)


def outgoing(settings: ServerSettings) -> Outgoing:
    """The client by which the server opens URLs. Raises InputError for networks that are none."""
    if settings.outgoing_ca is not None and not settings.outgoing_ca.is_file():
        raise InputError(f"outgoing_ca: {settings.outgoing_ca} is no file", hint="name a PEM file")
    ca_file = str(settings.outgoing_ca or "")
    allowed = {
        kind: Allowed(networks=networks(settings.outgoing_networks.get(kind, ())), http=kind in settings.outgoing_http, ca_file=ca_file) for kind in KINDS
    }
    return Outgoing(allowed)


def issuer(settings: ServerSettings, client: Outgoing) -> Issuer | None:
    """Where people sign in; None where they do not. Raises InputError for settings that lack something."""
    if not settings.oidc_issuer:
        return None
    told = rules(settings.oidc_issuer, settings.oidc_client_id, settings.oidc_roles, settings.oidc_groups_claim, settings.oidc_name_claim)
    if settings.oidc_issuer.startswith("http://") and "oidc" not in settings.outgoing_http:
        raise InputError("oidc_issuer is http://: whoever is on the way decides who comes in", hint='https://, or outgoing_http = ["oidc"] to try it out')

    def fetch(url: str) -> bytes:
        reply = client.get("oidc", url)
        if reply.status != 200:
            raise Unavailable(f"{settings.oidc_issuer} answers {reply.status}", hint="is oidc_issuer right?")
        return reply.body

    return Issuer(told, fetch)
