# SPDX-License-Identifier: Apache-2.0
"""Twenty minutes of roll-ups of one layout in few bytes.

Every column is quantised by a step that belongs to its unit: exact for counts, a fixed step where an instrument has one (`_FIXED`), else the largest
power that keeps the error small beside the smallest value of the block (`_SHARE`). ``low`` is kept as differences over time, the others as how far
they stand from ``low`` and from each other: all of it is small. Bytes of equal weight stand together, and zlib takes out what repeats. What fits no
step is kept as it was.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.units import Unit

MINUTE, SPAN = 60, 20
BLOCK = MINUTE * SPAN
"""Seconds of one block."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_RAW, _DECIMAL, _BINARY, _EXACT = 0, 32, 100, 200
"""What a column's step is: kept as it was; a power of ten or of two, counted from here; one, with an exact sum."""
_BY_TEN, _BYTES, _FLOW = 1, 2, 3
"""Rules: the step is a power of ten or two that is found anew for each block."""

_FIXED = {Unit.RATIO: -3, Unit.CELSIUS: -1, Unit.KELVIN: -1, Unit.WATT: -1, Unit.RPM: 0, Unit.VOLT: -3, Unit.JOULE: 0}
"""Step of a unit as a power of ten."""
_RULES = {Unit.COUNT: _EXACT, Unit.BYTES: _BYTES, Unit.BYTES_PER_SECOND: _FLOW, Unit.HERTZ: _BY_TEN}
_SHARE = {_BY_TEN: 1e-3, _BYTES: 2.0**-15, _FLOW: 2.0**-9}
"""How large a step may be beside the smallest value, zero aside."""
_MOST = {_BY_TEN: 6, _BYTES: 20, _FLOW: 40}
"""And its largest power: a million (one MHz), one MiB, no matter."""
_ROOM = 2.0**52
_HEAD = struct.Struct("<BIBBBBB")
_FORM = 1


@dataclass(frozen=True, slots=True)
class Grid:
    """Roll-ups of a block: arrays of (columns, SPAN minutes); where ``count`` is 0 the others say nothing. ``at``: seconds into its minute of each minute's
    last round, NaN where there was none.
    """

    at: Floats
    count: Ints
    low: Floats
    high: Floats
    total: Floats
    last: Floats


def rule(key: str) -> int:
    """How a column of ``key`` is quantised, for `pack`."""
    entry = ATTRIBUTES.get(key)
    if entry is None:
        return _RAW
    return _DECIMAL + _FIXED[entry.unit] if entry.unit in _FIXED else _RULES.get(entry.unit, _RAW)


def rules(keys: Iterable[str]) -> NDArray[np.uint8]:
    """`rule` of each key."""
    return np.fromiter((rule(key) for key in keys), dtype=np.uint8)


def bounds(key: str) -> tuple[float, float]:
    """The most that packing changes a value or a mean of ``key``: the larger of an absolute error and one relative to it."""
    found = rule(key)
    if found in (_RAW, _EXACT):
        return 0.0, 2.0**-50
    if found in _SHARE:
        return 0.5, _SHARE[found] / 2 + 2.0**-50
    return float(10.0 ** (found - _DECIMAL)) / 2, 2.0**-50


def pack(grids: Sequence[Grid], rules: Sequence[NDArray[np.uint8]]) -> list[bytes]:
    """Blocks of equally wide grids, each with the rules of its columns."""
    with np.errstate(over="ignore", invalid="ignore"):  # numbers at the edge of a float: their columns are kept as they were
        return _packed(grids, rules)


