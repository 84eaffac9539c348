# SPDX-License-Identifier: Apache-2.0
"""One-time tokens to join by: random text, of which the site keeps a digest alone."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

from muster.domain.model.access import Reach, Scope
from muster.domain.model.errors import InputError
from muster.spi.enrolment import JoinToken

MARK = "mjoin"
SECRET = 32
"""Random bytes of a token."""
LASTS = 3600.0
"""Seconds for which a token holds when nothing else is said."""
LONGEST = 90 * 86_400.0
MOST_USES = 100_000


def minted(scope: Scope, uses: int, lasts: float, by: str, now: float, dice: Callable[[int], bytes]) -> tuple[JoinToken, str]:
    """A new token and its text. Raises InputError for bounds that make no sense."""
    if not 1 <= uses <= MOST_USES:
        raise InputError(f"{uses} uses make no sense", hint=f"from 1 to {MOST_USES}")
    if not 1.0 <= lasts <= LONGEST:
        raise InputError(f"a token cannot hold for {lasts:.0f} s", hint="from a second to 90 days")
    if (scope.reach is Reach.LIST and not scope.nodes) or (scope.reach is Reach.CLUSTER and not scope.cluster):
        raise InputError(f"a token for a {scope.reach.value} says which", hint="give --nodes FILE, or --cluster UID")
    id_ = _word(dice(6))
    text = f"{MARK}_{id_}_{_word(dice(SECRET))}"
    made = JoinToken(id=id_, digest=digest(text), scope=scope, uses=uses, left=uses, created_at=now, expires_at=now + lasts, by=by)
    return made, text


def _word(raw: bytes) -> str:
    return base64.b32encode(raw).decode().rstrip("=").lower()


def digest(text: str) -> str:
    """By what a token is found: as random as this, one pass of SHA-256 is enough."""
    return hashlib.sha256(text.strip().encode("utf-8", "replace")).hexdigest()


def named(text: str) -> str:
    """The id in a token's text, for messages and the audit; its secret stays out. Empty when it has none."""
    mark, _, rest = text.strip().partition("_")
    id_, found, _ = rest.partition("_")
    return id_ if mark == MARK and found and id_.isalnum() and len(id_) <= 16 else ""
