# SPDX-License-Identifier: Apache-2.0
"""A node that joined: its server, its key, and the access token it goes by. Standard library and msgspec alone; a child process signs.

All of it lies in ``membership`` in the agent's state folder: ``membership.json``, ``ca.pem``, ``key`` and, for `muster agent status`, ``token.json``.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from muster.collect.post import Address
from muster.domain.model.errors import InputError, MusterError, NotAllowed, Unavailable
from muster.wire.enrol import Asking, Signed, Token, TokenRequest, packed, to_prove
from muster.wire.report import NodeDoc
from muster.wiring.gate_calls import ask, document, pinned
from muster.wiring.private import write_over

_log = logging.getLogger("muster.membership")

WALL: Callable[[], float] = time.time  # noqa: TID251 - wiring owns the clock

FOLDER, FILE, CA, KEY, NEXT_KEY, STATE = "membership", "membership.json", "ca.pem", "key", "key.new", "token.json"
EARLY, SPREAD = 0.7, 0.2
"""A token is renewed after 70 to 90 % of its life, each time another part of it, so that agents do not come all at once."""
LAST_S = 30.0
"""Seconds before its end at which a token is used no more."""
FIRST_WAIT_S, LONGEST_WAIT_S = 2.0, 60.0
REFUSALS = 3
"""Tokens that may be refused within a minute before a new one is waited for."""
CHILD_S = 30.0
_PASSED_ON = ("PATH", "HOME", "LANG", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a node knows of its membership; nothing of it is secret."""

    url: str
    fingerprint: str
    reporter: str
    node: NodeDoc
    scope: dict[str, Any]
    joined_at: float


def folder_of(state: Path) -> Path:
    """Where the membership of an agent with this state folder lies."""
    return state / FOLDER


def card(state: Path) -> Card | None:
    """The membership card; None where nobody joined. Raises Unavailable for one that cannot be read."""
    path = folder_of(state) / FILE
    try:
        return msgspec.convert(json.loads(path.read_bytes()), Card)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise Unavailable(
            f"{path} cannot be read: {error}", hint="run this as the agent's user; a damaged one: `muster agent leave`, then join again"
        ) from error


def keep(state: Path, told: Card, ca: bytes) -> None:
    """Keeps a new membership; the card is written last, and with it the node has joined. Raises Unavailable."""
    write_over(folder_of(state) / CA, ca)
    write_over(folder_of(state) / FILE, json.dumps({**asdict(told), "node": msgspec.to_builtins(told.node)}, indent=1).encode())


def signing_child(order: str, key: Path, payload: bytes = b"") -> bytes:
    """What `muster.wiring.keys` answers: it runs in a process of its own, which ends at once. Raises Unavailable."""
    command = [sys.executable, "-P", "-m", "muster.wiring.keys", order, str(key)]
    clean = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {"LC_ALL": "C"}
    try:
        done = subprocess.run(command, input=payload, capture_output=True, timeout=CHILD_S, check=False, env=clean)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"the process that signs cannot run: {error}", hint="it is this Python with `-m muster.wiring.keys`; is memory short?") from error
    if done.returncode:
        lines = [*done.stderr.decode("utf-8", "replace").strip().splitlines(), "", ""]
        raise Unavailable(lines[0] or f"the process that signs ended with {done.returncode}", hint=lines[1])
    return done.stdout


def signed(asked: Asking, key: Path, also: Path | None = None) -> Signed:
    """The request with its proof by the key in the file, and by a second one. Raises Unavailable."""
    body = packed(asked)
    proof = to_prove(type(asked), body)
    return Signed(body=body, proof=signing_child("sign", key, proof), also=signing_child("sign", also, proof) if also else b"")


@dataclass(slots=True)
class _Held:
    """A token, and until when by the monotonic clock."""

    token: str
    until: float
    renew_at: float


