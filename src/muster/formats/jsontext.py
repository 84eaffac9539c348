# SPDX-License-Identifier: Apache-2.0
"""JSON as tools print it: log lines before the document, several documents one after another, trailing commas, NaN, doubled lines, documents cut short.

What parses strictly is parsed by the standard library; only the rest goes through the tolerant reader below. Both keep to `DEPTH_LIMIT`, neither raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muster.formats.text import decode

DEPTH_LIMIT = 64
"""Levels of nesting that are read; what lies deeper is left out, and the document says that it is cut."""

_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
_OPENS = re.compile(r'\{\s*(?:"|\}|$)|\[\s*(?:[\[{"\]]|-?\d[\d.eE+-]*\s*[,\]]|$)')
_LINE_OPENS = re.compile(r'^[ \t]*(?=\{\s*(?:"|\}|$)|\[\s*(?:[\[{"\]]|-?\d[\d.eE+-]*\s*[,\]]|$))', re.MULTILINE)
_TOKEN = re.compile(r'\s*(?:("(?:[^"\\\n]|\\.)*")|([\[\]{},:])|([^\s\[\]{},:"]+)|("))', re.DOTALL)
_FRACTION = re.compile(r",\d+(?=\s*[,}\n])")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$")
_WORDS = {"true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_DIGITS = 64
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Document:
    """One object or array. ``cut`` says that its end is missing, or that something in it could not be read; ``at`` is where it begins in the text."""

    value: Any
    cut: bool
    at: int


def documents(payload: bytes | str, *, partial: bool = False) -> list[Document]:
    """Every object and array in the text, in order.

    Of a document that ends too early the whole list items read so far are kept, and the whole members of an object;
    with ``partial`` also the whole members of the first list's item that was being read. A value that ends where the text ends is left out: it may go on.
    """
    text = decode(payload) if isinstance(payload, bytes) else payload
    found: list[Document] = []
    at = 0
    while (start := _start(text, at)) is not None:
        document, at = _read(text, start, partial=partial)
        if document is not None:
            found.append(document)
    return found


def first(payload: bytes | str, *, partial: bool = False) -> Document | None:
    """The first document that holds an object, else the first with something in it, else the first, else None when the text has none."""
    found = documents(payload, partial=partial)
    objects = (d for d in found if isinstance(d.value, dict) or any(isinstance(each, dict) for each in d.value))
    return next(objects, next((d for d in found if d.value), found[0] if found else None))


def looks_like(head: bytes) -> bool:
    """True when a line of the text opens an object or array. ``head`` may be cut anywhere."""
    return _LINE_OPENS.search(decode(head)) is not None


def _start(text: str, at: int) -> int | None:
    """Where the next document opens. The first one is looked for at the start of a line, so that brackets in log lines before it are passed over."""
    line = _LINE_OPENS.search(text) if at == 0 else None
    if line is not None:
        return line.end()
    within = _OPENS.search(text, at)
    return within.start() if within is not None else None


def _read(text: str, start: int, *, partial: bool) -> tuple[Document | None, int]:
    value, used = _strict(text, start)
    if used is None:
        value, used = _strict_once(text, start)
    if used is not None:
        return Document(value, False, start), used
    limit = _limit(text, start)
    whole = _Tolerant(text[:limit], start, partial=partial)
    value, cut = whole.read()
    return (Document(value, cut, start) if value else None), max(whole.at, start + 1)


def _limit(text: str, start: int) -> int:
    """Where the next document of a text with one document per line begins: a broken line does not swallow those after it."""
    if start == 0 or text[start - 1] == "\n":
        for opener in ("\n{", "\n["):
            found = text.find(opener, start)
            if found > 0 and text[start] == opener[1] and text.find("\n", start) == found:
                return found + 1
    return len(text)


def _end(text: str, start: int) -> int | None:
    """Where the document that opens at ``start`` closes; None when it does not, or nests too deep for a strict reader."""
    depth = 0
    for match in _STRUCTURE.finditer(text, start):
        sign = match.group()
        if sign in "[{":
            depth += 1
            if depth > DEPTH_LIMIT:
                return None
        elif sign in "]}":
            depth -= 1
            if depth <= 0:
                return match.end()
    return None


def _strict(text: str, start: int) -> tuple[Any, int | None]:
    if _end(text, start) is None:
        return None, None
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, None


def _strict_once(text: str, start: int) -> tuple[Any, int | None]:
    """A document some lines of which are printed twice, read without the second print; items of a list that are alike ("N/A",) stay."""
    kept: list[str] = []
    places: list[int] = []
    at = start
    for line in text[start:].split("\n"):
        bare = line.strip()
        item = bare.endswith(",") and ":" not in bare and bare not in ("},", "],")
        if item or not kept or line != kept[-1]:
            kept.append(line)
            places.append(at)
        at += len(line) + 1
    if sum(map(len, kept)) + len(kept) - 1 == len(text) - start:
        return None, None
    single = "\n".join(kept)
    value, used = _strict(single, 0)
    if used is None:
        return None, None
    before = single[:used]
    return value, places[before.count("\n")] + len(before) - (before.rfind("\n") + 1)


class _Tolerant:
    """Reads token by token with a stack of its own, so that neither a missing comma nor a missing end costs what was read."""

    def __init__(self, text: str, start: int, *, partial: bool) -> None:
        self.text = text
        self.at = start
        self.partial = partial
        self.cut = False
        self.stack: list[Any] = []
        self.keys: list[str | None] = []
        self.deep = 0

    def read(self) -> tuple[Any, bool]:
        """The value and whether it is cut; ``at`` is then where reading ended."""
        while (match := _TOKEN.match(self.text, self.at)) is not None:
            self.at = match.end()
            string, sign, word, lone = match.groups()
            if sign is not None:
                done = self._sign(sign)
                if done is not None:
                    return done, self.cut
                continue
            value = self._scalar(string, word, lone)
            if value is None:
                break
            if not self.deep:
                self._value(value[0])
        return self._unfinished(), True

    def _scalar(self, string: str | None, word: str | None, lone: str | None) -> tuple[Any] | None:
        """The plain value of a token, or None where the text ends in it."""
        if lone is not None:
            end = self.text.find("\n", self.at)
            text = self.text[self.at : end].rstrip().rstrip(",")
            self.at = end
            self.cut = True
            return None if end < 0 else (text,)
        if self.at >= len(self.text):
            return None
        return (_string(string) if string is not None else _word(word or "", self._comma()),)

    def _comma(self) -> str:
        """The digits behind a decimal comma of a member ("12,5"), taken with the number so that it is not read as another one."""
        if not self.stack or not isinstance(self.stack[-1], dict) or self.keys[-1] is None:
            return ""
        match = _FRACTION.match(self.text, self.at)
        if match is None or not self.text[self.at - 1].isdigit():
            return ""
        self.at = match.end()
        self.cut = True
        return match.group()

    def _sign(self, sign: str) -> Any:
        if sign in "[{":
            self._open([] if sign == "[" else {})
        elif sign in "]}":
            return self._close(sign)
        elif sign == "," and self.keys and not self.deep and isinstance(self.stack[-1], dict):
            self.keys[-1] = None
        return None

    def _open(self, value: Any) -> None:
        if self.deep or len(self.stack) >= DEPTH_LIMIT:
            self.deep += 1
            self.cut = True
            return
        self.stack.append(value)
        self.keys.append(None)

    def _close(self, sign: str) -> Any:
        if self.deep:
            self.deep -= 1
            return None
        if isinstance(self.stack[-1], list) != (sign == "]"):
            self.cut = True
            if not any(isinstance(open_, list) == (sign == "]") for open_ in self.stack):
                return None
            self._pop()
        return self._pop()

    def _pop(self) -> Any:
        value = self.stack.pop()
        self.keys.pop()
        if not self.stack:
            return value
        self._put(value)
        return None

    def _value(self, value: Any) -> None:
        top = self.stack[-1]
        if isinstance(top, dict) and self.keys[-1] is None:
            self.keys[-1] = value if isinstance(value, str) else None
            self.cut = self.cut or not isinstance(value, str)
            return
        self._put(value)

    def _put(self, value: Any) -> None:
        top = self.stack[-1]
        if isinstance(top, list):
            top.append(value)
        elif self.keys[-1] is not None:
            top.setdefault(self.keys[-1], value)
            self.keys[-1] = None
        elif isinstance(value, dict):
            top.update({key: each for key, each in value.items() if key not in top})
            self.cut = True

    def _unfinished(self) -> Any:
        """What stands when the text ends inside the document; None when that is nothing."""
        self.at = len(self.text)
        item = next((depth + 1 for depth, open_ in enumerate(self.stack) if isinstance(open_, list)), len(self.stack))
        while len(self.stack) > 1:
            value = self.stack.pop()
            self.keys.pop()
            if value and (len(self.stack) < item or (self.partial and len(self.stack) == item and isinstance(value, dict))):
                self._put(value)
        return self.stack[0] if self.stack else None


def _string(token: str) -> str:
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        return token[1:-1]


def _word(word: str, rest: str) -> Any:
    if word in _WORDS and not rest:
        return _WORDS[word]
    if _NUMBER.match(word) and len(word) <= _DIGITS and not rest:
        return float(word) if re.search(r"[.eE]", word) else int(word)
    return word + rest


def walk(value: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every plain value below ``value`` with its path of keys and places; without recursion."""
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while stack:
        path, each = stack.pop()
        if isinstance(each, dict):
            stack.extend(((*path, str(key)), below) for key, below in reversed(each.items()))
        elif isinstance(each, list):
            stack.extend(((*path, place), below) for place, below in reversed(list(enumerate(each))))
        else:
            yield path, each
