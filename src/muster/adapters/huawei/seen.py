# SPDX-License-Identifier: Apache-2.0
"""Versions and layouts of this vendor's tools that were seen, and what of a text lies outside them.

Where the table is from: recorded output of npu-smi 22.7 to 25.7 on the 310P, 910 and 950 families with all their views, pages of npu-exporter, and the
vendor's command references for the releases 20 to 26, whose views have the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from muster.adapters.huawei import parse_exporter, parse_mapping
from muster.adapters.huawei.parse_text import command
from muster.adapters.huawei.said import Said
from muster.formats.boxes import rows
from muster.formats.prometheus import samples
from muster.formats.shape import HEAD, Majors, first_misfit, lacking, not_known, of_words, printed_version, sentences, unknown, word_set
from muster.formats.text import decode, lines

TOOL, DRIVER = Majors("npu-smi", 20, 26), Majors("driver", 20, 26)
_HEADERS = word_set(
    "npu name health power w temp c hugepages usage page chip device phy id bus aicore memory mb hbm process logic slot position "
    "vnpu type template static dynamic resource info as follow aicpu vpc venc vdec jpegd jpege pngd total free used mode"
)
"""Words of the header lines of the boxes and of the mapping."""
_KEYS = _HEADERS | word_set(
    "rate aicube aivector ctrlcpu bom board main version class compatibility ddr "
    "bandwidth capacity double single bit aggregate err error cnt count isolated "
    "next pages clear clock speed hugepage code information firmware ndie vdie die "
    "status real time pcb pci pcie vendor product serial number software subsystem "
    "model manufacturer date elabel fault faulty module temperature dissipation voltage v "
    "current cur freq freqency frequency mhz rated ai cpu core controlcpu "
    "control max min aicorefreq aicore0 curfreq cluster optical card online tls "
    "frequence lpm lpddr work working threshold shutdown slowdown warn warning high "
    "low limit cap value level state reset flash ecc enable flag multi hbm0 sram ram user config p2p ip address mac net network link port roce rx tx bw "
    "bandwidths health description desc computing power npu0 mcu controller boot start share recover security customized op total1 sn hccs "
    "soc sio hboot1 hboot2 lp uboot xloader tee os utilization utilisation ratio percent busy idle process pid ppid container host os key "
    "supply first second socket super server index scale rack chassis spod sdid sys pmu fan revolution rpm gear topology bdf domain"
)
"""Words of the keys of the views."""
_FAMILIES = word_set(
    "aicore cube vector overall utilization current freq bandwidth rx tx error code codes hbm ddr total used memory health status link name network power "
    "temperature voltage process info num number up down serial product type rated mac pcie roce optical ecc enable flag single double bit cnt isolated "
    "pages aggregate next avg throughput bw min max tx0 rx0 speed state cpu container npu chip machine vnpu pod rate frequency count hccs link0 fan "
    "cur credit statistic statistics per second retry pkt packet all good bad oct fcs "
    "err pfc pause unexpected verify new out of order qp out rto ack p post "
    "np window dev clock lane vcc los lol snr media host"
)
"""Words of the exporter's families."""
_BY_NAME = frozenset({"serial_number", "name", "product_type"})
"""Labels that only families of the same name bring."""
_ROOTS = frozenset({"dcmi", "cards", "muster"})
_KNOWN_LINE = re.compile(r"npu-smi\s*v?\S+\s+Version\s*:|No running process|^\s*(?:NPU ID|Chip ID|Chip Count|Total Count|Card Count)\s*:", re.IGNORECASE)


def of_tool(told: str) -> str:
    """What is new of the tool's version ("npu-smi 25.5.1")."""
    tool, _, number = told.rpartition(" ")
    return TOOL.news(number) if tool.lower() == "npu-smi" else ""


def news(said: Said, payloads: Iterable[bytes]) -> str:
    """What of the tools' texts lies outside of what was seen, as one short sentence; "" when nothing does."""
    keys = (key for record in said.records if record.listed == "view" and record.npu is not None for key in record.fields)
    columns = (name for record in said.records if record.listed == "mapping" for name in record.fields)
    names = (*unknown(columns, _of(_HEADERS)), *(name for payload in payloads for name in _headers(payload)))
    return sentences(of_tool(said.tool), not_known("column", dict.fromkeys(names)), not_known("key", unknown(keys, _of(_KEYS))))


def _of(words: frozenset[str]) -> Any:
    return lambda name: of_words(name, words)


def _headers(payload: bytes) -> list[str]:
    """Unknown column names of the boxes: rows that stand above the first row of a chip."""
    told: list[str] = []
    for row in rows(lines(payload[:HEAD])[:400]):
        if row.cell(0)[:1].isdigit() or not row.closed:
            break
        if len(row.cells) > 1 and not _KNOWN_LINE.search(row.cells[0]):
            told.extend(name for cell in row.cells for name in re.split(r"\s{2,}", cell.strip()))
    return unknown(told, _of(_HEADERS))


def misfit(payloads: Iterable[bytes]) -> str:
    """The first line that did not fit, for texts out of which no NPU could be read."""
    return next((odd for payload in payloads if (odd := first_misfit(payload, _fits))), "")


def _fits(line: str) -> bool:
    bare = line.strip()
    if _KNOWN_LINE.search(bare) or command(bare) or parse_mapping.columns(line):
        return True
    return bare[:1] == "|" and of_words(bare, _HEADERS) and not any(sign.isdigit() for sign in bare)


def of_snapshot(told: Mapping[str, Any]) -> str:
    """What is new of a snapshot of the library."""
    head = told.get("dcmi")
    answer = head.get("driver_version") if isinstance(head, dict) else None
    driver = answer.get("value") if isinstance(answer, dict) else None
    return sentences(DRIVER.news(driver) if isinstance(driver, str) else "", not_known("key", unknown(told, _ROOTS.__contains__)))


def of_page(page: parse_exporter.Page, payload: bytes) -> str:
    """What is new of the exporter's page: only a page without any known family is."""
    known = page.totals or any(chip.codes or chip.processes or chip.slices or chip.labels.keys() & _BY_NAME for chip in page.chips.values())
    if known or any(of_words(family, _FAMILIES) for chip in page.chips.values() for family in chip.values):
        return ""
    name = next((sample.name for sample in samples(payload)), "")
    return f"no metric family known, the first is {name[:60]}" if name else ""


def first_of(payload: bytes, kind: str) -> str:
    """What is missing (``kind``), and the first line that does not fit; comments of a page of metrics fit."""
    return lacking(kind, first_misfit(payload, lambda line: line.startswith("#")))


def printed(payload: bytes) -> str:
    """The version that a text prints, whatever it is."""
    return printed_version(decode(payload[:HEAD]))
