# SPDX-License-Identifier: Apache-2.0
"""Which reports of a reporter were taken, so that none is taken twice: by ranges of its numbers, for the last of them by what they said, and for lives
that are no longer remembered by when their reports were made.
"""

from __future__ import annotations

import hashlib
from enum import Enum

import msgspec

from muster.services.lives import SIZE, UNKNOWN, Life, Made, Past

FULL = 8
"""So many lives of a reporter are remembered with what their last numbers said."""
FORMER = 56
"""So many lives before those by their numbers alone."""
LONGEST = 64
"""Characters of a life's name that are kept; a longer one goes by its digest."""


class Copy(Enum):
    """What a number is: new; taken before with the same words, or with other words; or it cannot be known any more.

    ``UNTOLD``: taken before, and what it said is not remembered. ``FORGOTTEN``: of a life that is not remembered, and made in the time of such lives.
    """

    NEW = "new"
    SAME = "same"
    OTHER = "other"
    UNTOLD = "untold"
    FORGOTTEN = "forgotten"


class _Kept(msgspec.Struct):
    """`Window` as it is kept. Before, it was a list of (name, ranges, digests)."""

    lives: list[tuple[str, Life]]
    former: list[tuple[bytes, Life]] = []
    past: Past = msgspec.field(default_factory=Past)


_unpack = msgspec.msgpack.Decoder(_Kept | list[tuple[str, list[list[int]], bytes]])
_pack = msgspec.msgpack.Encoder()


class Window:
    """The reports of one reporter. ``told`` is its packed form as the store keeps it; empty for a reporter that never spoke."""

    __slots__ = ("former", "lives", "past")

    def __init__(self, told: bytes = b"") -> None:
        self.lives: dict[str, Life] = {}
        """By name, the one that began to speak last at the end."""
        self.former: dict[bytes, Life] = {}
        """By the digest of the name, the one that spoke last at the end."""
        self.past = Past()
        if not told:
            return
        kept = _unpack.decode(told)
        if isinstance(kept, _Kept):
            self.lives, self.former, self.past = dict(kept.lives), dict(kept.former), kept.past
        else:
            self.lives = {name: Life(ranges=ranges, digests=bytearray(digests)) for name, ranges, digests in kept}

    @property
    def incarnation(self) -> str:
        """The life that began to speak last; empty before the first."""
        return next(reversed(self.lives), "")

    @property
    def high(self) -> int:
        """The greatest number of the life that began to speak last; -1 before the first."""
        return self.lives[self.incarnation].high if self.lives else -1

    def judge(self, incarnation: str, sequence: int, digest: bytes, made: Made | None = None) -> Copy:
        """What a report of this number is; ``made`` says when its rounds were, where it has any."""
        name = _name(incarnation)
        life = self.lives.get(name) or self.former.get(_short(name))
        if life is not None and life.has(sequence):
            known = life.digest(sequence)
            return Copy.UNTOLD if known == UNKNOWN else Copy.SAME if known == digest else Copy.OTHER
        if (life is None or not life.whole) and made is not None and self.past.holds(made):
            return Copy.FORGOTTEN
        return Copy.NEW

    def follows(self, incarnation: str, sequence: int) -> bool:
        """True when it is the next number of the life that spoke last: then the number alone says how far the reporter has come."""
        newest = self.incarnation
        life = self.lives.get(newest)
        return life is not None and _name(incarnation) == newest and len(life.ranges) == 1 and sequence == life.high + 1

    def add(self, incarnation: str, sequence: int, digest: bytes, made: Made | None = None) -> None:
        """Takes a report in."""
        name = _name(incarnation)
        life = self._life(name, sequence, made)
        if made is not None:
            life.spoke(made, self.past)
        life.add(sequence, digest)
        while len(self.lives) > FULL:
            gone = next(iter(self.lives))
            self.former[_short(gone)] = self.lives.pop(gone).shortened()
        while len(self.former) > FORMER:
            self.past.take(self.former.pop(next(iter(self.former))))

    def reach(self, incarnation: str, sequence: int, made: float) -> None:
        """Brings the window up to a number that a source's row tells, and the wall time of its round by the reporter's clock."""
        life = self.lives.get(_name(incarnation))
        if life is not None and sequence > life.high:
            life.reach(sequence, made)

    def packed(self) -> bytes:
        """As the store keeps it."""
        return _pack.encode(_Kept(list(self.lives.items()), list(self.former.items()), self.past))

    def _life(self, name: str, sequence: int, made: Made | None) -> Life:
        """The life of this name among those remembered in full: the one that began last stays last, others stand by when they spoke."""
        newest = self.incarnation
        if self.lives and name == newest:
            return self.lives[name]
        life = self.lives.pop(name, None) or self.former.pop(_short(name), None)
        if life is None:
            # One that begins with its first number, made after all that is forgotten, cannot be one of those.
            self.lives[name] = life = Life(whole=not self.past or (sequence <= 1 and made is not None))
            return life
        self.lives[name] = life.full()
        self.lives[newest] = self.lives.pop(newest)
        return life


def _name(incarnation: str) -> str:
    return incarnation if len(incarnation) <= LONGEST else f"#{_short(incarnation).hex()}"


def _short(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "backslashreplace"), digest_size=SIZE).digest()
