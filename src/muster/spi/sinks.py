# SPDX-License-Identifier: Apache-2.0
"""What an export stands on: somebody who asks the API, and somebody who posts to a store of metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol


class Ask(Protocol):
    """Asks the server's API. What it asks raises errors of Muster's own tree, save that a server that is not ready is none."""

    def __call__(self, path: str, query: Mapping[str, str]) -> bytes:
        """The JSON document at ``path`` under the API's root."""

    def ready(self) -> bool:
        """True when the server says that it can do its work."""

    def listed(self, path: str, query: Mapping[str, str]) -> Iterator[bytes] | None:
        """The whole list at ``path``, a JSON document a line, as it comes; None when this server does not stream lists."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a store of metrics answered. Status 0 stands for one that could not be reached; ``wait`` are seconds that it asked for."""

    status: int
    detail: str = ""
    wait: float = 0.0
    body: bytes = b""


class Post(Protocol):
    """Posts to a store of metrics."""

    def __call__(self, body: bytes) -> Reply:
        """The answer to one body. Never raises for a store that is away."""
