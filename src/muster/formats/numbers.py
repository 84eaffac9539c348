# SPDX-License-Identifier: Apache-2.0
"""Numbers with units, and the spellings that mean "no value", shared by all tools' texts."""

from __future__ import annotations

import re

from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.units import FACTORS, Unit, scaled

MARKERS: dict[str, Why] = {
    "": Why.NOT_SAMPLED,
    "-": Why.NOT_SUPPORTED,
    "--": Why.NOT_SUPPORTED,
    "n/a": Why.NOT_SUPPORTED,
    "na": Why.NOT_SUPPORTED,
    "nan": Why.UNREADABLE,
    "none": Why.NOT_SUPPORTED,
    "null": Why.NOT_SUPPORTED,
    "not supported": Why.NOT_SUPPORTED,
    "unsupported": Why.NOT_SUPPORTED,
    "not available": Why.NOT_SUPPORTED,
    "not found": Why.NOT_SUPPORTED,
    "not present": Why.NOT_PRESENT,
    "unknown": Why.NOT_SAMPLED,
    "...": Why.NOT_SAMPLED,
    "unknown error": Why.ERROR,
    "err!": Why.ERROR,
    "error": Why.ERROR,
    "gpu is lost": Why.DEVICE_LOST,
    "gpu requires reset": Why.DEVICE_LOST,
    "device is lost": Why.DEVICE_LOST,
    "insufficient permissions": Why.NOT_PERMITTED,
    "permission denied": Why.NOT_PERMITTED,
    "requested functionality has been deprecated": Why.MOVED,
    "deprecated": Why.MOVED,
    "redacted": Why.WITHHELD,
    "<<<null>>>": Why.NOT_SAMPLED,
    "<<<not_found>>>": Why.NOT_SUPPORTED,
    "<<<not_supported>>>": Why.NOT_SUPPORTED,
    "<<<not_perm>>>": Why.NOT_PERMITTED,
}

SENTINELS: dict[float, Why] = {
    0xFFFF: Why.NOT_SUPPORTED,
    0xFFFFFFFF: Why.NOT_SUPPORTED,
    0xFFFFFFFFFFFFFFFF: Why.NOT_SUPPORTED,
    **{0x7FFFFFF0 + i: why for i, why in enumerate((Why.NOT_SAMPLED, Why.NOT_SUPPORTED, Why.NOT_SUPPORTED, Why.NOT_PERMITTED))},
    **{0x7FFFFFFFFFFFFFF0 + i: why for i, why in enumerate((Why.NOT_SAMPLED, Why.NOT_SUPPORTED, Why.NOT_SUPPORTED, Why.NOT_PERMITTED))},
    0x7FFFFFFFFFFFFFFF: Why.NOT_SUPPORTED,
    **{140737488355328.0 + i: why for i, why in enumerate((Why.NOT_SAMPLED, Why.NOT_SUPPORTED, Why.NOT_SUPPORTED, Why.NOT_PERMITTED))},
}
"""Numbers that stand for "no value" in some tool; an adapter that may really read such a number does not ask."""

_NUMBER = re.compile(r"^([+-]?(?:\d[\d.,]*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)$", re.DOTALL)
_PLAIN = re.compile(r"^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$")
_GROUPS = re.compile(r"^[+-]?\d{1,3}(?:[.,]\d{3})+$")


def marker(text: str) -> Why | None:
    """Why there is no value, when ``text`` is one of the spellings that say so (brackets and case do not matter); None when it may be a value."""
    bare = text.strip().lower()
    if bare[:1] == "[" and bare[-1:] == "]":
        bare = bare[1:-1].strip()
    if bare.startswith("deprecated"):
        return Why.MOVED
    return MARKERS.get(bare)


def number(text: str, *, comma: bool = False) -> int | float | None:
    """The number in ``text``, or None when it is none or is ambiguous (``1,024``: a thousand, or one and a bit).

    ``comma`` says that the document is known to use a decimal comma; then ``.`` groups thousands.
    """
    text = text.strip()
    if _PLAIN.match(text) and not (comma and _GROUPS.match(text) and "." in text):
        return _exact(text)
    if comma:
        whole, _, rest = text.partition(",")
        if "," in rest or (("." in whole) and not _GROUPS.match(whole)) or "." in rest:
            return None
        plain = whole.replace(".", "") + ("." + rest if rest else "")
        return _exact(plain) if _PLAIN.match(plain) else None
    whole, dot, rest = text.partition(".")
    if dot and _GROUPS.match(whole) and "," in whole and rest.isdigit():
        return _exact(whole.replace(",", "") + "." + rest)
    return None


def grouped(text: str) -> int | float | None:
    """The number in ``text`` where the document is known to use a decimal point, so that commas can only group thousands."""
    text = text.strip()
    whole, _, rest = text.partition(".")
    if "," in whole and _GROUPS.match(whole) and "." not in rest and "," not in rest:
        return _exact(whole.replace(",", "") + ("." + rest if rest else ""))
    return number(text)


def _exact(text: str) -> int | float | None:
    if len(text) > 64:
        return None
    try:
        return int(text)
    except ValueError:
        value = float(text)
        return value if abs(value) != float("inf") else None


def quantity(key: str, text: str, *, unit: str = "", factor: float | None = None, comma: bool = False, point: bool = False) -> Reading:
    """The reading of attribute ``key`` in ``text`` such as ``"61.20 W"``, in the dictionary's unit.

    ``unit`` is what the tool means where the text has no suffix ("MiB"); ``factor`` overrides both (text in a unit whose name means something else here).
    ``comma``/``point`` say which decimal sign the document is known to use. A marker becomes its absence, anything else ``unreadable`` with the text.
    """
    why = marker(text)
    if why is not None:
        return Absent(why, text.strip())
    match = _NUMBER.match(text.strip())
    entry = ATTRIBUTES[key]
    if match is None:
        return Absent(Why.UNREADABLE, text.strip()[:80])
    digits, suffix = match.group(1), match.group(2).strip()
    value = grouped(digits) if point else number(digits, comma=comma)
    if value is None:
        return Absent(Why.UNREADABLE, f"ambiguous number: {text.strip()[:80]}" if re.search(r"[.,]", digits) else text.strip()[:80])
    if factor is None:
        found = _factor(entry.unit, suffix or unit)
        if found is None:
            return Absent(Why.UNREADABLE, f"unit not known: {text.strip()[:80]}")
        factor = found
    amount = scaled(value, factor)
    return Absent(Why.IMPLAUSIBLE, text.strip()[:80]) if abs(amount) == float("inf") else Known(amount)


def _factor(unit: Unit, suffix: str) -> float | None:
    if not suffix:
        return 1
    table = FACTORS.get(unit, {})
    exact = {"mW": 1e-3, "MW": None, "mJ": 1e-3, "MJ": 1e6, "mV": 1e-3, "MV": None}
    if suffix in exact:
        return exact[suffix]
    return table.get(suffix.lower())


def sentinel(key: str, value: float, factor: float = 1) -> Reading:
    """A number from a machine-readable source: a sentinel becomes its absence, anything else the value times ``factor``."""
    why = SENTINELS.get(value)
    if value in (-1, -1.0) and (ATTRIBUTES[key].low or 0) >= 0:
        why = Why.NOT_SAMPLED
    return Absent(why, f"{value:g}") if why is not None else Known(scaled(value, factor))
