# SPDX-License-Identifier: Apache-2.0
"""Points as Prometheus text. Lines are joined from strings that are there already."""

from __future__ import annotations

import re
from collections.abc import Iterable

from muster.export.families import Family
from muster.export.series import Point

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SPECIAL = re.compile(r"[\\\n]")


def text(points: Iterable[Point]) -> tuple[str, int]:
    """The page, and how many series it has. Families stand in the order in which they came first, each whole."""
    lines: dict[str, list[str]] = {}
    heads: dict[str, Family] = {}
    for family, labels, value, _ in points:
        name = family.name
        mine = lines.get(name)
        if mine is None:
            mine = lines[name] = []
            heads[name] = family
        mine.append(f"{name}{{{labels.text}}} {value!r}\n" if labels.text else f"{name} {value!r}\n")
    parts = (part for name, mine in lines.items() for part in (_head(heads[name]), *mine))
    return "".join(parts), sum(map(len, lines.values()))


def _head(family: Family) -> str:
    about = _SPECIAL.sub(lambda match: "\\\\" if match.group() == "\\" else "\\n", family.about)
    return f"# HELP {family.name} {about}\n# TYPE {family.name} {family.form}\n"
