# SPDX-License-Identifier: Apache-2.0
"""Which format of AMD's tools, drivers and exporters a text has. Strict enough to leave other makers' texts alone."""

from __future__ import annotations

import re

from muster.adapters.amd import parse_exporter
from muster.adapters.amd.parse_detector import OURS as DETECTED
from muster.adapters.amd.parse_kernel import DRIVER
from muster.formats.jsontext import looks_like as json_like
from muster.formats.text import decode


def _any(*words: str) -> str:
    return "(?:" + "|".join(words) + ")"


# members that only amd-smi's JSON has
_SMI_MEMBERS = re.compile(
    '"'
    + _any(
        *("gpu_data", "asic_serial", "target_graphics_version", "oam_id", "umc_activity", "gfx_activity", "socket_power", "total_vram", "kfd_id", "fw_list"),
        *("ecc_blocks", "total_correctable_count", "mem_usage", "link_metrics", "xgmi_metric", "accelerator_type", "pcie_interface_version", "gfx_voltage"),
        *("process_isolation", "current_partition", "link_accessibility", "hotspot_temperature", "compute_partition", "accelerator_partition"),
        *("un_res", "process_info", "link_status", "socket_power_limit", "market_name", "vram_usage"),
    )
    + r'"\s*:'
)
_SMI_ROW = re.compile(r'"(?:gpu|gpu_id)"\s*:\s*"?\d')
_SMI_UUID = re.compile(r'"uuid"\s*:\s*"[0-9a-f]{8}-0000-1000-80[0-9a-f]{2}-', re.IGNORECASE)
"""The form of all UUIDs that the vendor's library makes."""
_ROCM_CARD = re.compile(r'"card\d+"\s*:\s*\{')
_ROCM_KEYS = re.compile(
    '"'
    + _any(
        *(
            "GPU ID",
            r"GPU use \(%\)",
            r"GPU memory use \(%\)",
            r"GPU Memory Allocated \(VRAM%\)",
            "VRAM Total Memory",
            "VRAM Total Used Memory",
            "Card [Ss]eries",
        ),
        *(
            "Device Name",
            "GUID",
            "Unique ID",
            r"[\w ]*Graphics Package Power \(W\)",
            "GFX Version",
            r"Temperature \(Sensor \w+(?: \d)?\) \(C\)",
            "Driver version",
        ),
    )
)
_ROCM_CSV = re.compile(
    r"^device[ \t]*[,;\t].*" + _any(r"\(Sensor \w+\)", r"Package Power \(W\)", "GPU ID", "GPU use", "Card [Ss]eries", "Unique ID", "VRAM Total"),
    re.MULTILINE,
)
_ROCM_TEXT = re.compile(r"ROCm System Management Interface|^GPU\[\d+\](?:\t+ ?|\s{7,}):\s", re.MULTILINE)
_BOX = re.compile(r"\|\s*AMD-SMI\s+\S+")
_SMI_GPU = re.compile(r"^GPU: \d+\s*$", re.MULTILINE)
_SMI_KEYS = re.compile(
    r"^[ \t]+"
    + _any(
        *("ASIC", "BDF", "KFD_ID", "USAGE", "POWER", "ECC", "ECC_BLOCKS", "THROTTLE", "VIOLATION", "PARTITION", "PROCESS_INFO", "FW_LIST", "RETIRED", "VRAM"),
        *("CLOCK", "TEMPERATURE", "MEM_USAGE", "PCIE", "LIMIT", "BUS", "FAN", "DRIVER", "BOARD", "VBIOS", "IFWI", "NUMA", "RAS", "UUID"),
    )
    + ":",
    re.MULTILINE,
)
_SMI_TABLE = re.compile(
    r"^GPU[ \t].*\b(?:GPU_T|GPU_TEMP|GFX_UTIL|GFX_CLOCK|GFX_CLK|VRAM_USED|VRAM_USAGE)\b"
    r"|^GPU[ \t].*GFX%|^(?:LINK METRIC TABLE|LINK TYPE TABLE|NUMA BW TABLE|CURRENT_PARTITION|ACCESS TABLE):",
    re.MULTILINE,
)
_VENDOR = re.compile(r"/vendor:?\s*(?:<==\n)?(0x[0-9a-f]{4})\b|^[ \t]*PCI_ID=([0-9A-F]{4}):|/uevent: ?PCI_ID=([0-9A-F]{4}):", re.MULTILINE)
_SYSFS = re.compile(r"DRIVER=amdgpu|ras/gpu_vram_bad_pages\s*:|/mem_info_vram_total\b|^(?:\S*/)?ras/\w+_err_count\s*:|/module/amdgpu/version\b", re.MULTILINE)
_KFD = re.compile(r"(?:^|[/ ])nodes/\d+/[a-z0-9_/]{0,40}properties\b", re.MULTILINE)
_KFD_KEYS = re.compile(r"\b(?:simd_count|gfx_target_version|cpu_cores_count|max_engine_clk_fcompute)\s+\d")
_FIRMWARE = re.compile(r"^(?:\S+: )?\w[\w ]*feature version: \d+, firmware version: 0x[0-9a-f]+", re.MULTILINE)
_FAILURES = re.compile(
    _any(
        *("AMDSMI_STATUS_[A-Z_]+", "amdsmi_exception", "check amdgpu version", r"Driver not initialized \(amdgpu", "No AMD GPUs"),
        *(r"\bamd-smi: command not found", r"\brocm-smi: command not found", r"No such file or directory: '?\S*/(?:amd|rocm)-smi"),
    )
)
_XRT = re.compile(r"^[ \t]*amdxdna[ \t]*:|NPU Firmware Version|RyzenAI-npu\d", re.MULTILINE)


