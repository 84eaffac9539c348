# SPDX-License-Identifier: Apache-2.0
"""What the driver's files say of a card: the device folder, its sensors, its error counters, its firmware list."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from muster.adapters.amd.observe_metric import core_voltage
from muster.adapters.amd.parse_sysfs import Files, one
from muster.adapters.amd.values import generation, hex_id, measure, scale, text_reading, whole, word
from muster.domain.model.gather import Gather, Thing
from muster.domain.model.names import pci_address
from muster.domain.model.reading import Absent, Known, Reading, Why

_FOLDERS = (
    re.compile(r"^((?:.*/)?card\d+/device)/(.+)$"),
    re.compile(r"^(.*/[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])/(.+)$"),
    re.compile(r"^(.*?/?)((?:ras|hwmon)/.+)$"),
    re.compile(r"^((?:.*/)?dri/[^/]+|)/?(amdgpu_firmware_info)$"),
)
_OURS = re.compile(r"^(?:mem_info_|pp_dpm_|gpu_busy_percent|ras/|unique_id$|amdgpu_firmware_info)")
_LEVEL = re.compile(r"^(\w+):\s*(\d+)\s*[Mm][Hh]z\s*(\*?)")
_FIRMWARE = re.compile(r"^(.+?) feature version: \d+, firmware version: (0x[0-9a-fA-F]+)")
_PAGE = re.compile(r"^(0x[0-9a-fA-F]+)\s*:\s*0x[0-9a-fA-F]+\s*:\s*([RPF])\b")
_SENSORS = {"edge": "temperature.core", "junction": "temperature.hotspot", "mem": "temperature.memory"}
_STAND_INS = ("0123456789abcdef", "123456789abcdef0")
_KEPT = (
    "revision",
    "pcie_bw",
    "thermal_throttling_logging",
    "power_dpm_force_performance_level",
    "mem_info_vram_vendor",
    "mem_info_gtt_total",
    "mem_info_vis_vram_total",
    "available_compute_partition",
    "boot_vga",
    "class",
)


def observe(gather: Gather, found: Files, *, cut: bool = False) -> None:
    """Puts every card of this maker in the files into ``gather``; its key is its PCI address, or its folder where none is known."""
    folders: dict[str, Files] = defaultdict(dict)
    for path, rows in found.items():
        match = next((m for pattern in _FOLDERS if (m := pattern.match(path))), None)
        if match is not None:
            folders[match.group(1).rstrip("/")][match.group(2)] = rows
    version = next((rows[0] for path, rows in found.items() if path.endswith("/module/amdgpu/version") and rows and not rows[0].startswith("!")), None)
    for folder, files in folders.items():
        if not _is_ours(files):
            continue
        address = _address(folder, files)
        card = gather.card(address or f"folder {folder}")
        _card(card, files, address, cut=cut)
        card.value("driver.version", version)


def _is_ours(files: Files) -> bool:
    """True by the vendor id, else by the driver, else, where neither was read, by files that only this driver has."""
    vendor, events = one(files, "vendor"), files.get("uevent")
    if vendor and not vendor.startswith("!"):
        return vendor.lower() == "0x1002"
    if events and not events[0].startswith("!"):
        return any(row.upper().startswith("PCI_ID=1002:") or row == "DRIVER=amdgpu" for row in events)
    return any(_OURS.match(path) for path in files)


def _address(folder: str, files: Files) -> str | None:
    slot = next((row.partition("=")[2] for row in files.get("uevent", ()) if row.startswith("PCI_SLOT_NAME=")), None)
    return pci_address(slot or folder.rpartition("/")[2])


def _value(files: Files, path: str) -> str | Absent | None:
    """A file's line; an absence where it could not be read or is blank; None where it was not there."""
    text = one(files, path)
    if text is None:
        return None
    if text.startswith("!"):
        return Absent(_why(text), text[1:])
    return text if text.strip() else Absent(Why.NOT_SUPPORTED, "blank")


def _why(mark: str) -> Why:
    """What the reader's mark of a file that it could not read means."""
    word_ = (mark[1:].split() or [""])[0]
    return Why(word_) if word_ in set(Why) else Why.ERROR


def _text(files: Files, path: str, *, lower: bool = False) -> Reading | None:
    value = _value(files, path)
    return value if isinstance(value, Absent) else text_reading(value, lower=lower)


def _measured(files: Files, path: str, key: str, unit: str = "") -> Reading | None:
    value = _value(files, path)
    return value if isinstance(value, Absent) else measure(key, value, unit)


