# SPDX-License-Identifier: Apache-2.0
"""What a page points at is there: files, headings, paths of the project, words of make, tests that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import ROOT, files, nothing, where

LINK = re.compile(r"\[[^\]\[]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+?)\s*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```\s*$", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"`make ([a-z-]+)")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
NAMED = re.compile(r"`((?:\w+/)*test_\w+\.py)`")
PLACED = re.compile(r"`((?:src|tests|tools|docs|deploy|bench|changes)/[\w./-]*\w)(?:/)?`")

WITHIN = re.compile(r"`((?:domain|formats|wire|spi|adapters|readers|collect|store|export|services|wiring|interfaces)/[\w/]+\.py)`")
"""Files as the architecture and the decisions name them: from the package on."""


def pages() -> list[Path]:
    """Pages for people, as far as they are ours to read."""
    return [path for path in files() if path.suffix == ".md" and "machines" not in path.parts and "template" not in path.parts]


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """Headings of a page as addresses."""
    plain = FENCE.sub("", text(path))
    return {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title).lower()).replace(" ", "-") for title in HEADING.findall(plain)}


def broken(path: Path) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    for link in LINK.findall(FENCE.sub("", text(path))):
        name, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        to = (path.parent / name).resolve() if name else path
        if not to.exists():
            yield f"{where(path)}: {link} is not there"
        elif anchor and to.suffix == ".md" and anchor not in anchors(to):
            yield f"{where(path)}: {link} has no such heading"


def test_links_lead_somewhere() -> None:
    nothing(wrong for path in pages() for wrong in broken(path))


def test_words_of_make_are_there() -> None:
    known = set(TARGET.findall(text(ROOT / "Makefile")))

    nothing(f"{where(path)}: make {word}" for path in pages() for word in MAKE.findall(text(path)) if word not in known)


def test_tests_that_are_named_are_there() -> None:
    known = {where(path) for path in files()}
    names = {path.rpartition("/")[2] for path in known}
    for path in (ROOT / "SECURITY.md", *(page for page in pages() if page.is_relative_to(ROOT / "docs"))):
        nothing(f"{where(path)}: {word}" for word in NAMED.findall(text(path)) if (not {word, f"tests/{word}"} & known if "/" in word else word not in names))


def test_paths_that_are_named_are_there() -> None:
    told = {(where(path), word) for path in pages() for word in PLACED.findall(text(path)) if "NNNN" not in word}

    nothing(f"{at}: {word}" for at, word in told if not (ROOT / word).exists() and not (ROOT / at).parent.joinpath(word).exists())


def test_modules_that_are_named_are_there() -> None:
    told = {(where(path), word) for path in pages() for word in WITHIN.findall(text(path))}

    assert len(told) > 30
    nothing(f"{at}: {word}" for at, word in told if not (ROOT / "src" / "muster" / word).exists() and not (ROOT / "tests" / word).exists())
