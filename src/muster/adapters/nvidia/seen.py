# SPDX-License-Identifier: Apache-2.0
"""Versions and layouts of this vendor's tools that were seen, and what of a text lies outside them.

Where the table is from: recorded output of driver branches 418 to 610 (long listings of the document types 10 to 13, the table and the full column query
of branches 590 and 595), and the vendor's list of columns that such a query takes. Branches before 418 print what 418 prints, under older document types.
"""

from __future__ import annotations

import re

from muster.adapters.nvidia.board import Board, Listing
from muster.adapters.nvidia.parse_csv import HEADER_LINES, canonical, is_header
from muster.domain.model.reading import Absent, Why
from muster.formats.jsontext import first
from muster.formats.prometheus import samples
from muster.formats.shape import HEAD, Majors, first_misfit, not_known, of_words, printed_version, sentences, unknown, word_set
from muster.formats.text import decode

DRIVERS = Majors("driver", 304, 610)
DOCUMENTS = Majors("document type", 3, 13)
_ELEMENTS = frozenset({"nvidia_smi_log", "timestamp", "driver_version", "cuda_version", "kmd_version", "cuda_umd_version", "attached_gpus", "gpu"})
_COLUMNS = word_set(
    "access accounting accounted act action activation active activity actual "
    "address addressing admin affinity aggregate app applications apps architecture "
    "assigned attached average averagefps averagelatency bandwidth bar1 baseclass bit board boost brake brand buffer bus c c2c cache cap capability "
    "cause cbu chassis checksum cliqueid clocks clusteruuid compute configuration "
    "correctable corrected count counter counters cuda curr current custom decoder "
    "default delayed device display dies domain double drain dram dramencryption draw driver ecc edpp effective encoder energy enforced error errors event "
    "fabric failure fan fb file floor fractional free gen gom gpm gpu gpucurrent gpumax graphics group gr gsp guid health heterogeneous heterogenous "
    "high histogram homogeneous host hostmax hostname hw i id idle image img "
    "in inactive incorrect index inforom instance instant isolation jpeg jpg kmd l1 l2 "
    "last limit limits link load low management margin max mcu mem memory mig min minor mismatch mode model module multiplier multivgpu name none number "
    "numa nvlink object oem ofa offset operation other override page pages parity part partial partition pci pcie peer pending performance persistence pid "
    "placements platform point policy power primary process product profile profiles progress protected pstate pwr rate reason reasons recovery "
    "register remapped remapping replay requested requirement reserved reset retired route "
    "row rows rx sbe dbe secded secondary serial sessioncount setting "
    "shared shutdown single size sizes slot slowdown sm smoothing speed sram state stats status sub subclass summary supported sw sync tar target temp "
    "temperature texture thermal threshold thresholdexceeded throttle time timeout timeslice timeslicing timestamp tlimit total tray tx type uncorrectable "
    "uncorrected unhealthy unit unit1 usage used util utilization uuid validation value vbios version vgpu video virtualization volatile width window "
    "started stopped running milliseconds"
)
"""Words that the names of columns are made of."""
_CELLS = word_set(
    "gpu name persistence m bus id disp a volatile uncorr ecc fan temp perf pwr usage cap memory util compute mig driver model tcc wddm mcdm "
    "gi ci mig dev shared vol unc sm ce enc dec ofa jpg bar1 processes pid type process devices instance instances"
)
"""Words of the table's header lines."""
_ROOTS = frozenset({"driver_version", "nvml_version", "cuda_driver_version", "count", "gpus", "error"})
"""Keys at the root of the library's snapshot."""
_KNOWN_LINE = re.compile(
    r"^\s*(?:\$ |<\?xml|<!DOCTYPE nvidia_smi_log|=+NVSMI LOG|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.*\d\d:\d\d|\|\s*NVIDIA-SMI |#\s|Timestamp\s*:|"
    r"(?:Driver|CUDA|KMD|CUDA UMD|NVML|DRIVER|NVIDIA-SMI) [Vv]ersion\s*:|Attached GPUs\s*:)"
)
_ELEMENT = re.compile(r"<([A-Za-z_][\w.-]{0,60})")
_DOCUMENT = re.compile(r"nvsmi_device_v(\d{1,6})\.dtd")
_ROW = re.compile(r"^\|\s*\d")