def _card(card: Thing, files: Files, address: str | None, *, cut: bool) -> None:
    unique, serial = word(one(files, "unique_id")), word(one(files, "serial_number"))
    card.named(pci_address=address, vendor_uuid=None if unique is None or unique.lower() in _STAND_INS or unique.startswith("!") else unique)
    card.named(serial=None if serial is None or serial.startswith("!") else serial)
    if serial is not None and serial.strip("0!"):
        card.tell("product_serial", serial)
    _identity(card, files)
    _bus(card, files)
    _load(card, files)
    _clocks(card, files)
    _sensors(card, files, cut=cut)
    _errors(card, files)
    _firmware(card, files)
    for name in _KEPT:
        if (text := one(files, name)) is not None:
            card.tell(name, text)


def _identity(card: Thing, files: Files) -> None:
    card.put("product.name", _text(files, "product_name"))
    card.put("product.part_number", _text(files, "product_number"))
    for key, path in (
        ("vendor_id", "vendor"),
        ("device_id", "device"),
        ("subsystem_vendor_id", "subsystem_vendor"),
        ("subsystem_device_id", "subsystem_device"),
    ):
        value = _value(files, path)
        card.put(f"pci.{key}", value if isinstance(value, Absent) else hex_id(value))
    card.put("pci.class", _text(files, "class"))
    driver = next((row.partition("=")[2] for row in files.get("uevent", ()) if row.startswith("DRIVER=")), None)
    card.value("driver.name", driver)
    card.put("firmware.version", _text(files, "vbios_version"))
    for key, path in (("partition.mode", "current_compute_partition"), ("partition.memory_mode", "current_memory_partition")):
        card.put(key, _text(files, path, lower=True))


def _bus(card: Thing, files: Files) -> None:
    for key, path in (("generation", "current_link_speed"), ("generation.max", "max_link_speed")):
        value = _value(files, path)
        card.put(f"pci.link.{key}", value if isinstance(value, Absent) else generation(value))
    card.put("pci.link.width", _measured(files, "current_link_width", "pci.link.width"))
    card.put("pci.link.width.max", _measured(files, "max_link_width", "pci.link.width.max"))
    card.put("pci.replays", _measured(files, "pcie_replay_count", "pci.replays"))
    node = whole(one(files, "numa_node"))
    card.put("numa.node", Absent(Why.NOT_PRESENT, str(node)) if node is not None and node < 0 else _measured(files, "numa_node", "numa.node"))


def _load(card: Thing, files: Files) -> None:
    total = _measured(files, "mem_info_vram_total", "memory.total", "B")
    card.put("memory.total", Absent(Why.NOT_SUPPORTED, "0") if isinstance(total, Known) and total.value == 0 else total)
    card.put("memory.used", _measured(files, "mem_info_vram_used", "memory.used", "B"))
    card.put("utilization.core", _measured(files, "gpu_busy_percent", "utilization.core", "%"))
    card.put("utilization.memory_bandwidth", _measured(files, "mem_busy_percent", "utilization.memory_bandwidth", "%"))
    state = one(files, "power_state")
    if state and not state.startswith("!"):
        card.value("power.state", "on" if state == "D0" else "suspended" if state.startswith("D") else state.lower())


def _clocks(card: Thing, files: Files) -> None:
    for path, key in (("pp_dpm_sclk", "clock.core"), ("pp_dpm_mclk", "clock.memory")):
        levels = [match for row in files.get(path, ()) if (match := _LEVEL.match(row))]
        active = next((match for match in levels if match.group(3)), None)
        if active is not None:
            card.put(key, measure(key, active.group(2), "MHz"))
        odd = next((row for row in files.get(path, ()) if not _LEVEL.match(row) and re.match(r"\d+:", row)), None)
        if odd is not None:
            card.absent(f"{key}.max", Why.UNREADABLE, odd[:80])
        elif levels and not any(row.startswith("!") for row in files[path]):
            card.put(f"{key}.max", measure(f"{key}.max", str(max(int(match.group(2)[:9]) for match in levels)), "MHz"))


def _sensors(card: Thing, files: Files, *, cut: bool) -> None:
    """Sensors of the folder's own hardware monitor; names and numbers belong together."""
    monitors: dict[str, Files] = defaultdict(dict)
    for path, rows in files.items():
        match = re.match(r"^hwmon/(hwmon\d+)/(.+)$", path)
        if match:
            monitors[match.group(1)][match.group(2)] = rows
    for sensors in monitors.values():
        _power(card, sensors, cut=cut)
        _heat(card, sensors)
        _rest(card, sensors)


