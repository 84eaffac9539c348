# SPDX-License-Identifier: Apache-2.0
"""Names of the two long listings (``-q -x`` and ``-q``) by path, each with the field it is kept under. One row per thing: XML path, text path, field."""

from __future__ import annotations

# fmt: off
ROWS: tuple[tuple[str, str, str], ...] = (
    ("product_name", "Product Name", "name"),
    ("product_brand", "Product Brand", "brand"),
    ("product_architecture", "Product Architecture", "architecture"),
    ("persistence_mode", "Persistence Mode", "persistence_mode"),
    ("addressing_mode", "Addressing Mode", "addressing_mode"),
    ("mig_mode/current_mig", "MIG Mode/Current", "mig.mode.current"),
    ("mig_mode/pending_mig", "MIG Mode/Pending", "mig.mode.pending"),
    ("driver_model/current_dm", "Driver Model/Current", "driver_model.current"),
    ("serial", "Serial Number", "serial"),
    ("uuid", "GPU UUID", "uuid"),
    ("minor_number", "Minor Number", "minor_number"),
    ("vbios_version", "VBIOS Version", "vbios_version"),
    ("board_id", "Board ID", "board_id"),
    ("board_part_number", "Board Part Number", "board_part_number"),
    ("gpu_part_number", "GPU Part Number", "gpu_part_number"),
    ("platformInfo/chassis_serial_number", "Platform Info/Chassis Serial Number", "platform.chassis_serial_number"),
    ("platformInfo/slot_number", "Platform Info/Slot Number", "platform.slot_number"),
    ("platformInfo/tray_index", "Platform Info/Tray Index", "platform.tray_index"),
    ("platformInfo/host_id", "Platform Info/Host ID", "platform.host_id"),
    ("platformInfo/peer_type", "Platform Info/Peer Type", "platform.peer_type"),
    ("platformInfo/module_id", "Platform Info/Module Id", "platform.module_id"),
    ("gpu_module_id", "GPU Module ID", "platform.module_id"),
    ("inforom_version/img_version", "Inforom Version/Image Version", "inforom.img"),
    ("inforom_version/oem_object", "Inforom Version/OEM Object", "inforom.oem"),
    ("inforom_version/ecc_object", "Inforom Version/ECC Object", "inforom.ecc"),
    ("inforom_version/pwr_object", "Inforom Version/Power Management Object", "inforom.pwr"),
    ("gpu_virtualization_mode/virtualization_mode", "GPU Virtualization Mode/Virtualization Mode", "virtualization_mode"),
    ("gpu_virtualization_mode/host_vgpu_mode", "GPU Virtualization Mode/Host VGPU Mode", "host_vgpu_mode"),
    ("gpu_recovery_action", "GPU Recovery Action", "gpu_recovery_action"),
    ("gpu_reset_status/reset_required", "GPU Reset Status/Reset Required", "reset_required"),
    ("gpu_reset_status/drain_and_reset_recommended", "GPU Reset Status/Drain and Reset Recommended", "drain_and_reset_recommended"),
    ("gsp_firmware_version", "GSP Firmware Version", "gsp_firmware_version"),
    ("pci/pci_base_class", "PCI/Base Classcode", "pci.baseClass"),
    ("pci/pci_sub_class", "PCI/Sub Classcode", "pci.subClass"),
    ("pci/pci_device_id", "PCI/Device Id", "pci.device_id"),
    ("pci/pci_bus_id", "PCI/Bus Id", "pci.bus_id"),
    ("pci/pci_sub_system_id", "PCI/Sub System Id", "pci.sub_device_id"),
    ("pci/pci_gpu_link_info/pcie_gen/max_link_gen", "PCI/GPU Link Info/PCIe Generation/Max", "pcie.link.gen.max"),
    ("pci/pci_gpu_link_info/pcie_gen/current_link_gen", "PCI/GPU Link Info/PCIe Generation/Current", "pcie.link.gen.current"),
    ("pci/pci_gpu_link_info/link_widths/max_link_width", "PCI/GPU Link Info/Link Width/Max", "pcie.link.width.max"),
    ("pci/pci_gpu_link_info/link_widths/current_link_width", "PCI/GPU Link Info/Link Width/Current", "pcie.link.width.current"),
    ("pci/replay_counter", "PCI/Replays Since Reset", "pcie.replay_counter"),
    ("pci/tx_util", "PCI/Tx Throughput", "pcie.tx"),
    ("pci/rx_util", "PCI/Rx Throughput", "pcie.rx"),
    ("fan_speed", "Fan Speed", "fan.speed"),
    ("performance_state", "Performance State", "pstate"),
    ("fb_memory_usage/total", "FB Memory Usage/Total", "memory.total"),
    ("fb_memory_usage/reserved", "FB Memory Usage/Reserved", "memory.reserved"),
    ("fb_memory_usage/used", "FB Memory Usage/Used", "memory.used"),
    ("fb_memory_usage/free", "FB Memory Usage/Free", "memory.free"),
    ("compute_mode", "Compute Mode", "compute_mode"),
    ("utilization/gpu_util", "Utilization/GPU", "utilization.gpu"),
    ("utilization/memory_util", "Utilization/Memory", "utilization.memory"),
    ("utilization/encoder_util", "Utilization/Encoder", "utilization.encoder"),
    ("utilization/decoder_util", "Utilization/Decoder", "utilization.decoder"),
    ("utilization/jpeg_util", "Utilization/JPEG", "utilization.jpeg"),
    ("utilization/ofa_util", "Utilization/OFA", "utilization.ofa"),
    ("ecc_mode/current_ecc", "ECC Mode/Current", "ecc.mode.current"),
    ("ecc_mode/current_ecc", "Ecc Mode/Current", "ecc.mode.current"),
    ("ecc_mode/pending_ecc", "ECC Mode/Pending", "ecc.mode.pending"),
    ("ecc_errors/volatile/sram_correctable", "ECC Errors/Volatile/SRAM Correctable", "ecc.errors.corrected.volatile.sram"),
    ("ecc_errors/volatile/sram_uncorrectable", "ECC Errors/Volatile/SRAM Uncorrectable", "ecc.errors.uncorrected.volatile.sram"),
    ("ecc_errors/volatile/sram_uncorrectable_parity", "ECC Errors/Volatile/SRAM Uncorrectable Parity", "ecc.errors.uncorrected.volatile.sram.parity"),
    ("ecc_errors/volatile/sram_uncorrectable_secded", "ECC Errors/Volatile/SRAM Uncorrectable SEC-DED", "ecc.errors.uncorrected.volatile.sram.secded"),
    ("ecc_errors/volatile/dram_correctable", "ECC Errors/Volatile/DRAM Correctable", "ecc.errors.corrected.volatile.dram"),
    ("ecc_errors/volatile/dram_uncorrectable", "ECC Errors/Volatile/DRAM Uncorrectable", "ecc.errors.uncorrected.volatile.dram"),
    ("ecc_errors/aggregate/sram_correctable", "ECC Errors/Aggregate/SRAM Correctable", "ecc.errors.corrected.aggregate.sram"),
    ("ecc_errors/aggregate/sram_uncorrectable", "ECC Errors/Aggregate/SRAM Uncorrectable", "ecc.errors.uncorrected.aggregate.sram"),
    ("ecc_errors/aggregate/sram_uncorrectable_parity", "ECC Errors/Aggregate/SRAM Uncorrectable Parity", "ecc.errors.uncorrected.aggregate.sram.parity"),
    ("ecc_errors/aggregate/sram_uncorrectable_secded", "ECC Errors/Aggregate/SRAM Uncorrectable SEC-DED", "ecc.errors.uncorrected.aggregate.sram.secded"),
    ("ecc_errors/aggregate/dram_correctable", "ECC Errors/Aggregate/DRAM Correctable", "ecc.errors.corrected.aggregate.dram"),
    ("ecc_errors/aggregate/dram_uncorrectable", "ECC Errors/Aggregate/DRAM Uncorrectable", "ecc.errors.uncorrected.aggregate.dram"),
    ("ecc_errors/aggregate/sram_threshold_exceeded", "ECC Errors/Aggregate/SRAM Threshold Exceeded", "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded"),
    ("ecc_errors/volatile/single_bit/device_memory", "ECC Errors/Volatile/Single Bit/Device Memory", "ecc.errors.corrected.volatile.device_memory"),
    ("ecc_errors/volatile/double_bit/device_memory", "ECC Errors/Volatile/Double Bit/Device Memory", "ecc.errors.uncorrected.volatile.device_memory"),
    ("ecc_errors/aggregate/single_bit/device_memory", "ECC Errors/Aggregate/Single Bit/Device Memory", "ecc.errors.corrected.aggregate.device_memory"),
    ("ecc_errors/aggregate/double_bit/device_memory", "ECC Errors/Aggregate/Double Bit/Device Memory", "ecc.errors.uncorrected.aggregate.device_memory"),
    ("retired_pages/multiple_single_bit_retirement/retired_count", "Retired Pages/Single Bit ECC", "retired_pages.single_bit_ecc.count"),
    ("retired_pages/double_bit_retirement/retired_count", "Retired Pages/Double Bit ECC", "retired_pages.double_bit.count"),
    ("retired_pages/pending_blacklist", "Retired Pages/Pending Page Blacklist", "retired_pages.pending"),
    ("retired_pages/pending_retirement", "Retired Pages/Pending", "retired_pages.pending"),
    ("remapped_rows", "Remapped Rows", "remapped_rows"),
    ("remapped_rows/remapped_row_corr", "Remapped Rows/Correctable Error", "remapped_rows.correctable"),
    ("remapped_rows/remapped_row_unc", "Remapped Rows/Uncorrectable Error", "remapped_rows.uncorrectable"),
    ("remapped_rows/remapped_row_pending", "Remapped Rows/Pending", "remapped_rows.pending"),
    ("remapped_rows/remapped_row_failure", "Remapped Rows/Remapping Failure Occurred", "remapped_rows.failure"),
    ("temperature/gpu_temp", "Temperature/GPU Current Temp", "temperature.gpu"),
    ("temperature/gpu_temp_tlimit", "Temperature/GPU T.Limit Temp", "temperature.gpu.tlimit"),
    ("temperature/gpu_temp_max_threshold", "Temperature/GPU Shutdown Temp", "temperature.shutdown"),
    ("temperature/gpu_temp_slow_threshold", "Temperature/GPU Slowdown Temp", "temperature.slowdown"),
    ("temperature/gpu_temp_max_tlimit_threshold", "Temperature/GPU Shutdown T.Limit Temp", "temperature.shutdown.tlimit"),
    ("temperature/gpu_temp_slow_tlimit_threshold", "Temperature/GPU Slowdown T.Limit Temp", "temperature.slowdown.tlimit"),
    ("temperature/memory_temp", "Temperature/Memory Current Temp", "temperature.memory"),
    ("power_readings/power_draw", "Power Readings/Power Draw", "power.draw"),
    ("power_readings/power_limit", "Power Readings/Power Limit", "power.limit"),
    ("power_readings/enforced_power_limit", "Power Readings/Enforced Power Limit", "enforced.power.limit"),
    ("power_readings/default_power_limit", "Power Readings/Default Power Limit", "power.default_limit"),
    ("power_readings/min_power_limit", "Power Readings/Min Power Limit", "power.min_limit"),
    ("power_readings/max_power_limit", "Power Readings/Max Power Limit", "power.max_limit"),
    ("gpu_power_readings/power_draw", "GPU Power Readings/Power Draw", "power.draw"),
    ("gpu_power_readings/average_power_draw", "GPU Power Readings/Average Power Draw", "power.draw.average"),
    ("gpu_power_readings/instant_power_draw", "GPU Power Readings/Instantaneous Power Draw", "power.draw.instant"),
    ("gpu_power_readings/current_power_limit", "GPU Power Readings/Current Power Limit", "enforced.power.limit"),
    ("gpu_power_readings/requested_power_limit", "GPU Power Readings/Requested Power Limit", "power.limit"),
    ("gpu_power_readings/default_power_limit", "GPU Power Readings/Default Power Limit", "power.default_limit"),
    ("gpu_power_readings/min_power_limit", "GPU Power Readings/Min Power Limit", "power.min_limit"),
    ("gpu_power_readings/max_power_limit", "GPU Power Readings/Max Power Limit", "power.max_limit"),
    ("gpu_memory_power_readings/average_power_draw", "GPU Memory Power Readings/Average Power Draw", "memory.power.draw.average"),
    ("gpu_memory_power_readings/instant_power_draw", "GPU Memory Power Readings/Instantaneous Power Draw", "memory.power.draw.instant"),
    ("module_power_readings/power_draw", "Module Power Readings/Power Draw", "module.power.draw"),
    ("module_power_readings/average_power_draw", "Module Power Readings/Average Power Draw", "module.power.draw.average"),
    ("module_power_readings/instant_power_draw", "Module Power Readings/Instantaneous Power Draw", "module.power.draw.instant"),
    ("module_power_readings/current_power_limit", "Module Power Readings/Current Power Limit", "module.enforced.power.limit"),
    ("clocks/graphics_clock", "Clocks/Graphics", "clocks.current.graphics"),
    ("clocks/sm_clock", "Clocks/SM", "clocks.current.sm"),
    ("clocks/mem_clock", "Clocks/Memory", "clocks.current.memory"),
    ("clocks/video_clock", "Clocks/Video", "clocks.current.video"),
    ("max_clocks/graphics_clock", "Max Clocks/Graphics", "clocks.max.graphics"),
    ("max_clocks/sm_clock", "Max Clocks/SM", "clocks.max.sm"),
    ("max_clocks/mem_clock", "Max Clocks/Memory", "clocks.max.memory"),
    ("voltage/graphics_volt", "Voltage/Graphics", "voltage.graphics"),
    ("fabric/state", "Fabric/State", "fabric.state"),
    ("fabric/status", "Fabric/Status", "fabric.status"),
    ("fabric/cliqueId", "Fabric/CliqueId", "fabric.cliqueId"),
    ("fabric/clusterUuid", "Fabric/ClusterUUID", "fabric.clusterUuid"),
    ("fabric/health/summary", "Fabric/Health/Summary", "fabric.health.summary"),
    ("fabric/health/bandwidth", "Fabric/Health/Bandwidth", "fabric.health.bandwidth"),
    ("fabric/health/route_recovery_in_progress", "Fabric/Health/Route Recovery in progress", "fabric.health.route_recovery_in_progress"),
    ("fabric/health/route_unhealthy", "Fabric/Health/Route Unhealthy", "fabric.health.route_unhealthy"),
    ("fabric/health/access_timeout_recovery", "Fabric/Health/Access Timeout Recovery", "fabric.health.access_timeout_recovery"),
    ("fabric/health/incorrect_configuration", "Fabric/Health/Incorrect Configuration", "fabric.health.incorrect_configuration"),
)
# fmt: on