@dataclass(slots=True, kw_only=True)
class Membership:
    """What the agent goes by. ``node`` is what it calls itself now: set it when that is known better than at the time of joining."""

    folder: Path
    card: Card
    node: NodeDoc
    boot_id: str = ""
    agent_version: str = ""
    wall: Callable[[], float] = WALL
    mono: Callable[[], float] = time.monotonic
    schema: int = 0
    """Newest report schema that the server reads; 0 until it was asked."""
    trouble: str = ""
    """Why no token is to be had; empty when all is well."""
    _instance: str = field(default_factory=lambda: secrets.token_hex(8))
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _held: _Held | None = None
    _file: tuple[int, int, int] = (0, 0, 0)
    _made: ssl.SSLContext | None = None
    _off: float = 0.0
    _failures: int = 0
    _again_at: float = float("-inf")
    _refusals: list[float] = field(default_factory=list)
    _error: MusterError | None = None

    @classmethod
    def open(cls, state: Path, node: NodeDoc | None = None, boot_id: str = "", agent_version: str = "") -> Membership | None:
        """The membership of the agent with this state folder; None when it never joined. Raises Unavailable for one that cannot be read."""
        told = card(state)
        if told is None:
            return None
        return cls(folder=folder_of(state), card=told, node=node or told.node, boot_id=boot_id, agent_version=agent_version)

    @property
    def reporter(self) -> str:
        """The name under which it reports."""
        return self.card.reporter

    @property
    def shut_out(self) -> NotAllowed | None:
        """Why the server lets this node in no more; None while it does, or does not answer."""
        return self._error if isinstance(self._error, NotAllowed) else None

    @property
    def address(self) -> Address:
        """Where the server is."""
        return Address(self.card.url)

    def context(self) -> ssl.SSLContext:
        """TLS that believes the pinned authority alone. One for life, so that connections can be resumed. Raises Unavailable."""
        if self._made is None:
            try:
                ca = (self.folder / CA).read_bytes()
            except OSError as error:
                raise Unavailable(f"{self.folder / CA} cannot be read: {error.strerror}", hint="run the agent as the user who joined, or join again") from error
            self._made = pinned(ca)
        return self._made

    def headers(self) -> dict[str, str]:
        """The header that shows the access token; one that comes near its end is renewed first.

        Raises NotAllowed when the server lets this node in no more, Unavailable when no token is to be had now. While the old one holds it is used.
        """
        with self._turn:
            self._stands()
            now, held = self.mono(), self._held
            if held is not None and (now < held.renew_at or (now < self._again_at and now < held.until)):
                return _header(held)
            if now < self._again_at and self._error is not None:
                raise self._error
            try:
                self._held = self._fetched()
            except MusterError as error:
                self._failed(error, now)
                if held is None or now >= held.until:
                    raise
                return _header(held)
            self._failures, self._error, self.trouble, self._again_at = 0, None, "", float("-inf")
            return _header(self._held)

    def proven(self) -> None:
        """Asks for a token at once, without a word in the log; puts a new key in its place where that is the one the server knows. Raises MusterError."""
        with self._turn:
            self._held = self._fetched()

    def _stands(self) -> None:
        """Raises NotAllowed when this node has left, or has joined anew, since this was opened: nothing is told in a name that was given up."""
        try:
            found = (self.folder / FILE).stat()
            file = (found.st_ino, found.st_mtime_ns, found.st_size)
            if file == self._file or msgspec.convert(json.loads((self.folder / FILE).read_bytes()), Card) == self.card:
                self._file = file
                return
            why, hint = "this node has joined anew", "start the agent anew: it goes by the membership that it began with"
        except FileNotFoundError:
            why, hint = f"this node has left {self.card.url}", "stop the agent; or join again, and start it anew"
        except (OSError, ValueError, RecursionError):
            return  # unreadable is not gone
        self._held = None
        gone = NotAllowed(why, hint=hint)
        self._said(gone, "nothing is reported any more")
        raise gone

    def _failed(self, error: MusterError, now: float) -> None:
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self._failures, 10))
        self._failures += 1
        self._again_at = now + wait * (0.5 + _part() / 2)
        if self._said(error, "no access token"):
            self._tell(None)

    def _said(self, error: MusterError, what: str) -> bool:
        """Says why nothing is told to the server, once. True when it was said now."""
        self._error = error
        if error.message == self.trouble:
            return False
        _log.warning("%s: %s%s", what, error.message, f" ({error.hint})" if error.hint else "")
        self.trouble = error.message
        return True

    def refused(self) -> None:
        """The server took the token for one that does not hold: the next `headers` asks for another, at once a few times, then with waits."""
        with self._turn:
            now, self._held = self.mono(), None
            self._refusals = [*(at for at in self._refusals if now - at < LONGEST_WAIT_S), now]
            if len(self._refusals) > REFUSALS:
                self._failed(NotAllowed("the server does not take the access token that it gave", hint="are several servers behind this address?"), now)

    def _fetched(self) -> _Held:
        told = self._asked(self.folder / KEY)
        self.schema = told.schema
        life, now = max(told.until - told.now, 0.0), self.mono()
        self._off = told.now - self.wall()
        self._tell(told.until)
        return _Held(told.token, now + max(life - LAST_S, 0.0), now + life * (EARLY + SPREAD * _part()))

    def _asked(self, key: Path) -> Token:
        """A token by the key; by the one that was being brought in, when the server knows that already."""
        try:
            return self._timely(key)
        except NotAllowed as refused:
            fresh = self.folder / NEXT_KEY
            if not fresh.exists():
                raise
            try:
                told = self._timely(fresh)
            except NotAllowed:
                raise refused from None  # it knows the first key better: that one was revoked, say
            fresh.replace(key)
            return told

    def _timely(self, key: Path) -> Token:
        """A token. When the server finds our clock off, once more by its own."""
        answer = self._sent(key)
        if answer.status == 400 and answer.at is not None and abs(answer.at - (self.wall() + self._off)) > 1.0:
            self._off = answer.at + 0.5 - self.wall()
            answer = self._sent(key)
        return document(answer, Token, self.card.url)

    def _sent(self, key: Path) -> Any:
        asked = TokenRequest(
            reporter=self.card.reporter,
            server=self.card.fingerprint,
            at=self.wall() + self._off,
            nonce=secrets.token_bytes(16),
            node=self.node,
            boot_id=self.boot_id,
            instance=self._instance,
            agent_version=self.agent_version,
        )
        return ask(self.card.url, self.context(), "POST", "/v1/token", msgspec.msgpack.encode(signed(asked, key)))

    def _tell(self, until: float | None) -> None:
        """Leaves word for `muster agent status`; a disk that is full is no reason to stop."""
        with suppress(MusterError):
            error = self._error if until is None else None
            wrong = {"trouble": error.message, "help": error.hint} if error else {"trouble": "", "help": ""}
            told = {"until": until, "at": self.wall(), **wrong, "off": round(self._off, 3)}
            write_over(self.folder / STATE, json.dumps(told).encode())


def _header(held: _Held) -> dict[str, str]:
    return {"Authorization": f"Bearer {held.token}"}


def _part() -> float:
    return secrets.randbelow(1000) / 1000


def joined(state: Path) -> Membership:
    """The membership there must be. Raises InputError when nobody joined."""
    found = Membership.open(state)
    if found is None:
        raise InputError(f"nobody has joined from {state}", hint="`muster agent join https://HOST:7461 --ca sha256:... --token ...`")
    return found
