# SPDX-License-Identifier: Apache-2.0
"""What pages say to install is our distribution: another one has the name of the command."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import pytest
from tests.house.tree import ROOT, files, nothing, where

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSTALL = re.compile(r"\b(?:pip|pipx|uv|uv pip|uv tool)3? install((?:[^\S\n]+[^\s`|;&#]+)+)")
TELLING = {".md", ".toml", ".service", ".yaml", ".py"}


def installed(text: str) -> Iterator[str]:
    """The words after each `pip install` that are no option."""
    for match in INSTALL.finditer(text):
        for word in match[1].split():
            yield word.strip("\"',.:)")


def foreign(text: str) -> list[str]:
    """Requirements that a reader would take for ours and that are not, and extras of ours that there are none of."""
    found = []
    for word in installed(text):
        name, _, extras = word.partition("[")
        if re.fullmatch(r"muster(?:[=<>~!].*)?", name):
            found.append(word)
        if name == PROJECT["name"]:
            found += [word for extra in extras.rstrip("]").split(",") if extra and extra not in PROJECT["optional-dependencies"]]
    return found


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("pip install muster", ["muster"]),
        ("/opt/muster/bin/pip install 'muster[postgres]'", ["muster[postgres]"]),
        ("pip install -U muster==1.0", ["muster==1.0"]),
        ("`pip install musterroll[otlp]`", ["musterroll[otlp]"]),
        ("pip install 'musterroll[postgres,remote-write]'", []),
        ("pip install muster-acme", []),
    ],
)
def test_a_foreign_name_is_seen(text: str, wrong: list[str]) -> None:
    assert foreign(text) == wrong


def test_no_page_installs_somebody_elses_package() -> None:
    told = {where(path): found for path in files() if path.suffix in TELLING and "tests" not in path.parts and (found := foreign(path.read_text("utf-8")))}

    nothing(f"{at}: {found}" for at, found in told.items())


def test_the_page_that_installs_says_our_name() -> None:
    assert f"`{PROJECT['name']}`" in (ROOT / "docs/how-to/run-as-a-service.md").read_text("utf-8")
