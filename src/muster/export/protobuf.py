# SPDX-License-Identifier: Apache-2.0
"""The few forms of protocol buffers that stores of metrics take: fields by number, written as bytes."""

from __future__ import annotations

import struct

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(number: int) -> bytes:
    """A whole number that is not negative, seven bits a byte, the lowest first."""
    told = bytearray()
    while number > 0x7F:
        told.append(number & 0x7F | 0x80)
        number >>= 7
    told.append(number)
    return bytes(told)


def block(field: int, body: bytes) -> bytes:
    """A message or bytes."""
    return varint(field << 3 | _BYTES) + varint(len(body)) + body


def text(field: int, words: str) -> bytes:
    """Text; an empty one is left out."""
    return block(field, words.encode("utf-8", "replace")) if words else b""


def whole(field: int, number: int) -> bytes:
    """A small whole number that is not negative."""
    return varint(field << 3 | _VARINT) + varint(number)


def fixed(field: int, number: int) -> bytes:
    """A whole number of eight bytes, with its sign."""
    return varint(field << 3 | _FIXED64) + (number % 2**64).to_bytes(8, "little")


def double(field: int, number: float) -> bytes:
    """A floating number."""
    return varint(field << 3 | _FIXED64) + struct.pack("<d", number)


def read(message: bytes) -> dict[int, int | bytes]:
    """The fields of a message by number, of each the last; numbers of fixed size as bytes. What is cut or garbled ends it."""
    found: dict[int, int | bytes] = {}
    at = 0
    try:
        while at < len(message):
            key, at = _varint(message, at)
            field, kind = key >> 3, key & 7
            if kind == _VARINT:
                found[field], at = _varint(message, at)
                continue
            size, at = _varint(message, at) if kind == _BYTES else ({_FIXED64: 8, _FIXED32: 4}[kind], at)
            if at + size > len(message):
                break
            found[field] = message[at : at + size]
            at += size
    except (IndexError, KeyError):
        pass
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise IndexError(at)
