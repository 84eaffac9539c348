# SPDX-License-Identifier: Apache-2.0
"""Vendors live in their own folders: no other source file names one, its tools, or its PCI id. The words are those of the manifests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.house.tree import ADAPTERS, ROOT, files, manifests, nothing, where

FREE = {"docs", "machines", "tests", "changes", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "pyproject.toml"}
"""Folders and files that may name vendors, wherever they stand: they speak to people, or of data."""
BINARY = {".png", ".ico", ".woff2", ".gz", ".bin"}


def pattern(words: list[str], pci_vendors: list[str]) -> re.Pattern[str] | None:
    """Finds any of the words, and the PCI ids where they are written as such (0x10ff, or alone in quotes)."""
    parts = [rf"(?<![a-z0-9]){re.escape(word.lower())}(?![a-z0-9])" for word in words]
    parts += [rf"0x{each}(?![0-9a-f])|[\"']{each}[\"']" for each in pci_vendors]
    return re.compile("|".join(parts), re.IGNORECASE) if parts else None


def searched() -> list[Path]:
    """Source files that must not name a vendor unless they stand in its folder."""
    return [path for path in files() if FREE.isdisjoint(path.relative_to(ROOT).parts) and path.suffix not in {*BINARY, ".lock"}]


def folder(path: Path) -> str:
    """The adapter that a file belongs to; empty for all others."""
    return path.relative_to(ADAPTERS).parts[0] if path.is_relative_to(ADAPTERS) and path.parent != ADAPTERS else ""


@pytest.mark.parametrize("adapter", sorted(manifests()))
def test_a_vendor_is_named_in_its_own_folder_only(adapter: str) -> None:
    manifest = manifests()[adapter]
    found = pattern(list(manifest["words"]), list(manifest["pci_vendors"]))
    shared = {name for name, other in manifests().items() if set(other["words"]) & set(manifest["words"])}
    trespasses: list[str] = []
    for path in searched():
        if found is None or folder(path) in shared | {adapter}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            trespasses += [f"{where(path, number)}: {match.group()}" for match in [found.search(line)] if match]

    nothing(trespasses)


def test_the_words_of_a_vendor_are_found_however_they_are_written() -> None:
    found = pattern(["acme", "acme-smi"], ["10ff", "1002"])

    assert found is not None
    told = ["Acme", "acme_gpu", "x = ACME", "run acme-smi -q", '"10ff"', "0x1002", "'1002'"]
    nothing([text for text in told if not found.search(text)])
    quiet = ["acmeish", "placement", "port 1002", "a10ff", "0x10ffee", "1002 lines"]
    nothing([text for text in quiet if found.search(text)])


@pytest.mark.parametrize("adapter", sorted(manifests()))
def test_an_adapter_of_a_vendor_has_words_to_look_for(adapter: str) -> None:
    manifest = manifests()[adapter]

    assert bool(manifest["pci_vendors"]) <= bool(manifest["words"])
