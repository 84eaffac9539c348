# SPDX-License-Identifier: Apache-2.0
"""What documents and cards are called by in ETags: what moves by itself is no part of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from muster.domain.decide.essence import essence
from muster.domain.model.roll import CardRecord

_MOVES = re.compile(rb'"(?:age|at|observed_at|last_at|last_seen_at|next)":(?:"[^"]*"|[^,}\]]*)')
_SIZE = 9


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else sorted(value, key=str) if isinstance(value, set | frozenset) else str(value)


_sorted = msgspec.json.Encoder(enc_hook=_plain, order="sorted")


def still(body: bytes) -> bytes:
    """A body without what moves by itself."""
    return _MOVES.sub(b"", body)


def tag_of(lasting: bytes) -> str:
    """The tag of what `still` left of a body."""
    return blake2b(lasting, digest_size=_SIZE).hexdigest()


def of_body(body: bytes) -> str:
    """The tag of a body."""
    return tag_of(still(body))


def of_card(record: CardRecord) -> str:
    """What a card is: it differs when the record does."""
    return tag_of(_sorted.encode(essence(record)))
