# SPDX-License-Identifier: Apache-2.0
"""What a flat `rocm-smi` record says of a card."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muster.adapters.amd.observe_metric import core_voltage, zero_heat
from muster.adapters.amd.parse_rocm import RocmListing
from muster.adapters.amd.values import generation, hex_id, is_marker, measure, percent, text_reading, whole, word
from muster.domain.model.gather import Gather, Thing
from muster.domain.model.reading import Absent, Known, Reading, Why

Flat = Mapping[str, str]

_HEX = re.compile(r"^0x[0-9a-f]+$", re.IGNORECASE)
_MHZ = re.compile(r"(\d+(?:\.\d+)?)\s*mhz", re.IGNORECASE)
_LINK = re.compile(r"(\d+(?:\.\d+)?)\s*GT/s,?\s*x(\d+)", re.IGNORECASE)
_DRAW = re.compile(r"^(?:current )?(?:socket )?(?:graphics )?package power \(w\)$")
_PEER = re.compile(r"^\(topology\) link type between drm devices ([0-9]{1,4}) and ([0-9]{1,4})$")
_PID = re.compile(r"^pid([0-9]{1,10})$")
_NONE = (-1, 0xFFFFFFFF)


def observe(gather: Gather, listing: RocmListing) -> None:
    """Puts all cards of the listing into ``gather``."""
    for number, flat in listing.cards.items():
        card = gather.card(number)
        _card(card, number, flat)
        driver = word(listing.system.get("driver version"))
        if driver is not None:
            card.value("driver.version", driver)
    _peers(gather, listing)
    _processes(gather, listing)


def _card(card: Thing, number: int, flat: Flat) -> None:
    unique = word(flat.get("unique id"))
    card.named(index=number, pci_address=word(flat.get("pci bus")), vendor_uuid=unique, serial=word(flat.get("serial number")))
    _identity(card, flat)
    _memory(card, flat)
    _now(card, flat)
    _power(card, flat)
    _fan(card, flat)
    _link(card, flat)
    _rest(card, flat)


def _identity(card: Thing, flat: Flat) -> None:
    names = [flat[key] for key in ("card series", "device name", "market name") if key in flat]
    name = next((n for n in names if not is_marker(n) and not _HEX.match(n)), None)
    if name is not None:
        card.value("product.name", name.strip())
    elif names:
        card.absent("product.name", Why.NOT_SUPPORTED, names[0])
    card.put("pci.device_id", hex_id(flat.get("device id", flat.get("gpu id"))))
    card.put("pci.subsystem_device_id", hex_id(flat.get("subsystem id")))
    card.put("product.architecture", text_reading(flat.get("gfx version"), lower=True))
    card.put("firmware.version", text_reading(flat.get("vbios version")))
    found = {key.removesuffix(" firmware version").upper(): value for key, value in flat.items() if key.endswith(" firmware version") and not is_marker(value)}
    loaded = {name: value for name, value in found.items() if value.strip("0x.")}
    if loaded:
        card.value("firmware.components", loaded)
    for key, name in (("partition.mode", "compute partition"), ("partition.memory_mode", "memory partition")):
        card.put(key, text_reading(flat.get(name), lower=True))
    part = word(flat.get("partition id"))
    if part is not None:
        card.tell("partition_id", part)
    _numa(card, flat)


def _numa(card: Thing, flat: Flat) -> None:
    """The NUMA node, unless the affinity beside it says that there is none: then the tool prints node 0."""
    node, affinity = flat.get("(topology) numa node"), whole(flat.get("(topology) numa affinity"))
    if node is None or "(topology) numa affinity" not in flat:
        return
    if affinity in _NONE or whole(node) in _NONE:
        card.absent("numa.node", Why.NOT_PRESENT, f"node {node}, affinity {affinity}")
    else:
        card.put("numa.node", measure("numa.node", node))


def _memory(card: Thing, flat: Flat) -> None:
    total = measure("memory.total", flat.get("vram total memory (b)"), "B")
    card.put("memory.total", Absent(Why.NOT_SUPPORTED, "0") if isinstance(total, Known) and total.value == 0 else total)
    card.put("memory.used", measure("memory.used", flat.get("vram total used memory (b)"), "B"))
    card.put("memory.used.ratio", percent("memory.used.ratio", flat.get("gpu memory allocated (vram%)")))


def _now(card: Thing, flat: Flat) -> None:
    card.put("utilization.core", percent("utilization.core", flat.get("gpu use (%)")))
    for name in ("gpu memory use (%)", "gpu memory read/write activity (%)"):
        card.put("utilization.memory_bandwidth", percent("utilization.memory_bandwidth", flat.get(name)))
    for key, sensor in (("core", "edge"), ("hotspot", "junction"), ("memory", "memory")):
        card.put(f"temperature.{key}", zero_heat(measure(f"temperature.{key}", flat.get(f"temperature (sensor {sensor}) (c)"), "C")))
    for key, name in (("clock.core", "sclk"), ("clock.memory", "mclk")):
        card.put(key, _clock(flat.get(f"{name} clock speed", flat.get(f"{name} clock level"))))
    card.put("voltage.core", core_voltage(measure("voltage.core", flat.get("voltage (mv)"), "mV")))
    card.put("pci.replays", measure("pci.replays", flat.get("pcie replay count")))
    card.put("performance.state", text_reading(flat.get("performance level"), lower=True))


def _clock(text: str | None) -> Reading | None:
    if text is None:
        return None
    match = _MHZ.search(text)
    return measure("clock.core", match.group(1), "MHz") if match else text_reading(text) if is_marker(text) else Absent(Why.UNREADABLE, text[:40])


def _power(card: Thing, flat: Flat) -> None:
    """Two keys may speak of power; the one with a value counts, whatever order they stand in."""
    average = measure("power.draw.average", flat.get("average graphics package power (w)"), "W")
    for key, value in flat.items():
        if _DRAW.match(key):
            card.put("power.draw", measure("power.draw", value, "W"))
    card.put("power.draw.average", average)
    card.put("power.draw", average)
    limit = measure("power.limit", flat.get("max graphics package power (w)"), "W")
    card.put("power.limit", Absent(Why.NOT_SUPPORTED, "0") if isinstance(limit, Known) and limit.value == 0 else limit)
    card.put("energy.total", measure("energy.total", flat.get("accumulated energy (uj)"), "uJ"))


def _fan(card: Thing, flat: Flat) -> None:
    card.put("fan.speed", percent("fan.speed", flat.get("fan speed (%)")))
    card.put("fan.rpm", measure("fan.rpm", flat.get("fan rpm")))


def _link(card: Thing, flat: Flat) -> None:
    match = _LINK.search(flat.get("pcie clock level", ""))
    if match:
        card.put("pci.link.generation", generation(match.group(1)))
        card.put("pci.link.width", measure("pci.link.width", match.group(2)))


def _rest(card: Thing, flat: Flat) -> None:
    """Everything else under the tool's own names; numbers as keys are clock lists written over one another and mean nothing."""
    kept = {key: value for key, value in flat.items() if not key.isdigit() and not key.endswith(" firmware version")}
    card.vendor.update(kept)
    serial = word(flat.get("serial number"))
    if serial is not None and serial.strip("0"):
        card.tell("product_serial", serial)


def _peers(gather: Gather, listing: RocmListing) -> None:
    peers: dict[int, dict[str, str]] = {number: {} for number in listing.cards}
    for key, kind in listing.system.items():
        match = _PEER.match(key)
        if match is None or is_marker(kind):
            continue
        one, other = int(match.group(1)), int(match.group(2))
        for here, there in ((one, other), (other, one)):
            if here in peers and there in peers:
                peers[here][str(there)] = kind
    for number, found in peers.items():
        if found:
            gather.card(number).value("link.peers", found)


def _processes(gather: Gather, listing: RocmListing) -> None:
    """Processes stand beside the cards; the tool says how many cards each uses, not which, so only a single card can be meant."""
    found = []
    for key, text in listing.system.items():
        match = _PID.match(key)
        if match is None:
            continue
        name, count, used = (*(part.strip() for part in text.split(",")), "", "", "")[:3]
        row: dict[str, object] = {"pid": int(match.group(1)), "name": name}
        bytes_ = whole(used)
        if bytes_ is not None and bytes_ >= 0:
            row["memory.used"] = bytes_
        if (whole(count) or 0) > 0:
            found.append(row)
    if found and len(listing.cards) == 1:
        gather.card(next(iter(listing.cards))).value("processes", found)
