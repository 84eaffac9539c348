# SPDX-License-Identifier: Apache-2.0
"""`amd-smi` JSON and indented text to one shape: a record per GPU row, nested, with lower-case keys.

ROCm 6 prints an array, 7 an object with "gpu_data"; CPU sockets and network cards stand beside the GPUs and are left aside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.adapters.amd.values import whole, word
from muster.formats.jsontext import documents
from muster.formats.text import decode
from muster.formats.tree import Node, items, parse

Record = dict[str, Any]

_LINKS = ("links", "link_metrics")
_FILTERED = re.compile(r"^[ \t]*\.\.\.[ \t]*$", re.MULTILINE)
_BLANKS = re.compile(r"[ \t]{100,}")
_DEPTH = 12
_ASIDE = ("cpu", "ai_nic", "nic", "brcm")
_BLOCKS = frozenset({"asic", "bus", "bdf", "board", "vram", "usage", "power", "temperature", "clock", "mem_usage", "ecc", "fan", "pcie", "process_info"})
"""Blocks that stand under a GPU; where they stand under another line, that line was a GPU's."""
_IDENTITY = {"bdf", "uuid", "asic", "bus", "board", "partition"}


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows of one print of the tool. ``cut`` when its end is missing; ``node`` is told of the host."""

    records: tuple[Record, ...]
    cut: bool = False
    short: bool = False
    """Something was left out on purpose ("..."): nothing is wrong with what stands there, but it is not the whole listing."""
    node: Mapping[str, str] = field(default_factory=dict)
    empty: bool = False
    """The tool printed an empty list."""
    roots: tuple[str, ...] = ()
    """Keys at the root of the documents, where that is no row."""


def from_json(payload: bytes) -> Listing | None:
    """The rows of amd-smi JSON in any of its wrappings; None when the text holds no document."""
    found = documents(payload, partial=True)
    records: list[Record] = []
    for document in found:
        for where, row in _rows(document.value):
            records.append(_partition_row(where, row))
    if not found:
        return None
    node = {name: text for d in found for name, text in _versions(d.value).items()}
    cut = any(d.cut for d in found)
    strange = any(_nameless(d.value) for d in found)
    if cut:
        records = _without_stump(records)
    empty = not records and any(d.value in ([], {"gpu_data": []}) for d in found)
    roots = dict.fromkeys(str(key) for d in found if isinstance(d.value, Mapping) and _index(d.value) is None for key in d.value)
    return Listing(tuple(records), cut or strange, node=node, empty=empty, roots=tuple(roots))


def _versions(value: Any) -> dict[str, str]:
    """What `amd-smi version` says."""
    row = value[0] if isinstance(value, list) and value else value
    if not isinstance(row, Mapping) or "amdsmi_library_version" not in row:
        return {}
    names = {"version": "tool.version", "rocm_version": "runtime.version", "amdgpu_version": "driver.version"}
    return {ours: text for theirs, ours in names.items() if (text := word(row.get(theirs))) is not None}


def _without_stump(records: list[Record]) -> list[Record]:
    """The rows of a cut listing without the last one, where the cut took from it what names a card or tells slices and dies apart."""
    if len(records) < 2 or (_IDENTITY & records[0].keys()) <= records[-1].keys():
        return records
    return records[:-1]


def _rows(value: Any, where: str = "", depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Objects that carry a GPU number, with the name of the list they stand in. Links inside a row are not rows."""
    if isinstance(value, list):
        for each in value:
            yield from _rows(each, where, depth + 1)
    elif isinstance(value, Mapping) and depth < _DEPTH:
        if _index(value) is not None:
            yield where, value
        else:
            for key, each in value.items():
                if isinstance(each, list | Mapping) and key not in _LINKS:
                    yield from _rows(each, str(key).lower(), depth + 1)


def _nameless(value: Any, depth: int = 0) -> bool:
    """True when a row's GPU number does not read: the row is lost, and the listing is not whole."""
    if isinstance(value, list):
        return any(_nameless(each, depth + 1) for each in value) if depth < _DEPTH else False
    if not isinstance(value, Mapping) or depth >= _DEPTH:
        return False
    number = value.get("gpu", {})
    if not isinstance(number, Mapping) and not (isinstance(number, list) and any(isinstance(each, Mapping) for each in number)):
        return _index(value) is None
    return any(_nameless(each, depth + 1) for key, each in value.items() if isinstance(each, list) and key not in _LINKS)


