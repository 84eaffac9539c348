# SPDX-License-Identifier: Apache-2.0
"""Field cases on identity: one address in seven spellings, indexes that shift, serials that name nothing, local ids that several cards have."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from muster.domain.decide.find import AmbiguousCard, find
from muster.domain.model.roll import FindingKind, Happening, Presence
from muster.domain.model.source import ReaderKind, Source, SourceId, WitnessClass
from muster.wiring.adapters import adapter
from tests.field.given import given, rows
from tests.field.site import Site, card, understand, value


@given("FC-09-bdf.jsonl", ours=["0000:3f:00.0", "13c5a:00:00.0"], shared=["0000:0a:00.0", "8ed0:00:00.0"])
def test_fc_09_seven_spellings_are_two_cards(path: Path, right: list[str]) -> None:
    told, site = rows(path), Site()
    by = {row["from"]: row for row in told}
    named = [row for row in told if "uuid" in row]
    listing = "uuid, pci.bus_id, memory.total [MiB]\n" + "".join(f"{row['uuid']}, {row['bus_id']}, 1024 MiB\n" for row in named)
    bus = "".join(f"{by[name]['bus_id']} 3D controller [0302]: Device [10de:2330] (rev a1)\n" for name in ("lspci", "sysfs"))
    pci = next(each for each in adapter("pci").sources)
    site.text(0, "n1", "nvidia", listing)
    site.told(1, "n1", pci, understand("pci", bus))
    site.told(2, "n1", pci, understand("pci", f"{by['lspci -D']['bus_id']} 3D controller [0302]: Device [10de:2330] (rev a1)\n"))
    kernel = Source(id=SourceId("kernel_log.kmsg"), adapter="nvidia", reader=ReaderKind.STREAM, reads=(), witness=WitnessClass.DRIVER)
    site.told(3, "n1", kernel, understand("nvidia", by["kernel log"]["line"] + "\n"))

    shown = site.cards()
    assert [each.record.address for each in shown] == right
    events = {event.card: event.code for event in site.store.reader.events()}
    assert events == {shown[0].record.id: "63"}
    assert any(row["uuid"] in str(shown[0].record.ids) for row in named[:1])


@given("FC-10-reorder.jsonl", ours=None, shared=None)
def test_fc_10_an_index_names_nobody(path: Path, right: None) -> None:
    del right
    first, _, second = rows(path)
    site = Site()
    for at in (0, 60):
        site.plain(at, first["node"], [_of(each) for each in first["cards"]])
    before = {each.record.index: each.record.id for each in site.cards()}
    for at in (second["t"], second["t"] + 130):
        site.plain(at, second["node"], [_of(each) for each in second["cards"]])
    shown = {each.record.id: each.record for each in site.cards()}

    assert len(shown) == 2
    stayed, gone = shown[before["1"]], shown[before["0"]]
    assert (stayed.index, stayed.presence) == ("0", Presence.PRESENT)
    assert gone.presence is Presence.MISSING
    history = [row.change.kind for row in site.store.reader.changes(gone.id)]
    assert history == [Happening.INSTALLED, Happening.MISSING]


def _of(each: dict[str, Any]) -> Any:
    return card({"vendor_uuid": each["uuid"], "pci_address": each["bdf"], "index": str(each["index"])}, memory__total=85899345920)


@given("FC-11-placeholders.csv", ours="S-4410", shared="SN-77001")
def test_fc_11_a_placeholder_names_nothing(path: Path, right: str) -> None:
    site = Site()
    with path.open(newline="") as lines:
        told = list(csv.DictReader(lines))
    for at in (0, 60):
        for row in told:
            site.plain(at, row["node"], [card({"vendor_uuid": row["uuid"], "serial": row["serial"]}, product__name="Acme X")])
    shown, open_ = site.cards(), site.findings()

    assert len(shown) == len(told) == 7
    conflicts = [each for each in open_ if each.kind in (FindingKind.IDENTITY_CONFLICT, FindingKind.PLACEHOLDER_ID)]
    assert [each.kind for each in conflicts] == [FindingKind.IDENTITY_CONFLICT]
    assert right.lower() in conflicts[0].about.lower()
    assert len(conflicts[0].cards) == 2


@given("FC-14-local-ids.jsonl", ours=({"site-b", "site-c"}, 66), shared=({"node-14b", "node-14c"}, 61))
def test_fc_14_a_local_id_is_ambiguous(path: Path, right: tuple[set[str], float]) -> None:
    site = Site()
    for place, row in enumerate(rows(path)):
        ids = {"vendor_uuid": row.get("uuid", ""), "pci_address": row.get("bdf", ""), "index": row.get("id", ""), "k8s_device": row.get("hw_id", "")}
        site.plain(place, row["node"], [card(ids, temperature__core=row["temp"])], source=f"{row['vendor']}.tool")
    shown = site.cards()
    records = [each.record for each in shown]

    assert len(shown) == 4
    with pytest.raises(AmbiguousCard) as refused:
        find("card0", records)
    assert {each.node_name for each in refused.value.candidates} == right[0]
    warmest = [value(each.readings["temperature.core"].reading) for each in shown if each.record.ids.get("vendor_uuid")]
    assert warmest == [right[1]]
