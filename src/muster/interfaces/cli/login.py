# SPDX-License-Identifier: Apache-2.0
"""`muster login`, `logout` and `whoami`: the server that is meant, who you are there, and the token that shows it."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from muster.domain.model.errors import InputError, MusterError, NotFound
from muster.interfaces.cli import known
from muster.interfaces.cli.calls import Seconds, connect, server_options
from muster.interfaces.cli.cells import safe
from muster.interfaces.cli.client import Address, Client, loopback
from muster.interfaces.cli.device import SCOPES, sign_in
from muster.interfaces.cli.output import note, to_json, write

_LONGEST = 512
_HINT = "--token-file FILE, or - for stdin; --oidc where the server knows an issuer; an admin makes one: muster token create NAME"


@click.command()
@click.argument("url", metavar="URL")
@click.option("--token-file", metavar="FILE", help="File with the token; - reads it from stdin. Left out: it is asked for at a terminal.")
@click.option("--oidc", is_flag=True, help="Sign in at the issuer that the server knows, in a browser on any machine.")
@click.option("--scopes", default=SCOPES, show_default=True, metavar="WORDS", help="What is asked of the issuer; some want one for the groups.")
@click.option("--ca", metavar="sha256:HEX", help="Fingerprint of the server's authority, as the server prints it when it starts.")
@click.option("--ca-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE", help="Certificate (PEM) of the server's authority.")
@click.option("--plain-http", is_flag=True, help="Let the token go without TLS: whoever is on the way can read it.")
@click.option("--timeout", type=Seconds(min=0.1), default=30.0, metavar="SECONDS", help="How long to wait for an answer.")
def login(url: str, token_file: str | None, oidc: bool, scopes: str, ca: str | None, ca_file: Path | None, plain_http: bool, timeout: float) -> int:
    """Sign in at a server: it is the one meant from now on, until `muster logout`.

    Server, token and authority are kept in the user's own folder, in a file that nobody else can read. A token is never given as an argument.
    """
    address = _address(url, plain_http)
    if ca and ca_file:
        raise InputError("--ca and --ca-file say the same thing twice", hint="give one of them")
    pem = _authority(address, ca, ca_file, timeout)
    address = replace(address, ca=pem)
    token = _by_issuer(address, scopes, timeout) if oidc else _token(token_file)
    client = Client(replace(address, token=token), timeout)
    try:
        who = client.get("/whoami")
    finally:
        client.close()
    path = known.keep(address.url, known.Server(token=token, ca=pem, plain=plain_http))
    note(f"muster: signed in at {address.url} as {safe(str(who['name']))} ({safe(str(who['role']))}); kept in {path}")
    return 0


def _address(text: str, plain: bool) -> Address:
    url = text if "://" in text else f"https://{text}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise InputError(f"{text.rpartition('@')[2]!r} is no address of a server", hint="give https://host:port, without a user or a password")
    if parts.scheme == "http" and not (plain or loopback(parts.hostname)):
        raise InputError(f"{text} is without TLS: whoever is on the way could read the token", hint="use https://; --plain-http if that network is yours alone")
    return Address(url.rstrip("/"), "", "muster login", plain=plain)


def _authority(address: Address, ca: str | None, ca_file: Path | None, timeout: float) -> str:
    """The authority to go by (PEM); what was kept for this server where nothing is said, empty for those of the system."""
    parts = urlsplit(address.url)
    if (ca or ca_file) and parts.scheme != "https":
        raise InputError("a server without TLS has no authority to show", hint="use https://, or leave --ca out")
    if ca:
        return known.pinned(parts.hostname or "", parts.port or 443, ca, timeout)
    if ca_file is None:
        kept = known.read().servers.get(address.url)
        return kept.ca if kept else ""
    try:
        text = ca_file.read_text(encoding="ascii")
        known.context(text)
    except (OSError, ValueError) as wrong:
        raise InputError(f"{ca_file} is no certificate: {wrong}", hint="a PEM file") from wrong
    return text


def _token(file: str | None) -> str:
    if file == "-":
        text = sys.stdin.read(_LONGEST + 1) if sys.stdin is not None else ""
    elif file is not None:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: {getattr(error, 'strerror', None) or error}", hint="a file with nothing but the token") from error
    elif sys.stdin is not None and sys.stdin.isatty():
        text = click.prompt("Token", hide_input=True, err=True)
    else:
        raise InputError("no token is given", hint=_HINT)
    token: str = text.strip()
    if not token or len(token) > _LONGEST or not token.isascii() or any(sign.isspace() for sign in token):
        raise InputError("that is no token", hint="one word that begins with muster_, and nothing else")
    return token


def _by_issuer(address: Address, scopes: str, timeout: float) -> str:
    """A session's token, by a sign-in at the issuer."""
    client = Client(replace(address, token=""), timeout)
    try:
        issuer, client_id = client.issuer()
        if not issuer:
            raise InputError("nobody signs in at that server through an issuer", hint="its settings oidc_* name one; else a token: --token-file FILE")
        proof, nonce = sign_in(issuer, client_id, _say, scopes=scopes)
        made = client.post("/login/oidc", {"id_token": proof, "nonce": nonce})
    finally:
        client.close()
    return str(made["secret"])


def _say(page: str, code: str) -> None:
    note(f"muster: open {safe(page)}")
    if code:
        note(f"  and enter the code {safe(code)}")
    note("  waiting until it is let through (Ctrl-C ends it)")


@click.command()
@click.argument("url", metavar="[URL]", required=False)
@click.option("--server", metavar="URL", help="The same as URL.")
def logout(url: str | None, server: str | None) -> int:
    """Forget a server and its token; a session is ended there too. Left alone: the server that is meant."""
    kept = known.read()
    wanted = (url or server or kept.current).rstrip("/")
    if wanted not in kept.servers:
        raise NotFound(f"not signed in at {wanted}" if wanted else "not signed in anywhere", hint=f"signed in at: {', '.join(kept.servers) or 'none'}")
    told = kept.servers[wanted]
    client = Client(Address(wanted, "", str(known.file()), told.token, told.ca, told.plain), 5.0)
    with contextlib.suppress(MusterError), contextlib.closing(client):
        client.post("/logout", {})
    known.forget(wanted)
    note(f"muster: signed out at {wanted}")
    return 0


@click.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the answer.")
@server_options
def whoami(output: str, **options: Any) -> int:
    """Who you are at the server, and what you may."""
    client = connect(options["server"], options["timeout"], options["verbose"])
    who = client.get("/whoami")
    if output == "json":
        write(to_json({**who, "server": client.address.socket or client.address.url}) + "\n")
        return 0
    scope = [f"{what} {', '.join(who[key])}" for what, key in (("nodes", "nodes"), ("reading", "reads")) if who[key]]
    limited = f", only {' and '.join(scope)}" if scope else ""
    where = client.address.socket or client.address.url
    write(f"{safe(str(who['name']))}: {safe(str(who['role']) + limited)}, known by {safe(str(who['via']))}, at {where}\n")
    return 0
