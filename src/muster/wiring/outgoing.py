# SPDX-License-Identifier: Apache-2.0
"""The one way in which the server opens a URL: only what an allow-list of networks lets through, at the address that was checked, and nowhere else.

A URL names a kind of peer (an issuer, a metrics store, a webhook, a BMC). Its host is resolved once; every address must be allowed, and the connection goes
to one of those. Redirects are followed within one host alone. Loopback, link-local and the addresses at which clouds hand out secrets are closed, unless a
network of the kind lies within them.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import urljoin, urlsplit

import httpx2

from muster.domain.model.errors import InputError, NotAllowed, Unavailable

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""Addresses of a host and port, as texts."""

CLOSED: tuple[Network, ...] = tuple(
    ip_network(each)
    for each in (
        "0.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.0/24",
        "198.18.0.0/15",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/128",
        "::1/128",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
        "fd00:ec2::/32",
        "fd20:ce::254/128",
        "fd00:c1::a9fe:a9fe/128",
        "fd00:42::42/128",
        "fd00:a9fe:a9fe::1/128",
        "fd00:100::100:200/128",
        "100::/64",
        "2001:db8::/32",
    )
)
"""Networks that are open only to a kind whose own networks lie within them."""
_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_TRANSLATED = ip_network("::ffff:0:0:0/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""The third of four words of an address that carries an IPv4 one in its last."""
LIMIT = 1024 * 1024
"""Bytes of an answer."""
TIMEOUT_S = 10.0
MOST_REDIRECTS = 3
LONGEST = 2048
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*", re.IGNORECASE)
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What a kind of peer may be: ``networks`` empty is every address that is not closed. ``http``: without TLS too."""

    networks: tuple[Network, ...] = ()
    http: bool = False
    ca_file: str = ""
    """Certificates to trust instead of the system's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL that was checked: where it goes, and where the connection is made."""

    url: str
    scheme: str
    host: str
    port: int
    path: str
    address: Address

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port."""
        return self.scheme, self.host, self.port


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def networks(told: Sequence[str]) -> tuple[Network, ...]:
    """Networks from their texts. Raises InputError."""
    try:
        return tuple(ip_network(each.strip()) for each in told)
    except ValueError as wrong:
        raise InputError(f"{wrong}", hint="networks are like 10.20.0.0/16 or fd12:3456::/32") from wrong


def resolve(host: str, port: int) -> Sequence[str]:
    """Addresses of a host, as the system knows them."""
    return [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@dataclass(slots=True)
class Outgoing:
    """The client. ``allowed`` by kind; a kind that is not in it opens nothing."""

    allowed: Mapping[str, Allowed]
    resolve: Resolve = resolve
    transport: Callable[[ssl.SSLContext | bool], httpx2.BaseTransport] = field(default=lambda verify: httpx2.HTTPTransport(verify=verify, trust_env=False))

    def check(self, kind: str, url: str) -> Target:
        """Where the URL leads. Raises NotAllowed with the reason, or Unavailable when its host has no address."""
        rule = self.allowed.get(kind)
        if rule is None:
            raise NotAllowed(f"nothing is opened for {kind!r}")
        scheme, host, port, path = _parts(url, rule)
        literal = _literal(host)
        found = [literal] if literal is not None else self._resolved(host, port)
        for each in found:
            why = _closed(each, rule)
            if why:
                where = host if literal is not None else f"{host} ({each})"
                raise NotAllowed(f"{where} is not opened for {kind}: {why}", hint=f"if it is meant, add its network to outgoing_networks for {kind}")
        return Target(url=url, scheme=scheme, host=host, port=port, path=path, address=found[0])

    def _resolved(self, host: str, port: int) -> list[Address]:
        try:
            told = self.resolve(host, port)
            found = [ip_address(each.partition("%")[0]) for each in told]
        except (OSError, UnicodeError, ValueError) as error:
            raise Unavailable(f"{host} has no address: {error}", hint="is the name right, and does this machine resolve it?") from error
        if not found:
            raise Unavailable(f"{host} has no address", hint="is the name right, and does this machine resolve it?")
        return found

    def get(self, kind: str, url: str) -> Reply:
        """The answer to a GET, through redirects within one host. Raises NotAllowed or Unavailable."""
        first = target = self.check(kind, url)
        for _ in range(MOST_REDIRECTS + 1):
            reply = self._exchange(kind, "GET", target)
            if reply.status not in _REDIRECTS:
                return reply
            onward = urljoin(target.url, reply.headers.get("location", ""))
            *origin, path = _parts(onward, self.allowed[kind])
            if tuple(origin) != first.origin:
                raise NotAllowed(f"{first.host} sends on to another place, which is not followed", hint="name the place itself, if it is meant")
            target = replace(first, url=onward, path=path)
        raise Unavailable(f"{first.host} sends on and on")

    def post(self, kind: str, url: str, body: bytes, media_type: str) -> Reply:
        """The answer to a POST; a redirect is an answer like any other. Raises NotAllowed or Unavailable."""
        return self._exchange(kind, "POST", self.check(kind, url), body, media_type)

    def _exchange(self, kind: str, method: str, target: Target, body: bytes | None = None, media_type: str = "") -> Reply:
        """One request to the address that was checked, under the name of the host."""
        address = f"[{target.address}]" if target.address.version == 6 else str(target.address)
        plain = 443 if target.scheme == "https" else 80
        name = f"[{target.host}]" if ":" in target.host else target.host
        headers = {"host": name if target.port == plain else f"{name}:{target.port}", "accept": "application/json, */*"}
        if body is not None:
            headers["content-type"] = media_type
        rule = self.allowed[kind]
        context = ssl.create_default_context(cafile=rule.ca_file or None)
        try:
            with (
                httpx2.Client(transport=self.transport(context), trust_env=False, follow_redirects=False, timeout=TIMEOUT_S) as client,
                client.stream(
                    method,
                    f"{target.scheme}://{address}:{target.port}{target.path}",
                    headers=headers,
                    content=body,
                    extensions={"sni_hostname": target.host},
                ) as told,
            ):
                return Reply(status=told.status_code, headers={k.lower(): v for k, v in told.headers.items()}, body=_bounded(told, target.host))
        except (httpx2.HTTPError, ssl.SSLError, OSError) as error:
            raise Unavailable(
                f"{target.host} does not answer: {str(error) or type(error).__name__}", hint="is it up, and is its certificate trusted here?"
            ) from error


def _bounded(told: httpx2.Response, host: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in told.iter_bytes():
        size += len(part)
        if size > LIMIT:
            raise Unavailable(f"{host} answers with more than {LIMIT} bytes")
        parts.append(part)
    return b"".join(parts)


def _parts(url: str, rule: Allowed) -> tuple[str, str, int, str]:
    """Scheme, host, port and path with query. Only plain spellings pass: what two readers of a URL could read as two hosts is refused."""
    if not 0 < len(url) <= LONGEST or not url.isascii() or re.search(r"[\x00-\x20\x7f\\<>\"^`{|}]", url):
        raise NotAllowed("the URL has signs that do not belong into one", hint="write it plainly: https://host.example/path; other letters as xn-- or %XX")
    try:
        told = urlsplit(url)
    except ValueError as wrong:
        raise NotAllowed(f"that is no URL: {wrong}") from wrong
    scheme = told.scheme.lower()
    if scheme not in ("https", "http") or (scheme == "http" and not rule.http):
        raise NotAllowed(f"{scheme or 'no scheme'} is not opened", hint="name it with https://; http is a setting: outgoing_http")
    if not url[len(scheme) :].startswith("://") or "@" in told.netloc or "%" in told.netloc:
        raise NotAllowed("the URL has a user, an escape or no host before its path", hint="write it plainly: https://host.example/path")
    try:
        port = told.port
    except ValueError as wrong:
        raise NotAllowed(f"the URL's port is none: {wrong}") from wrong
    host = (told.hostname or "").lower()
    if port == 0 or told.netloc.endswith(":") or not host or (":" not in host and not _HOST.fullmatch(host)):
        raise NotAllowed(f"{told.netloc!r} is no host with a port", hint="a name without a dot at its end, or an address")
    path = (told.path or "/") + (f"?{told.query}" if told.query else "")
    return scheme, host, port or (443 if scheme == "https" else 80), path


def _literal(host: str) -> Address | None:
    """The address that the host is; None for a name. Raises NotAllowed for a number in another spelling: 127.1, 0x7f000001, 2130706433, 0177.0.0.1."""
    if ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]):
        try:
            return ip_address(host)
        except ValueError as wrong:
            raise NotAllowed(f"{host} is no address in its plain spelling", hint="four numbers with dots, or IPv6 in brackets") from wrong
    return None


def _closed(address: Address, rule: Allowed) -> str:
    """Why the address is not opened; empty when it is. An IPv4 address within an IPv6 one is looked at as itself."""
    for each in (address, *_within(address)):
        inside = [network for network in rule.networks if network.version == each.version and each in network]
        if rule.networks and not inside:
            return f"{each} is in no network that is allowed"
        for closed in CLOSED:
            if closed.version == each.version and each in closed and not any(_lies(network, closed) for network in inside):
                return f"{each} is of {closed}, which is closed"
    return ""


def _lies(network: Network, within: Network) -> bool:
    if isinstance(network, IPv4Network) and isinstance(within, IPv4Network):
        return network.subnet_of(within)
    return isinstance(network, IPv6Network) and isinstance(within, IPv6Network) and network.subnet_of(within)


def _within(address: Address) -> list[Address]:
    """IPv4 addresses that an IPv6 address carries: mapped, compatible, translated, 6to4, Teredo, ISATAP, NAT64."""
    if isinstance(address, IPv4Address):
        return []
    found: list[Address] = [each for each in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())) if each is not None]
    whole = int(address)
    in_its_end = address in _TRANSLATED or (whole >> 32) & 0xFFFFFFFF in _ISATAP or (whole >> 32 == 0 and whole > 1)
    if in_its_end or any(address in network for network in _NAT64):
        found.append(IPv4Address(whole & 0xFFFFFFFF))
    if address in _NAT64[1]:
        found.append(IPv4Address((whole >> 64 & 0xFFFF) << 16 | whole >> 40 & 0xFFFF))
    return found
