# SPDX-License-Identifier: Apache-2.0
"""`-l key=value`: the short form of a filter by one value, for those who know it from other command lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from muster.domain.model.errors import InputError
from muster.domain.model.filters import Shape, spelt
from muster.interfaces.cli.nouns import Noun

_BETWEEN = re.compile(r",(?=[A-Za-z_][\w.]*=)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?[A-Za-z]{0,2}")


def narrowed(kind: Noun, filter_: str | None, labels: Iterable[str]) -> str | None:
    """The filter with each ``key=value`` added to it; None where nothing is asked. Raises InputError."""
    parts = [_test(kind, each) for text in labels for each in _BETWEEN.split(text)]
    if filter_ and parts:
        parts.insert(0, f"({filter_})")
    return " && ".join(parts) or filter_


def _test(kind: Noun, text: str) -> str:
    key, sign, value = text.partition("=")
    key, value = key.strip().removeprefix("readings."), value.removeprefix("=").strip()
    if not sign or not all(key.split(".")):
        raise InputError(f"-l {text!r} is not key=value", hint="for example -l presence=missing; --filter takes all other conditions")
    shape = _shape(kind, key)
    if shape is Shape.LIST:
        return f"{json.dumps(value, ensure_ascii=False)} in {spelt(key)}"
    if (shape is Shape.BOOL and value not in ("true", "false")) or (shape is Shape.NUMBER and not _NUMBER.fullmatch(value)):
        raise InputError(f"-l {text!r}: {key} is a {shape}", hint="give true or false" if shape is Shape.BOOL else "give a number, like 2 or 64Gi")
    return f"{spelt(key)} == {value if shape in (Shape.BOOL, Shape.NUMBER) else json.dumps(value, ensure_ascii=False)}"


def _shape(kind: Noun, key: str) -> Shape:
    """What a field or reading holds; text where nothing else is known, and the server says what does not fit."""
    from muster.domain.model.attributes import ATTRIBUTES
    from muster.domain.model.units import Unit

    told = dict(kind.shapes).get(key)
    entry = ATTRIBUTES.get(key)
    if told is not None or entry is None:
        return told or Shape.TEXT
    return Shape.NUMBER if entry.numeric else {Unit.BOOL: Shape.BOOL, Unit.SET: Shape.LIST, Unit.LIST: Shape.LIST}.get(entry.unit, Shape.TEXT)
