# SPDX-License-Identifier: Apache-2.0
"""A new adapter from outside: made, checked, installed by pip, and its cards seen when the configuration names it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.needs import lacks

import muster.adapters
from muster.domain.model.errors import Conflict, InputError
from muster.interfaces.cli.main import run
from muster.wiring import conformance, template

SOURCE = Path(template.__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["Acme", "acme-x", "9x", "a", "class", "../x", ""])
def test_names_that_cannot_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name"):
        template.create(name, tmp_path, tree=False)


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    template.create("dimcore", tmp_path, tree=False)

    with pytest.raises(Conflict):
        template.create("dimcore", tmp_path, tree=False)
    with pytest.raises(Conflict, match="already"):
        template.create("pci", tmp_path, tree=False)


def test_inside_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(muster.adapters, "__path__", [*muster.adapters.__path__, str(tmp_path)])
    monkeypatch.setattr(template, "TREE", tmp_path)
    monkeypatch.setattr(conformance, "TREE", tmp_path)

    made = template.create("leafcore", tmp_path, tree=True)
    _, results = conformance.check(str(tmp_path / "leafcore"))

    assert [each for each in results if not each.passed] == []
    assert not (tmp_path / "leafcore" / "pyproject.toml").exists()
    assert "`make docs`" in made.about
    assert all(file.read_text().startswith("# SPDX-License-Identifier: ") for file in made.files if file.suffix in (".py", ".toml"))
    assert all(file.exists() for file in made.files)


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(["adapter", "new", "tallcore_npu"]) == 0
    assert "tallcore_npu/muster_tallcore_npu/manifest.toml" in capsys.readouterr().out
    assert run(["adapter", "check", "tallcore_npu"]) == 0
    manifest = tmp_path / "tallcore_npu" / "muster_tallcore_npu" / "manifest.toml"
    manifest.write_text(manifest.read_text().replace('tier = "seen"', 'tier = "gold"'))
    capsys.readouterr()
    assert run(["adapter", "check", "tallcore_npu", "-q"]) == 1
    out, err = capsys.readouterr()
    assert "gold" in out
    assert err == ""
    assert run(["adapter", "check", "nobody"]) == 3
    assert run(["adapter", "new", "Bad Name"]) == 2


def test_installed_by_its_entry_point(tmp_path: Path) -> None:
    if importlib.util.find_spec("hatchling") is None:
        lacks("the build backend of the new package is not here")
    template.create("farcore", tmp_path, tree=False)
    target = tmp_path / "site"
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", *words, str(tmp_path / "farcore")], check=True, capture_output=True)
    away = tmp_path / "away"
    away.mkdir()

    def muster_(*command: str, named: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": f"{SOURCE}:{target}", "MUSTER_ADAPTERS": named, "HOME": str(away)}
        return subprocess.run([sys.executable, "-m", "muster", *command], cwd=away, env=environment, capture_output=True, text=True, check=False)

    machine = str(target / "muster_farcore" / "machines" / "two-cards")
    check = muster_("adapter", "check", "farcore")
    assert (check.returncode, "broken" in check.stdout) == (0, False), check.stdout + check.stderr
    assert "farcore" in muster_("adapter", "list", "-o", "name", named="farcore").stdout.split()
    idle = muster_("adapter", "list", "-o", "name")
    assert "farcore" not in idle.stdout.split()
    assert "not loaded: farcore" in idle.stderr
    told = json.loads(muster_("interpret", machine, "--adapter", "farcore", "-o", "json").stdout)
    assert len(told[0]["cards"]) == 2
    seen = json.loads(muster_("scan", "--machine", machine, "-o", "json", named="farcore").stdout)
    assert {serial for card in seen["items"] for serial in card["ids"]["serial"]} == {"XQ47-20931-0071", "XQ47-20931-0088"}
    assert "XQ47" not in muster_("scan", "--machine", machine, "-o", "json").stdout
