# SPDX-License-Identifier: Apache-2.0
"""Prometheus text exposition: samples with labels, one bad line never costs its neighbours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from muster.formats.text import lines

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|(?=\}))')
_REST = re.compile(r"^\s*(\S+)(?:\s+(-?\d+))?(?:\s+#.*)?\s*$")
_UNESCAPE = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: value as a float (nan and inf included) and timestamp in milliseconds where printed."""

    name: str
    labels: dict[str, str]
    value: float
    timestamp: int | None


def samples(payload: bytes) -> Iterator[Sample]:
    """Samples in order. Comments and broken lines are passed over, and a last line without its line end: its number may go on."""
    for line in lines(payload)[:-1]:
        sample = parse_line(line)
        if sample is not None:
            yield sample


def parse_line(line: str) -> Sample | None:
    """The sample in ``line``, or None when it is a comment or does not read."""
    line = line.strip()
    if not line or line.startswith("#"):
        return None
    match = _NAME.match(line)
    if match is None:
        return None
    at = match.end()
    labels: dict[str, str] = {}
    if line[at : at + 1] == "{":
        found = _labels(line, at + 1)
        if found is None:
            return None
        labels, at = found
    rest = _REST.match(line[at:])
    if rest is None or (line[at : at + 1] not in (" ", "\t") and line[at - 1 : at] != "}"):
        return None
    try:
        value = float(rest.group(1))
    except ValueError:
        return None
    return Sample(match.group(), labels, value, int(rest.group(2)) if rest.group(2) else None)


def _labels(line: str, at: int) -> tuple[dict[str, str], int] | None:
    labels: dict[str, str] = {}
    while line[at : at + 1] != "}":
        match = _LABEL.match(line, at)
        if match is None:
            return (labels, line.index("}", at) + 1) if line[at:].lstrip()[:1] == "}" else None
        labels[match.group(1)] = re.sub(r"\\[n\"\\]", lambda m: _UNESCAPE[m.group()], match.group(2))
        at = match.end()
        while line[at : at + 1] == " ":
            at += 1
    return labels, at + 1


def looks_like(head: bytes) -> bool:
    """True when the first readable lines are samples or ``# HELP``/``# TYPE`` comments."""
    seen = [line for line in lines(head[:8192])[:40] if line.strip()]
    good = sum(1 for line in seen if line.startswith(("# HELP", "# TYPE")) or parse_line(line) is not None)
    return bool(seen) and good * 2 > len(seen)