def _packed(grids: Sequence[Grid], rules: Sequence[NDArray[np.uint8]]) -> list[bytes]:
    count = np.stack([each.count for each in grids])
    told = count > 0
    low, high, total, last = (np.where(told, np.stack([getattr(each, name) for each in grids]), 0.0) for name in ("low", "high", "total", "last"))
    mean = total / np.maximum(count, 1)
    codes = _codes(np.stack(rules), told, (low, high, mean, last))
    step, exact = _steps(codes), (codes == _EXACT)[..., None]
    lows = _filled(_quantised(low, step), told)
    rest = np.where(exact, np.clip(np.rint(total - low * count), -1, _ROOM).astype(np.int64), _quantised(mean, step) - lows)
    highs = _quantised(high, step)
    rest = np.where(exact, rest, _zigzag(rest - (highs - lows) // 2))
    kept = [np.where(told, each, 0) for each in (highs - lows, highs - _quantised(last, step), rest)]
    codes[_unfit(step, (low, high, mean, last), kept)] = _RAW
    quantised = codes != _RAW
    first, moves = lows[..., 0] * quantised, _zigzag(np.diff(lows, axis=-1, prepend=lows[..., :1]) * quantised[..., None])
    kept = [each * quantised[..., None] for each in kept]
    made = []
    for index, grid in enumerate(grids):
        raw = np.stack([each[index] for each in (low, high, total, last)], axis=1)[~quantised[index]]
        made.append(_block(grid.at, count[index], codes[index], first[index], moves[index], [each[index] for each in kept], raw))
    return made


def _codes(rules: NDArray[np.uint8], told: NDArray[np.bool_], values: Sequence[Floats]) -> NDArray[np.uint8]:
    """The step of each column, found for those that have none of their own. A count that is not whole is kept as it was."""
    codes = rules.copy()
    for found, base in ((_BY_TEN, _DECIMAL), (_BYTES, _BINARY), (_FLOW, _BINARY)):
        mine = rules == found
        if mine.any():
            codes[mine] = base + _powers(found, [each[mine] for each in values])
    broken = (codes == _EXACT) & ~np.all([np.all(~told | (each == np.rint(each)), axis=-1) for each in (values[0], values[1], values[3])], axis=0)
    codes[broken] = _RAW
    return codes


def _powers(found: int, values: Sequence[Floats]) -> Ints:
    least = np.full(values[0].shape[0], np.inf)
    for each in values:
        size = np.abs(each)
        least = np.minimum(least, np.where(size > 0, size, np.inf).min(axis=-1))
    most = np.maximum(least * _SHARE[found], 1.0)
    power = np.log10(most) if found == _BY_TEN else np.log2(most)
    return np.minimum(np.floor(power + 1e-12), _MOST[found]).astype(np.int64)


@lru_cache(maxsize=1)
def _step_table() -> Floats:
    table = np.full(256, 1.0)
    for power in range(-9, 10):
        table[_DECIMAL + power] = float(f"1e{power}")
    for power in range(64):
        table[_BINARY + power] = 2.0**power
    return table


def _steps(codes: NDArray[np.uint8]) -> Floats:
    steps: Floats = _step_table()[codes][..., None]
    return steps


def _quantised(values: Floats, step: Floats) -> Ints:
    return np.rint(np.clip(values / step, -_ROOM, _ROOM)).astype(np.int64)


def _filled(lows: Ints, told: NDArray[np.bool_]) -> Ints:
    """What is not told is the same as before, and before the first as the first: it costs nothing."""
    places = np.where(told, np.arange(told.shape[-1]), -1)
    places = np.maximum.accumulate(places, axis=-1)
    first = np.argmax(told, axis=-1)[..., None]
    filled: Ints = np.take_along_axis(lows, np.where(places < 0, first, places), axis=-1)
    return filled


def _unfit(step: Floats, values: Sequence[Floats], kept: Sequence[Ints]) -> NDArray[np.bool_]:
    """Columns with values beyond the room of a whole number, or whose order was lost."""
    unfit: NDArray[np.bool_] = np.zeros(values[0].shape[:-1], dtype=bool)
    for each in values:
        unfit |= (np.abs(each) >= _ROOM * step).any(axis=-1)
    for rest in kept:
        unfit |= ((rest < 0) | (rest >= _ROOM)).any(axis=-1)
    return unfit


def _zigzag(values: Ints) -> Ints:
    """Small numbers of either sign as small numbers."""
    return (values << 1) ^ (values >> 63)


def _unzigzag(values: Ints) -> Ints:
    return (values >> 1) ^ -(values & 1)


def _planes(values: Ints) -> tuple[int, bytes]:
    """Bytes of equal weight side by side, without those that are 0 everywhere; how many of eight are left."""
    many = (int(values.max(initial=0)).bit_length() + 7) // 8
    split = values.astype("<i8").reshape(-1, 1).view(np.uint8)
    return many, split[:, :many].T.tobytes()


def _block(at: Floats, count: Ints, codes: NDArray[np.uint8], first: Ints, moves: Ints, above: Sequence[Ints], raw: Floats) -> bytes:
    most = count.max(axis=0)
    planes = [_planes(each) for each in (most - count, moves, *above)]
    ticks = np.where(np.isnan(at), 65535, np.minimum(np.floor(at * 1000 + 1e-3), 59999)).astype("<u2")
    head = _HEAD.pack(_FORM, len(codes), *(many for many, _ in planes))
    body = [ticks.tobytes(), most.astype("<i4").tobytes(), codes.tobytes(), _planes_of_eight(first), *(each for _, each in planes), raw.astype("<f8").tobytes()]
    squeezer = zlib.compressobj(1, strategy=zlib.Z_RLE)  # what is left is noise and long runs: as small as by searching, and cheaper
    return head + squeezer.compress(b"".join(body)) + squeezer.flush()


def _planes_of_eight(values: Ints) -> bytes:
    return values.astype("<i8").reshape(-1, 1).view(np.uint8).T.tobytes()


class _Cut:
    """Takes the parts of a block one after the other."""

    def __init__(self, body: bytes, offset: int = 0) -> None:
        self._body, self._offset = body, offset

    def take(self, kind: str, many: int) -> NDArray[Any]:
        """The next ``many`` of a type."""
        found = np.frombuffer(self._body, dtype=kind, count=many, offset=self._offset)
        self._offset += found.nbytes
        return found

    def planes(self, many: int, shape: tuple[int, ...], columns: Any) -> Ints:
        """Whole numbers from ``many`` planes, of some columns."""
        split = self.take("u1", many * int(np.prod(shape))).reshape(many, *shape)[:, columns]
        found = np.zeros(split.shape[1:], dtype=np.int64)
        for weight in range(many):
            found |= split[weight].astype(np.int64) << (8 * weight)
        return found


def unpack(block: bytes, columns: Sequence[int] | None = None) -> Grid:
    """The roll-ups of a block, all or some of its columns. Raises ValueError for what is no block."""
    try:
        form, width, *many = _HEAD.unpack_from(block)
        if form != _FORM:
            raise ValueError(f"block of roll-ups in form {form}")
        return _unpacked(_Cut(zlib.decompress(block[_HEAD.size :])), width, many, slice(None) if columns is None else list(columns))
    except (struct.error, zlib.error, IndexError) as error:
        raise ValueError(f"damaged block of roll-ups: {error}") from error


def _unpacked(cut: _Cut, width: int, many: Sequence[int], columns: Any) -> Grid:
    ticks, most, all_codes = cut.take("<u2", SPAN), cut.take("<i4", SPAN), cut.take("u1", width)
    codes = all_codes[columns]
    shape = (width, SPAN)
    first = cut.planes(8, (width,), columns)
    count = most.astype(np.int64) - cut.planes(many[0], shape, columns)
    lows = first[:, None] + np.cumsum(_unzigzag(cut.planes(many[1], shape, columns)), axis=-1)
    above, below, rest = (cut.planes(each, shape, columns) for each in many[2:])
    exact = (codes == _EXACT)[:, None]
    low = _scaled(lows, codes)
    total = np.where(exact, low * count + rest, _scaled(lows + above // 2 + _unzigzag(rest), codes) * count)
    values = [low, _scaled(lows + above, codes), total, _scaled(lows + above - below, codes)]
    raw = np.flatnonzero(all_codes == _RAW)
    if raw.size:
        kept = cut.take("<f8", raw.size * 4 * SPAN).reshape(raw.size, 4, SPAN)
        place = {int(column): index for index, column in enumerate(raw)}
        for row, column in enumerate(np.arange(width)[columns]):
            if (index := place.get(int(column))) is not None:
                for stat, each in enumerate(values):
                    each[row] = kept[index, stat]
    at = np.where(ticks == 65535, np.nan, ticks / 1000.0)
    told = count > 0
    return Grid(at, count, *(np.where(told, each, np.nan) for each in values))


def _scaled(values: Ints, codes: NDArray[np.uint8]) -> Floats:
    """Multiples of the step; for steps below one by division, which gives the number nearest to the decimal that is meant."""
    step = _steps(codes)
    small = step < 1
    with np.errstate(invalid="ignore"):
        scaled: Floats = np.where(small, values / np.where(small, np.rint(1 / step), 1.0), values * step)
    return scaled
