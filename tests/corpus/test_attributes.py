# SPDX-License-Identifier: Apache-2.0
"""Our dictionary against the one that the corpus was described in: the same keys with the same meaning. Ours may have more, and has its own sentences."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from muster.domain.model.attributes import ATTRIBUTES, Attribute

COLUMNS = ("unit", "kind", "of", "compare", "low", "high")


@pytest.fixture(scope="module")
def rows(corpus: Path) -> list[dict[str, str]]:
    """The rows of ``attributes.csv`` beside the corpus; a test that needs them is skipped where there are none."""
    found = corpus.parent / "attributes.csv"
    if not found.is_file():
        pytest.skip("corpus not present")
    with found.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _ours(entry: Attribute) -> dict[str, str | float | None]:
    words = {"unit": entry.unit.value, "kind": entry.kind.value, "of": entry.of.value, "compare": str(entry.compare)}
    return {**words, "low": entry.low, "high": entry.high}


def _theirs(row: dict[str, str]) -> dict[str, str | float | None]:
    bounds = {key: float(row[key]) if row[key] else None for key in ("low", "high")}
    return {**{key: row[key] for key in COLUMNS}, **bounds}


def test_every_row_means_the_same(rows: list[dict[str, str]]) -> None:
    differ = [(row["key"], _theirs(row), _ours(entry)) for row in rows if (entry := ATTRIBUTES.get(row["key"])) is not None and _ours(entry) != _theirs(row)]

    assert [row["key"] for row in rows if row["key"] not in ATTRIBUTES] == []
    assert differ == []


def test_every_key_has_a_sentence_of_our_own(rows: list[dict[str, str]]) -> None:
    theirs = {row["key"]: row["about"].strip() for row in rows}

    assert [key for key, entry in ATTRIBUTES.items() if not entry.about or entry.about == theirs.get(key)] == []
