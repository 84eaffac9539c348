# SPDX-License-Identifier: Apache-2.0
"""Exports at work: the server is read at an interval, and what it says is served, or pushed to a store of metrics."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from secrets import randbelow
from urllib.parse import urlsplit

from muster.domain.model.errors import InputError, MusterError, Unavailable
from muster.export import delivery, families, fleet, otlp, remote, series, serving
from muster.export.exposition import text
from muster.export.labels import labels
from muster.export.shards import Shard
from muster.export.snappy import packed
from muster.spi.sinks import Ask, Reply

HOLD_S, ROUNDS = 90.0, 3
"""What was read is told for this many seconds at least, and for this many rounds: then it is old, and left out."""
ONCE_S, ONCE_TRIES = 20.0, 4
"""With `--once`: seconds and posts without success after which it is given up."""
_KEPT = 4
"""Label strings that are kept for each series."""
_DETAIL, _ANSWER = 300, 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is exported, and how often the server is read."""

    ask: Ask
    shard: Shard
    keys: frozenset[str]
    interval: float
    say: Callable[[str], None]

    @property
    def hold(self) -> float:
        """Seconds for which a reading may be told."""
        return max(HOLD_S, ROUNDS * self.interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One reading of the server: the fleet, None when it could not be read, and when it began and how long it took by a clock that never jumps."""

    fleet: fleet.Fleet | None
    began: float
    took: float


class Rounds:
    """Reads the server at an interval until ``ending`` is set, and says once what is wrong."""

    def __init__(self, plan: Plan, ending: threading.Event) -> None:
        self._plan = plan
        self._ending = ending
        self._said = ""
        self.failed = 0

    def one(self) -> Round:
        """A reading now."""
        began = time.monotonic()
        found: fleet.Fleet | None = None
        try:
            found = fleet.read(self._plan.ask, self._plan.shard, self._plan.keys | families.INFO_KEYS)
        except MusterError as error:
            self.failed += 1
            if error.message != self._said:
                self._plan.say(f"{error.message}; it is asked again")
            self._said = error.message
        else:
            self._said = ""
        return Round(fleet=found, began=began, took=time.monotonic() - began)

    def all(self) -> Iterator[Round]:
        """Readings at the interval; one that takes longer is followed at once."""
        while not self._ending.is_set():
            told = self.one()
            yield told
            self._ending.wait(max(0.0, told.began + self._plan.interval - time.monotonic()))


def page(plan: Plan) -> str:
    """The page of one reading, as `/metrics` would have it. Raises what the server's reading raises."""
    told = fleet.read(plan.ask, plan.shard, plan.keys | families.INFO_KEYS)
    return text(series.points(told, plan.keys, series.Names()))[0]


def serve(plan: Plan, address: tuple[str, int], ending: threading.Event, ready: Callable[[str], None]) -> None:
    """Serves `/metrics` until ``ending`` is set. Raises Unavailable when the address cannot be had."""
    pages, names, rounds = serving.Pages(plan.shard, plan.hold), series.Names(), Rounds(plan, ending)
    try:
        listener = serving.Listener(address, pages, time.monotonic)
    except OSError as error:
        where = f"{address[0]}:{address[1]}"
        raise Unavailable(f"{where} cannot be listened on: {error.strerror or error}", hint="name another address with --listen") from error
    with listener:
        listener.start()
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        ready(f"http://{host}:{listener.server_address[1]}/metrics")
        for told in rounds.all():
            if told.fleet is None:
                pages.failed()
                continue
            points = series.points(told.fleet, plan.keys, names)
            names.trim(_KEPT * pages.put(points, at=told.fleet.at, took=told.took, now=told.began))
        listener.shutdown()


Items = Callable[[fleet.Fleet | None, float, delivery.Courier, int], Iterable[bytes]]
"""From a reading (None: there is none that may still be told), the server's time now, and how the push goes, to items of a courier."""


def push(plan: Plan, courier: delivery.Courier, items: Items, ending: threading.Event, *, once: bool = False) -> bool:
    """Pushes each reading until ``ending`` is set, or one with ``once``. True when all of it was taken.

    Raises Unavailable when ``once`` there is none, or nobody takes it within a few tries.
    """
    rounds = Rounds(plan, ending)
    known: tuple[float, float] | None = None
    for told in rounds.all():
        if told.fleet is not None:
            known = (told.fleet.at, told.began)
            courier.add(items(told.fleet, told.fleet.at, courier, rounds.failed))
        elif once:
            raise Unavailable("the server could not be read", hint="`muster status` says more")
        elif known is not None and told.began - known[1] > plan.hold:
            courier.add(items(None, known[0] + told.began - known[1], courier, rounds.failed))
        if once:
            return _once(courier, ending)
        courier.deliver(told.began + plan.interval)
    return not courier.waiting


def _once(courier: delivery.Courier, ending: threading.Event) -> bool:
    """Brings what waits, as long as it goes on. False when some of it was refused, or the user ended it. Raises Unavailable when nobody takes it."""
    before = -1
    while courier.sent > before and not ending.is_set():
        before = courier.sent
        if courier.deliver(time.monotonic() + ONCE_S, ONCE_TRIES):
            return not courier.dropped.total()
    if ending.is_set():
        return False
    hint = "look at the address; without --once the push goes on, and tries again until it is taken"
    raise Unavailable(f"it is not taken: {courier.trouble}", hint=hint)


def remote_items(plan: Plan) -> Items:
    """Items of remote write, those about the export included."""
    lines, names = remote.Lines(), series.Names()

    def made(told: fleet.Fleet | None, at: float, courier: delivery.Courier, failed: int) -> Iterator[bytes]:
        mine = list(_own(plan, courier, failed, fresh=told is not None))
        points = list(series.points(told, plan.keys, names)) if told is not None else []
        names.trim(_KEPT * max(1, len(points)))
        yield from lines.told([*points, *mine], at)

    return made


def _own(plan: Plan, courier: delivery.Courier, failed: int, *, fresh: bool) -> Iterator[series.Point]:
    mine = labels((("shard", str(plan.shard.number)),))
    yield series.Point(families.EXPORT_SHARD, mine.more("shards", str(plan.shard.of)), 1)
    for family, value in (
        (families.EXPORT_FRESH, int(fresh)),
        (families.EXPORT_FAILED, failed),
        (families.EXPORT_SENT, courier.sent),
        (families.EXPORT_RETRIES, courier.retries),
        (families.EXPORT_WAITING, courier.waiting),
    ):
        yield series.Point(family, mine, value)
    for reason, count in sorted(courier.dropped.items()):
        yield series.Point(families.EXPORT_DROPPED, mine.more("reason", reason), count)


def otlp_items(version: str) -> Items:
    """Items of OTLP. When there is no reading that may still be told, there is nothing to tell."""

    def made(told: fleet.Fleet | None, at: float, courier: delivery.Courier, failed: int) -> Iterable[bytes]:
        del at, courier, failed
        return otlp.resources(told, version) if told is not None else ()

    return made


def to_remote_write(post: HttpPost, ending: threading.Event, say: Callable[[str], None]) -> delivery.Courier:
    """Who brings remote write to ``post``."""
    return delivery.Courier(post, partial(remote.sealed, pack=packer()), _moving(ending), say)


def packer() -> Callable[[bytes], bytes]:
    """Who packs remote write: cramjam where it is installed, which makes bodies about ten times smaller, else our own, which makes them no smaller."""
    try:
        from cramjam import snappy
    except ImportError:
        return packed
    return lambda body: bytes(snappy.compress_raw(body))


def to_otlp(post: HttpPost, ending: threading.Event, say: Callable[[str], None]) -> delivery.Courier:
    """Who brings OTLP to ``post``."""
    return delivery.Courier(post, otlp.sealed, _moving(ending), say, otlp.rejected)


def _moving(ending: threading.Event) -> delivery.Moving:
    return delivery.Moving(pause=ending.wait, clock=time.monotonic, die=lambda: randbelow(1000) / 1000)


class HttpPost:
    """Posts to one URL, on one connection while it lasts. Redirects are not followed."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float, authority: Path | None = None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = dict(headers)
        self._timeout = timeout
        self._context = ssl.create_default_context(cafile=str(authority) if authority else None) if parts.scheme == "https" else None
        self._open: http.client.HTTPConnection | None = None

    def __call__(self, body: bytes) -> Reply:
        """The answer to one body."""
        kept = self._open is not None
        try:
            try:
                answer, told = self._once(body)
            except (ConnectionError, http.client.BadStatusLine):
                self.close()
                if not kept:
                    raise
                answer, told = self._once(body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Reply(0, f"{self._host}: {getattr(error, 'strerror', None) or str(error) or type(error).__name__}")
        after = answer.headers.get("Retry-After") or ""
        words = "".join(each for each in told.decode("utf-8", "replace")[:_DETAIL] if each.isprintable())
        return Reply(answer.status, f"HTTP {answer.status} {words}".strip(), float(after) if after.isdecimal() and len(after) < 8 else 0.0, told)

    def _once(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        self._open = self._open or self._connection()
        self._open.request("POST", self._target, body=body, headers=self._headers)
        answer = self._open.getresponse()
        told = answer.read(_ANSWER)
        if answer.will_close or not answer.isclosed():
            self.close()
        return answer, told

    def _connection(self) -> http.client.HTTPConnection:
        if self._context is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def close(self) -> None:
        """Lets the connection go."""
        if self._open is not None:
            self._open.close()
            self._open = None


def checked(url: str, token: str, *, plain: bool) -> str:
    """The URL of a store of metrics. Raises InputError for one that is none, has a password in it, or would show the token to the network."""
    try:
        parts = urlsplit(url)
        port_is_one = parts.port != 0
    except ValueError as wrong:
        raise InputError(f"{url!r} is no URL: {wrong}") from wrong
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_one:
        raise InputError(f"{url!r} is no URL of a store of metrics", hint="give http://host:port/path or https://host/path")
    if parts.username is not None or parts.password is not None:
        raise InputError("the URL has a name or password in it", hint="everybody on this machine can read it there: use --token-file")
    if token and parts.scheme == "http" and not loopback(parts.hostname) and not plain:
        raise InputError("the token would go over the network in plain text", hint="use https, or say --plain-http if that network is yours alone")
    return url


def listening(text_: str, *, plain: bool) -> tuple[str, int]:
    """The address of ``HOST:PORT``. Raises InputError for one that is none, or that others reach without `--plain-http`."""
    host, _, port = text_.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"--listen {text_!r} is no address", hint="write it like 127.0.0.1:9460, or [::1]:9460")
    if not loopback(host) and not plain:
        raise InputError(f"{host} is reached from other machines, and metrics are served as plain HTTP", hint="say --plain-http if that is meant")
    return host, int(port)


def loopback(host: str) -> bool:
    """True for this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
