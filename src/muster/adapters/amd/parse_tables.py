# SPDX-License-Identifier: Apache-2.0
"""Tables of amd-smi: `monitor`, `xgmi`, `topology`, `partition`, and the box that the tool prints without a command. All become the records of `parse_smi`."""

from __future__ import annotations

import re
from typing import Any

from muster.adapters.amd.parse_smi import Listing, Record
from muster.adapters.amd.values import ordinal
from muster.domain.model.names import pci_address
from muster.formats.text import lines

_BDF = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_BDF_ROW = re.compile(rf"^\s*(?:GPU([0-9]{{1,4}})\s+)?({_BDF})\s+(.+)$", re.IGNORECASE)
_BDF_HEAD = re.compile(rf"(?<![\w:.]){_BDF}(?![\w:.])")
_UNITS = frozenset({"w", "c", "%", "mhz", "ghz", "mb", "gb", "kb", "tb", "b", "j", "mv", "mb/s", "gb/s", "gt/s", "kb/s"})
_TABLE = re.compile(r"^\s*([A-Z][A-Z _]*?)(?: TABLE)?:\s*$")
# columns of `monitor` by their names over the releases
_MONITOR = {
    "power": ("power", "socket_power"),
    "pwr_cap": ("limit", "socket_power"),
    "max_power": ("limit", "max_power"),
    "gpu_temp": ("temperature", "hotspot"),
    "gpu_t": ("temperature", "hotspot"),
    "mem_temp": ("temperature", "mem"),
    "mem_t": ("temperature", "mem"),
    "gfx_util": ("usage", "gfx_activity"),
    "gfx%": ("usage", "gfx_activity"),
    "mem_util": ("usage", "umc_activity"),
    "mem%": ("usage", "umc_activity"),
    "enc_util": ("usage", "encoder"),
    "enc%": ("usage", "encoder"),
    "dec_util": ("usage", "decoder"),
    "dec%": ("usage", "decoder"),
    "gfx_clock": ("clock", "gfx_0"),
    "gfx_clk": ("clock", "gfx_0"),
    "mem_clock": ("clock", "mem_0"),
    "mem_clk": ("clock", "mem_0"),
    "vclock": ("clock", "vclk_0"),
    "vram_used": ("mem_usage", "used_vram"),
    "vram_total": ("mem_usage", "total_vram"),
    "vram_free": ("mem_usage", "free_vram"),
    "pcie_replay": ("pcie", "replay_count"),
    "replay": ("pcie", "replay_count"),
}


def cells(line: str) -> list[str]:
    """Cells of a row of blanks-parted columns, a number and its unit as one."""
    found: list[str] = []
    for token in line.split():
        bare = re.sub(r"[^\x21-\x7e]", "", token).strip("_").lower()
        if found and bare in _UNITS and re.match(r"^[\d.,/]+$", found[-1]):
            found[-1] += f" {bare.upper() if bare == 'c' else token}"
        else:
            found.append(token)
    return found


def monitor(payload: bytes) -> Listing | None:
    """Rows of ``amd-smi monitor``; None when the text has no such header."""
    header: list[str] = []
    records: list[Record] = []
    odd = False
    for line in lines(payload):
        row = cells(line)
        if is_monitor_header(row):
            header = [name.lower() for name in row]
        elif header and row and ordinal(row[0]) is not None:
            if len(row) == len(header):
                records.append(_monitor_record(header, row))
            else:
                odd = True
        elif header and row and not line.strip().startswith(("+", "=", "-")):
            odd = True
    return Listing(tuple(_merged(records)), odd) if header else None


def is_monitor_header(row: list[str]) -> bool:
    """True for the names of `monitor`'s columns."""
    known = sum(1 for name in row if name.lower() in _MONITOR or name.lower() in ("vram_usage", "vram%"))
    return len(row) > 1 and row[0] == "GPU" and (known > 0 and known * 3 >= len(row) - 1)


def _merged(records: list[Record]) -> list[Record]:
    """One record per GPU: with a column of partitions (XCP) the row of the first stands for the card."""
    first: dict[int, Record] = {}
    for record in records:
        first.setdefault(record["gpu"], record)
    return list(first.values())


