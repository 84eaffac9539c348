# SPDX-License-Identifier: Apache-2.0
"""Names of processes and secrets stay on the node: out of rows, of event texts and of bytes kept as evidence, before anything is kept or sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from xml.sax.saxutils import escape

from muster.domain.model.observation import Event, Interpretation, Observation
from muster.domain.model.reading import Known
from muster.domain.model.source import Capture

WITHHELD = "[withheld]"
"""What stands where a process name stood."""

_KEPT = frozenset({"pid", "kind", "type", "memory.used"})
_TAIL = r"[^\s\"'<>|,;]*"
_SHORTEST = 3
_SPOKEN = re.compile(r"(?i)(\bname[=:] ?|\bcomm[=:] ?|\btask |\b(?:process|thread) (?!information\b))([^\s,;:\[\]()]+)(?=[\s,;:\[\]()]|$)")

_WORD = rb"(?:pass(?:wor[dt]|wd|phrase)|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|authorization)s?"
_VALUE = rb"([A-Za-z0-9+/_.~!@#$%^*-]{6,}={0,2})"
_SECRET = re.compile(rb"(?i)(" + _WORD + rb"[\"']?\s{0,3}[=:]\s{0,3}[\"']?(?:(?:bearer|basic|digest)\s{1,3})?)" + _VALUE)
_OPTION = re.compile(rb"(?i)((?:^|\s|[\"'])--?[a-z-]{0,20}" + _WORD + rb"\s{1,3}[\"']?)" + _VALUE)
_BEARER = re.compile(rb"(?i)(\b(?:bearer|basic)\s{1,3})([A-Za-z0-9+/_.~-]{16,}={0,2})")
_USERINFO = re.compile(rb"([a-z][a-z0-9+.-]{1,20}://)([^\s/@\"'<>]{1,200})(?=@)")
_KEY = re.compile(rb"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)(.{1,20000}?)(?=-----END|\Z)", re.DOTALL)


def without_names(told: Interpretation) -> Interpretation:
    """The interpretation with names of processes left out; what they use, and who they are by number, stays."""
    return replace(told, observations=tuple(map(_without, told.observations)), events=tuple(map(_unspoken, told.events)))


def without_secrets(told: Interpretation) -> Interpretation:
    """The interpretation with passwords, tokens and keys in texts of events and in rows of processes as so many ``*``."""
    if not told.events and not any("processes" in each.readings for each in told.observations):
        return told
    events = tuple(replace(each, text=_unsecret(each.text)) for each in told.events)
    return replace(told, observations=tuple(map(_rows_unsecret, told.observations)), events=events)


def _rows_unsecret(told: Observation) -> Observation:
    rows = told.readings.get("processes")
    if not isinstance(rows, Known) or not rows.value:
        return told
    kept = [
        {key: _unsecret(value) if isinstance(value, str) else value for key, value in row.items()} if isinstance(row, Mapping) else row for row in rows.value
    ]
    return replace(told, readings={**told.readings, "processes": Known(kept)})


def _unsecret(text: str) -> str:
    return unsecret(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _without(told: Observation) -> Observation:
    rows = told.readings.get("processes")
    return replace(told, readings={**told.readings, "processes": Known([_bare(row) for row in rows.value])}) if isinstance(rows, Known) else told


def _bare(row: Any) -> Any:
    if not isinstance(row, Mapping):
        return row if isinstance(row, int | float) else WITHHELD
    return {key: value for key, value in row.items() if key in _KEPT or isinstance(value, int | float)}


def _unspoken(told: Event) -> Event:
    return replace(told, text=unspoken(told.text))


def unspoken(text: str) -> str:
    """A line of a log without the names of processes that such lines tell (``name=x``, ``comm: x``, ``task x:1``, ``process x pid 1``)."""
    return _SPOKEN.sub(rf"\g<1>{WITHHELD}", text)


def process_names(told: Interpretation) -> frozenset[str]:
    """Names of processes that the interpretation found."""
    rows = [row for each in told.observations if isinstance(found := each.readings.get("processes"), Known) for row in found.value]
    return frozenset(str(row["name"]) for row in rows if isinstance(row, Mapping) and isinstance(row.get("name"), str))


def redacted(capture: Capture, names: Iterable[str], *, log: bool = False) -> Capture:
    """The capture without secrets, and with each of ``names``, and whatever hangs on it up to the next blank or sign, as so many ``*``: columns stay.

    ``log``: its lines tell names by themselves.
    """
    names = tuple(names)
    payload, stderr = (unsecret(_unnamed(text, names, log)) for text in (capture.payload, capture.stderr))
    locator = tuple(unsecret(part.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape") for part in capture.locator)
    return replace(capture, payload=payload, stderr=stderr, locator=locator)


def _unnamed(text: bytes, names: Iterable[str], log: bool) -> bytes:
    spellings = {form for name in names if len(name) >= _SHORTEST for form in (name, escape(name), json.dumps(name)[1:-1])}
    if spellings:
        either = "|".join(re.escape(form) for form in sorted(spellings, key=len, reverse=True))
        text = re.sub(rf"(?<![A-Za-z0-9])(?:{either}){_TAIL}".encode(), _stars, text)
    return unspoken(text.decode("latin-1")).encode("latin-1") if log else text


def _stars(found: re.Match[bytes]) -> bytes:
    return b"*" * len(found.group())


def unsecret(text: bytes) -> bytes:
    """The text with whatever stands where a password, token or key would as so many ``*``: after such a word, in an address before its ``@``, in a key file."""
    for pattern in (_KEY, _USERINFO, _BEARER, _OPTION, _SECRET):
        text = pattern.sub(_hidden, text)
    return text


def _hidden(found: re.Match[bytes]) -> bytes:
    return found.group(1) + b"*" * len(found.group(2))
