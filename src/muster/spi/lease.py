# SPDX-License-Identifier: Apache-2.0
"""Beside the roll: the right to write it, and answers that are kept for requests that come again."""

from __future__ import annotations

from typing import Protocol

from muster.spi.rows import Answered, Holder


class Lease(Protocol):
    """The right to write. ``now`` is any clock of the caller that does not jump; a lease is gone when its row did not change for ``span`` seconds of it."""

    span: float

    def acquire(self, holder: str, now: float, *, certain: bool = False) -> bool:
        """Takes it; False while another holds it: ask again. ``certain``: the caller knows by other means that the other is gone. Raises Unavailable."""

    def renew(self, now: float) -> bool:
        """To be called several times in each span. False when it is another's by now: what this server holds in memory is old. Raises Unavailable."""

    def release(self) -> None:
        """Gives it back. Raises Unavailable."""

    def holder(self) -> Holder | None:
        """Who has it; None when it is free. Raises Unavailable."""


class Answers(Protocol):
    """Answers to requests that said under which key they may come again."""

    def recall(self, key: str) -> Answered | None:
        """What was answered under the key. Raises Unavailable."""

    def keep(self, answered: Answered) -> None:
        """Keeps an answer; the first under a key stands. Raises Unavailable."""

    def drop_older(self, than: float) -> int:
        """Forgets some answers given before; returns how many, 0 when none is left. Raises Unavailable."""
