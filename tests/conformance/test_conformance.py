# SPDX-License-Identifier: Apache-2.0
"""The suite finds what it is for: an adapter that keeps every promise, broken in one way at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.model.attributes import Level
from muster.domain.model.errors import InputError, NotFound
from muster.domain.model.names import Name, NameKind, Reach
from muster.domain.model.observation import Interpretation, Observation, Subject
from muster.domain.model.reading import Known
from muster.domain.model.source import Capture, Outcome, Read, SourceId
from muster.services.conformance import differences
from muster.services.mutations import CUTS, mutations, noise, strangers
from muster.spi.adapter import Model, Models
from muster.wiring.adapters import FolderAdapter, folders
from muster.wiring.conformance import check, check_adapter, find
from muster.wiring.template import create

Change = Callable[[FolderAdapter], FolderAdapter]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> FolderAdapter:
    """A new adapter, as the template makes it."""
    folder = tmp_path_factory.mktemp("kit")
    create("brightcore", folder, tree=False)
    return find(str(folder / "brightcore"))


def broken(adapter: FolderAdapter) -> dict[str, str]:
    """Promises that are not kept, with what is wrong."""
    return {each.promise: each.detail for each in check_adapter(adapter)[1] if not each.passed}


def test_a_new_adapter_keeps_every_promise(good: FolderAdapter) -> None:
    _, results = check_adapter(good)

    assert [each for each in results if not each.passed] == []
    assert {each.promise for each in results} == {
        "manifest", "source", "models", "machines", "interprets", "dictionary", "recognises", "pure", "mutations", "strangers", "tier",
    }  # fmt: skip


def manifest(**values: Any) -> Change:
    return lambda adapter: replace(adapter, manifest=replace(adapter.manifest, **values))


def source(**values: Any) -> Change:
    return lambda adapter: replace(adapter, sources=(replace(adapter.sources[0], **values),))


@pytest.mark.parametrize(
    ("change", "promise", "says"),
    [
        (manifest(name="Bright Core"), "manifest", "lower-case word"),
        (manifest(title=" "), "manifest", "title is empty"),
        (manifest(tier="gold"), "manifest", "tier 'gold'"),
        (manifest(owners=()), "manifest", "no owners"),
        (manifest(pci_vendors=("0x10AB",)), "manifest", "4 hex digits"),
        (manifest(words=("Bright",)), "manifest", "lower case"),
        (manifest(formats={"Bright Status": "x"}), "manifest", "lower-case words with dashes"),
        (manifest(formats={"brightcore-status": ""}), "manifest", "not described"),
        (manifest(tier="judged"), "tier", "health.reported"),
        (source(id=SourceId("other.status")), "source", "does not begin with"),
        (source(reads=(Read(locator=("x",), format="unheard-of"),)), "source", "not in the manifest"),
        (source(reads=()), "source", "reads nothing"),
        (source(provides=("colour",)), "source", "dictionary lacks"),
        (source(after=SourceId("brightcore.nothing")), "source", "no source of this adapter"),
        (source(after=SourceId("brightcore.status")), "source", "follows itself"),
    ],
)
def test_wrong_tables(good: FolderAdapter, change: Change, promise: str, says: str) -> None:
    assert says in broken(change(good))[promise]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (Model(key="x", name="X", facts={"colour": "red"}, source="sheet", confidence="high"), "not in the dictionary"),
        (Model(key="x", name="X", facts={"memory.total": "80 GB"}, source="sheet", confidence="high"), "is no bytes"),
        (Model(key="x", name="X", facts={"power.limit.max": 90_000}, source="sheet", confidence="high"), "outside"),
        (Model(key="x", name="X", facts={}, source="", confidence="high"), "source are needed"),
        (Model(key="x", name="X", facts={}, source="sheet", confidence="sure"), "confidence"),
    ],
)
def test_wrong_models(good: FolderAdapter, model: Model, says: str) -> None:
    assert says in broken(replace(good, models={"x": model}))["models"]


def saying(change: Callable[[Interpretation], Interpretation]) -> Change:
    """The adapter with its words changed after the fact."""

    def made(adapter: FolderAdapter) -> FolderAdapter:
        def interpret(captures: Sequence[Capture], models: Models) -> Interpretation:
            return change(adapter.interpret_captures(captures, models))

        return replace(adapter, interpret_captures=interpret)

    return made


def reading(key: str, value: object) -> Change:
    """The adapter whose first card says ``value`` of ``key`` too."""

    def change(told: Interpretation) -> Interpretation:
        if not told.observations:
            return told
        first = told.observations[0]
        return replace(told, observations=(replace(first, readings={**first.readings, key: Known(value)}), *told.observations[1:]))

    return saying(change)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("colour", "red", "not in the dictionary"),
        ("temperature.core", 4100, "outside"),
        ("temperature.core", "41", "is no celsius"),
        ("power.draw", True, "is no watt"),
        ("power.draw", float("nan"), "is no watt"),
        ("product.name", "", "is no text"),
        ("pci.device_id", "0x1234", "is no hex16"),
        ("ecc.enabled", 1, "is no bool"),
        ("health.reported", "fine", "none of"),
        ("throttle.reasons", "idle", "is no set"),
        ("firmware.components", "x", "is no map"),
    ],
)
def test_wrong_readings(good: FolderAdapter, key: str, value: object, says: str) -> None:
    assert says in broken(reading(key, value)(good))["dictionary"]


def test_a_placeholder_name(good: FolderAdapter) -> None:
    def change(told: Interpretation) -> Interpretation:
        subject = Subject(level=Level.CARD, names=frozenset({Name(NameKind.SERIAL, "N/A", Reach.WORLD)}))
        return replace(told, observations=(*told.observations, Observation(subject=subject)))

    assert "names nothing" in broken(saying(change)(good))["dictionary"]


def test_vendor_values_that_are_no_json(good: FolderAdapter) -> None:
    def change(told: Interpretation) -> Interpretation:
        return replace(told, observations=tuple(replace(each, vendor={"x": object()}) for each in told.observations))

    assert "no JSON" in broken(saying(change)(good))["dictionary"]


def test_words_that_do_not_fit_the_outcome(good: FolderAdapter) -> None:
    assert "complete with outcome partial" in broken(saying(lambda told: replace(told, outcome=Outcome.PARTIAL))(good))["dictionary"]
    assert "no_devices with 2 cards" in broken(saying(lambda told: replace(told, outcome=Outcome.NO_DEVICES))(good))["dictionary"]


def test_a_changed_value_is_told_with_its_path(good: FolderAdapter) -> None:
    found = broken(reading("temperature.core", 42)(good))

    assert found["interprets"] == "[0].cards[0].readings.temperature.core.value is 42, expected 41"


def test_an_adapter_that_raises(good: FolderAdapter) -> None:
    def interpret(captures: Sequence[Capture], models: Models) -> Interpretation:
        raise ZeroDivisionError("ha")

    found = broken(replace(good, interpret_captures=interpret))
    assert "ZeroDivisionError: ha" in found["interprets"]
    assert "ZeroDivisionError" in found["strangers"]

    def recognise(head: bytes) -> str | None:
        raise KeyError("ha")

    assert "recognise raised KeyError" in broken(replace(good, recognise_head=recognise))["recognises"]


def test_an_adapter_that_claims_everything_or_nothing(good: FolderAdapter) -> None:
    everything = broken(replace(good, recognise_head=lambda _: "brightcore-status"))
    nothing = broken(replace(good, recognise_head=lambda _: None))

    assert "prose is claimed as brightcore-status" in everything["strangers"]
    assert "recognised as None" in nothing["recognises"]


def test_an_adapter_with_a_memory(good: FolderAdapter) -> None:
    calls: list[int] = []

    def interpret(captures: Sequence[Capture], models: Models) -> Interpretation:
        calls.append(1)
        return replace(good.interpret_captures(captures, models), detail=str(len(calls)))

    assert "something else" in broken(replace(good, interpret_captures=interpret))["pure"]


def as_if(change: Callable[[bytes], bytes], **capture: Any) -> Change:
    """The adapter that reads something else than it is given."""

    def made(adapter: FolderAdapter) -> FolderAdapter:
        def interpret(captures: Sequence[Capture], models: Models) -> Interpretation:
            return adapter.interpret_captures([replace(each, payload=change(each.payload), **capture) for each in captures], models)

        return replace(adapter, interpret_captures=interpret)

    return made


def test_damage_that_an_adapter_does_not_bear(good: FolderAdapter) -> None:
    def strict(payload: bytes) -> bytes:
        payload.decode("ascii")
        return payload

    assert "UnicodeDecodeError" in broken(as_if(strict)(good))["mutations"]
    assert "names lost" in broken(as_if(lambda payload: b"" if b"\r" in payload else payload)(good))["mutations"]
    assert "names that were not there: serial" in broken(as_if(lambda payload: payload, cut=False)(good))["mutations"]


def test_a_cut_listing_that_calls_itself_complete(good: FolderAdapter) -> None:
    assert "a complete listing without" in broken(saying(lambda told: replace(told, outcome=Outcome.DEVICES, complete=True))(good))["mutations"]


def test_more_cards_than_there_are(good: FolderAdapter) -> None:
    def twice(captures: Sequence[Capture], models: Models) -> Interpretation:
        told = good.interpret_captures(captures, models)
        if captures and captures[0].payload.count(b"card 0") < 2:
            return told
        extra = Observation(subject=Subject(level=Level.CARD, names=frozenset({Name(NameKind.SERIAL, "XQ99", Reach.WORLD)}), ordinal=9))
        return replace(told, observations=(*told.observations, extra))

    assert "3 cards instead of 2" in broken(replace(good, interpret_captures=twice))["mutations"]


def test_without_machines_or_what_is_expected(good: FolderAdapter, tmp_path: Path) -> None:
    assert "no recorded machine" in broken(replace(good, folder=tmp_path))["machines"]
    machine = tmp_path / "machines" / "m"
    machine.mkdir(parents=True)
    (machine / "machine.toml").write_text('[[captures]]\nsource = "other.tool"\n')
    found = broken(replace(good, folder=tmp_path))
    assert "none of its captures" in found["interprets"]
    (machine / "expected.json").write_text("{")
    with pytest.raises(InputError, match=r"expected\.json"):
        check_adapter(replace(good, folder=tmp_path))


def test_differences_name_every_place() -> None:
    wanted, found = {"a": [1, {"b": True}], "c": 1}, {"a": [1, {"b": 1}, 2], "d": 1}

    assert list(differences(wanted, found, "")) == [
        ".a has 3 entries, 2 expected",
        ".a[1].b is 1, expected True",
        ".c is gone",
        ".d is new",
    ]


def test_mutations_are_the_same_each_time() -> None:
    capture = Capture(source=SourceId("x"), locator=("x",), format="x", payload=noise(3000))

    assert list(mutations(capture)) == list(mutations(capture))
    assert len([each for each in mutations(capture) if each.capture.cut]) >= CUTS
    assert noise(100) == noise(100)
    assert dict(strangers())["random bytes"] != noise(4096, b"another")


def test_nobody_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no adapter 'nobody'"):
        check("nobody")
    (tmp_path / "a-b").mkdir()
    (tmp_path / "a-b" / "manifest.toml").write_text("")
    with pytest.raises(InputError, match="cannot be imported"):
        find(str(tmp_path / "a-b"))
    (tmp_path / "brokencode").mkdir()
    (tmp_path / "brokencode" / "manifest.toml").write_text('name = "b"\ntitle = "B"\ntier = "seen"\n')
    (tmp_path / "brokencode" / "__init__.py").write_text("import nothing_of_the_kind\n")
    with pytest.raises(InputError, match="nothing_of_the_kind"):
        find(str(tmp_path / "brokencode"))


@pytest.mark.parametrize("name", sorted(folders()))
def test_every_adapter_that_ships_keeps_every_promise(name: str) -> None:
    started = time.monotonic()
    _, results = check(name)

    assert json.dumps([f"{each.promise} {each.subject}: {each.detail}" for each in results if not each.passed], indent=1) == "[]"
    assert time.monotonic() - started < 60
