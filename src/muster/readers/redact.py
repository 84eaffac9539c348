# SPDX-License-Identifier: Apache-2.0
"""Replaces what identifies a machine in its recording: serials, UUIDs, MAC addresses, machine ids and host names.

What stands instead has the same length and alphabet, so that parsers still read it, and is the same wherever the original stood.
First every capture is looked through for what identifies (`learn`), then it is replaced everywhere (`apply`):
a serial that one tool labels, another prints without a label.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import string
from collections.abc import Iterable, Iterator

from muster.domain.model.names import NameKind, names_nothing

_BEFORE = r"(?:[a-z]{1,20}[ _-])"
_WORDS = (
    rf"{_BEFORE}{{0,3}}serial(?:[ _-]?(?:number|num|no))?|{_BEFORE}?sn"
    rf"|{_BEFORE}?uuid|(?:unique|machine|[a-z]?die|chip)[ _-]?id"
)
_HOSTS = r"host[ _-]?name|hostname|node[ _-]?name|nodename"
_VALUE = r"[\"']?[ \t]*(?:[:=|>]|[ \t])[ \t]*[\"']?(?P<value>[A-Za-z0-9][A-Za-z0-9._-]*)"
_LABELLED = re.compile(rf"(?<![A-Za-z])(?:{_WORDS})(?:\s*\([^)\n]*\))?{_VALUE}", re.IGNORECASE)
_HOST = re.compile(rf"(?<![A-Za-z])(?:{_HOSTS}){_VALUE}", re.IGNORECASE)
_SYSLOG = re.compile(
    r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) (?P<value>[A-Za-z0-9][A-Za-z0-9._-]*) (?:kernel|[\w-]+\[\d+\]):", re.MULTILINE
)
_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])")
_MAC = re.compile(r"(?<![0-9A-Za-z:-])[0-9A-Fa-f]{2}(?:(?P<sign>[:-])[0-9A-Fa-f]{2})(?:(?P=sign)[0-9A-Fa-f]{2}){4,6}(?![0-9A-Za-z:-])")
_RUN = re.compile(r"[A-Za-z0-9]+")
_COLUMN = re.compile(rf"^(?:[a-z_.]*\.)?(?:{_WORDS})$", re.IGNORECASE)
_HEX = frozenset("0123456789abcdefABCDEF")
_KEPT_HOSTS = frozenset({"localhost", "localdomain", "localhost.localdomain", "kernel", "name", "none"})
_SHORT = 6
_SHORT_HOST = 4
"""Letters from which on a host name is replaced in free text: a shorter one is a part of too many words."""


class Redactor:
    """Learns what identifies, and replaces it. ``salt`` makes the invented values ones that nobody can work back; the same salt gives the same values."""

    def __init__(self, salt: bytes, hosts: Iterable[str] = ()) -> None:
        self._salt = salt
        self._known: dict[str, set[str]] = {}
        given = {form for host in hosts for form in _forms(host) if form and form not in _KEPT_HOSTS}
        self._short = frozenset(form for form in given if not _is_name(form))
        for host in given:
            self._host(host)

    def learn(self, payload: bytes) -> None:
        """Remembers what identifies in one payload."""
        text = _readable(payload).decode("latin-1")
        for value in (*_values(_LABELLED, text), *_columns(text)):
            self._serial(value)
        for value in (*_values(_HOST, text), *_values(_SYSLOG, text)):
            self._host(value)
        for pattern in (_UUID, _MAC):
            for match in pattern.finditer(text):
                self._add(match.group())

    def apply(self, payload: bytes) -> bytes:
        """The payload with everything that was learnt replaced. UTF-16 comes back as UTF-8."""
        return self.text(_readable(payload).decode("latin-1")).encode("latin-1")

    def text(self, text: str) -> str:
        """The text with everything that was learnt replaced."""
        parts: list[str] = []
        at = 0
        for run in _RUN.finditer(text):
            if run.start() < at:
                continue
            value = self._at(text, run)
            if value:
                parts += (text[at : run.start()], invented(value, self._salt))
                at = run.start() + len(value)
        return self._labelled("".join(parts) + text[at:])

    def name(self, text: str) -> str:
        """A text that is a name as a whole: the node's own is replaced however short it is."""
        return self._stand_in(text) if text.lower() in self._short else self.text(text)

    def _labelled(self, text: str) -> str:
        """The text with names of the node itself replaced that are too short for free text, where a label or a log line says that a host name stands."""
        for pattern in (_HOST, _SYSLOG) if self._short else ():
            text = pattern.sub(self._in_place, text)
        return text

    def _in_place(self, match: re.Match[str]) -> str:
        value = match.group("value")
        start, end = (place - match.start() for place in match.span("value"))
        return match.group()[:start] + self._stand_in(value) + match.group()[end:] if value.lower() in self._short else match.group()

    def _stand_in(self, value: str) -> str:
        """An invented value that is another one, which few letters would not give each time."""
        return next((told for turn in range(256) if (told := invented(value, self._salt + bytes(turn))) != value), "9" * len(value))

    def _at(self, text: str, run: re.Match[str]) -> str:
        """The longest known value that begins where ``run`` does, as it stands there."""
        start = run.start()
        found = (text[start : start + len(known)] for known in self._known.get(run.group().lower(), ()) if not text[start + len(known) :][:1].isalnum())
        return max((value for value in found if self._is(value)), key=len, default="")

    def _is(self, value: str) -> bool:
        first = _RUN.match(value)
        return first is not None and value.lower() in self._known.get(first.group().lower(), ())

    def _serial(self, value: str) -> None:
        value = value.rstrip(".-_")
        if len(value) >= _SHORT and sum(sign.isdigit() for sign in value) >= 2:
            self._add(value)

    def _host(self, value: str) -> None:
        for form in _forms(value):
            if _is_name(form) and form not in _KEPT_HOSTS:
                self._add(form)

    def _add(self, value: str) -> None:
        """Knows the value in its spellings: with and without ``0x``, a UUID with and without dashes."""
        uuid = _UUID.search(value)
        value = (uuid.group() if uuid else value).lower()
        if names_nothing(NameKind.SERIAL, value):
            return
        bare = value.removeprefix("0x")
        for form in (value, bare, f"0x{bare}", bare.replace("-", "") if _UUID.fullmatch(value) else value):
            first = _RUN.match(form)
            if first is not None:
                self._known.setdefault(first.group(), set()).add(form)


