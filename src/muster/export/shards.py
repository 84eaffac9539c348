# SPDX-License-Identifier: Apache-2.0
"""A shard is a fixed part of the fleet: what it holds depends on the id of a card alone, not on what else there is."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from muster.domain.model.errors import InputError

MOST = 1024
_SHARD = re.compile(r"^(\d{1,4})/(\d{1,4})$", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Number ``number`` of ``of``, counted from 1."""

    number: int = 1
    of: int = 1

    def has(self, id_: str) -> bool:
        """True when the thing of this id belongs here. Each id belongs to exactly one shard."""
        return self.of == 1 or zlib.crc32(id_.encode("utf-8", "replace")) % self.of == self.number - 1

    @property
    def first(self) -> bool:
        """True for the one shard that also tells what is of the whole fleet."""
        return self.number == 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def shard(text: str) -> Shard:
    """The shard that ``K/N`` names. Raises InputError."""
    match = _SHARD.match(text)
    number, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= of <= MOST:
        raise InputError(f"--shard {text!r} is no shard", hint=f"write K/N, like 1/4 for the first of four; N is {MOST} at most")
    return Shard(number=number, of=of)
