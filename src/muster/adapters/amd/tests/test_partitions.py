# SPDX-License-Identifier: Apache-2.0
"""Slices of one card, two dies of one module: what counts as one."""

from __future__ import annotations

import json
from typing import Any

from muster.adapters.amd import interpret, recognise
from muster.domain.decide.fold import FoldedCard, fold, ids
from muster.domain.model.reading import Known
from muster.domain.model.source import Capture, SourceId
from muster.spi.adapter import Model

DIES = {"7408": Model(key="7408", name="Instinct MI250X", facts={}, source="test", confidence="high")}


def cards(*payloads: Any) -> tuple[FoldedCard, ...]:
    texts = [p.encode() if isinstance(p, str) else json.dumps(p).encode() for p in payloads]
    return fold(interpret([Capture(source=SourceId("t"), locator=(), format=recognise(t) or "", payload=t) for t in texts], DIES).observations)


def value(thing: Any, key: str) -> Any:
    reading = thing.readings.get(key)
    return reading.value if isinstance(reading, Known) else None


def row(index: int, function: int, **blocks: Any) -> dict[str, Any]:
    return {"gpu": index, "asic": {"asic_serial": "0x51D20F6634AB9071", "num_compute_units": 38}, "bus": {"bdf": f"0000:0c:00.{function}"}, **blocks}


def test_rows_at_one_device_in_a_partition_mode_are_one_card() -> None:
    rows = [
        row(p, p, partition={"accelerator_partition": "CPX" if p == 0 else "N/A", "memory_partition": "NPS4" if p == 0 else "N/A", "partition_id": p})
        for p in range(8)
    ]
    for place, each in enumerate(rows):
        each["vram"] = {"size": {"value": 196592, "unit": "MB"}}
        each["power"] = {"socket_power": {"value": 150, "unit": "W"}} if place == 0 else "N/A"
        each["mem_usage"] = {"used_vram": {"value": 10 + place, "unit": "MB"}}
    (card,) = cards({"gpu_data": rows})

    assert ids(card.names) == {"index": "0", "pci_address": "0000:0c:00.0", "serial": "0x51D20F6634AB9071"}
    assert value(card, "power.draw") == 150
    assert value(card, "memory.total") == 196592 * 1024**2
    assert value(card, "memory.used") is None
    assert value(card, "compute.units") == 304
    assert [value(part, "partition.profile") for part in card.partitions] == ["cpx_nps4"] * 8
    assert [value(part, "memory.used") for part in card.partitions] == [(10 + p) * 1024**2 for p in range(8)]
    assert all("power.draw" not in part.readings for part in card.partitions)


def test_partition_ids_alone_tell_slices() -> None:
    listing = [
        {"gpu": p, "bdf": f"0000:0c:00.{p}", "uuid": f"5{p}ff74a1-0000-1000-80d2-0f6634ab907{p}", "kfd_id": 1, "node_id": p, "partition_id": p}
        for p in range(4)
    ]
    (card,) = cards(listing)

    assert len(card.partitions) == 4
    assert "vendor_uuid" not in ids(card.names)


def test_a_card_in_one_piece_has_no_partitions() -> None:
    (card,) = cards([row(0, 0, partition={"compute_partition": "SPX", "memory_partition": "NPS1", "partition_id": 0})])

    assert value(card, "partition.mode") == "spx"
    assert not card.partitions


def test_the_partition_table_without_addresses() -> None:
    text = """CURRENT_PARTITION:
GPU_ID  MEMORY  ACCELERATOR_TYPE  ACCELERATOR_PROFILE_INDEX  PARTITION_ID
0       NPS4    CPX               3                          0
1       N/A     N/A               N/A                        1
2       NPS4    CPX               3                          0
3       N/A     N/A               N/A                        1
4       NPS1    SPX               0                          0
"""
    one, two, three = cards(text)

    assert [len(card.partitions) for card in (one, two, three)] == [2, 2, 0]
    assert value(three, "partition.mode") == "spx"


def test_scrape_of_slices_by_serial() -> None:
    labels = 'card_series="AMD Instinct MI300X OAM",gpu_compute_partition_type="cpx",gpu_memory_partition_type="nps4",hostname="h",serial_number="69245120{c}"'
    lines = ["# TYPE gpu_package_power gauge"]
    for c in range(2):
        for p in range(3):
            own = labels.replace("{c}", str(41 + c))
            lines.append(f'gpu_package_power{{gpu_id="{c * 3 + p}",gpu_partition_id="{p}",{own}}} {150 if p == 0 else 0}')
    found = cards("\n".join(lines) + "\n")

    assert [value(card, "power.draw") for card in found] == [150, 150]
    assert [len(card.partitions) for card in found] == [3, 3]


def die(index: int, board: str, **more: Any) -> dict[str, Any]:
    asic = {"market_name": "AMD Instinct MI250X", "device_id": "0x7408", "asic_serial": f"0x2B7740D19C33{index:04X}"}
    return {"gpu": index, "asic": asic, "bus": {"bdf": f"0000:c{index}:00.0"}, "board": {"product_serial": board, "model_number": "D65201"}, **more}


def test_two_dies_of_one_module() -> None:
    rows = [die(i, f"PQC23017{i // 2}", power={"socket_power": {"value": 90 + i, "unit": "W"} if i % 2 == 0 else "N/A"}) for i in range(4)]
    one, two = cards(rows)

    assert [ids(card.names) for card in (one, two)] == [{"serial": "PQC230170"}, {"serial": "PQC230171"}]
    assert [len(card.devices) for card in (one, two)] == [2, 2]
    assert [value(card, "power.draw") for card in (one, two)] == [90, 92]
    assert value(one, "product.part_number") == "D65201"
    assert ids(one.devices[1].names)["pci_address"] == "0000:c1:00.0"


def test_a_lone_die_is_its_module() -> None:
    (card,) = cards([die(1, "PQC230170")])

    assert ids(card.names)["serial"] == "PQC230170"
    assert not card.devices


def test_dies_without_a_board_serial_stay_apart() -> None:
    assert len(cards([die(0, "N/A"), die(1, "N/A")])) == 2


def test_widest_link_tells_the_module() -> None:
    text = ""
    for n in range(4):
        told = {"simd_count": 440, "simd_per_cu": 4, "vendor_id": 4098, "device_id": 29704, "location_id": (0xC0 + n) << 8, "unique_id": 7700 + n}
        text += f"== nodes/{n}/properties\n" + "".join(f"{key} {each}\n" for key, each in told.items())
        for place, m in enumerate(m for m in range(4) if m != n):
            wide = 200000 if n // 2 == m // 2 else 50000
            text += f"== nodes/{n}/io_links/{place}/properties\ntype 11\nnode_from {n}\nnode_to {m}\nmax_bandwidth {wide}\n"
    found = cards(text)

    assert [len(card.devices) for card in found] == [2, 2]


def test_a_cut_listing_never_makes_a_die_a_card() -> None:
    text = json.dumps([die(i, f"PQC23017{i // 2}") for i in range(4)], indent=1)
    for at in range(10, len(text) - 2, 9):
        for card in cards(text[:at]):
            assert str(ids(card.names).get("serial", "PQC")).startswith("PQC")
