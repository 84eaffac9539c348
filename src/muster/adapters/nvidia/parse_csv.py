# SPDX-License-Identifier: Apache-2.0
"""``nvidia-smi --query-...=... --format=csv``: with or without units, with or without a header, in whatever locale the tool ran."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muster.adapters.nvidia.board import Board, Listing, Process
from muster.adapters.nvidia.readings import missing
from muster.domain.model.reading import Absent, Why
from muster.formats.csvtext import Row, Table, read
from muster.formats.text import LINE_LIMIT, decode, lines

_ALIASES = {
    "gpu_name": "name",
    "gpu_serial": "serial",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "inforom.image": "inforom.img",
    "inforom.power": "inforom.pwr",
    "gpu.power.draw.average": "power.draw.average",
    "gpu.power.draw.instant": "power.draw.instant",
    "gpu.power.requested_limit": "power.limit",
    "gpu.power.current_limit": "enforced.power.limit",
    "gpu.power.default_limit": "power.default_limit",
    "gpu.power.min_limit": "power.min_limit",
    "gpu.power.max_limit": "power.max_limit",
    "module.power.requested_limit": "module.power.limit",
    "module.power.current_limit": "module.enforced.power.limit",
    "retired_pages.sbe": "retired_pages.single_bit_ecc.count",
    "retired_pages.dbe": "retired_pages.double_bit.count",
    "remapped_rows.sbe": "remapped_rows.correctable",
    "remapped_rows.dbe": "remapped_rows.uncorrectable",
    "gpu_operation_mode.current": "gom.current",
    "kmd_version": "driver_version",
    "gpu_utilization": "process.utilization.gpu",
    "mem_utilization": "process.utilization.memory",
}
_PARTS = (("clocks_throttle_reasons", "clocks_event_reasons"), ("clocks.gr", "clocks.current.graphics"), ("clocks.sm", "clocks.current.sm"))
_SHORT = {
    "clocks.mem": "clocks.current.memory",
    "clocks.video": "clocks.current.video",
    "clocks.max.gr": "clocks.max.graphics",
    "clocks.max.mem": "clocks.max.memory",
}
_COLUMN = re.compile(
    r"^(?:index|name|gpu_name|uuid|gpu_uuid|serial|gpu_serial|pci\.bus_id|gpu_bus_id|driver_version|timestamp|pid|count)$"
    r"|^(?:memory|power|temperature|utilization|clocks|pcie|ecc|fan|enforced|pstate|compute|mig|retired_pages|remapped_rows)(?:\.\S+|_\S+)?(?: \[\S+\])?$"
)
_OWN_COLUMNS = re.compile(r"\b(?:memory\.(?:total|used|free)|power\.(?:draw|limit)|temperature\.gpu|utilization\.gpu|clocks\.|gpu_uuid|gpu_bus_id|pci\.bus_id)")
HEADER_LINES = 40
"""Lines in which a header is looked for; what stands before it is no row."""
_UUID = re.compile(r"\b(GPU|MIG)-[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
_BUS = re.compile(r"\b[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\b")
_QUERY = re.compile(r"--query-([a-z-]+)=(\S+)")
_ROW_ONLY = ("process.", "retired_pages.address", "retired_pages.timestamp", "retired_pages.cause", "max_memory_usage", "time")
_PROCESS_COLUMNS = ("pid", "process_name", "used_memory", "used_gpu_memory")
_NAME_COLUMNS = frozenset({"uuid", "pci.bus_id", "index", "name", "serial"})


def canonical(column: str) -> str:
    """The one name of a column that has several."""
    text = column.strip()
    text = _ALIASES.get(text, _SHORT.get(text, text))
    for old, new in _PARTS:
        if text == old or text.startswith(old + "."):
            return new + text[len(old) :]
    return text


def query_columns(locator: Sequence[str]) -> list[str] | None:
    """The columns that a command line asked for, None where it asked for none."""
    for word in locator:
        match = _QUERY.search(word)
        if match is not None:
            return match.group(2).split(",")
    return None


def parse(payload: bytes, locator: Sequence[str] = ()) -> Listing:
    """Cards by UUID, else address, else index, else line. Rows of processes and of retired pages are put under their card."""
    asked = query_columns([*locator, *_command(payload)])
    payload = _from_header(payload)
    table = read(payload)
    if table is None:
        return Listing(cut=True)
    known = {canonical(name) for name in table.names} & (_NAME_COLUMNS | {"pid", "driver_version", "memory.total", "count"})
    if not known:
        table = read(payload, asked or [f"column.{place}" for place in range(len(table.columns))]) or table
    found = Listing(cut=table.cut)
    names = [canonical(name) for name in table.names]
    boards: dict[str, Board] = {}
    for row in table.rows:
        _take(table, names, row, boards, found)
    found.boards = list(boards.values())
    rows_of_parts = "pid" in names or "retired_pages.address" in names
    count = next((text for board in found.boards if (text := board.text("count"))), "")
    found.attached = int(count) if count.isdecimal() and len(count) < 6 else None
    unfiltered = asked is not None and not any(word in ("-i", "--id") or word.startswith("--id=") for word in locator)
    enough = found.attached == len(found.boards) if found.attached is not None else unfiltered
    found.whole = not table.cut and not rows_of_parts and enough and bool(found.boards) and not any(row.ragged for row in table.rows)
    return found


def is_header(line: str) -> bool:
    """True for a row of column names of this tool: most cells are such names, and one of them no other tool has."""
    cells = [cell.strip().strip('"') for cell in re.split(r"[;,\t]", line[:LINE_LIMIT])]
    return len(cells) > 1 and sum(1 for cell in cells if _COLUMN.match(cell)) * 2 > len(cells) and _OWN_COLUMNS.search(line) is not None


def _from_header(payload: bytes) -> bytes:
    rows = lines(payload)[:HEADER_LINES]
    place = next((place for place, row in enumerate(rows) if is_header(row)), 0)
    return decode(payload).split("\n", place)[-1].encode() if place else payload


def _command(payload: bytes) -> list[str]:
    first = payload[:4096].split(b"\n", 1)[0].decode("utf-8", errors="replace")
    return first.split() if first.startswith(("$ ", "nvidia-smi ")) else []


def _take(table: Table, names: list[str], row: Row, boards: dict[str, Board], found: Listing) -> None:
    cells = {name: row.cells[own] for name, own in zip(names, table.names, strict=True) if own in row.cells}
    named = _named(row) or (cells.get("index", "").isdecimal() and cells["index"])
    if not named and (row.ragged or not cells or "column.0" in names):
        found.cut = True
        return
    key = cells.get("uuid") or cells.get("pci.bus_id") or cells.get("index") or _named(row) or f"#{row.line}"
    if _names_nothing(key):
        key = cells.get("pci.bus_id") or cells.get("index") or f"#{row.line}"
    if ("pid" in names or "retired_pages.address" in names) and not (_UUID.fullmatch(key) or _BUS.fullmatch(key) or key.isdecimal()):
        found.cut = True
        return
    if key == cells.get("index") and missing(cells.get("serial", "")) is None:
        key = f"{key} {cells['serial']}"  # rows of one index with other serial numbers: lists of several hosts
    board = boards.setdefault(key, Board(sign=row.sign))
    if row.ragged and not row.cells:
        found.cut = True
        _ragged(board, row, names)
        return
    if row.ragged:
        found.cut = board.partial = True
    if row.ragged or "column.0" in names:
        _by_form(board, row)
    if "pid" in names:
        _process(board, cells)
    elif "retired_pages.address" in names:
        _retired(board, cells)
    units = dict(zip(names, (column.unit for column in table.columns), strict=True))
    for name, text in cells.items():
        if name in _PROCESS_COLUMNS or (name.startswith(_ROW_ONLY) and name != "timestamp"):
            continue
        if name == "driver_version":
            found.head.setdefault("driver_version", text)
        value = _with_unit(text, units.get(name, ""))
        board.offer(name, value)
        if not row.ragged:
            board.fields[name] = value  # a tool that repeats its rows: the newer one


def _names_nothing(key: str) -> bool:
    return key.lower() in ("[n/a]", "n/a", "") or set(key.lower().removeprefix("gpu-")) <= {"0", "-"}


def _with_unit(text: str, unit: str) -> str:
    """The cell with the unit of its header, where it is a bare number."""
    return f"{text} {unit}" if unit and text[-1:].isdigit() and not text.startswith("0x") else text


def _named(row: Row) -> str:
    for pattern in (_UUID, _BUS):
        for cell in row.raw:
            match = pattern.search(cell)
            if match is not None:
                return match.group()
    return ""


def _ragged(board: Board, row: Row, names: list[str]) -> None:
    """A row with too many cells: only what is known by its own form is taken, everything asked for is unreadable."""
    _by_form(board, row)
    for name in names:
        board.offer(name, Absent(Why.UNREADABLE, "more cells than columns"))


def _by_form(board: Board, row: Row) -> None:
    """Names that show what they are by their form, wherever they stand in a row."""
    for cell in row.raw:
        for name, pattern in (("uuid", _UUID), ("pci.bus_id", _BUS)):
            match = pattern.search(cell)
            if match is not None:
                board.offer(name, match.group())


def _process(board: Board, cells: dict[str, str]) -> None:
    board.processes = board.processes if board.processes is not None else []
    pid = cells.get("pid", "")
    if not pid.isdecimal() or _ended(cells) or any(one.pid == pid for one in board.processes):
        return
    board.processes.append(Process(pid=pid, name=cells.get("process_name"), memory=cells.get("used_memory") or cells.get("used_gpu_memory")))


def _ended(cells: dict[str, str]) -> bool:
    """True for a row of the accounting list that is history: a process that still runs has no running time yet."""
    time = cells.get("time")
    return time is not None and re.match(r"0+(?:\D|$)", time) is None


def _retired(board: Board, cells: dict[str, str]) -> None:
    """Counts pages with an address; a row without one only says that the cause does not apply to this card."""
    address = cells.get("retired_pages.address", "")
    if not address.lower().startswith("0x"):
        board.offer("retired_pages.total", Absent(Why.NOT_SUPPORTED, address))
        return
    count = board.extra.setdefault("retired_pages", [])
    if isinstance(count, list) and [address, cells.get("retired_pages.cause", "")] not in count:
        count.append([address, cells.get("retired_pages.cause", "")])
    total = len(count) if isinstance(count, list) else 0
    board.fields["retired_pages.total"] = str(total)
