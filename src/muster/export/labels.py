# SPDX-License-Identifier: Apache-2.0
"""Labels of series: what a text of a device becomes, and the string that stands between the braces, built once for many rounds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

LONGEST = 200
"""Characters of a label's value; longer ones are cut."""
_SPECIAL = re.compile(r'[\\"\n]')
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}

Pairs: TypeAlias = tuple[tuple[str, str], ...]


def clean(text: str) -> str:
    """``text`` as a label may carry it: nothing that steers a terminal, turns writing round or is no text, and not longer than `LONGEST`."""
    told = text[: LONGEST + 1]
    if not told.isprintable():
        told = "".join(each if each.isprintable() else " " if each.isspace() else "\ufffd" for each in told)
    return told if len(told) <= LONGEST else told[: LONGEST - 1] + "…"


def escaped(text: str) -> str:
    """``text`` between the quotes of the text format."""
    return _SPECIAL.sub(lambda match: _ESCAPED[match.group()], text)


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one series: ``text`` is what stands between the braces. Two are the same when their texts are."""

    pairs: Pairs
    text: str

    def more(self, name: str, value: str) -> Labels:
        """These and one more."""
        return labels((*self.pairs, (name, value)))


def labels(pairs: Iterable[tuple[str, str | None]]) -> Labels:
    """Labels of the pairs that have a value: an empty one is none at all."""
    told = tuple((name, clean(value)) for name, value in pairs if value)
    return Labels(told, ",".join(f'{name}="{escaped(value)}"' for name, value in told))