def _power(card: Thing, sensors: Files, *, cut: bool) -> None:
    """Power now, and where there is no such file the average; a text that ends before it says nothing of that."""
    card.put("power.draw", _measured(sensors, "power1_input", "power.draw", "uW"))
    average = _measured(sensors, "power1_average", "power.draw.average", "uW")
    card.put("power.draw.average", average)
    if not cut or "temp1_input" in sensors:
        card.put("power.draw", average)
    for key, path in (("", "power1_cap"), (".max", "power1_cap_max"), (".min", "power1_cap_min"), (".default", "power1_cap_default")):
        card.put(f"power.limit{key}", _measured(sensors, path, f"power.limit{key}", "uW"))
    card.put("energy.total", _measured(sensors, "energy1_input", "energy.total", "uJ"))


def _heat(card: Thing, sensors: Files) -> None:
    for path in sensors:
        match = re.match(r"^temp(\d+)_input$", path)
        if match is None:
            continue
        number = match.group(1)
        label = (one(sensors, f"temp{number}_label") or ("edge" if number == "1" else "")).lower()
        key = _SENSORS.get(label)
        if key is None:
            card.tell(f"temperature {label or number}", one(sensors, path))
            continue
        card.put(key, _measured(sensors, path, key, "mC"))
        for name, file in (("slowdown", f"temp{number}_crit"), ("shutdown", f"temp{number}_emergency")):
            limit = _measured(sensors, file, "temperature.limit.slowdown", "mC")
            if label == "mem":
                card.put(f"temperature.memory.limit.{name}", limit)
            elif label == "junction" or "temp2_input" not in sensors:
                card.put(f"temperature.limit.{name}", limit)


def _rest(card: Thing, sensors: Files) -> None:
    card.put("fan.rpm", _measured(sensors, "fan1_input", "fan.rpm"))
    pulse, top = whole(one(sensors, "pwm1")), whole(one(sensors, "pwm1_max")) or 255
    if pulse is not None and 0 <= pulse <= top:
        card.value("fan.speed", round(pulse / top, 4))
    for number in ("0", "1"):
        label = one(sensors, f"in{number}_label") or ("vddgfx" if number == "0" else "")
        if label == "vddgfx":
            card.put("voltage.core", core_voltage(_measured(sensors, f"in{number}_input", "voltage.core", "mV")))
    for key, path in (("clock.core", "freq1_input"), ("clock.memory", "freq2_input")):
        card.put(key, scale(_measured(sensors, path, key, "Hz"), 1))


def _errors(card: Thing, files: Files) -> None:
    """``ue`` are uncorrected, ``ce`` corrected, ``de`` deferred errors of a block; UMC is the memory controller."""
    names = {"ue": "uncorrected", "ce": "corrected", "de": "deferred"}
    blocks: dict[str, dict[str, int]] = {}
    for path, rows in files.items():
        match = re.match(r"^ras/(\w+)_err_count$", path)
        if match is None:
            continue
        pairs = [row.partition(":") for row in rows]
        counts = {names[key.strip()]: count for key, _, value in pairs if key.strip() in names and (count := whole(value)) is not None and count >= 0}
        if counts:
            blocks[match.group(1)] = counts
    if blocks:
        card.value("errors.ras", blocks)
        for kind in ("corrected", "uncorrected"):
            card.value(f"errors.memory.{kind}", blocks.get("umc", {}).get(kind))
    if "ras/gpu_vram_bad_pages" in files:
        pages = {match.group(1): match.group(2) for row in files["ras/gpu_vram_bad_pages"] if (match := _PAGE.match(row))}
        refused = any(row.startswith("!") for row in files["ras/gpu_vram_bad_pages"])
        if refused:
            card.put("memory.pages_retired", Absent(Why.UNREADABLE if pages else _why(files["ras/gpu_vram_bad_pages"][0]), "the list has no end"))
        else:
            card.value("memory.pages_retired", len(pages)).value("memory.pages_retired.pending", "P" in pages.values())
            card.tell("bad_pages", dict(pages))


def _firmware(card: Thing, files: Files) -> None:
    found = components(files.get("amdgpu_firmware_info", ()))
    if found:
        card.value("firmware.components", found)


def components(rows: list[str] | tuple[str, ...]) -> Mapping[str, str]:
    """Versions of the loaded parts in lines of ``amdgpu_firmware_info``; a version of nought is a part that is not loaded."""
    matches = [match for row in rows if (match := _FIRMWARE.match(row.strip()))]
    return {match.group(1): match.group(2) for match in matches if int(match.group(2), 16) != 0}
