# SPDX-License-Identifier: Apache-2.0
"""Bytes of the gauge tables: the roll-up of one minute of one source before it is packed, and the columns of a layout."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.units import Unit
from muster.store.pack import Floats

Flags = NDArray[np.bool_]
MANY = 65535
"""A minute counts no further."""

_EXACT = frozenset(key for key, entry in ATTRIBUTES.items() if entry.unit in (Unit.COUNT, Unit.JOULE, Unit.BYTES))

_pack = msgspec.msgpack.Encoder()
_unpack = msgspec.msgpack.Decoder(tuple[list[tuple[str, str]], list[str], bytes])


@dataclass(frozen=True, slots=True)
class Rolled:
    """A minute, or several: arrays whose last axis are the numbers of one source. Where ``count`` is 0 the others say nothing."""

    count: NDArray[np.int64]
    low: Floats
    high: Floats
    total: Floats
    last: Floats


def merged(first: Rolled, second: Rolled) -> Rolled:
    """Two roll-ups of one minute made one; ``second`` has the last word where it has one."""
    count = first.count + second.count
    total = np.where(first.count > 0, first.total, 0.0) + np.where(second.count > 0, second.total, 0.0)
    return Rolled(count, np.fmin(_told(first, "low"), _told(second, "low")), np.fmax(_told(first, "high"), _told(second, "high")), total, _last(first, second))


def _told(rolled: Rolled, name: str) -> Floats:
    return np.where(rolled.count > 0, getattr(rolled, name), np.nan)


def _last(first: Rolled, second: Rolled) -> Floats:
    return np.where(second.count > 0, second.last, first.last)


def exact(columns: Iterable[tuple[str, str, str, int]], width: int) -> Flags:
    """Numbers whose roll-ups must not lose a unit."""
    flags = np.zeros(width, dtype=bool)
    flags[[place for _, _, key, place in columns if key in _EXACT]] = True
    return flags


def squeeze(rolled: Rolled, exact: Flags, *, last: bool = True) -> list[memoryview]:
    """Rows of two-dimensional ``rolled`` as bytes: ``low`` in full, the others as what they are above it, in half the bytes where that loses nothing
    that counts. Without ``last`` where it is known otherwise.
    """
    told = rolled.count > 0
    low = np.where(told, rolled.low, 0.0)
    rest = [rolled.high - low, rolled.total - low * rolled.count, *([rolled.last - low] if last else [])]
    rest = [np.where(told, each, 0.0) for each in rest]
    with np.errstate(over="ignore"):
        short = [each.astype("<f4") for each in rest]
    fits = np.all([(~exact | (half == whole)) & np.isfinite(half) for half, whole in zip(short, rest, strict=True)], axis=(0, 2))
    count = np.minimum(rolled.count, MANY).astype("<u2")
    rows = _rows([low.astype("<f8"), *short, count])
    if not fits.all():
        full = [rolled.high, rolled.total, *([rolled.last] if last else [])]
        whole = _rows([low.astype("<f8"), *(np.where(told, each, 0.0).astype("<f8") for each in full), count])
        rows = [row if fit else other for row, other, fit in zip(rows, whole, fits, strict=True)]
    return rows


def _rows(parts: Sequence[NDArray[np.generic]]) -> list[memoryview]:
    joined = np.concatenate([np.ascontiguousarray(part).view(np.uint8) for part in parts], axis=1)
    size = joined.shape[1]
    whole = memoryview(joined.tobytes())
    return [whole[start : start + size] for start in range(0, len(whole), size)] if size else [memoryview(b"")] * len(joined)


def spread(packed: Sequence[bytes], width: int, last: Floats | None = None) -> Rolled:
    """What `squeeze` made of rows that are equally long; ``last`` where it was left out. Raises ValueError for bytes of another width."""
    stats, size = 2 if last is not None else 3, len(packed[0])
    short = size == width * (10 + 4 * stats)
    if not short and size != width * (10 + 8 * stats):
        raise ValueError(f"damaged roll-up: {size} bytes of {width} numbers")
    whole = np.frombuffer(b"".join(packed), np.uint8).reshape(len(packed), size)
    step = 4 if short else 8
    edges = [0, 8 * width, *(8 * width + step * width * (stat + 1) for stat in range(stats)), size]
    kinds = ["<f8", *[f"<f{step}"] * stats, "<u2"]
    parts = [np.ascontiguousarray(whole[:, a:b]).view(kind) for a, b, kind in zip(edges[:-1], edges[1:], kinds, strict=True)]
    low, count = parts[0].astype(np.float64), parts[-1].astype(np.int64)
    rest = [part.astype(np.float64) for part in parts[1:-1]]
    if short:
        rest = [rest[0] + low, rest[1] + low * count, *(each + low for each in rest[2:])]
    return Rolled(count, low, rest[0], rest[1], last if last is not None else rest[2])


def nothing(width: int) -> Floats:
    """One row of so many numbers that nobody told."""
    return np.full((1, width), np.nan)


def columns_blob(columns: Iterable[tuple[str, str, str, int]]) -> bytes:
    """The columns of a layout, packed: subjects with their cards, keys, and which of both stands at which place."""
    subjects: dict[tuple[str, str], int] = {}
    keys: dict[str, int] = {}
    rows = [(subjects.setdefault((subject, card), len(subjects)), keys.setdefault(key, len(keys)), place) for subject, card, key, place in columns]
    return zlib.compress(_pack.encode((list(subjects), list(keys), np.array(rows, "<u4").tobytes())), 1)


def columns(blob: bytes, cards: Collection[str] | None = None) -> list[tuple[str, str, str, int]]:
    """The columns of a layout, all or those of some cards: subject, card, key, place. Raises ValueError when they are damaged."""
    try:
        subjects, keys, packed = _unpack.decode(zlib.decompress(blob))
        rows = np.frombuffer(packed, "<u4").reshape(-1, 3)
        if cards is not None:
            mine = np.fromiter((card in cards for _, card in subjects), bool, len(subjects))
            rows = rows[mine[rows[:, 0]]]
        return [(*subjects[subject], keys[key], place) for subject, key, place in rows.tolist()]
    except (zlib.error, msgspec.DecodeError, IndexError) as error:
        raise ValueError(f"damaged layout: {error}") from error


def plain(value: float) -> int | float:
    """A number as it was said: whole where it is whole."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
