# SPDX-License-Identifier: Apache-2.0
"""Words that may be meant by one that there is not."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 3
"""So many are named."""


def alike(word: str, words: Iterable[str]) -> list[str]:
    """Those of the words that are like this one, the likest first."""
    from difflib import get_close_matches  # only who mistypes waits for it

    return get_close_matches(word, list(words), n=MOST)


def near(word: str, words: Iterable[str]) -> str:
    """``near it: one, other``; empty where none is like it."""
    found = alike(word, words)
    return f"near it: {', '.join(found)}" if found else ""
