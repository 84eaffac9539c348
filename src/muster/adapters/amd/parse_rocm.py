# SPDX-License-Identifier: Apache-2.0
"""`rocm-smi` in all its prints (JSON, CSV, ``GPU[0] : key: value`` lines, the summary table) to flat records by the JSON's own keys.

Keys are lower case without the colon that some of them end in. The object "system" is the host, never a card.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muster.formats.csvtext import Sign, read, sign_of
from muster.formats.jsontext import documents
from muster.formats.text import decode, lines

Flat = dict[str, str]

_CARD = re.compile(r"^card([0-9]{1,4})$")
_OF_A_CARD = re.compile(r"^GPU |^VRAM |\(Sensor \w+\)|Package Power|^Unique ID")
_LINE = re.compile(r"^\s*GPU\[([0-9]{1,4})\]\s*:\s*(.+)$")
_CSV = re.compile(r"^device\s*[,;\t|]", re.MULTILINE | re.IGNORECASE)
_OLD = re.compile(r"^GPU +Temp\b.*GPU%", re.IGNORECASE)
_NEW = re.compile(r"^Device\s+Node\s+IDs\b", re.IGNORECASE)
_ROW = 8
"""Cells that a line of the summary has at least; one that is no row and yet so long was a row."""
_FIGURE = re.compile(r"^[+-]?[\d.,]+$")


@dataclass(slots=True)
class RocmListing:
    """Cards by number, what was said of the host, and whether the end is missing."""

    cards: dict[int, Flat] = field(default_factory=dict)
    system: Flat = field(default_factory=dict)
    cut: bool = False
    summary: bool = False

    def card(self, number: int) -> Flat:
        """The record of a card, made when first asked for."""
        return self.cards.setdefault(number, {})


def fold_key(key: str) -> str:
    """The form in which keys of different releases are compared."""
    return " ".join(key.split()).rstrip(":").strip().lower()


def from_json(payload: bytes) -> RocmListing | None:
    """Cards of the JSON print; None when no object with cards or a system is in the text."""
    told = RocmListing()
    seen = strange = False
    for document in documents(payload, partial=True):
        if not isinstance(document.value, Mapping):
            continue
        for name, inner in document.value.items():
            match = _CARD.match(str(name))
            if not isinstance(inner, Mapping) or (match is None and name != "system"):
                strange |= isinstance(inner, Mapping) and any(_OF_A_CARD.search(str(key)) for key in inner)
                continue
            seen = True
            _fill(told.card(int(match.group(1))) if match else told.system, inner)
        told.cut = told.cut or (seen and (document.cut or strange))
    return told if seen else None


def _fill(flat: Flat, inner: Mapping[str, object]) -> None:
    for key, value in inner.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            flat.setdefault(fold_key(str(key)), str(value))


def from_csv(payload: bytes) -> RocmListing | None:
    """Cards of the CSV print: a header that begins with "device", a row per card."""
    text = decode(payload)
    start = _CSV.search(text)
    table = read(text[start.start() :].encode()) if start is not None else None
    if table is None:
        return None
    keys = [fold_key(f"{column.name} ({column.unit})" if column.unit else column.name) for column in table.columns]
    told = RocmListing(cut=table.cut)
    for row in table.rows:
        match = _CARD.match(row.raw[0]) if row.raw else None
        if match is None:
            told.cut = told.cut or (len(row.raw) == len(keys) and row.raw[0] != "system")
            continue
        if len(row.raw) > len(keys):
            told.card(int(match.group(1)))
            told.cut = True
            continue
        width = len(row.raw) - 1 if row.ragged and table.cut else len(row.raw)
        cells = [_figure(cell, row.sign) for cell in row.raw[:width]]
        _fill(told.card(int(match.group(1))), dict(zip(keys[1:], cells[1:], strict=False)))
    return told if told.cards else None


def _figure(cell: str, sign: Sign) -> str:
    """A number with a decimal comma spelt with a point, where its own sign or its document's is beyond doubt."""
    if "," not in cell or not _FIGURE.match(cell):
        return cell
    own = sign_of(cell)
    comma = (own if own is not Sign.UNKNOWN else sign) is Sign.COMMA
    return cell.replace(".", "").replace(",", ".") if comma else cell


