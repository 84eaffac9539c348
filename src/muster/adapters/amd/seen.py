# SPDX-License-Identifier: Apache-2.0
"""Versions and layouts of this vendor's tools that were seen, and what of a text lies outside them.

Where the table is from: recorded output of amd-smi of the releases ROCm 6.0 to 7.1 (the tool counts its own versions, 23 to 26 in those), its JSON in both
wrappings, its indented text and its tables, and the tool's own reference for the commands that no recording shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from muster.adapters.amd.parse_smi import Listing
from muster.formats.jsontext import first, looks_like
from muster.formats.prometheus import samples
from muster.formats.shape import HEAD, Majors, first_misfit, not_known, printed_version, sentences, unknown, word_set
from muster.formats.text import decode

TOOL = Majors("amd-smi", 23, 26)
_ROOTS = word_set(
    "gpu_data cpu_data ai_nic nic nic_data brcm_nic brcm_switch switch_data node_data current_partition memory_partition partition_profiles "
    "partition_resources partition process_list topology xgmi_metric link_metrics links link_status xgmi_link_status amdsmi gpus tool version "
    "amdsmi_library_version rocm_version amdgpu_version amd_hsmp_driver_version amd_hsmp_version system metadata"
)
"""Keys at the root of a document that are not those of a GPU."""
_BLOCKS = word_set(
    "gpu gpu_id bdf uuid kfd_id node_id partition_id hip_id hip_uuid card render drm_card drm_render name asic bus vbios ifwi limit driver board ras numa vram "
    "cache cache_info partition partitions soc_pstate dpm_policy xgmi_plpd process_isolation enumeration usage power clock temperature mem_usage "
    "ecc ecc_blocks fan pcie voltage voltage_curve overdrive mem_overdrive perf_level xgmi_err xgmi energy throttle violation violations base_board gpu_board "
    "process_info process_list fw_list firmware retired pending un_res bad_pages retired_bad_pages pending_bad_pages un_res_bad_pages links link_metrics "
    "link_status xgmi_metric link_type weight hops numa_bandwidth link_accessibility coherent atomics dma bi_dir cpu_affinity fabric p2p "
    "partition_profiles partition_resources current_partition memory_partition accelerator_type accelerator_partition accelerator_profile_index memory "
    "memory_partition_caps partition_caps profile_index num_partitions resource_index resource_type resource_instances resources_shared profile_type "
    "power_usage max_power pwr_cap hotspot_temperature memory_temperature gfx gfx_clk gfx_clock gfx_util mem mem_clk mem_clock mem_util encoder enc_clock "
    "decoder dec_clock vclock dclock single_bit_ecc double_bit_ecc pcie_replay pcie_bw vram_used vram_free vram_total vram_percent vram_usage monitor xcp "
    "timestamp throttle_status pviol tviol phot_tviol vr_tviol hbm_tviol gfx_clkviol low_util event message topology npm gfx_version detector "
    "ecc_block_state policy profile reg reset clean clk_level compute_partition limits source accelerator cper afid rocm_version"
)
"""Keys of a GPU's row: its blocks, and the flat members of the short commands."""
_HEAD_LINE = re.compile(r"AMD-SMI\s+\S+|^\s*(?:Device\s+Node|GPU\b|WARNING)|^[=+|\s-]*ROCm System Management|^\s*#")


def news(version: str, listing: Listing) -> str:
    """What of a listing lies outside of what was seen, as one short sentence; "" when nothing does. Keys of a broken document stand anywhere."""
    if listing.cut:
        return TOOL.news(version)
    keys = (*unknown(listing.roots, _ROOTS.__contains__), *unknown((key for record in listing.records for key in record), _known))
    return sentences(TOOL.news(version), not_known("key", dict.fromkeys(keys)))


def _known(key: str) -> bool:
    return key in _BLOCKS or key.lower() in _BLOCKS


def of_page(payload: bytes) -> str:
    """What is new of an exporter's page out of which no GPU could be read."""
    name = next((sample.name for sample in samples(payload)), "")
    return f"no metric family known, the first is {name[:60]}" if name else ""


def misfit(payloads: Iterable[bytes]) -> str:
    """The first key or line that did not fit, for texts out of which no card could be read."""
    return next((odd for payload in payloads if (odd := _misfit(payload))), "")


def _misfit(payload: bytes) -> str:
    if looks_like(payload[:HEAD]):
        document = first(payload[:HEAD], partial=True)
        keys = unknown(document.value, lambda key: key in _ROOTS or _known(key)) if document is not None and isinstance(document.value, dict) else []
        if keys:
            return f"key {keys[0]}"
    return first_misfit(payload, lambda line: _HEAD_LINE.search(line) is not None)


def printed(payloads: Iterable[bytes]) -> str:
    """The version that one of the texts prints; "" where none does."""
    return next((told for payload in payloads if (told := printed_version(decode(payload[:HEAD])))), "")


def of_tool(told: str) -> str:
    """What is new of a version printed with the tool's name ("AMD-SMI 26.1.0")."""
    tool, _, number = told.rpartition(" ")
    return TOOL.news(number) if tool.lower() in ("amd-smi", "amdsmi") else ""
