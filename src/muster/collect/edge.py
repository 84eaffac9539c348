# SPDX-License-Identifier: Apache-2.0
"""The edge of a thread that must not end by what is raised within one turn of it."""

from __future__ import annotations

import logging
from types import TracebackType

from muster.collect.words import broke

_log = logging.getLogger("muster.edge")


class Edge:
    """``with Edge() as edge:`` goes on behind the block, whatever Exception was raised in it; ``edge.broke`` says what and where, empty when nothing was.

    What ends a process or a thread on purpose (SystemExit, KeyboardInterrupt) passes.
    """

    def __init__(self) -> None:
        self.broke = ""

    def __enter__(self) -> Edge:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        self.broke = broke(error)
        _log.debug("it goes on", exc_info=error)
        return True
