# SPDX-License-Identifier: Apache-2.0
"""Values sampled into CSV by the vendor's collection scripts: one file per chip, the newest row is the state at its end."""

from __future__ import annotations

import re

from muster.adapters.huawei.names import digits
from muster.adapters.huawei.said import Of, Record, Said
from muster.formats.csvtext import Row, Table
from muster.formats.csvtext import read as table_of
from muster.formats.text import decode

_COLUMNS = {
    "power": "Power(W)",
    "freq": "Aicore curFreq(MHZ)",
    "rated_freq": "Aicore Freq(MHZ)",
    "temp": "Temperature(C)",
    "hbm_rate": "HBM Usage Rate(%)",
    "aicore_rate": "Aicore Usage Rate(%)",
}
_HEADER = re.compile(r"^[^\r\n]*\b(?:dev_id|npu_index)\b", re.MULTILINE)
_TIMES = ("time", "timestamp")


def read(payload: bytes, said: Said) -> bool:
    """Adds one record per chip; True when the text is such a table. A row that was cut short is left out."""
    text = decode(payload)
    header = _HEADER.search(text)
    table = table_of(text[header.start() :].encode()) if header else None
    if table is None:
        return False
    ident = next((name for name in ("dev_id", "npu_index") if name in table.names), None)
    if ident is None:
        return False
    ended = text.endswith("\n")
    rows = list(table.rows) if ended else list(table.rows)[:-1]
    said.cut = said.cut or not ended
    for key, row in _newest(table, rows, ident).items():
        said.records.append(_record(key, row, ident))
    return True


def _newest(table: Table, rows: list[Row], ident: str) -> dict[str, Row]:
    """The newest whole row of each chip, by its time stamp (by its place where it has none)."""
    time = next((name for name in _TIMES if name in table.names), "")
    found: dict[str, tuple[float, Row]] = {}
    for place, row in enumerate(rows):
        key, stamp = row.cells.get(ident, ""), row.cells.get(time, "")
        if not digits(key) or row.ragged:
            continue
        at = float(stamp) if digits(stamp) and len(stamp) < 20 else float(place)
        if key not in found or at >= found[key][0]:
            found[key] = (at, row)
    return {key: row for key, (_, row) in found.items()}


def _record(key: str, row: Row, ident: str) -> Record:
    if ident == "npu_index":
        return Record(of=Of.PORT, npu=key, fields={f"stat.{name}": text for name, text in row.cells.items() if name != ident})
    fields = {_COLUMNS.get(name, name): text for name, text in row.cells.items() if name != ident}
    return Record(of=Of.NPU, npu=key, fields=fields)
