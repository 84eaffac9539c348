# SPDX-License-Identifier: Apache-2.0
"""The dictionary: everything that can be said of a server, node, card, device or partition, with its unit, kind, home level, comparison and plausible range.

A key never changes its unit or meaning. Growth goes into the change notes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from muster.domain.model.units import NUMBERS, Unit


class Level(StrEnum):
    """What a thing is: the levels of the roll."""

    SERVER = "server"
    NODE = "node"
    CARD = "card"
    DEVICE = "device"
    PARTITION = "partition"


class Kind(StrEnum):
    """How an attribute behaves over time."""

    FACT = "fact"
    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class Compare:
    """How two witnesses are held to each other: ``exact``, ``normalised``, ``tolerance`` (relative), ``near`` (absolute, read close together), ``never``."""

    how: str
    by: float = 0.0

    def __str__(self) -> str:
        return f"{self.how}:{self.by:g}" if self.by else self.how


@dataclass(frozen=True, slots=True)
class Attribute:
    """One thing that can be said. ``low`` and ``high`` are in ``unit``; outside them a value is implausible."""

    key: str
    unit: Unit
    kind: Kind
    of: Level
    compare: Compare
    low: float | None
    high: float | None
    about: str

    @property
    def numeric(self) -> bool:
        """True when values are numbers."""
        return self.unit in NUMBERS


def _rows(*rows: tuple[str, str, str, str, str, float | None, float | None, str]) -> dict[str, Attribute]:
    return {key: Attribute(key, Unit(unit), Kind(kind), Level(of), _compare(how), low, high, about) for key, unit, kind, of, how, low, high, about in rows}


def _compare(text: str) -> Compare:
    how, _, by = text.partition(":")
    return Compare(how, float(by) if by else 0.0)


# fmt: off
ATTRIBUTES: dict[str, Attribute] = _rows(
    ("product.name", "text", "fact", "card", "normalised", None, None, "product name as the vendor's tool or firmware prints it, outer blanks trimmed"),
    ("product.part_number", "text", "fact", "card", "normalised", None, None, "board or module part number (or vendor model number where that is the ordering code)"),
    ("product.architecture", "text", "fact", "device", "normalised", None, None, "vendor's architecture word, lower case "),
    ("product.brand", "text", "fact", "card", "normalised", None, None, "marketing line where the tool gives one"),
    ("pci.vendor_id", "hex16", "fact", "device", "exact", None, None, "4 hex digits, lower case, no 0x"),
    ("pci.device_id", "hex16", "fact", "device", "exact", None, None, "4 hex digits; some tools print device id and vendor id as one word, device first"),
    ("pci.subsystem_vendor_id", "hex16", "fact", "device", "exact", None, None, ""),
    ("pci.subsystem_device_id", "hex16", "fact", "device", "exact", None, None, ""),
    ("pci.link.generation", "count", "gauge", "device", "never", 1, 8, "current; drops when idle"),
    ("pci.link.generation.max", "count", "fact", "device", "exact", 1, 8, "what device and slot can do together"),
    ("pci.link.width", "count", "gauge", "device", "never", 1, 32, "current lanes"),
    ("pci.link.width.max", "count", "fact", "device", "exact", 1, 32, ""),
    ("pci.replays", "count", "counter", "device", "never", 0, None, "PCIe replay counter"),
    ("pci.bandwidth.receive", "bytes_per_second", "gauge", "device", "never", 0, 20000000000000, ""),
    ("pci.bandwidth.transmit", "bytes_per_second", "gauge", "device", "never", 0, 20000000000000, ""),
    ("numa.node", "count", "fact", "device", "exact", 0, 1024, "-1 means none: absent"),
    ("firmware.version", "text", "fact", "card", "exact", None, None, "the one version an operator would compare (video BIOS, or chip or package firmware)"),
    ("firmware.components", "map", "fact", "card", "exact", None, None, "component name to version, vendor's own names"),
    ("driver.version", "text", "fact", "device", "exact", None, None, "kernel driver"),
    ("driver.name", "text", "fact", "device", "exact", None, None, ""),
    ("runtime.name", "text", "fact", "device", "exact", None, None, "the vendor's compute runtime"),
    ("runtime.version", "text", "fact", "device", "exact", None, None, "installed runtime where the source knows it"),
    ("runtime.version.max", "text", "fact", "device", "exact", None, None, "the highest the driver supports, not what is installed"),
    ("memory.total", "bytes", "fact", "device", "tolerance:0.05", 1024, 4398046511104, "usable device memory as the runtime counts it; never host memory"),
    ("memory.used", "bytes", "gauge", "device", "never", 0, 17592186044416, "without reserved memory where the source separates them"),
    ("memory.free", "bytes", "gauge", "device", "never", 0, 17592186044416, ""),
    ("memory.reserved", "bytes", "gauge", "device", "never", 0, 17592186044416, ""),
    ("memory.kind", "text", "fact", "device", "normalised", None, None, "hbm2e, hbm3, gddr6, lpddr5, ..., lower case"),
    ("memory.unified", "bool", "fact", "device", "exact", None, None, "true when the device has no memory of its own (integrated parts)"),
    ("memory.bandwidth.max", "bytes_per_second", "fact", "device", "tolerance:0.05", 0, 20000000000000, ""),
    ("compute.units", "count", "fact", "device", "exact", 0, None, "SMs, CUs, AI cores, tiles: the vendor's unit"),
    ("utilization.core", "ratio", "gauge", "device", "never", 0, 1, "share of time the compute engine was busy (vendor's overall figure)"),
    ("utilization.memory_bandwidth", "ratio", "gauge", "device", "never", 0, 1, "memory controller busy; not memory in use"),
    ("utilization.tensor", "ratio", "gauge", "device", "never", 0, 1, "matrix engine (tensor, cube, MFMA, systolic)"),
    ("utilization.vector", "ratio", "gauge", "device", "never", 0, 1, ""),
    ("utilization.encoder", "ratio", "gauge", "device", "never", 0, 1, ""),
    ("utilization.decoder", "ratio", "gauge", "device", "never", 0, 1, ""),
    ("power.draw", "watt", "gauge", "card", "never", 0, 5000, "instantaneous where the source has it, else what it has"),
    ("power.draw.average", "watt", "gauge", "card", "never", 0, 5000, ""),
    ("power.limit", "watt", "gauge", "card", "never", 0, 5000, "limit in force"),
    ("power.limit.default", "watt", "fact", "card", "tolerance:0.05", 0, 5000, ""),
    ("power.limit.min", "watt", "fact", "card", "tolerance:0.05", 0, 5000, ""),
    ("power.limit.max", "watt", "fact", "card", "tolerance:0.05", 0, 5000, ""),
    ("power.module", "watt", "gauge", "card", "never", 0, 20000, "whole module (CPU and GPU) where apart from the card"),
    ("energy.total", "joule", "counter", "card", "never", 0, None, ""),
    ("temperature.core", "celsius", "gauge", "device", "near:10", -40, 150, "chip temperature (edge or GPU temp)"),
    ("temperature.hotspot", "celsius", "gauge", "device", "never", -40, 150, "junction or hot spot"),
    ("temperature.memory", "celsius", "gauge", "device", "never", -40, 150, ""),
    ("temperature.board", "celsius", "gauge", "card", "never", -40, 150, ""),
    ("temperature.margin", "kelvin", "gauge", "device", "never", -150, 150, "distance to the slowdown point; never a temperature"),
    ("temperature.limit.slowdown", "celsius", "fact", "device", "tolerance:0.05", -40, 150, ""),
    ("temperature.limit.shutdown", "celsius", "fact", "device", "tolerance:0.05", -40, 150, ""),
    ("fan.speed", "ratio", "gauge", "card", "never", 0, 2, "0 rpm on a passive card is absent, not 0"),
    ("fan.rpm", "rpm", "gauge", "card", "never", 0, 60000, ""),
    ("clock.core", "hertz", "gauge", "device", "never", 0, 30000000000, ""),
    ("clock.core.max", "hertz", "fact", "device", "tolerance:0.05", 0, 30000000000, ""),
    ("clock.memory", "hertz", "gauge", "device", "never", 0, 30000000000, ""),
    ("clock.memory.max", "hertz", "fact", "device", "tolerance:0.05", 0, 30000000000, ""),
    ("voltage.core", "volt", "gauge", "device", "never", 0, 3, ""),
    ("performance.state", "text", "gauge", "device", "never", None, None, "P0..P15, LP1, Sleep: vendor's word"),
    ("throttle.reasons", "set", "gauge", "device", "never", None, None, "of: idle, user_clocks, power_cap, power_brake, thermal_software, thermal_hardware, hardware_slowdown, sync_boost, other"),
    ("ecc.enabled", "bool", "gauge", "device", "exact", None, None, "current mode"),
    ("errors.memory.corrected", "count", "counter", "device", "never", 0, None, "since driver load (volatile)"),
    ("errors.memory.uncorrected", "count", "counter", "device", "never", 0, None, "since driver load (volatile)"),
    ("errors.memory.corrected.lifetime", "count", "counter", "device", "never", 0, None, "aggregate"),
    ("errors.memory.uncorrected.lifetime", "count", "counter", "device", "never", 0, None, "aggregate"),
    ("errors.sram.uncorrected.lifetime", "count", "counter", "device", "never", 0, None, ""),
    ("errors.ras", "map", "counter", "device", "never", None, None, "block to {corrected, uncorrected, deferred}"),
    ("memory.pages_retired", "count", "counter", "device", "never", 0, None, "retired, bad or isolated pages, all causes"),
    ("memory.pages_retired.pending", "bool", "gauge", "device", "never", None, None, ""),
    ("memory.rows_remapped.corrected", "count", "counter", "device", "never", 0, None, ""),
    ("memory.rows_remapped.uncorrected", "count", "counter", "device", "never", 0, None, ""),
    ("memory.remap.pending", "bool", "gauge", "device", "never", None, None, ""),
    ("memory.remap.failed", "bool", "gauge", "device", "never", None, None, ""),
    ("link.peers", "map", "gauge", "device", "never", None, None, "peer device to link kind as the vendor words it"),
    ("link.total", "count", "fact", "device", "exact", 0, 1024, "fast links the part has"),
    ("link.active", "count", "gauge", "device", "never", 0, 1024, "fast links that are up"),
    ("link.errors", "map", "counter", "device", "never", None, None, "kind to count (replay, recovery, crc)"),
    ("fabric.domain", "text", "fact", "device", "exact", None, None, "cluster uuid and clique, super-pod, hive: cards that share a fast fabric"),
    ("fabric.state", "text", "gauge", "device", "never", None, None, "vendor's word"),
    ("network.state", "text", "gauge", "device", "never", None, None, "up, down, unknown: the accelerator's own network port"),
    ("partition.mode", "text", "gauge", "device", "never", None, None, "none, mig, spx, dpx, cpx, vnpu, drs, ...: mode in force"),
    ("partition.mode.pending", "text", "gauge", "device", "never", None, None, "differs from the mode when a reset is due"),
    ("partition.memory_mode", "text", "gauge", "device", "never", None, None, "nps1, nps4, ..."),
    ("partition.profile", "text", "fact", "partition", "normalised", None, None, "1g.10gb, vir04, ..."),
    ("virtualization.mode", "text", "fact", "device", "exact", None, None, "none, passthrough, vgpu_host, vgpu_guest, vf, pf"),
    ("health.vendor", "text", "gauge", "device", "never", None, None, "the vendor's own word or number, unchanged"),
    ("health.reported", "enum", "gauge", "device", "exact", None, None, "ok, warning, critical, unknown: what the vendor's word means"),
    ("fault.codes", "set", "gauge", "device", "never", None, None, "codes standing now, vendor's spelling"),
    ("recovery.action", "enum", "gauge", "device", "never", None, None, "none, reset, reboot, drain, drain_and_reset, other"),
    ("processes", "list", "gauge", "device", "never", None, None, "pid, name, memory.used (bytes), kind; pid of the namespace where it was read"),
    ("allocation.holders", "list", "gauge", "device", "never", None, None, "who holds it by the cluster's word: namespace, pod, container, claim"),
    ("memory.used.ratio", "ratio", "gauge", "device", "never", 0, 1, "occupancy where the source gives only that"),
    ("memory.remap.banks", "map", "gauge", "device", "never", None, None, "remap reserve by level (max, high, partial, low, none)"),
    ("errors.sram.corrected", "count", "counter", "device", "never", 0, None, ""),
    ("errors.sram.uncorrected", "count", "counter", "device", "never", 0, None, ""),
    ("throttle.time", "map", "counter", "device", "never", None, None, "reason to seconds since a reset of the counter"),
    ("temperature.memory.limit.slowdown", "celsius", "fact", "device", "tolerance:0.05", -40, 150, ""),
    ("temperature.memory.limit.shutdown", "celsius", "fact", "device", "tolerance:0.05", -40, 150, ""),
    ("power.module.limit", "watt", "gauge", "card", "never", 0, 20000, ""),
    ("clock.video", "hertz", "gauge", "device", "never", 0, 30000000000, ""),
    ("utilization.jpeg", "ratio", "gauge", "device", "never", 0, 1, ""),
    ("utilization.ofa", "ratio", "gauge", "device", "never", 0, 1, ""),
    ("utilization.units", "list", "gauge", "device", "never", None, None, "per engine, core or partition slot, in the vendor's order"),
    ("voltage.memory", "volt", "gauge", "device", "never", 0, 60, ""),
    ("voltage.soc", "volt", "gauge", "device", "never", 0, 60, ""),
    ("compute.capability", "text", "fact", "device", "exact", None, None, "instruction-set level as the runtime names it"),
    ("link.speed", "bytes_per_second", "gauge", "device", "never", 0, 20000000000000, "of one fast link"),
    ("link.bytes.received", "bytes", "counter", "device", "never", 0, None, ""),
    ("link.bytes.transmitted", "bytes", "counter", "device", "never", 0, None, ""),
    ("fabric.health", "map", "gauge", "device", "never", None, None, "part to the vendor's word"),
    ("fault.last_code", "text", "gauge", "device", "never", None, None, "last code the source remembers; never a present state"),
    ("pci.class", "text", "fact", "device", "exact", None, None, "six hex digits or fewer as given"),
    ("platform.slot", "text", "fact", "card", "normalised", None, None, "slot, tray and module of the chassis as the vendor says it"),
    ("partition.memory.limit", "bytes", "fact", "partition", "tolerance:0.05", 0, 17592186044416, ""),
    ("partition.compute.share", "ratio", "fact", "partition", "exact", 0, 1, ""),
    ("power.state", "text", "gauge", "device", "never", None, None, "on, suspended, off"),
    ("node.name", "text", "fact", "node", "exact", None, None, "host name as the system gives it; not an identity"),
    ("node.machine_id", "text", "fact", "node", "exact", None, None, "/etc/machine-id or the like; cloned images share it"),
    ("node.boot_id", "text", "fact", "node", "exact", None, None, ""),
    ("node.kernel", "text", "fact", "node", "exact", None, None, ""),
    ("node.os", "text", "fact", "node", "exact", None, None, ""),
    ("node.cpu.count", "count", "fact", "node", "exact", 0, None, ""),
    ("node.memory.total", "bytes", "fact", "node", "tolerance:0.05", 0, 17592186044416, ""),
    ("node.agent.version", "text", "fact", "node", "exact", None, None, "version of the reporter"),
    ("server.manufacturer", "text", "fact", "server", "normalised", None, None, ""),
    ("server.model", "text", "fact", "server", "normalised", None, None, ""),
    ("server.serial", "text", "fact", "server", "exact", None, None, "chassis serial; nodes of one chassis may share it"),
    ("server.uuid", "text", "fact", "server", "exact", None, None, "SMBIOS or Redfish system UUID"),
    ("server.bmc.version", "text", "fact", "server", "exact", None, None, "BMC firmware"),
    ("server.power.draw", "watt", "gauge", "server", "never", 0, 100000, "whole server"),
    ("server.health.vendor", "text", "gauge", "server", "never", None, None, "BMC's roll-up word"),
    ("asset.site", "text", "fact", "server", "never", None, None, "operator"),
    ("asset.rack", "text", "fact", "server", "never", None, None, "operator"),
    ("asset.position", "text", "fact", "server", "never", None, None, "height unit in the rack; operator"),
    ("asset.owner", "text", "fact", "card", "never", None, None, "operator"),
    ("asset.contact", "text", "fact", "card", "never", None, None, "operator"),
    ("asset.tag", "text", "fact", "card", "never", None, None, "operator"),
    ("asset.warranty_until", "date", "fact", "card", "never", None, None, "operator"),
    ("asset.maintenance", "text", "fact", "card", "never", None, None, "operator: none, planned, in_repair (stored and retired are presence, not an attribute)"),
    ("compute.formats", "set", "fact", "device", "exact", None, None, "number formats the part computes: fp64, fp32, tf32, bf16, fp16, fp8, fp4, int8, int4"),
    ("memory.pages_retired.next", "count", "counter", "device", "never", 0, None, "pages that will be isolated at the next reset"),
    ("temperature.ambient", "celsius", "gauge", "card", "never", -40, 150, ""),
    ("power.memory", "watt", "gauge", "device", "never", 0, 5000, ""),
    ("runtime.library.version", "text", "fact", "device", "exact", None, None, "version of the vendor's management library that answered"),
)
# fmt: on

# what a partition says of itself; every other reading told under a partition is its card's, said again
PARTITION_OWN = frozenset(
    {
        "memory.total",
        "memory.used",
        "memory.free",
        "memory.reserved",
        "memory.used.ratio",
        "compute.units",
        "utilization.core",
        "utilization.memory_bandwidth",
        "utilization.tensor",
        "utilization.vector",
        "utilization.units",
        "partition.profile",
        "partition.memory.limit",
        "partition.compute.share",
        "processes",
        "allocation.holders",
        "errors.sram.uncorrected",
        "health.vendor",
        "health.reported",
    }
)


def attribute(key: str) -> Attribute | None:
    """The entry for ``key``, or None when the dictionary has none."""
    return ATTRIBUTES.get(key)
