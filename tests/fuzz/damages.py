# SPDX-License-Identifier: Apache-2.0
"""Ways in which a text arrives damaged, each at a place that the test chooses. `services.mutations` has those that need no choice."""

from __future__ import annotations

import re

from muster.formats.numbers import MARKERS

DEEP = 1000
MEBI = 1024 * 1024
SPELLINGS = tuple(
    dict.fromkeys(
        [
            *(text for text in MARKERS if text),
            *("N/A", "[N/A]", "NA", "n.a.", "[Not Supported]", "Not Supported", "[Unknown Error]", "Unknown Error", "ERR!", "[Insufficient Permissions]"),
            *("[Requested functionality has been deprecated]", "Deprecated, see above", "[REDACTED]", "None", "NaN", "unknown", "---", "..."),
            *("-1", "65535", "4294967295", "18446744073709551615", "9223372036854775794", "2147483632", "-99998"),
        ]
    )
)
"""Every spelling of "no value" that tools were seen to print."""
NUMBERS_THAT_MEAN_NOTHING = frozenset(text for text in SPELLINGS if re.fullmatch(r"-?\d+", text))

_VALUE = re.compile(rb'(?<=[ \t>,"|;:])-?\d+(?:\.\d+)?(?=[ \t<,"|;%\r\n]|$|(?!D )[A-Za-z%]+(?:[ \t<,"|;\r\n]|$))', re.MULTILINE)
_FRACTION = re.compile(rb"(?<![\d.:,])(\d+)\.(\d+)(?![\d.:,\w])")
_JSON_NUMBER = re.compile(rb"([:\[,]\s*)(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?=\s*[,\]}])")


def values(payload: bytes) -> list[tuple[int, int]]:
    """Where a number stands alone in the text."""
    return [match.span() for match in _VALUE.finditer(payload)]


def put(payload: bytes, span: tuple[int, int], text: str) -> bytes:
    """``text`` in the place of what stands there: as a JSON text in JSON, in a table of fixed columns as wide as before where it fits."""
    start, end = span
    if payload.lstrip()[:1] in (b"{", b"[") and payload[start - 1 : start] != b'"' and payload[end : end + 1] != b'"':
        return payload[:start] + (text if text in ("null", "NaN") else f'"{text}"').encode() + payload[end:]
    blanks = len(payload[end:]) - len(payload[end:].lstrip(b" "))
    word = text.encode()
    room = end - start + max(0, blanks - 1)
    padded = word.ljust(end - start) if len(word) <= end - start else word
    swallowed = max(0, min(len(padded), room) - (end - start))
    return payload[:start] + padded + payload[end + swallowed :]


def decimal_commas(payload: bytes) -> bytes:
    """Every fraction as another locale writes it."""
    return _FRACTION.sub(rb"\1,\2", payload)


def numbers_as_text(payload: bytes) -> bytes:
    """Every JSON number in quotes."""
    return _JSON_NUMBER.sub(rb'\1"\2"', payload)


def doubled(payload: bytes, start: int, count: int) -> bytes:
    """``count`` lines from line ``start`` on, each twice."""
    lines = payload.split(b"\n")
    return b"\n".join(each for place, line in enumerate(lines) for each in ([line, line] if start <= place < start + count else [line]))


def inserted(payload: bytes, at: int, what: bytes) -> bytes:
    """``what`` before byte ``at``."""
    return payload[:at] + what + payload[at:]


def line_starts(payload: bytes) -> list[int]:
    """Where lines begin; what comes behind the last line end may be the beginning of another line, and is left out."""
    return [0, *(match.end() for match in re.finditer(rb"\n", payload) if match.end() < len(payload))]


def deep(payload: bytes) -> list[bytes]:
    """Nesting of a thousand levels to stand in the place of a value, as the text's own language has it."""
    if payload.lstrip()[:1] == b"<":
        return [b"<a>" * DEEP + b"</a>" * DEEP, b"<a>" * DEEP]
    if payload.lstrip()[:1] in (b"{", b"["):
        return [b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * DEEP]
    return [b"\n" + b"\n".join(b" " * level + b"a:" for level in range(DEEP)) + b"\n", b"[" * DEEP, b"(" * DEEP]
