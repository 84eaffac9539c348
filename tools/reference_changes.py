# SPDX-License-Identifier: Apache-2.0
"""CHANGELOG.md: what is not released yet is gathered from the fragments in changes/; what was released stands as it is."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHANGES = ROOT / "changes"
PAGE = ROOT / "CHANGELOG.md"
KINDS = ("added", "changed", "fixed", "removed", "security")
NOW, THEN = "## Unreleased\n", "\n## "


def fragments() -> dict[str, list[str]]:
    """The news by kind, in the order of their files' names. Raises ValueError for a file of no kind."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(CHANGES.glob("*.md")):
        if path.name == "README.md":
            continue
        kind = path.name.split(".")[-2]
        if kind not in KINDS or path.name.count(".") != 2:
            raise ValueError(f"changes/{path.name}: it is WHAT.KIND.md, and kinds are {', '.join(KINDS)}")
        found[kind].append(" ".join(path.read_text(encoding="utf-8").split()))
    return dict(found)


def page() -> str:
    """The whole page. Raises ValueError where it has no place for what is not released."""
    before, now, rest = PAGE.read_text(encoding="utf-8").partition(NOW)
    if not now:
        raise ValueError(f"{PAGE.name} lacks the line {NOW.strip()}")
    released = rest.partition(THEN)[2]
    found = fragments()
    parts = [f"### {kind.capitalize()}\n\n" + "\n".join(f"- {text}" for text in found[kind]) + "\n" for kind in KINDS if found.get(kind)]
    return f"{before}{NOW}\n" + "\n".join(parts) + (f"{THEN}{released}" if released else "")
