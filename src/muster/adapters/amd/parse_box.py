# SPDX-License-Identifier: Apache-2.0
"""The framed summary that amd-smi prints without a command since ROCm 7: two lines a card between bars."""

from __future__ import annotations

import re

from muster.adapters.amd.parse_smi import Listing, Record
from muster.formats.text import lines

_VERSIONS = re.compile(r"AMD-SMI\s+(\S+).*?amdgpu version:\s*(\S+).*?ROCm version:\s*([^\s|]+)", re.IGNORECASE)
_FIRST = re.compile(r"^\|\s*((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+(.+?)\s*\|\s*(.+?)\s*\|\s*$")
_SECOND = re.compile(r"^\|\s*([0-9]{1,4})\s+(\S+)\s+(\S+)\s+(\S+)\s*\|\s*(.+?)\s*\|\s*$")
_WIDTH = 240
_STATE = re.compile(r"^(N/A|[\d.]+ ?%)\s+(N/A|[\d.]+ ?\S{0,3}C)\s+(\S+)\s+(\S+)/(\S+) ?W$")
_LOAD = re.compile(r"^(N/A|[\d.]+ ?%)\s+(N/A|[\d.]+ ?%|\S+)\s+(\S+)/(\S+) ?(MB|GB)$")
_PROCESS = re.compile(r"^\|\s*([0-9]{1,4})\s+([0-9]{1,10})\s+(\S.*?)\s{2,}(\S+ ?[KMGT]?B?)\s+(\S+ ?[KMGT]?B)\s+(\S+ ?[KMGT]?B)\s+.*\|\s*$")


def box(payload: bytes) -> Listing | None:
    """The cards of the summary; None when the text is none."""
    text = [line[:_WIDTH] for line in lines(payload)]
    head = next((match for line in text if (match := _VERSIONS.search(line))), None)
    if head is None:
        return None
    node = {"tool.version": head.group(1), "driver.version": head.group(2), "runtime.version": head.group(3)}
    records: list[Record] = []
    first: re.Match[str] | None = None
    lost, told = False, ""
    for line in text:
        card = _FIRST.match(line)
        if card is not None:
            lost = lost or (first is not None and first.group() != card.group())
            first = card
            continue
        second = _SECOND.match(line)
        if second is not None and first is not None:
            records.append(_record(first, second))
            first, told = None, line
            continue
        lost = lost or (second is not None and line != told)
        process = _PROCESS.match(line)
        if process is not None and first is None:
            _process(records, process)
    if not text or not any("Processes" in line for line in text):
        lost = True
    if first is not None:
        records.append({"gpu": None, "bdf": first.group(1), **_named(first)})
        lost = True
    return Listing(tuple(_joined(records)), lost, node=node)


def _joined(records: list[Record]) -> list[Record]:
    """A card printed twice is one card."""
    unique: dict[object, Record] = {}
    for record in records:
        unique.setdefault((record["gpu"], record.get("bdf")), record)
    return list(unique.values())


def _named(first: re.Match[str]) -> Record:
    record: Record = {"asic": {"market_name": first.group(2)}}
    state = _STATE.match(first.group(3))
    if state is not None:
        activity, heat, errors, draw, limit = state.groups()
        record["usage"] = {"umc_activity": activity}
        record["temperature"] = {"hotspot": heat}
        record["ecc"] = {"total_uncorrectable_count": errors}
        record["power"] = {"socket_power": draw}
        record["limit"] = {"socket_power": limit}
    return record


def _record(first: re.Match[str], second: re.Match[str]) -> Record:
    record: Record = {"gpu": int(second.group(1)), "bdf": first.group(1), "hip_id": second.group(2), **_named(first)}
    record["asic"]["oam_id"] = second.group(3)
    compute, _, memory = second.group(4).partition("/")
    if memory and compute != "N":
        record["partition"] = {"accelerator_partition": compute, "memory_partition": memory}
    load = _LOAD.match(second.group(5))
    if load is not None:
        activity, fan, used, total, unit = load.groups()
        record.setdefault("usage", {})["gfx_activity"] = activity
        record["fan"] = {"usage": fan}
        record["mem_usage"] = {"used_vram": {"value": _number(used), "unit": unit}, "total_vram": {"value": _number(total), "unit": unit}}
    return record


def _number(text: str) -> str | float:
    return float(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else text


def _process(records: list[Record], match: re.Match[str]) -> None:
    for record in records:
        if record["gpu"] == int(match.group(1)):
            info = {"pid": match.group(2), "name": match.group(3), "memory_usage": {"vram_mem": match.group(5)}}
            record.setdefault("process_list", []).append({"process_info": info})
