# SPDX-License-Identifier: Apache-2.0
"""Proof of possession: the signature, its time, that it is used once, and that one key is not in two places."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from muster.domain.model.errors import Conflict, InputError, NotAllowed
from muster.wire.enrol import EnrolRequest, LeaveRequest, RenewRequest, Signed, TokenRequest, to_prove

WINDOW = 300.0
"""Seconds that the time in a proof may be off."""
NONCE, LONGEST_NONCE = 16, 64
"""Bytes of a nonce."""
MOST = 200_000
"""Proofs that are remembered; more within one window are put off."""

_PLACES = 16
"""Processes of one key that are remembered; one that starts again and again makes many."""

Asked = TypeVar("Asked", EnrolRequest, TokenRequest, RenewRequest, LeaveRequest)


def opened(signed: Signed, kind: type[Asked]) -> Asked:
    """The request in a signed envelope, not yet checked. Raises InputError."""
    try:
        return msgspec.msgpack.decode(signed.body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as wrong:
        raise InputError(f"the request does not fit: {wrong}", hint="is the agent of a much older or newer version?") from wrong


def proven(key: bytes, proof: bytes, kind: type[msgspec.Struct], body: bytes) -> bool:
    """True when the holder of ``key`` signed this request for this purpose."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(proof, to_prove(kind, body))
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(slots=True)
class Freshness:
    """Proofs that were used, while their time still counts. ``since`` is when this began to remember: a proof from before may have been used already."""

    server: str
    since: float
    _used: set[bytes] = field(default_factory=set)
    _order: deque[tuple[float, bytes]] = field(default_factory=deque)

    def timely(self, server: str, at: float, now: float) -> None:
        """Raises InputError for a proof that was made for another server, or too long ago, or in the future."""
        if server != self.server:
            raise InputError("the proof is for another server", hint="this server's authority has changed: join again, with the fingerprint that it shows now")
        off = at - now
        if not abs(off) <= WINDOW or at < int(self.since):  # a node whose clock is off goes by our own, which it is told in whole seconds
            way = "ahead of" if off > 0 else "behind"
            raise InputError(f"the clock of the node is {abs(off):.0f} s {way} the server's", hint="set the clock of the node, or of the server (NTP)")

    def once(self, nonce: bytes, at: float, now: float) -> None:
        """Takes a nonce as used. Raises NotAllowed for one that was."""
        while self._order and self._order[0][0] < now - WINDOW:
            self._used.discard(self._order.popleft()[1])
        if not NONCE <= len(nonce) <= LONGEST_NONCE:
            raise InputError(f"the nonce is not of {NONCE} to {LONGEST_NONCE} bytes")
        if nonce in self._used:
            raise NotAllowed("this proof was used already", hint="a proof is good for one request")
        if len(self._used) >= MOST:
            raise NotAllowed("too many proofs at once", hint="try again in a few minutes")
        self._used.add(nonce)
        self._order.append((max(at, now), nonce))


@dataclass(slots=True)
class _Place:
    boot: str
    home: bool
    last_at: float


@dataclass(slots=True)
class Doubles:
    """Tells when one key is used in two places at once: a place that another took over from comes back.

    A place is a process in one boot of one system. A process that starts anew takes over, and the one before is never heard again; of a clone, both are.
    The place on the chassis that joined keeps the identity, else the one that was first; the other is shut out as long as that one is heard of.
    """

    patience: float
    """Seconds after which a place that is not heard of no longer counts."""
    _places: dict[str, dict[str, _Place]] = field(default_factory=dict)
    _out: dict[str, set[str]] = field(default_factory=dict)

    def hear(self, reporter: str, boot: str, instance: str, now: float, *, home: bool) -> str:
        """Takes note of a request. Returns the boot or process that was found to be a double just now (empty: none). Raises Conflict when this one is."""
        if not (boot or instance):
            return ""
        places = self._places.setdefault(reporter, {})
        for old in [key for key, each in places.items() if abs(now - each.last_at) > self.patience] or list(places)[:-_PLACES]:
            del places[old]
        key = f"{boot}/{instance}"
        out = self._out.setdefault(reporter, set())
        if out & {boot, key} and self._held(places, out):
            raise self._double(reporter)
        if out & {boot, key}:
            out -= {boot, key}
        return self._placed(reporter, places, out, key, _Place(boot, home, now))

    def _placed(self, reporter: str, places: dict[str, _Place], out: set[str], key: str, new: _Place) -> str:
        """Puts the place last: it speaks now. Finds out whether it had been taken over from."""
        latest = next(reversed(places), "")
        before = places.pop(key, None)
        rival = places.get(latest)
        places[key] = new
        if rival is None:
            return ""
        if rival.home and not new.home:
            return self._shut(reporter, places, out, key, rival, mine=True)
        if before is None and not (new.home and not rival.home):
            return ""
        return self._shut(reporter, places, out, latest, new, mine=False)

    def _shut(self, reporter: str, places: dict[str, _Place], out: set[str], key: str, holder: _Place, *, mine: bool) -> str:
        found = places.pop(key)
        shut = found.boot if found.boot and found.boot != holder.boot else key
        out.add(shut)
        if mine:
            raise self._double(reporter)
        return shut

    @staticmethod
    def _held(places: dict[str, _Place], out: set[str]) -> bool:
        return any(each.boot not in out and key not in out for key, each in places.items())

    @staticmethod
    def _double(reporter: str) -> Conflict:
        return Conflict(
            f"the key of {reporter} is used by two machines at once: this one is the copy",
            hint="a cloned disk took the key along; on the copy run `muster agent leave --keep-enrolment`, give it a machine id of its own, and join it anew",
        )
