# SPDX-License-Identifier: Apache-2.0
"""Units of the dictionary, and the conversions that adapters use at the edge. Everything inside is in these units."""

from __future__ import annotations

from enum import StrEnum


class Unit(StrEnum):
    """The one unit an attribute is kept in; the spelling is that of the API."""

    TEXT = "text"
    HEX16 = "hex16"
    COUNT = "count"
    BOOL = "bool"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes_per_second"
    WATT = "watt"
    JOULE = "joule"
    CELSIUS = "celsius"
    KELVIN = "kelvin"
    HERTZ = "hertz"
    RATIO = "ratio"
    RPM = "rpm"
    VOLT = "volt"
    DATE = "date"
    ENUM = "enum"
    SET = "set"
    LIST = "list"
    MAP = "map"


NUMBERS = frozenset(
    {
        Unit.COUNT,
        Unit.BYTES,
        Unit.BYTES_PER_SECOND,
        Unit.WATT,
        Unit.JOULE,
        Unit.CELSIUS,
        Unit.KELVIN,
        Unit.HERTZ,
        Unit.RATIO,
        Unit.RPM,
        Unit.VOLT,
    }
)

# factor by which a number printed with this suffix is multiplied to reach the unit of the dictionary;
# "MB" and "GB" are left out on purpose: tools print MiB under that name, so the adapter decides
FACTORS: dict[Unit, dict[str, float]] = {
    Unit.BYTES: {"b": 1, "byte": 1, "bytes": 1, "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4},
    Unit.BYTES_PER_SECOND: {
        "b/s": 1,
        "kb/s": 1000,
        "kib/s": 1024,
        "mb/s": 1000**2,
        "mib/s": 1024**2,
        "gb/s": 1000**3,
        "gib/s": 1024**3,
        "kbps": 125,
        "mbps": 125_000,
        "gbps": 125_000_000,
    },
    Unit.WATT: {"w": 1, "mw": 1e-3, "uw": 1e-6, "kw": 1e3},
    Unit.JOULE: {"j": 1, "mj": 1e-3, "uj": 1e-6, "kj": 1e3, "wh": 3600, "kwh": 3.6e6},
    Unit.CELSIUS: {"c": 1, "°c": 1, "mc": 1e-3},
    Unit.KELVIN: {"c": 1, "°c": 1, "k": 1},
    Unit.HERTZ: {"hz": 1, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
    Unit.RATIO: {"%": 0.01},
    Unit.RPM: {"rpm": 1},
    Unit.VOLT: {"v": 1, "mv": 1e-3, "uv": 1e-6},
    Unit.COUNT: {},
}


def scaled(number: float, factor: float) -> int | float:
    """``number`` times ``factor``, an int where the product is whole, without the noise of binary fractions (9 digits after the point are kept)."""
    product = number * factor
    if isinstance(product, float) and product.is_integer():
        return int(product)
    return product if isinstance(product, int) or product != product or abs(product) == float("inf") else round(product, 9)


def from_mib(number: float) -> int | float:
    """MiB to bytes."""
    return scaled(number, 1024**2)


def from_milliwatts(number: float) -> int | float:
    """Milliwatts to watts."""
    return scaled(number, 1e-3)


def from_percent(number: float) -> float:
    """Percent to a ratio 0..1."""
    return round(number / 100, 9)


def from_mhz(number: float) -> int | float:
    """MHz to hertz."""
    return scaled(number, 1_000_000)
