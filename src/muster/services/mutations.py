# SPDX-License-Identifier: Apache-2.0
"""What happens to captures on their way: cuts, doubled lines, other line ends, NULs, escape codes, endless lines, deep nesting, other encodings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from muster.domain.model.source import Capture

CUTS = 24
"""Cuts tried per capture, spread over its length."""
LONG = 1024 * 1024
DEEP = 1000


@dataclass(frozen=True, slots=True)
class Mutation:
    """A capture as it may arrive instead."""

    name: str
    capture: Capture
    whole: bool = False
    """Nothing of the original is lost, so nothing of its cards may be."""
    unspoken: bool = False
    """Something was cut off and nobody said so: where a value ends cannot always be known."""


def mutations(capture: Capture) -> Iterator[Mutation]:
    """All mutations of one capture."""
    yield from _cuts(capture)
    yield from (Mutation(name, replace(capture, payload=payload), whole=whole) for name, payload, whole in _altered(capture.payload))


def _cuts(capture: Capture) -> Iterator[Mutation]:
    size = len(capture.payload)
    places = sorted({size * step // CUTS for step in range(CUTS)} | {place for place in (1, size - 1, size - 2) if 0 < place < size})
    for place in places:
        yield Mutation(f"cut at byte {place}, told as cut", replace(capture, payload=capture.payload[:place], cut=True))
        yield Mutation(f"cut at byte {place}, not told", replace(capture, payload=capture.payload[:place]), unspoken=True)


def _altered(payload: bytes) -> Iterator[tuple[str, bytes, bool]]:
    lines = payload.split(b"\n")
    yield "CRLF line ends", payload.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"), True
    yield "doubled lines", b"\n".join(line for line in lines for _ in range(2)), False
    yield "NULs at both ends", b"\x00" + payload + b"\x00\x00", False
    yield "escape codes around lines", b"\n".join(b"\x1b[0m" + line + b"\x1b[K" for line in lines), False
    yield "a line of 1 MiB in front", b"x" * LONG + b"\n" + payload, False
    yield "a line of 1 MiB behind", payload + b"\n" + b"x" * LONG, False
    yield "UTF-16", b"\xff\xfe" + payload.decode("utf-8", errors="replace").encode("utf-16-le"), False
    yield "bytes that are no UTF-8", payload + b"\n\xff\xfe\xfa\n", False


def strangers() -> Iterator[tuple[str, bytes]]:
    """Bytes that are no vendor's output: no format may claim them, and reading them gives no card."""
    yield "nothing", b""
    yield "random bytes", noise(4096)
    yield "prose", b"The quick brown fox jumps over the lazy dog.\nNothing to see here.\n"
    yield "an empty JSON object", b"{}"
    yield "an empty JSON list", b"[]"
    yield "an XML element", b'<?xml version="1.0"?>\n<page><line>1</line></page>\n'
    yield "a CSV of other things", b"apples,pears\n1,2\n"
    yield "deep JSON lists", b"[" * DEEP
    yield "deep JSON objects", b'{"a":' * DEEP
    yield "deep XML", b"<a>" * DEEP


def noise(size: int, seed: bytes = b"muster") -> bytes:
    """Bytes without meaning, the same each time."""
    told = bytearray()
    while len(told) < size:
        told += hashlib.sha256(seed + len(told).to_bytes(8, "big")).digest()
    return bytes(told[:size])