def _index(row: Mapping[str, Any]) -> int | None:
    value = row.get("gpu", row.get("gpu_id"))
    if isinstance(value, bool):
        return None
    return whole(value)


def _partition_row(where: str, row: Mapping[str, Any]) -> Record:
    """The row as a record; rows of the partition tables are put under "partition" as elsewhere."""
    record: Record = {str(key): value for key, value in row.items()}
    record["gpu"] = _index(row)
    if where == "current_partition" or ("accelerator_type" in row and "asic" not in row):
        record["partition"] = {
            "accelerator_partition": row.get("accelerator_type"),
            "memory_partition": row.get("memory"),
            "partition_id": row.get("partition_id"),
        }
    elif "power_usage" in row or ("hotspot_temperature" in row and "temperature" not in row):
        _monitor(record)
    elif where == "memory_partition":
        record = {"gpu": record["gpu"], "partition": {"memory_partition": row.get("current_partition")}}
    elif where in ("partition_profiles", "partition_resources"):
        record = {"gpu": record["gpu"], where: dict(row)}
    return record


_MONITOR = {
    "power_usage": ("power", "socket_power"),
    "hotspot_temperature": ("temperature", "hotspot"),
    "memory_temperature": ("temperature", "mem"),
    "gfx": ("usage", "gfx_activity"),
    "mem": ("usage", "umc_activity"),
    "encoder": ("usage", "encoder"),
    "decoder": ("usage", "decoder"),
    "gfx_clk": ("clock", "gfx_0"),
    "gfx_clock": ("clock", "gfx_0"),
    "mem_clk": ("clock", "mem_0"),
    "mem_clock": ("clock", "mem_0"),
    "vram_used": ("mem_usage", "used_vram"),
    "vram_total": ("mem_usage", "total_vram"),
    "vram_free": ("mem_usage", "free_vram"),
    "pcie_replay": ("pcie", "replay_count"),
}


def _monitor(record: Record) -> None:
    """Puts the flat members of `monitor` where `metric` has them."""
    for name, (block, key) in _MONITOR.items():
        if name in record:
            value = record.pop(name)
            record.setdefault(block, {})[key] = {"clk": value} if block == "clock" else value


def from_text(payload: bytes, *, cut: bool = False) -> Listing:
    """The rows of amd-smi's indented text: blocks that begin with ``GPU: n``. Of a text that is cut the last block of the last row is left out."""
    text = _BLANKS.sub(" ", decode(payload))
    root = parse(text)
    records: list[Record] = []
    strange = False
    for node in root.children:
        number = whole(node.value) if _key(node.key) == "gpu" and node.value is not None else None
        if number is None:
            strange |= _key(node.key) == "gpu" or (not _key(node.key).startswith(_ASIDE) and any(_key(child.key) in _BLOCKS for child in node.children))
            continue
        record = _convert(node)
        if cut and node is root.children[-1] and isinstance(record.get(next(reversed(record), "")), dict):
            record.popitem()
        record["gpu"] = number
        records.append(record)
    if cut:
        records = _without_stump(records)
    return Listing(tuple(records), short=strange or _FILTERED.search(text) is not None)


def _key(key: str) -> str:
    return re.sub(r"[\s_]+", "_", key.strip()).lower()


def _convert(node: Node, depth: int = 0) -> Record:
    """A node's children as nested plain values. A key printed twice keeps the print that says more; processes and pages become lists."""
    told: Record = {}
    for child in node.children:
        key = _key(child.key)
        if key == "process_info":
            told.setdefault("process_list", []).append({"process_info": _value(child, depth)})
            continue
        value = _value(child, depth)
        old = told.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            told[key] = {**value, **old}
        elif old is None or old == "":
            told[key] = value
    return told


def _value(node: Node, depth: int) -> Any:
    if node.children and depth < _DEPTH:
        if node.all("page_address"):
            return [_convert(page, depth + 1) for page in node.records("page_address")]
        return _convert(node, depth + 1)
    text = (node.value or "").strip()
    return items(text) if text.startswith("[") else text
