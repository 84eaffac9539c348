# SPDX-License-Identifier: Apache-2.0
"""Spellings of the vendor's ids: die ids are five words of eight hex digits, fault codes eight, and some tools drop leading zeros."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORDS = re.compile(r"^[0-9A-Fa-f]{1,8}(?:[ -]+[0-9A-Fa-f]{1,8}){4}$")


def die(words: str | Sequence[int] | None) -> str | None:
    """One spelling of a die id (`42C711D4-20B03704-...`), whatever printed it; None when it is none or says nothing."""
    if words is None:
        return None
    if isinstance(words, str):
        if not _WORDS.match(words.strip()):
            return None
        found = [int(word, 16) for word in re.split(r"[ -]+", words.strip())]
    else:
        found = [word for word in words if isinstance(word, int)]
    if len(found) != 5 or not any(found):
        return None
    return "-".join(f"{word & 0xFFFFFFFF:08X}" for word in found)


def hex_code(code: int) -> str:
    """A fault code as the tools and catalogues spell it: upper-case hex digits, eight at least."""
    return f"{code & 0xFFFFFFFFF:08X}"


def digits(text: str | None, most: int = 18) -> bool:
    """True for a plain number of at most ``most`` ASCII digits."""
    return text is not None and text.isascii() and text.isdigit() and len(text) <= most
