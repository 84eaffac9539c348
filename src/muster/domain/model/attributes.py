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
    ("product.name", "text", "fact", "card", "normalised", None, None, "The name of the product, as the maker's tool or the firmware writes it, without blanks at its ends."),
    ("product.part_number", "text", "fact", "card", "normalised", None, None, "Part number of the board or module. Where a maker orders by model number, that one."),
    ("product.architecture", "text", "fact", "device", "normalised", None, None, "What the maker calls the architecture, in lower case."),
    ("product.brand", "text", "fact", "card", "normalised", None, None, "The line under which it is sold, if a tool says so."),
    ("pci.vendor_id", "hex16", "fact", "device", "exact", None, None, "PCI vendor: four hex digits in lower case, without 0x."),
    ("pci.device_id", "hex16", "fact", "device", "exact", None, None, "PCI device: four hex digits. A tool that prints eight in one word puts the device before the vendor."),
    ("pci.subsystem_vendor_id", "hex16", "fact", "device", "exact", None, None, "Who built the board, by its PCI subsystem."),
    ("pci.subsystem_device_id", "hex16", "fact", "device", "exact", None, None, "Which board it is, by its PCI subsystem."),
    ("pci.link.generation", "count", "gauge", "device", "never", 1, 8, "PCIe generation of now. An idle device goes lower."),
    ("pci.link.generation.max", "count", "fact", "device", "exact", 1, 8, "The best generation that the slot and the device reach with each other."),
    ("pci.link.width", "count", "gauge", "device", "never", 1, 32, "Lanes in use now."),
    ("pci.link.width.max", "count", "fact", "device", "exact", 1, 32, "The most lanes that the slot and the device reach with each other."),
    ("pci.replays", "count", "counter", "device", "never", 0, None, "How often a PCIe packet was sent again."),
    ("pci.bandwidth.receive", "bytes_per_second", "gauge", "device", "never", 0, 20000000000000, "Bytes a second that come in over PCIe."),
    ("pci.bandwidth.transmit", "bytes_per_second", "gauge", "device", "never", 0, 20000000000000, "Bytes a second that go out over PCIe."),
    ("numa.node", "count", "fact", "device", "exact", 0, 1024, "The nearest NUMA node. A tool's -1 says that there is none, and is an absence here."),
    ("firmware.version", "text", "fact", "card", "exact", None, None, "Of all versions the one by which cards are compared: that of the video BIOS, or else of the chip's or package's firmware."),
    ("firmware.components", "map", "fact", "card", "exact", None, None, "Version of each component, under the name that the maker gives it."),
    ("driver.version", "text", "fact", "device", "exact", None, None, "Version of the driver in the kernel."),
    ("driver.name", "text", "fact", "device", "exact", None, None, "Name of the driver in the kernel."),
    ("runtime.name", "text", "fact", "device", "exact", None, None, "Which runtime of the maker programs compute with."),
    ("runtime.version", "text", "fact", "device", "exact", None, None, "The runtime that is installed, when a source can tell."),
    ("runtime.version.max", "text", "fact", "device", "exact", None, None, "The newest runtime that this driver can serve; what is installed may be older."),
    ("memory.total", "bytes", "fact", "device", "tolerance:0.05", 1024, 4398046511104, "Device memory that programs can use, by the runtime's count. Memory of the host is never in it."),
    ("memory.used", "bytes", "gauge", "device", "never", 0, 17592186044416, "Memory in use. A source that knows the reserved part leaves it out."),
    ("memory.free", "bytes", "gauge", "device", "never", 0, 17592186044416, "Memory that a program could still get."),
    ("memory.reserved", "bytes", "gauge", "device", "never", 0, 17592186044416, "Memory that driver and firmware keep for themselves."),
    ("memory.kind", "text", "fact", "device", "normalised", None, None, "Sort of memory in lower case, such as hbm3, hbm2e, lpddr5 or gddr6."),
    ("memory.unified", "bool", "fact", "device", "exact", None, None, "True for an integrated part, which shares the host's memory and owns none."),
    ("memory.bandwidth.max", "bytes_per_second", "fact", "device", "tolerance:0.05", 0, 20000000000000, "Bytes a second that the memory can move at best."),
    ("compute.units", "count", "fact", "device", "exact", 0, None, "How many units it computes with, in the maker's own measure: CUs, SMs, tiles, AI cores."),
    ("utilization.core", "ratio", "gauge", "device", "never", 0, 1, "How much of the time the device computed, by the figure that the maker gives for the whole."),
    ("utilization.memory_bandwidth", "ratio", "gauge", "device", "never", 0, 1, "How much of the time the memory controller worked. How full the memory is stands elsewhere."),
    ("utilization.tensor", "ratio", "gauge", "device", "never", 0, 1, "How busy the matrix engine is, be it called tensor, MFMA, cube or systolic."),
    ("utilization.vector", "ratio", "gauge", "device", "never", 0, 1, "How busy the vector engine is."),
    ("utilization.encoder", "ratio", "gauge", "device", "never", 0, 1, "How busy the video encoder is."),
    ("utilization.decoder", "ratio", "gauge", "device", "never", 0, 1, "How busy the video decoder is."),
    ("power.draw", "watt", "gauge", "card", "never", 0, 5000, "Power of this moment, or the nearest to it that a source offers."),
    ("power.draw.average", "watt", "gauge", "card", "never", 0, 5000, "Power over a short while, smoothed by the device."),
    ("power.limit", "watt", "gauge", "card", "never", 0, 5000, "The limit that holds now."),
    ("power.limit.default", "watt", "fact", "card", "tolerance:0.05", 0, 5000, "The limit with which it left the factory."),
    ("power.limit.min", "watt", "fact", "card", "tolerance:0.05", 0, 5000, "The lowest limit that can be set."),
    ("power.limit.max", "watt", "fact", "card", "tolerance:0.05", 0, 5000, "The highest limit that can be set."),
    ("power.module", "watt", "gauge", "card", "never", 0, 20000, "Power of a module that holds CPU and GPU, when it is told besides the card's own."),
    ("energy.total", "joule", "counter", "card", "never", 0, None, "Energy used since the counter began."),
    ("temperature.core", "celsius", "gauge", "device", "near:10", -40, 150, "Temperature of the chip; tools say edge, or GPU temperature."),
    ("temperature.hotspot", "celsius", "gauge", "device", "never", -40, 150, "Temperature at the hottest place of the chip; tools say hot spot, or junction."),
    ("temperature.memory", "celsius", "gauge", "device", "never", -40, 150, "Temperature of the memory."),
    ("temperature.board", "celsius", "gauge", "card", "never", -40, 150, "Temperature of the board."),
    ("temperature.margin", "kelvin", "gauge", "device", "never", -150, 150, "Degrees left until it slows down. A difference, so it is not shown as a temperature."),
    ("temperature.limit.slowdown", "celsius", "fact", "device", "tolerance:0.05", -40, 150, "The chip slows down from here on."),
    ("temperature.limit.shutdown", "celsius", "fact", "device", "tolerance:0.05", -40, 150, "The chip switches off from here on."),
    ("fan.speed", "ratio", "gauge", "card", "never", 0, 2, "Share of full speed. A card without a fan that prints 0 rpm has an absence here."),
    ("fan.rpm", "rpm", "gauge", "card", "never", 0, 60000, "Turns of the fan in a minute."),
    ("clock.core", "hertz", "gauge", "device", "never", 0, 30000000000, "Clock of the compute engine, now."),
    ("clock.core.max", "hertz", "fact", "device", "tolerance:0.05", 0, 30000000000, "The highest clock of the compute engine."),
    ("clock.memory", "hertz", "gauge", "device", "never", 0, 30000000000, "Clock of the memory, now."),
    ("clock.memory.max", "hertz", "fact", "device", "tolerance:0.05", 0, 30000000000, "The highest clock of the memory."),
    ("voltage.core", "volt", "gauge", "device", "never", 0, 3, "Voltage at the chip."),
    ("performance.state", "text", "gauge", "device", "never", None, None, "How the maker names its state of performance: Sleep, LP1, P0 to P15."),
    ("throttle.reasons", "set", "gauge", "device", "never", None, None, "What holds the clock down. Words: idle, user_clocks, power_cap, power_brake, thermal_software, thermal_hardware, hardware_slowdown, sync_boost, other."),
    ("ecc.enabled", "bool", "gauge", "device", "exact", None, None, "Whether error correction is on now."),
    ("errors.memory.corrected", "count", "counter", "device", "never", 0, None, "Memory errors put right since the driver was loaded."),
    ("errors.memory.uncorrected", "count", "counter", "device", "never", 0, None, "Memory errors past repair since the driver was loaded."),
    ("errors.memory.corrected.lifetime", "count", "counter", "device", "never", 0, None, "Memory errors put right over the life of the device."),
    ("errors.memory.uncorrected.lifetime", "count", "counter", "device", "never", 0, None, "Memory errors past repair over the life of the device."),
    ("errors.sram.uncorrected.lifetime", "count", "counter", "device", "never", 0, None, "Errors of caches and registers past repair, over the life of the device."),
    ("errors.ras", "map", "counter", "device", "never", None, None, "Errors of each hardware block: how many corrected, uncorrected and deferred."),
    ("memory.pages_retired", "count", "counter", "device", "never", 0, None, "Pages taken out of use, whatever the cause: retired, isolated or bad."),
    ("memory.pages_retired.pending", "bool", "gauge", "device", "never", None, None, "True when pages wait for a reset to be taken out of use."),
    ("memory.rows_remapped.corrected", "count", "counter", "device", "never", 0, None, "Rows replaced by spare ones after errors that could be put right."),
    ("memory.rows_remapped.uncorrected", "count", "counter", "device", "never", 0, None, "Rows replaced by spare ones after errors past repair."),
    ("memory.remap.pending", "bool", "gauge", "device", "never", None, None, "True when rows wait for a reset to be replaced."),
    ("memory.remap.failed", "bool", "gauge", "device", "never", None, None, "True when a row could not be replaced."),
    ("link.peers", "map", "gauge", "device", "never", None, None, "For each other device the kind of link to it, in the maker's words."),
    ("link.total", "count", "fact", "device", "exact", 0, 1024, "How many fast links this part was built with."),
    ("link.active", "count", "gauge", "device", "never", 0, 1024, "How many of the fast links work now."),
    ("link.errors", "map", "counter", "device", "never", None, None, "Errors on fast links, counted by kind: crc, replay, recovery."),
    ("fabric.domain", "text", "fact", "device", "exact", None, None, "Which cards are joined by one fast fabric: a hive, a super-pod, or a clique with its cluster's uuid."),
    ("fabric.state", "text", "gauge", "device", "never", None, None, "How the fabric is, in the maker's word."),
    ("network.state", "text", "gauge", "device", "never", None, None, "Whether the port that the accelerator itself has on a network is up or down, or unknown."),
    ("partition.mode", "text", "gauge", "device", "never", None, None, "How the device is cut now: none, mig, vnpu, drs, or spx, dpx, cpx and the like."),
    ("partition.mode.pending", "text", "gauge", "device", "never", None, None, "The mode after the next reset. It is another one than the present mode while that reset is awaited."),
    ("partition.memory_mode", "text", "gauge", "device", "never", None, None, "How memory is cut: nps1, nps4 and so on."),
    ("partition.profile", "text", "fact", "partition", "normalised", None, None, "Size of a partition in the maker's notation: vir04, 1g.10gb."),
    ("virtualization.mode", "text", "fact", "device", "exact", None, None, "Its part in virtualization: pf, vf, vgpu_guest, vgpu_host, passthrough, or none."),
    ("health.vendor", "text", "gauge", "device", "never", None, None, "Health exactly as the maker's tool puts it, be it a word or a number."),
    ("health.reported", "enum", "gauge", "device", "exact", None, None, "The maker's health read in common words: ok, warning, critical, or unknown."),
    ("fault.codes", "set", "gauge", "device", "never", None, None, "Codes of faults that stand at this moment, spelled as the maker spells them."),
    ("recovery.action", "enum", "gauge", "device", "never", None, None, "What the maker advises: none, reset, reboot, drain, drain_and_reset, or other."),
    ("processes", "list", "gauge", "device", "never", None, None, "Programs on the device, each with pid, name, kind, and memory.used in bytes. The pid counts in the namespace of the reader."),
    ("allocation.holders", "list", "gauge", "device", "never", None, None, "To whom the cluster gave it: claim, pod, container and namespace."),
    ("memory.used.ratio", "ratio", "gauge", "device", "never", 0, 1, "How full the memory is, from sources that print no bytes."),
    ("memory.remap.banks", "map", "gauge", "device", "never", None, None, "How many banks have a reserve of spare rows that is max, high, partial, low or none."),
    ("errors.sram.corrected", "count", "counter", "device", "never", 0, None, "Errors of caches and registers put right."),
    ("errors.sram.uncorrected", "count", "counter", "device", "never", 0, None, "Errors of caches and registers past repair."),
    ("throttle.time", "map", "counter", "device", "never", None, None, "Seconds that each reason held the clock down, from the counter's last reset on."),
    ("temperature.memory.limit.slowdown", "celsius", "fact", "device", "tolerance:0.05", -40, 150, "The device slows down when its memory is this hot."),
    ("temperature.memory.limit.shutdown", "celsius", "fact", "device", "tolerance:0.05", -40, 150, "The device switches off when its memory is this hot."),
    ("power.module.limit", "watt", "gauge", "card", "never", 0, 20000, "The limit that holds for a module with CPU and GPU."),
    ("clock.video", "hertz", "gauge", "device", "never", 0, 30000000000, "Clock of the video engines, now."),
    ("utilization.jpeg", "ratio", "gauge", "device", "never", 0, 1, "How busy the JPEG engine is."),
    ("utilization.ofa", "ratio", "gauge", "device", "never", 0, 1, "How busy the optical flow engine is."),
    ("utilization.units", "list", "gauge", "device", "never", None, None, "How busy each core, engine or slot of a partition is, in the order that the maker lists them."),
    ("voltage.memory", "volt", "gauge", "device", "never", 0, 60, "Voltage at the memory."),
    ("voltage.soc", "volt", "gauge", "device", "never", 0, 60, "Voltage of what stands around the compute engine on the chip."),
    ("compute.capability", "text", "fact", "device", "exact", None, None, "Level of the instruction set, under the runtime's name for it."),
    ("link.speed", "bytes_per_second", "gauge", "device", "never", 0, 20000000000000, "Bytes a second over a single fast link."),
    ("link.bytes.received", "bytes", "counter", "device", "never", 0, None, "Bytes that came in over fast links."),
    ("link.bytes.transmitted", "bytes", "counter", "device", "never", 0, None, "Bytes that went out over fast links."),
    ("fabric.health", "map", "gauge", "device", "never", None, None, "How each part of the fabric is, in the maker's words."),
    ("fault.last_code", "text", "gauge", "device", "never", None, None, "The latest code in the memory of a source. It tells of the past, not of now."),
    ("pci.class", "text", "fact", "device", "exact", None, None, "PCI class: up to six hex digits, as many as the source printed."),
    ("platform.slot", "text", "fact", "card", "normalised", None, None, "Where in the chassis it sits, in the maker's terms: tray, slot, module."),
    ("partition.memory.limit", "bytes", "fact", "partition", "tolerance:0.05", 0, 17592186044416, "The most memory that this partition may use."),
    ("partition.compute.share", "ratio", "fact", "partition", "exact", 0, 1, "The share of the device's compute that this partition may use."),
    ("power.state", "text", "gauge", "device", "never", None, None, "Whether it is on, off or suspended."),
    ("node.name", "text", "fact", "node", "exact", None, None, "What the system calls its host. Names change, so nothing is identified by it alone."),
    ("node.machine_id", "text", "fact", "node", "exact", None, None, "The id of an installed system, on Linux from /etc/machine-id. Copies of one image have the same."),
    ("node.boot_id", "text", "fact", "node", "exact", None, None, "A new one with each boot."),
    ("node.kernel", "text", "fact", "node", "exact", None, None, "Release of the kernel."),
    ("node.os", "text", "fact", "node", "exact", None, None, "Name and version of the operating system."),
    ("node.cpu.count", "count", "fact", "node", "exact", 0, None, "Processors that the system counts."),
    ("node.memory.total", "bytes", "fact", "node", "tolerance:0.05", 0, 17592186044416, "Memory of the host."),
    ("node.agent.version", "text", "fact", "node", "exact", None, None, "Which version of the agent reported."),
    ("server.manufacturer", "text", "fact", "server", "normalised", None, None, "Who built the server."),
    ("server.model", "text", "fact", "server", "normalised", None, None, "The server's model, by its maker."),
    ("server.serial", "text", "fact", "server", "exact", None, None, "Serial of the chassis. A chassis with several nodes may give all of them the same."),
    ("server.uuid", "text", "fact", "server", "exact", None, None, "UUID of the system, from SMBIOS or by Redfish."),
    ("server.bmc.version", "text", "fact", "server", "exact", None, None, "Which firmware the management controller runs."),
    ("server.power.draw", "watt", "gauge", "server", "never", 0, 100000, "Power of the server with everything in it."),
    ("server.health.vendor", "text", "gauge", "server", "never", None, None, "The management controller's own word for the server as a whole."),
    ("asset.site", "text", "fact", "server", "never", None, None, "At which site it is. An operator says so."),
    ("asset.rack", "text", "fact", "server", "never", None, None, "In which rack it is. An operator says so."),
    ("asset.position", "text", "fact", "server", "never", None, None, "At which height unit of its rack it is. An operator says so."),
    ("asset.owner", "text", "fact", "card", "never", None, None, "Whose it is. An operator says so."),
    ("asset.contact", "text", "fact", "card", "never", None, None, "Whom to ask. An operator says so."),
    ("asset.tag", "text", "fact", "card", "never", None, None, "Number on the label of the organisation. An operator says so."),
    ("asset.warranty_until", "date", "fact", "card", "never", None, None, "Last day of the warranty. An operator says so."),
    ("asset.maintenance", "text", "fact", "card", "never", None, None, "Work on it: none, planned or in_repair. An operator says so. That it is stored or retired is its presence, and not said here."),
    ("compute.formats", "set", "fact", "device", "exact", None, None, "Formats of numbers that it computes with, out of int4, int8, fp4, fp8, fp16, bf16, tf32, fp32 and fp64."),
    ("memory.pages_retired.next", "count", "counter", "device", "never", 0, None, "Pages that go out of use with the next reset."),
    ("temperature.ambient", "celsius", "gauge", "card", "never", -40, 150, "Temperature of the air around the board."),
    ("power.memory", "watt", "gauge", "device", "never", 0, 5000, "Power of the memory."),
    ("runtime.library.version", "text", "fact", "device", "exact", None, None, "Version of the maker's management library, the one that gave the answer."),
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
