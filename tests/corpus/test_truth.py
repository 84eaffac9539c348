# SPDX-License-Identifier: Apache-2.0
"""Each corpus file of the vendors we read, against its file of truth; and who claims it.

`disputed.toml` names truth that the corpus file itself disproves; `later.toml` names files whose format no adapter reads yet.
Neither may name a file that is read well.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import corpus_folder
from tests.corpus.truth import differences, implausible

from muster.domain.model.source import Capture
from muster.spi.adapter import HEAD
from muster.wiring.adapters import adapter, adapters, claims
from muster.wiring.offline import interpret_file

HERE = Path(__file__).resolve().parent
DISPUTED: dict[str, str] = tomllib.loads((HERE / "disputed.toml").read_text(encoding="utf-8"))
LATER: dict[str, str] = tomllib.loads((HERE / "later.toml").read_text(encoding="utf-8"))
VENDORS = ("nvidia", "amd", "huawei", "linux")
SHARED = {"kernel-log", "lspci", "sysfs-tree", "prometheus-text"}
"""Formats that several adapters may claim in one text: each takes what is its own."""


def _files() -> list[str]:
    """Paths inside the corpus of every file that has truth."""
    folder = corpus_folder()
    if folder is None:
        return []
    found = (path for vendor in VENDORS for path in (folder / "truth" / vendor).rglob("*.json"))
    return sorted(str(path.relative_to(folder / "truth").with_suffix("")) for path in found)


FILES = _files()
READ = [name for name in FILES if name not in LATER]


@cache
def _truth(name: str) -> dict[str, Any]:
    folder = corpus_folder()
    assert folder is not None
    told: dict[str, Any] = json.loads((folder / "truth" / f"{name}.json").read_text(encoding="utf-8"))
    return told


def _is_readings(name: str) -> bool:
    return bool(_truth(name)["outcome"] != "not_readings")


@pytest.mark.parametrize("name", [name for name in READ if _is_readings(name)] or ["(none)"])
def test_a_file_says_what_truth_says(corpus: Path, name: str) -> None:
    if name in DISPUTED:
        pytest.skip(f"disputed: {DISPUTED[name]}")
    told = interpret_file(corpus / name, None, None)

    assert list(differences(_truth(name), told)) == []
    assert list(implausible(told)) == []


@pytest.mark.parametrize("name", READ or ["(none)"])
def test_no_file_is_of_a_shape_never_seen(corpus: Path, name: str) -> None:
    assert interpret_file(corpus / name, None, None).get("unknown_shape", "") == ""


@pytest.mark.parametrize("name", [name for name in READ if not _is_readings(name) and "blocks" not in _truth(name)] or ["(none)"])
def test_a_file_without_readings_invents_no_card(corpus: Path, name: str) -> None:
    told = interpret_file(corpus / name, None, None)

    assert len(told["cards"]) <= len(_truth(name).get("cards") or ())
    assert list(implausible(told)) == []


@pytest.mark.parametrize(("name", "place"), [(name, place) for name in READ for place in range(len(_truth(name).get("blocks") or ()))] or [("(none)", 0)])
def test_each_text_of_a_collection_has_its_own_outcome(corpus: Path, name: str, place: int) -> None:
    del corpus
    block, vendor = _truth(name)["blocks"][place], adapter(_truth(name)["vendor"])
    printed = block["text"].encode()
    form = vendor.recognise(printed)
    assert form is not None
    on_stderr = block["stream"].startswith("stderr")
    told = vendor.interpret(
        [
            Capture(
                source=vendor.sources[0].id,
                locator=("tool",),
                format=form,
                payload=b"" if on_stderr else printed,
                stderr=printed if on_stderr else b"",
                exit_status=block["rc"],
            )
        ]
    )

    assert told.outcome == block["outcome"]
    named = {(name.kind.value, name.canonical) for each in told.observations for name in each.subject.names}
    assert named == {(kind, value) for kind, value in (block.get("ids") or {}).items()}


@pytest.mark.parametrize("name", [name for name in READ if _is_readings(name)] or ["(none)"])
def test_the_right_adapter_claims_it_and_no_other(corpus: Path, name: str) -> None:
    found = claims(adapters(), (corpus / name).read_bytes()[:HEAD])
    vendor = _truth(name)["vendor"]
    mine = [form for each, form in found if each.manifest.name == vendor or (vendor == "linux" and not each.manifest.pci_vendors)]
    others = {each.manifest.name: form for each, form in found if each.manifest.pci_vendors and each.manifest.name != vendor}

    assert mine, "nobody knows it"
    assert set(others.values()) <= SHARED, others


@pytest.mark.parametrize("name", [each.manifest.name for each in adapters() if each.manifest.pci_vendors])
def test_no_vendor_claims_the_output_of_another(corpus: Path, name: str) -> None:
    each = adapter(name)
    others = [path for path in sorted(corpus.iterdir()) if path.is_dir() and path.name not in {name, "truth", "events"}]
    found = {str(path.relative_to(corpus)): each.recognise(path.read_bytes()[:HEAD]) for folder in others for path in folder.rglob("*") if path.is_file()}

    assert {file: form for file, form in found.items() if form is not None and form not in SHARED} == {}


@pytest.mark.parametrize("name", [name for name in FILES if name in LATER and _is_readings(name)] or ["(none)"])
def test_what_comes_later_is_not_read_yet(corpus: Path, name: str) -> None:
    told = interpret_file(corpus / name, None, None)

    assert list(differences(_truth(name), told)), "it is read well: take it out of later.toml"


@pytest.mark.parametrize("name", sorted(DISPUTED) or ["(none)"])
def test_what_is_disputed_is_still_in_dispute(corpus: Path, name: str) -> None:
    if name not in FILES:
        pytest.skip("nothing is disputed" if not DISPUTED else "not in this corpus")
    told = interpret_file(corpus / name, None, None)

    assert list(differences(_truth(name), told)), "it agrees with truth now: take it out of disputed.toml"
