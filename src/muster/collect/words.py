# SPDX-License-Identifier: Apache-2.0
"""What others say, as it may stand in a line of a log or on a terminal: one line, escaped, bounded."""

from __future__ import annotations

import logging
import traceback

LONGEST = 300
"""Signs of another's sentence that are kept."""
LINE = 2000
"""Signs of a line of the log."""


def plain(text: str, most: int = LONGEST) -> str:
    """``text`` with every control or reordering sign written as an escape (``\\x1b``, ``\\u202e``), cut after ``most`` signs."""
    text = text[: most + 1]  # nothing is escaped that is not shown
    told = text if text.isprintable() else "".join(sign if sign.isprintable() else _escape(sign) for sign in text)
    return told if len(told) <= most else told[: most - 3] + "..."


def _escape(sign: str) -> str:
    named = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}.get(sign)
    point = ord(sign)
    return named or (f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}")


def broke(error: BaseException) -> str:
    """What was raised, and where, in a few words."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{where}: {plain(str(error), 120)}".removesuffix(": ")


class OneLine(logging.Formatter):
    """Lines of a log that nobody else can forge: a record is one line, whatever is in it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return plain(super().format(record), LINE)


def log_to_stderr(*, verbose: bool) -> None:
    """The log of an agent, on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
