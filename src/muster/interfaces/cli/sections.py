# SPDX-License-Identifier: Apache-2.0
"""The page that `describe` prints: titled sections of pairs, of rows, and of readings with their source, age and what others say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muster.interfaces.cli.cells import Missing, plain, quantity, safe, span, word
from muster.interfaces.cli.documents import told
from muster.interfaces.cli.output import Column, Row, aligned, cell, write

_COLUMN = 52
"""Letters to which a column grows; a longer text pushes the rest of its own line."""
_NAMED = 3
"""So many attributes that rest on a capture are named."""
_WIDEST = 30
"""Letters of a reason that stand in the column of values."""


def heading(text: str) -> None:
    """The title of the page."""
    write(f"{safe(text)}\n")


def pairs(title: str, told: Iterable[tuple[str, Any]]) -> None:
    """A section of names and values; a pair without a value is left out, a section without pairs too."""
    shown = [(name, plain(value)) for name, value in told if value not in (None, "", [], {})]
    if not shown:
        return
    width = max(len(name) for name, _ in shown)
    _title(title)
    write("".join(f"  {name:<{width}}  {text}\n" for name, text in shown))


def rows(title: str, these: Sequence[Row], columns: Sequence[Column]) -> None:
    """A section of rows under titles; nothing when there is none."""
    if not these:
        return
    _title(title)
    grid = [[cell(column, row, wide=False) for column in columns] for row in these]
    write("".join(f"  {line}\n" for line in aligned(grid, columns, no_headers=False, widest=_COLUMN)))


def _title(title: str) -> None:
    if title:
        write(f"\n{title}\n")


def readings(title: str, these: Mapping[str, Any]) -> None:
    """Every reading: value or reason, source, age, and what is doubtful of it."""
    rows(title, [{"key": key, **each} for key, each in sorted(these.items())], _READINGS)


def evidence(these: Iterable[Mapping[str, Any]]) -> None:
    """The captures on which readings rest, and what rests on each: `muster capture DIGEST` shows the bytes."""
    rests: dict[tuple[str, str], list[str]] = {}
    for found in these:
        for key, each in sorted(found.items()):
            if each.get("capture"):
                rests.setdefault((each["capture"], str(each.get("source") or "")), []).append(key)
    rows("EVIDENCE (muster capture CAPTURE)", [{"capture": digest, "source": source, "keys": keys} for (digest, source), keys in rests.items()], _EVIDENCE)


def _keys(row: Row) -> str:
    keys = list(dict.fromkeys(row["keys"]))
    rest = len(keys) - _NAMED
    return ", ".join(keys[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _value(row: Row) -> Any:
    value = told(row)
    if isinstance(value, Missing):
        return f"- ({word(value.why)}{': ' + safe(value.detail) if value.detail and not _long(value) else ''})"
    return _listed(value) if row["key"] == "processes" else quantity(value, str(row.get("unit", "text")))


def _long(value: Any) -> bool:
    """True when a reason is too long for a column that others stand right of; it goes into the note."""
    return isinstance(value, Missing) and len(value.detail) > _WIDEST


def _listed(value: Any) -> str:
    return f"{len(value)} listed" if isinstance(value, list) else plain(value)


def doubts(row: Row) -> Any:
    """What a reader must know of a value: that it is stale, what other sources say instead, and why some say nothing."""
    unit = str(row.get("unit", "text"))
    value = told(row)
    found = [safe(value.detail)] if _long(value) else []
    found += ["stale"] if row.get("stale") else []
    found += [f"{safe(source)} says {quantity(value, unit)}" for source, value in (row.get("dissent") or {}).items()]
    absent = row.get("absent")
    found += [f"{safe(source)}: {word(str(why))}" for source, why in absent.items()] if isinstance(absent, Mapping) else []
    return "; ".join(found) or None


def _age(row: Row) -> Any:
    return span(row["age"]) if isinstance(row.get("age"), int | float) else None


_READINGS = (
    Column(title="ATTRIBUTE", key="key", value=lambda row: row["key"]),
    Column(title="VALUE", key="value", value=_value, show=str),
    Column(title="SOURCE", key="source", value=lambda row: row.get("source")),
    Column(title="AGE", key="age", value=_age, show=str, right=True),
    Column(title="NOTE", key="note", value=lambda row: doubts(row) or " ", show=str),
)
_EVIDENCE = (
    Column(title="CAPTURE", key="capture", value=lambda row: row["capture"]),
    Column(title="SOURCE", key="source", value=lambda row: row["source"]),
    Column(title="ATTRIBUTES", key="keys", value=_keys, show=str),
)