def _is_name(form: str) -> bool:
    """True when a host name is long enough to be looked for in free text."""
    return len(form) >= _SHORT_HOST and not form.isdigit()


def _forms(host: str) -> set[str]:
    """A host name whole, and without its domain."""
    whole = host.rstrip(".-_").lower()
    return {whole, whole.partition(".")[0]}


def invented(value: str, salt: bytes) -> str:
    """A value of the same length and alphabet: digits stay digits, letters letters of their case, hex stays hex; signs and leading zeros stay.

    Spellings of one value (case, ``0x``, dashes) get spellings of one invented value.
    """
    lower = value.lower()
    prefix = 2 if lower.startswith("0x") else 0
    prefix += len(value[prefix:]) - len(value[prefix:].lstrip("0"))
    rest = value[prefix:]
    hexadecimal = all(sign in _HEX for sign in rest if sign.isalnum())
    stream = _numbers("".join(sign for sign in rest.lower() if sign.isalnum()), salt)
    return value[:prefix] + "".join(_sign(sign, next(stream), hexadecimal, place == 0) if sign.isalnum() else sign for place, sign in enumerate(rest))


def _numbers(value: str, salt: bytes) -> Iterator[int]:
    block = 0
    while True:
        yield from hmac.new(salt, f"{block}:{value}".encode(), hashlib.sha256).digest()
        block += 1


def _sign(sign: str, number: int, hexadecimal: bool, first: bool) -> str:
    if sign.isdigit():
        return str(1 + number % 9) if first else str(number % 10)
    if not sign.isascii() or not sign.isalpha():
        return sign
    letters = "abcdef" if hexadecimal else string.ascii_lowercase
    letter = letters[number % len(letters)]
    return letter.upper() if sign.isupper() else letter


def _values(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    return (match.group("value") for match in pattern.finditer(text))


def _columns(text: str) -> Iterator[str]:
    """Values in columns whose heading is one of the words, in comma-separated tables."""
    rows = [row.split(",") for row in text.splitlines() if "," in row]
    for place, heading in enumerate(rows[0] if rows else ()):
        if _COLUMN.match(heading.strip(' "')):
            yield from (row[place].strip(' "') for row in rows[1:] if len(row) == len(rows[0]))


def _readable(payload: bytes) -> bytes:
    """The payload as bytes of ASCII letters: UTF-16 is told again as UTF-8."""
    if payload[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return payload.decode("utf-16", errors="replace").encode()
    return payload
