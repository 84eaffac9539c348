# SPDX-License-Identifier: Apache-2.0
"""Lines that tell a checker to look away: counted, each with its rule and its reason, and never more than before."""

from __future__ import annotations

import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.tree import modules, nothing, shipped, where

HERE = Path(__file__).resolve().parent
ANY = re.compile(r"#\s*(noqa|type:\s*ignore|pragma:\s*no|ruff:|mypy:|pylint:|pyright:|isort:)", re.IGNORECASE)
GOOD = re.compile(r"#\s*(noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*|type: ignore\[[a-z-]+(, ?[a-z-]+)*\]|pragma: no (cover|branch))\s*(#|-|\()\s*\S.{8,}")
ALLOWED: dict[str, int] = tomllib.loads((HERE / "suppressions.toml").read_text(encoding="utf-8"))


def suppressions(paths: list[Path]) -> Iterator[tuple[str, str]]:
    """Where, and the comment."""
    for path in paths:
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type == tokenize.COMMENT and ANY.search(token.string):
                    yield where(path, token.start[0]), token.string


PLACES = {"src": shipped(), "tests": sorted({*modules("src", "tests", "tools", "bench")} - {*shipped()})}


@pytest.mark.parametrize("place", sorted(PLACES))
def test_no_more_suppressions_than_before(place: str) -> None:
    found = [at for at, _ in suppressions(PLACES[place])]

    assert len(found) <= ALLOWED[place], "\n".join(found)


@pytest.mark.parametrize("place", sorted(PLACES))
def test_the_number_goes_down_with_them(place: str) -> None:
    assert ALLOWED[place] <= len(list(suppressions(PLACES[place]))), "there are fewer now: lower the number in suppressions.toml"


@pytest.mark.parametrize("place", sorted(PLACES))
def test_each_names_its_rule_and_its_reason(place: str) -> None:
    nothing([f"{at} {comment}" for at, comment in suppressions(PLACES[place]) if not GOOD.search(comment)])
