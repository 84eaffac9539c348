# SPDX-License-Identifier: Apache-2.0
"""Names of processes stay on the node: they are taken out of rows, of event texts and of the bytes kept as evidence, before anything is sent."""

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


def without_names(told: Interpretation) -> Interpretation:
    """The interpretation with names of processes left out; what they use, and who they are by number, stays."""
    return replace(told, observations=tuple(map(_without, told.observations)), events=tuple(map(_unspoken, told.events)))


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
    """The capture with each of ``names``, and whatever hangs on it up to the next blank or sign, as so many ``*``: columns stay where they are.

    ``log``: its lines tell names by themselves.
    """
    payload = capture.payload
    spellings = {form for name in names if len(name) >= _SHORTEST for form in (name, escape(name), json.dumps(name)[1:-1])}
    if spellings:
        either = "|".join(re.escape(form) for form in sorted(spellings, key=len, reverse=True))
        payload = re.sub(rf"(?<![A-Za-z0-9])(?:{either}){_TAIL}".encode(), lambda found: b"*" * len(found.group()), payload)
    if log:
        payload = unspoken(payload.decode("latin-1")).encode("latin-1")
    return replace(capture, payload=payload)
