# SPDX-License-Identifier: Apache-2.0
"""What is not released yet is gathered from changes/ into the changelog; what was released is left as it is."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def gather(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = import_module("tools.reference_changes")
    monkeypatch.setattr(found, "CHANGES", tmp_path / "changes")
    monkeypatch.setattr(found, "PAGE", tmp_path / "CHANGELOG.md")
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "README.md").write_text("How to.\n", encoding="utf-8")
    return found


def write(folder: Path, **fragments: str) -> None:
    for name, text in fragments.items():
        (folder / "changes" / (name.replace("_", ".") + ".md")).write_text(text, encoding="utf-8")


def test_fragments_stand_under_unreleased_and_releases_stay(gather: Any, tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n### Added\n\n- Old.\n\n## 0.1.0\n\n### Added\n\n- The first.\n", encoding="utf-8")
    write(tmp_path, b_added="One\nline.\n", a_added="Before it.\n", c_security="A hole.\n")

    assert gather.page() == (
        "# Changelog\n\n## Unreleased\n\n### Added\n\n- Before it.\n- One line.\n\n### Security\n\n- A hole.\n\n## 0.1.0\n\n### Added\n\n- The first.\n"
    )


def test_nothing_new_leaves_the_section_empty(gather: Any, tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n### Added\n\n- Old.\n", encoding="utf-8")

    assert gather.page() == "# Changelog\n\n## Unreleased\n\n"


def test_a_fragment_of_no_kind_is_refused(gather: Any, tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n", encoding="utf-8")
    write(tmp_path, new_better="News.\n")

    with pytest.raises(ValueError, match=r"new\.better\.md"):
        gather.page()