REASONS: dict[str, str] = {
    "gpu_idle": "Idle",
    "applications_clocks_setting": "Applications Clocks Setting",
    "sw_power_cap": "SW Power Cap",
    "hw_slowdown": "HW Slowdown",
    "hw_thermal_slowdown": "HW Slowdown/HW Thermal Slowdown",
    "hw_power_brake_slowdown": "HW Slowdown/HW Power Brake Slowdown",
    "sync_boost": "Sync Boost",
    "sw_thermal_slowdown": "SW Thermal Slowdown",
    "display_clocks_setting": "Display Clock Setting",
}
"""Why clocks are held down: the column's last word and the path below "Clocks Event Reasons" ("Clocks Throttle Reasons" before driver 535)."""

COUNTERS: dict[str, tuple[str, str]] = {
    "sw_power_cap": ("sw_power_cap", "SW Power Capping"),
    "sync_boost": ("sync_boost", "Sync Boost"),
    "sw_thermal_slowdown": ("sw_therm_slowdown", "SW Thermal Slowdown"),
    "hw_thermal_slowdown": ("hw_therm_slowdown", "HW Thermal Slowdown"),
    "hw_power_brake_slowdown": ("hw_power_brake", "HW Power Braking"),
}
"""How long they were: the column's last word, the XML element's last word, the text key."""

