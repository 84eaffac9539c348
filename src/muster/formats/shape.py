# SPDX-License-Identifier: Apache-2.0
"""What can be said of a text whose layout no parser knows: the version that it prints, the first line that does not fit, and what of it was never seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from muster.formats.text import decode

HEAD = 64 * 1024
"""Bytes of a text in which a version or the first misfit is looked for."""
LINES = 30
"""Lines in which a version is looked for: tools print theirs at the top."""
WIDTH = 100
"""Characters of a line that are shown."""
_BORDER = "|+-=*# \t"
_NUMBER = r"v?(\d{1,6}(?:\.\d{1,8}){1,4}[\w.+-]{0,40})"
_NAMED = re.compile(r"(?<![\w./-])([A-Za-z][A-Za-z_-]{1,30})\s+v?(\d{1,6}\.\d{1,8}\.\d{1,8}(?![.\d])[\w+-]{0,40})")
_WORD = re.compile(rf"version\b\W{{1,40}}?{_NUMBER}", re.IGNORECASE)
_PROLOG = re.compile(r"<\?xml[^>]*>", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_MAJOR = re.compile(r"^\W{0,3}v?(\d{1,6})(?=[.\s+-]|$)", re.IGNORECASE)
_WORDS = re.compile(r"[a-z0-9]+")


def printed_version(text: str) -> str:
    """The version in the first lines of ``text``: "NAME 1.2.3" with its name, else the number behind "version"; "" where none is printed."""
    rows = [_PROLOG.sub("", row)[:400] for row in text[:HEAD].split("\n")[:LINES]]
    for row in rows:
        named = _NAMED.search(row)
        if named is not None and named.group(1).lower() != "version":
            return f"{named.group(1)} {named.group(2)}"
    found = next((match for row in rows if (match := _WORD.search(row))), None)
    return found.group(1).rstrip(".-+") if found is not None else ""


def first_misfit(payload: bytes, fits: Callable[[str], bool] | None = None) -> str:
    """The first line with letters in it that does not fit, in quotes, its frame taken off, shortened.

    Where every line fits, it is told behind which one the text ends; "" for a text without letters.
    """
    last = ""
    for row in decode(payload[:HEAD]).split("\n"):
        if _LETTERS.search(row[:1000]):
            last = row[:1000]
            if fits is None or not fits(last):
                return _quoted(last)
    return f"nothing behind {_quoted(last)}" if last else ""


def lacking(what: str, odd: str) -> str:
    """A sentence that says what is not there (``what``), and where the text leaves what is known (of `first_misfit`)."""
    if not odd:
        return what
    return f"{what}, {odd}" if odd.startswith("nothing behind ") else f"{what}; the first that does not fit: {odd}"


def _quoted(line: str) -> str:
    bare = " ".join(line.split()).strip(_BORDER)
    return f'"{bare[:WIDTH]}{"..." if len(bare) > WIDTH else ""}"'


def word_set(text: str) -> frozenset[str]:
    """The words of ``text``, for a table of those that were seen."""
    return frozenset(text.split())


def unknown(names: Iterable[str], known: Callable[[str], bool]) -> list[str]:
    """Those of ``names`` that are not known, shortened, each once; three at most."""
    return list(islice(dict.fromkeys(name.strip()[:60] for name in names if name.strip() and not known(name)), 3))


def of_words(name: str, words: frozenset[str]) -> bool:
    """True when ``name`` is made of ``words`` only (letters and digits, lower case)."""
    return all(word in words for word in _WORDS.findall(name.lower()))


def not_known(kind: str, names: Iterable[str]) -> str:
    """Names that were never seen as one short sentence ("column X not known"); "" for none."""
    told = list(names)
    return f"{kind}{'s' if len(told) > 1 else ''} {', '.join(told)} not known" if told else ""


@dataclass(frozen=True, slots=True)
class Majors:
    """Major versions of a tool that were seen, from the oldest to the newest. What comes between, and every minor of them, is no news."""

    tool: str
    oldest: int
    newest: int

    def news(self, version: str) -> str:
        """A short sentence when ``version`` lies outside; "" when it does not, or is no version."""
        match = _MAJOR.match(version)
        if match is None:
            return ""
        number = version.strip()[:40]
        if int(match.group(1)) > self.newest:
            return f"{self.tool} {number}: newer than {self.newest}, the newest seen"
        return f"{self.tool} {number}: older than {self.oldest}, the oldest seen" if int(match.group(1)) < self.oldest else ""


def sentences(*told: str) -> str:
    """Several short sentences as one text, each once, no longer than a finding shows."""
    return "; ".join(dict.fromkeys(each for each in told if each))[:300]