def recognise(head: bytes) -> str | None:
    """The format of the text that begins with ``head``, or None when it is none of AMD's."""
    text = decode(head)
    found = _json(text) if json_like(head) else None
    if found is not None:
        return found
    if parse_exporter.recognise(head):
        return "prometheus-text"
    if DRIVER.search(text):
        return "kernel-log"
    return _plain(text)


def _json(text: str) -> str | None:
    if '"amdsmi"' in text and '"gpus"' in text:
        return "amdsmi-json"
    if DETECTED.search(text) and '"uuid"' in text:
        return "gpustack-detect-json"
    if '"amdsmi_library_version"' in text:
        return "amd-smi-json"
    if _ROCM_CARD.search(text) and _ROCM_KEYS.search(text):
        return "rocm-smi-json"
    if (_SMI_MEMBERS.search(text) or _SMI_UUID.search(text)) and (_SMI_ROW.search(text) or '"gpu_data"' in text):
        return "amd-smi-json"
    return None


def _plain(text: str) -> str | None:
    if _ROCM_CSV.search(text):
        return "rocm-smi-csv"
    if _ROCM_TEXT.search(text):
        return "rocm-smi-text"
    if _SMI_TABLE.search(text) or _BOX.search(text) or (_SMI_GPU.search(text) and _SMI_KEYS.search(text)):
        return "amd-smi-text"
    if _files(text):
        return "sysfs-tree"
    if _FIRMWARE.search(text):
        return "amdgpu-firmware-info"
    if _XRT.search(text):
        return "xrt-smi-text"
    return "amd-smi-text" if _FAILURES.search(text) else None


def _files(text: str) -> bool:
    """Files of the driver or of the compute topology; where vendor ids were printed, one of them has to be ours."""
    if _KFD.search(text) and _KFD_KEYS.search(text):
        return True
    vendors = {next(filter(None, found)).lower().removeprefix("0x") for found in _VENDOR.findall(text)}
    if vendors:
        return "1002" in vendors and (_SYSFS.search(text) is not None or "/device/" in text)
    return _SYSFS.search(text) is not None