BANKS = ("max", "high", "partial", "low", "none")
"""Levels of the remap reserve."""


def _derived() -> tuple[tuple[str, str, str], ...]:
    rows: list[tuple[str, str, str]] = []
    for word, path in REASONS.items():
        for xml, text in (("event", "Event"), ("throttle", "Throttle")):
            rows.append((f"clocks_{xml}_reasons/clocks_{xml}_reason_{word}", f"Clocks {text} Reasons/{path}", f"clocks_event_reasons.{word}"))
    for word, (xml, text) in COUNTERS.items():
        for side in ("event", "throttle"):
            prefix, title = f"clocks_{side}_reasons_counters", f"Clocks {side.title()} Reasons Counters"
            rows.append((f"{prefix}/{prefix}_{xml}", f"{title}/{text}", f"clocks_event_reasons_counters.{word}"))
    for word in BANKS:
        text = f"Remapped Rows/Bank Remap Availability Histogram/{word.title()}"
        rows.append((f"remapped_rows/row_remapper_histogram/row_remapper_histogram_{word}", text, f"remapped_rows.histogram.{word}"))
    return tuple(rows)


ALL = (*ROWS, *_derived())

XML: dict[str, str] = {xml: name for xml, _, name in ALL}
"""XML path below the card's element to field."""

TEXT: dict[tuple[str, ...], str] = {tuple(path.lower().split("/")): name for _, path, name in ALL}
"""Path of lower-case keys below the card's line to field."""
