# SPDX-License-Identifier: Apache-2.0
"""Which of the vendor's formats is this text? Strict: a word of the vendor's tools must stand where the tool puts it."""

from __future__ import annotations

import re

from muster.adapters.huawei import parse_mapping, parse_topo, parse_view
from muster.adapters.huawei.parse_text import command
from muster.formats.boxes import rows
from muster.formats.text import lines

INFO, MAPPING, VIEW, HCCN, SESSION = "npu-smi-info", "npu-smi-mapping", "npu-smi-view", "hccn-tool", "npu-session"
DCMI, EXPORTER, SAMPLES, LOG = "dcmi-json", "prometheus-text", "npu-samples-csv", "npu-log"

_FAMILY = re.compile(rb"^(?:# (?:HELP|TYPE) )?(?:npu_chip_|machine_npu_|npu_exporter_version_info|vnpu_pod_)", re.MULTILINE)
_FAILURE = re.compile(r"^(?:DrvMngGetConsoleLogLevel failed|dcmi (?:module|model) init|.{0,40}npu-smi: (?:command )?not found|npu-smi: error while loading)")
_LOG = re.compile(r"\[vCANN_RT\]|ipmimonitor/ipmi_monitor\.go|\[device type: \w[^\]]*\]-\[device id: \d+\]-\[error code:")
_HCCN = re.compile(r"^\s*(?:\[devid \d+\]|net health status:|link status: ?(?:UP|DOWN)|packet statistics:)")


def recognise(head: bytes) -> str | None:
    """The format's name, or None. ``head`` are the first 64 KiB at most."""
    if head.lstrip()[:1] == b"{":
        return DCMI if b'"dcmi"' in head[:2048] and b'"muster' not in head[:64] else None
    if _FAMILY.search(head):
        return EXPORTER
    text = [line for line in lines(head)[:2000] if line.strip()]
    return _samples(text) or _by_lines(text)


def _samples(text: list[str]) -> str | None:
    header = next((line for line in text[:20] if "dev_id" in line or "npu_index" in line), "")
    words = [word.strip() for word in header.lower().split(",")]
    if "dev_id" in words and words[0] == "time" and len({"power", "freq", "temp", "hbm_rate", "aicore_rate", "rated_freq"} & set(words)) > 1:
        return SAMPLES
    if "npu_index" in words and any(word.startswith(("mac_", "roce_")) for word in words):
        return SAMPLES
    return None


def _by_lines(text: list[str]) -> str | None:
    tools = [found[0] for line in text if (found := command(line)) and found[0] in ("npu-smi", "hccn_tool")]
    if len(tools) > 1:
        return SESSION
    for row in rows(text):
        cells = [cell.strip().lower() for cell in row.cells]
        if cells[0].startswith("npu-smi") or (len(cells) > 2 and cells[1].startswith(("health", "bus-id")) and cells[0].startswith(("npu", "chip"))):
            return INFO
        if len(cells) > 2 and cells[0].startswith("npu") and cells[1].startswith("process id"):
            return INFO
    if any(parse_mapping.columns(line) for line in text):
        return MAPPING
    if any(_FAILURE.match(line) for line in text) or any("limiter::" in line for line in text):
        return INFO
    if any(_LOG.search(line) for line in text[:400]):
        return LOG
    if sum(bool(parse_topo.LABEL.match(word)) for line in text[:40] for word in line.split()) > 1:
        return VIEW
    return _views(text, tools)


def _views(text: list[str], tools: list[str]) -> str | None:
    signs = {line.partition(":")[0].strip() for line in text if parse_view.SIGNS.match(line)}
    own = signs - {"Health", "Chip Count", "Total Count", "Card Count", "PCIe Bus Info"}
    if own or (tools and tools[0] == "npu-smi"):
        return VIEW
    if (tools and tools[0] == "hccn_tool") or any(_HCCN.match(line) for line in text[:20]):
        return HCCN
    return None