def from_text(payload: bytes) -> RocmListing | None:
    """Cards of the long text (``GPU[0] : key: value``) and of the summary table."""
    text = lines(payload)
    told = RocmListing()
    for line in text:
        match = _LINE.match(line)
        if match is None:
            continue
        key, colon, value = match.group(2).partition(": ")
        card = told.card(int(match.group(1)))
        if colon:
            card.setdefault(fold_key(key), value.strip())
    _summary(text, told)
    _system(text, told)
    ended = any("End of ROCm SMI Log" in line for line in text) or not any("ROCm System Management" in line for line in text)
    told.cut = told.cut or (bool(told.cards) and not ended)
    return told if told.cards else None


def _system(text: Sequence[str], told: RocmListing) -> None:
    for line in text:
        match = re.match(r"^\s*Driver version:\s*(\S.*)$", line)
        if match:
            told.system.setdefault("driver version", match.group(1).strip())


def _summary(text: Sequence[str], told: RocmListing) -> None:
    """Rows of "Concise Info": one header line up to 5.x, two from 6.0."""
    kind, sensors = "", ""
    for at, line in enumerate(text):
        bare = line.strip()
        if _OLD.match(bare):
            kind, sensors = "old", bare
        elif _NEW.match(bare):
            kind, sensors = "new", next((row for row in text[at + 1 : at + 4] if "(" in row), "")
        elif kind and re.match(r"^\d{1,4}\s", bare):
            row = _new_row(bare, sensors) if kind == "new" else _old_row(bare, sensors)
            if row is not None:
                told.summary = True
                _fill(told.card(int(bare.split()[0])), row)
            else:
                told.card(int(bare.split()[0]))
                told.cut = True
        elif bare.startswith("===") and "End" in bare:
            kind = ""
        elif kind and len(bare.split()) >= _ROW and bare[:1] != "(":
            told.cut = True


def _old_row(line: str, header: str) -> Flat | None:
    """``GPU Temp AvgPwr SCLK MCLK Fan Perf PwrCap VRAM% GPU%``."""
    names = re.sub(r"Temp \((\w+)\)", r"Temp(\1)", header).split()
    values = line.split()
    if len(names) != len(values):
        return None
    row = dict(zip((name.lower() for name in names), values, strict=True))
    sensor = "junction" if "junction" in header.lower() else "edge"
    heat = next((value for name, value in row.items() if name.startswith("temp")), "")
    return _common(row.get("sclk"), row.get("mclk"), row.get("fan"), row.get("perf"), row.get("pwrcap"), row.get("vram%"), row.get("gpu%")) | {
        f"temperature (sensor {sensor}) (c)": heat.rstrip("cC°_"),
        "average graphics package power (w)": (row.get("avgpwr") or "N/A").rstrip("wW"),
    }


def _new_row(line: str, sensors: str) -> Flat | None:
    """``Device Node IDs(DID, GUID) Temp Power Partitions(Mem, Compute, ID) SCLK MCLK Fan Perf PwrCap VRAM% GPU%``."""
    values = re.sub(r",\s+", ",", line).split()
    if len(values) != 13:
        return None
    _, node, ids, heat, power, parts, *rest = values
    device, _, guid = ids.partition(",")
    memory, compute, part = (*parts.split(","), "", "")[:3]
    sensor = "junction" if "junction" in sensors.lower() else "edge"
    average = "(avg)" in sensors.lower()
    name = "average graphics package power (w)" if average else "current socket graphics package power (w)"
    return _common(*rest) | {
        "node id": node,
        "device id": device,
        "guid": guid,
        f"temperature (sensor {sensor}) (c)": re.sub(r"[^\d.NA/-].*$", "", heat),
        name: power.rstrip("wW"),
        "memory partition": memory,
        "compute partition": compute,
        "partition id": part,
    }


def _common(*cells: str | None) -> Flat:
    names = (
        "sclk clock speed",
        "mclk clock speed",
        "fan speed (%)",
        "performance level",
        "max graphics package power (w)",
        "gpu memory allocated (vram%)",
        "gpu use (%)",
    )
    values = [(cell or "N/A").strip() for cell in cells]
    values[2], values[5], values[6] = (value.rstrip("%") for value in (values[2], values[5], values[6]))
    values[4] = values[4].rstrip("wW")
    return dict(zip(names, values, strict=True))