def version(listing: Listing, payload: bytes) -> str:
    """The version that the text prints: the tool's own, else the driver's, else what looks like one."""
    own = listing.head.get("tool_version") or listing.head.get("driver_version") or listing.head.get("kmd_version")
    return own or printed_version(decode(payload[:HEAD]))


def news(form: str, payload: bytes, listing: Listing) -> str:
    """What of the text lies outside of what was seen, as one short sentence; "" when nothing does."""
    versions = (listing.head.get(key, "") for key in ("driver_version", "kmd_version", "tool_version"))
    layout = _LAYOUTS.get(form)
    return sentences(*(DRIVERS.news(number) for number in versions if "." in number), layout(payload, listing) if layout else "")


def misfit(form: str, payload: bytes) -> str:
    """The first line or element that did not fit, for a text out of which no card could be read."""
    odd = _LAYOUTS[form](payload, Listing()) if form in _LAYOUTS else ""
    return odd or first_misfit(payload, lambda line: _fits(form, line))


def _fits(form: str, line: str) -> bool:
    if _KNOWN_LINE.match(line):
        return True
    if form == "nvidia-smi-xml":
        return line.lstrip().startswith("<") and not unknown(_ELEMENT.findall(line), _ELEMENTS.__contains__)
    return line.startswith("#") if form == "prometheus-text" else form == "nvidia-smi-table" and of_words(line, _CELLS)


def _xml(payload: bytes, listing: Listing) -> str:
    del listing
    text = decode(payload[:HEAD])
    document = _DOCUMENT.search(text)
    start = text.find("<nvidia_smi_log")
    if start < 0 and not text.lstrip().startswith("<"):
        return ""
    found = re.search(r"<gpu\b", text)
    above = text[max(start, 0) : found.start() if found else len(text)]
    odd = unknown(_ELEMENT.findall(above), _ELEMENTS.__contains__)[:1]
    return sentences(DOCUMENTS.news(document.group(1)) if document else "", f"element <{odd[0]}> not known" if odd else "")


def _table(payload: bytes, listing: Listing) -> str:
    """Header lines stand between the version line and the first row; a row begins with the card's index."""
    del listing
    told: list[str] = []
    head = False
    for line in decode(payload[:HEAD]).split("\n"):
        if "NVIDIA-SMI" in line:
            head = True
        elif head and (_ROW.match(line) or "|=" in line):
            break
        elif head and line.startswith("|"):
            told.extend(word for cell in line.strip("| ").split("|") for word in re.split(r"\s{2,}", cell))
    return not_known("column", unknown(told, lambda name: of_words(name, _CELLS)))


def _csv(payload: bytes, listing: Listing) -> str:
    del listing
    rows = decode(payload[:HEAD]).split("\n")[:HEADER_LINES]
    place = next((place for place, row in enumerate(rows) if is_header(row)), None)
    if place is None:
        return ""
    cells = re.split(r"[;,\t]", rows[place])
    if place == len(rows) - 1:
        cells.pop()  # no line end behind it: the name may go on
    names = (cell.strip().strip('"').partition(" [")[0] for cell in cells)
    return not_known("column", unknown(names, lambda name: of_words(canonical(name), _COLUMNS)))


def _nvml(payload: bytes, listing: Listing) -> str:
    del listing
    document = first(payload, partial=True)
    keys = document.value if document is not None and not document.cut and isinstance(document.value, dict) else {}
    return not_known("key", unknown(keys, _ROOTS.__contains__))


def _exporter(payload: bytes, listing: Listing) -> str:
    if any(board.slices or board.extra.keys() & _OWN or _said(board) for board in listing.boards):
        return ""
    name = next((sample.name for sample in samples(payload)), "")
    return f"no metric family known, the first is {name[:60]}" if name else ""


def _said(board: Board) -> bool:
    return any(name not in _NAMES and not (isinstance(value, Absent) and value.why is Why.NOT_REPORTED) for name, value in board.fields.items())


_OWN = frozenset({"violations", "link_errors"})
_NAMES = frozenset({"uuid", "index", "name", "pci.bus_id"})
_LAYOUTS = {
    "nvidia-smi-xml": _xml,
    "nvidia-smi-table": _table,
    "nvidia-smi-csv": _csv,
    "nvml-json": _nvml,
    "prometheus-text": _exporter,
}
