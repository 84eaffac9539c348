# SPDX-License-Identifier: Apache-2.0
"""`muster export`: the fleet as metrics, for the stores of metrics that a site already runs."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import click

from muster.domain.model.errors import InputError, Unavailable
from muster.export import families, otlp, remote
from muster.export.conventions import KEYS
from muster.export.shards import shard
from muster.interfaces.cli.calls import Seconds, connect, server_options
from muster.interfaces.cli.cells import safe
from muster.interfaces.cli.client import PREFIX, READY, Client, problem
from muster.interfaces.cli.exits import FAILED, OK
from muster.interfaces.cli.output import note, write
from muster.interfaces.cli.version import version_here
from muster.wiring import exporting
from muster.wiring.exporting import HttpPost, Plan

F = TypeVar("F", bound=Callable[..., Any])
LINES = "application/x-ndjson"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.group()
def export() -> None:
    """The fleet as metrics. What is not known has no series: it is never drawn as 0."""


def _what(command: F) -> F:
    """``--shard`` and ``--interval``."""
    for option in (
        click.option("--interval", type=Seconds(min=1), default=15.0, show_default=True, metavar="SECONDS", help="How often the server is read."),
        click.option("--shard", default="1/1", metavar="K/N", show_default=True, help="Only the K-th of N fixed parts of the fleet, by the ids of cards."),
    ):
        command = option(command)
    return command


_attributes = click.option("--attributes", default="", metavar="KEY,KEY", help="Only these attributes; all that are numbers or states when left out.")
_once = click.option("--once", is_flag=True, help="Read the server once, tell that, and end.")
_once_pushed = click.option(
    "--once", is_flag=True, help="Read the server once, tell that, and end. It is tried four times in 20 seconds; exit code 6 when nobody takes it then."
)
_plain = click.option("--plain-http", is_flag=True, help="Allow plain HTTP with other machines. Whoever can listen in reads it all.")


def _where(command: F) -> F:
    """Where a push goes, and with which token."""
    for option in (
        click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of each post, as for a tenant; no place for secrets."),
        click.option(
            "--ca", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE", help="Authorities to trust instead of the system's."
        ),
        click.option("--token-file", type=click.Path(path_type=Path), metavar="FILE", help="File with the token that goes to the URL as bearer."),
    ):
        command = option(command)
    return command


@export.command()
@click.option("--listen", default="127.0.0.1:9460", show_default=True, metavar="HOST:PORT", help="Address of /metrics.")
@_plain
@_attributes
@_once
@_what
@server_options
def prometheus(listen: str, plain_http: bool, attributes: str, once: bool, **options: Any) -> int:
    """Serves /metrics for Prometheus until Ctrl-C; with --once prints the page. A page that is too old is not served."""
    address = exporting.listening(listen, plain=plain_http)
    plan = _plan(options, families.chosen(attributes))
    if once:
        write(exporting.page(plan))
        return OK
    with _ending() as ending:
        exporting.serve(plan, address, ending, lambda url: note(f"muster: metrics at {url}"))
    return OK


@export.command("remote-write")
@click.option("--url", required=True, metavar="URL", help="Where remote write is taken, like http://127.0.0.1:8428/api/v1/write.")
@_where
@_plain
@_attributes
@_once_pushed
@_what
@server_options
def remote_write(url: str, plain_http: bool, attributes: str, once: bool, **options: Any) -> int:
    """Pushes to a store that takes Prometheus remote write 1.0, each value at the time of its reading.

    A store that is away or busy is tried again, what it refuses is given up and counted. A series that ends is marked as ended.
    """
    plan = _plan(options, families.chosen(attributes))
    post = _post(url, options, remote.HEADERS, plain=plain_http)
    with _ending() as ending, contextlib.closing(post):
        courier = exporting.to_remote_write(post, ending, plan.say)
        done = exporting.push(plan, courier, exporting.remote_items(plan), ending, once=once)
    return OK if done or not once else FAILED


@export.command("otlp")
@click.option("--endpoint", required=True, metavar="URL", help="The receiver, like http://127.0.0.1:4318; /v1/metrics is put behind a URL without a path.")
@_where
@_plain
@_once_pushed
@_what
@server_options
def otlp_(endpoint: str, plain_http: bool, once: bool, **options: Any) -> int:
    """Pushes to an OpenTelemetry receiver over OTLP/HTTP, by the hardware conventions (hw.*), a resource for each host."""
    plan = _plan(options, KEYS)
    slashes = endpoint.rstrip("/")
    url = f"{slashes}/v1/metrics" if slashes.count("/") <= 2 else endpoint
    post = _post(url, options, otlp.HEADERS, plain=plain_http)
    with _ending() as ending, contextlib.closing(post):
        courier = exporting.to_otlp(post, ending, plan.say)
        done = exporting.push(plan, courier, exporting.otlp_items(version_here()), ending, once=once)
    return OK if done or not once else FAILED


class Asking(Client):
    """A client that also reads lists as they come, a line at a time, so that a large fleet is never held as text."""

    def __call__(self, path: str, query: Mapping[str, str]) -> bytes:
        """The document at ``path``."""
        return self.raw("GET", path, query)[1]

    def ready(self) -> bool:
        """True when the server says that it can do its work."""
        try:
            self.raw("GET", READY, {}, prefix="")
        except Unavailable:
            return False
        return True

    def listed(self, path: str, query: Mapping[str, str]) -> Iterator[bytes] | None:
        """The list, a document a line; None when this server does not stream lists."""
        if self._pages:
            return None
        target = f"{self._base()}{PREFIX}{path}?{urlencode({**query, 'format': 'ndjson'})}"
        headers = {"Accept": LINES} | ({"Authorization": f"Bearer {self.address.token}"} if self.address.token else {})
        connection = self._connection()
        try:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            if answer.status == HTTPStatus.OK and answer.headers.get_content_type() == LINES:
                return self._told(connection, answer)
            payload = answer.read()
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._silent(error) from error
        connection.close()
        if answer.status in (HTTPStatus.OK, HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_ACCEPTABLE):
            self._pages = True
            return None
        raise problem(answer.status, payload)

    _pages = False
    """This server does not stream: it is not asked for it again."""

    def _told(self, connection: HTTPConnection, answer: HTTPResponse) -> Iterator[bytes]:
        with contextlib.closing(connection):
            try:
                yield from answer
            except (OSError, HTTPException, ValueError) as error:
                raise self._silent(error) from error


def _plan(options: Mapping[str, Any], keys: frozenset[str]) -> Plan:
    client = connect(options["server"], options["timeout"], options["verbose"])
    ask = Asking(client.address, options["timeout"])
    click.get_current_context().call_on_close(ask.close)

    def say(what: str) -> None:
        if not options["quiet"]:
            note(f"muster: {safe(what)}")

    return Plan(ask=ask, shard=shard(options["shard"]), keys=keys, interval=options["interval"], say=say)


def _post(url: str, options: Mapping[str, Any], headers: Mapping[str, str], *, plain: bool) -> HttpPost:
    token = _token(options["token_file"])
    more = dict(_pair(each) for each in options["headers"])
    if token:
        more["Authorization"] = f"Bearer {token}"
    return HttpPost(exporting.checked(url, token, plain=plain), {"User-Agent": "muster", **more, **headers}, options["timeout"], options["ca"])


def _pair(text: str) -> tuple[str, str]:
    name, between, value = text.partition("=")
    if not between or not name.replace("-", "").isalnum() or not name.isascii() or not value.isprintable() or not value.isascii():
        raise InputError(f"--header {text!r} is no header", hint="write NAME=VALUE, like X-Scope-OrgID=gpu")
    return name, value


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as wrong:
        raise InputError(f"{file} cannot be read: {getattr(wrong, 'strerror', None) or wrong}", hint="it holds the token, and nothing else") from wrong
    if not token or not token.isprintable() or " " in token:
        raise InputError(f"{file} holds no token", hint="it holds the token in one line, and nothing else")
    return token


@contextlib.contextmanager
def _ending() -> Iterator[threading.Event]:
    """An event that Ctrl-C, SIGTERM and the end of the terminal set; whoever says it twice does not wait for what is being read."""
    ending = threading.Event()

    def heard(*_: object) -> None:
        if ending.is_set():
            raise KeyboardInterrupt
        ending.set()

    before = {each: signal.signal(each, heard) for each in _SIGNALS}
    try:
        yield ending
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
