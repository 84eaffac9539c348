# SPDX-License-Identifier: Apache-2.0
"""The block form of snappy, written with literals alone: every reader takes it, and it costs no more than a copy. It does not make anything smaller."""

from __future__ import annotations

from muster.export.protobuf import varint

_LITERAL = 65536
_TAG = 61 << 2
"""A literal whose length stands in the two bytes that follow."""


def packed(payload: bytes) -> bytes:
    """``payload`` as a snappy block."""
    parts = [varint(len(payload))]
    for at in range(0, len(payload), _LITERAL):
        piece = payload[at : at + _LITERAL]
        parts += (bytes((_TAG,)), (len(piece) - 1).to_bytes(2, "little"), piece)
    return b"".join(parts)
