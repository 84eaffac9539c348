# SPDX-License-Identifier: Apache-2.0
"""Which texts a spreadsheet would run: what begins with the sign of a formula, however much that nobody sees stands before it."""

from __future__ import annotations

import unicodedata

_SIGNS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
"""Some spreadsheets take the wide forms too."""
_UNSEEN = frozenset({"Cc", "Cf", "Mn", "Me", "Zs", "Zl", "Zp"})
"""Categories of signs that show nothing by themselves: blanks, marks of direction and order, joiners, marks upon other signs."""
_BLANKS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
"""Letters and signs that are blank all the same."""


def runs(text: str) -> bool:
    """True when a cell with this text is to be guarded."""
    if text.startswith(("\t", "\r")):
        return True
    for sign in text:
        if sign in _SIGNS:
            return True
        if not (sign.isspace() or sign in _BLANKS or unicodedata.category(sign) in _UNSEEN):
            return False
    return False