def _monitor_record(header: list[str], row: list[str]) -> Record:
    record: Record = {"gpu": ordinal(row[0])}
    for name, cell in zip(header[1:], row[1:], strict=True):
        if name == "vram_usage":
            used, _, rest = cell.partition("/")
            unit = rest.split(" ")[-1] if " " in rest else "GB"
            _set(record, ("mem_usage", "used_vram"), f"{used.strip()} {unit}")
            _set(record, ("mem_usage", "total_vram"), rest)
        elif name in _MONITOR:
            _set(record, _MONITOR[name], cell)
        else:
            record.setdefault("monitor", {})[name] = cell
    return record


def _set(record: Record, path: tuple[str, str], cell: str) -> None:
    inner: dict[str, Any] = record.setdefault(path[0], {})
    inner[path[1]] = {"clk": cell} if path[0] == "clock" else cell


def xgmi(payload: bytes) -> Listing | None:
    """Rows of the link metric table of ``amd-smi xgmi``, three lines a card."""
    peers: list[str] = []
    records: list[Record] = []
    seen = False
    for line in lines(payload):
        if re.search(r"LINK METRIC TABLE", line):
            seen = True
        match = _BDF_ROW.match(line)
        if match is None or match.group(1) is None:
            found = _BDF_HEAD.findall(line)
            if len(found) > 1 and line.split()[:1] == ["bdf"]:
                peers = found
            continue
        if "b/s" in line.lower() or "n/a" in line.lower():
            records.append(_xgmi_record(int(match.group(1)), match.group(2), match.group(3), peers))
    return Listing(tuple(_once(records)), len({record["gpu"] for record in records}) < len(peers)) if seen or (records and peers) else None


def _once(records: list[Record]) -> list[Record]:
    unique: dict[object, Record] = {}
    for record in records:
        unique.setdefault(record["gpu"], record)
    return list(unique.values())


def _xgmi_record(index: int, own: str, rest: str, peers: list[str]) -> Record:
    words = rest.split()
    kind = next((w for w in words if w.upper() in ("XGMI", "PCIE")), None)
    links = [{"bdf": peer, "link_type": kind or "XGMI"} for peer in peers if pci_address(peer) != pci_address(own)]
    return {"gpu": index, "bdf": own, "links": links, "link_metrics": {"text": rest}}


def topology(payload: bytes) -> Listing | None:
    """Link kinds of ``amd-smi topology``; the other tables are kept beside them by name."""
    table, header, width = "", list[str](), 0
    records: dict[str, Record] = {}
    for line in lines(payload):
        title = _TABLE.match(line)
        if title:
            table, header = title.group(1).strip(), []
            continue
        found = _BDF_HEAD.findall(line)
        if found and len(line.split()) == len(found):
            header, width = found, max(width, len(found))
            continue
        match = _BDF_ROW.match(line)
        if match is None or not header:
            continue
        _topology_row(records.setdefault(match.group(2).lower(), {"gpu": None, "bdf": match.group(2)}), table, header, match)
    return Listing(tuple(records.values()), len(records) < width) if records else None


def _topology_row(record: Record, table: str, header: list[str], match: re.Match[str]) -> None:
    row = match.group(3).split()
    if len(row) != len(header):
        return
    if table == "LINK TYPE":
        record["links"] = [{"bdf": peer, "link_type": kind} for peer, kind in zip(header, row, strict=True) if kind.upper() not in ("SELF", "N/A")]
    else:
        record.setdefault("topology", {})[table.lower()] = dict(zip(header, row, strict=True))


def partition(payload: bytes) -> Listing | None:
    """Rows of ``CURRENT_PARTITION`` of ``amd-smi partition``."""
    header: list[str] = []
    records: list[Record] = []
    for line in lines(payload):
        row = line.split()
        names = [name.lower() for name in row]
        if names[:1] in (["gpu_id"], ["gpu"]) and "accelerator_type" in names:
            header = names
        elif header and row and ordinal(row[0]) is not None and len(row) == len(header):
            told = dict(zip(header, row, strict=True))
            block = {"accelerator_partition": told.get("accelerator_type"), "memory_partition": told.get("memory"), "partition_id": told.get("partition_id")}
            records.append({"gpu": ordinal(row[0]), "partition": block})
        elif header and (not row or ordinal(row[0]) is None):
            header = [] if _TABLE.match(line) else header
    return Listing(tuple(records)) if records else None
