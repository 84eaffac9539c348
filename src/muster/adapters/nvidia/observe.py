# SPDX-License-Identifier: Apache-2.0
"""Boards to observations: every field once to the attribute it means, in the dictionary's unit; what has no attribute stays beside it in the tool's words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muster.adapters.nvidia.board import Board, Listing, Process, Slice
from muster.adapters.nvidia.observe_state import put_errors, put_fabric, put_states
from muster.adapters.nvidia.parse_dcgm import REPORT
from muster.adapters.nvidia.readings import first, measure, words
from muster.domain.model.gather import Gather, Thing, check_power
from muster.domain.model.names import NameKind, names_nothing
from muster.domain.model.reading import Absent, Known, Why
from muster.formats.csvtext import Sign, common, sign_of
from muster.formats.numbers import SENTINELS, marker
from muster.spi.adapter import Model, Models

RUNTIME = "cuda"
_SAID = ("clocks_event_reasons", "ecc.errors.", "remapped_rows", "retired_pages", "serial", "uuid", "index", "xid.last", "timestamp", "count", "driver_version")
"""Fields that the readings and names say whole, with nothing of the vendor's own lost."""
LOWEST_LIMIT = 50
"""No part is slowed down below this many degrees; what is printed there is a distance to the limit."""

# attribute, fields that say it (the first that has a value wins), unit of a bare number
NUMBERS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("memory.total", ("memory.total",), "MiB"),
    ("memory.used", ("memory.used",), "MiB"),
    ("memory.free", ("memory.free",), "MiB"),
    ("memory.reserved", ("memory.reserved",), "MiB"),
    ("utilization.core", ("utilization.gpu",), "%"),
    ("utilization.memory_bandwidth", ("utilization.memory",), "%"),
    ("utilization.encoder", ("utilization.encoder",), "%"),
    ("utilization.decoder", ("utilization.decoder",), "%"),
    ("utilization.jpeg", ("utilization.jpeg",), "%"),
    ("utilization.ofa", ("utilization.ofa",), "%"),
    ("utilization.tensor", ("utilization.tensor",), "%"),
    ("power.draw", ("power.draw.instant", "power.draw", "power.draw.average"), "W"),
    ("power.draw.average", ("power.draw.average",), "W"),
    ("power.limit", ("enforced.power.limit", "power.limit"), "W"),
    ("power.limit.default", ("power.default_limit",), "W"),
    ("power.limit.min", ("power.min_limit",), "W"),
    ("power.limit.max", ("power.max_limit",), "W"),
    ("power.memory", ("memory.power.draw.instant", "memory.power.draw.average"), "W"),
    ("power.module", ("module.power.draw.instant", "module.power.draw", "module.power.draw.average"), "W"),
    ("power.module.limit", ("module.enforced.power.limit", "module.power.limit"), "W"),
    ("energy.total", ("energy.total",), "mJ"),
    ("temperature.core", ("temperature.gpu",), "C"),
    ("temperature.memory", ("temperature.memory",), "C"),
    ("temperature.margin", ("temperature.gpu.tlimit",), "C"),
    ("temperature.limit.slowdown", ("temperature.slowdown",), "C"),
    ("temperature.limit.shutdown", ("temperature.shutdown",), "C"),
    ("fan.speed", ("fan.speed",), "%"),
    ("clock.core", ("clocks.current.graphics", "clocks.current.sm"), "MHz"),
    ("clock.core.max", ("clocks.max.graphics", "clocks.max.sm"), "MHz"),
    ("clock.memory", ("clocks.current.memory",), "MHz"),
    ("clock.memory.max", ("clocks.max.memory",), "MHz"),
    ("clock.video", ("clocks.current.video",), "MHz"),
    ("voltage.core", ("voltage.graphics",), "mV"),
    ("pci.link.generation", ("pcie.link.gen.current", "pcie.link.gen.gpucurrent"), ""),
    ("pci.link.generation.max", ("pcie.link.gen.max",), ""),
    ("pci.link.width", ("pcie.link.width.current",), ""),
    ("pci.link.width.max", ("pcie.link.width.max",), ""),
    ("pci.replays", ("pcie.replay_counter",), ""),
    ("pci.bandwidth.transmit", ("pcie.tx",), "KB/s"),
    ("pci.bandwidth.receive", ("pcie.rx",), "KB/s"),
    ("compute.units", ("multiprocessors",), ""),
    ("link.speed", ("links.speed",), "GB/s"),
    ("link.total", ("links.total",), ""),
    ("link.active", ("links.active",), ""),
    ("numa.node", ("numa.node",), ""),
)
_USED = frozenset(name for _, fields, _ in NUMBERS for name in fields)
GAUGES = ("utilization.core", "temperature.core", "power.draw", "memory.used", "clock.core")
"""What a card that does not answer cannot be asked for."""


def say(listing: Listing, gather: Gather, models: Models) -> None:
    """Adds the listing's boards and head to the round."""
    head = listing.head
    _node(head, gather.node)
    document = common(sign_of(text) for board in listing.boards for text in _figures(board))
    for place, board in enumerate(listing.boards):
        sign = common(sign_of(text) for text in _figures(board))
        mixed = len({sign_of(text) for text in _figures(board)} - {Sign.UNKNOWN}) > 1
        board.sign = Sign.UNKNOWN if mixed else sign if sign is not Sign.UNKNOWN else document
        card = gather.card(_key(board, place))
        say_board(board, card)
        if not board.lost:
            card.put("driver.version", gather.node.readings.get("driver.version"))
        put_model(card, board, models)
        if listing.attached is not None and listing.attached == len(listing.boards) and not listing.cut:
            card.named(index=place)


def _node(head: dict[str, str], node: Thing) -> None:
    driver = first_text(head, "kmd_version", "driver_version")
    runtime = first_text(head, "cuda_umd_version", "cuda_version")
    node.put("driver.version", words(driver))
    if runtime is not None:
        node.put("runtime.version.max", words(runtime))
        node.value("runtime.name", RUNTIME)
    node.put("runtime.library.version", words(head.get("nvml_version")))
    if "timestamp" in head:
        node.tell("timestamp", head["timestamp"])
    for key in (key for key in head if key.startswith(REPORT)):
        node.tell(key, head[key])


def first_text(head: dict[str, str], *keys: str) -> str | None:
    """The first of the head's fields that holds more than a marker ("Deprecated, see ..."); else the first there is."""
    there = [head[key] for key in keys if key in head]
    return next((text for text in there if marker(text) is None), there[0] if there else None)


def _figures(board: Board) -> Iterable[str]:
    return (text for name, text in board.fields.items() if name in _USED and isinstance(text, str))


def _key(board: Board, place: int) -> object:
    for name, kind in (("pci.bus_id", NameKind.PCI_ADDRESS), ("uuid", NameKind.VENDOR_UUID)):
        text = board.text(name)
        if text is not None and not names_nothing(kind, text):
            return (name, text.lower(), board.text("uuid") or "")
    return ("place", place)


def say_board(board: Board, card: Thing) -> None:
    """One card with all that its fields say."""
    card.named(
        serial=board.text("serial"),
        vendor_uuid=board.text("uuid"),
        pci_address=_canonical_address(board.text("pci.bus_id")),
        index=_digits(board.text("index")),
    )
    _put_product(board, card)
    _put_pci(board, card)
    for key, fields, unit in NUMBERS:
        card.put(key, first(measure(board, key, name, unit) for name in fields))
    _put_limits(board, card)
    put_states(board, card)
    put_errors(board, card)
    put_fabric(board, card)
    for one in board.slices:
        _say_slice(one, card, board)
    _put_counted(board, card)
    _put_processes(board, card)
    _put_lost(board, card)
    card.readings = check_power(card.readings)
    _put_vendor(board, card)


def _canonical_address(text: str | None) -> str | None:
    return text if text is not None and not names_nothing(NameKind.PCI_ADDRESS, text) else None


def _digits(text: str | None) -> str | None:
    return text if text is not None and text.isdecimal() else None


def _put_product(board: Board, card: Thing) -> None:
    name = board.text("name")
    if name is not None and name.endswith("..."):
        card.absent("product.name", Why.UNREADABLE, f"cut by the table: {name}")
    else:
        card.put("product.name", words(board.fields.get("name")))
    card.put("product.brand", words(board.fields.get("brand")))
    card.put("product.architecture", words(board.fields.get("architecture"), lower=True))
    card.put("compute.capability", words(board.fields.get("compute_cap")))
    card.put("performance.state", words(board.fields.get("pstate")))
    part = board.fields.get("board_part_number")
    if part is None and (board.text("gpu_part_number") or "")[:4].rstrip("-").isdigit():
        part = board.fields.get("gpu_part_number")
    card.put("product.part_number", words(part))
    _put_firmware(board, card)


def _put_firmware(board: Board, card: Thing) -> None:
    card.put("firmware.version", words(board.fields.get("vbios_version")))
    parts = {"vbios": "vbios_version", "gsp": "gsp_firmware_version", **{f"inforom.{p}": f"inforom.{p}" for p in ("img", "oem", "ecc", "pwr")}}
    known = {name: reading.value for name, source in parts.items() if isinstance(reading := words(board.fields.get(source)), Known)}
    if known and not board.partial:
        card.value("firmware.components", known)


def _put_pci(board: Board, card: Thing) -> None:
    _put_ids(card, board.fields.get("pci.device_id"), "pci.device_id", "pci.vendor_id")
    _put_ids(card, board.fields.get("pci.sub_device_id"), "pci.subsystem_device_id", "pci.subsystem_vendor_id")
    sides = [(board.text(f"pci.{side}") or "").lower().removeprefix("0x") for side in ("baseClass", "subClass")]
    if all(side and len(side) <= 2 and all(c in "0123456789abcdef" for c in side) for side in sides):
        card.value("pci.class", "".join(f"{side:0>2}" for side in sides))


def _put_ids(card: Thing, text: str | Absent | None, device: str, vendor: str) -> None:
    """The tool prints device and vendor as one word of eight digits, device first. A word whose vendor half starts with zeros is damaged."""
    reading = words(text)
    if reading is None:
        return
    if isinstance(reading, Known):
        word = str(reading.value).lower().removeprefix("0x")
        if len(word) == 8 and all(c in "0123456789abcdef" for c in word) and not word[4:].startswith("00"):
            card.value(device, word[:4]).value(vendor, word[4:])
            return
        reading = Absent(Why.UNREADABLE, word)
    card.put(device, reading).put(vendor, reading)


def _put_limits(board: Board, card: Thing) -> None:
    for key, name in (("temperature.limit.shutdown", "temperature.shutdown.tlimit"), ("temperature.limit.slowdown", "temperature.slowdown.tlimit")):
        text, limit = board.text(name), card.readings.get(key)
        if isinstance(limit, Known) and limit.value < LOWEST_LIMIT:
            card.readings[key] = Absent(Why.IMPLAUSIBLE, f"an offset and no temperature: {limit.value:g}")
        if text is not None:
            card.absent(key, Why.NOT_REPORTED, f"printed as an offset: {text}")


def _say_slice(one: Slice, card: Thing, board: Board) -> None:
    part = card.partition(one.key)
    part.named(vendor_uuid=one.uuid, index=_digits(one.index), gpu_instance_id=_digits(one.gpu_instance), compute_instance_id=_digits(one.compute_instance))
    part.put("partition.profile", words(one.profile))
    own = Board(fields=one.fields, sign=board.sign)
    for key, fields, unit in NUMBERS:
        part.put(key, first(measure(own, key, name, unit) for name in fields))
    put_errors(own, part)
    for name in one.fields:
        if name.startswith("vendor."):
            part.tell(name.removeprefix("vendor."), own.text(name))


def _put_counted(board: Board, card: Thing) -> None:
    """What an exporter counts: the last code it remembers, time held down, faults of the fast links by kind."""
    code = board.text("xid.last")
    if code is not None and code != "0":
        card.put("fault.last_code", _code(code))
    times = board.extra.pop("violations", None)
    if isinstance(times, dict):
        _put_map(card, "throttle.time", times)
    links = board.extra.pop("link_errors", None)
    if isinstance(links, dict):
        _put_map(card, "link.errors", {kind: _of_links(counts) for kind, counts in links.items()})


def _code(text: str) -> Known[str] | Absent:
    """A code is a small whole number; what a counter prints for "none" is no code."""
    if text.isdecimal() and len(text) < 7:
        return Known(text)
    number = float(text) if text.lstrip("-").isdecimal() and len(text) < 24 else 0.0
    why = Why.NOT_SAMPLED if number < 0 else SENTINELS.get(number, Why.UNREADABLE)
    return Absent(why, text[:80])


def _of_links(counts: dict[str, int | Absent]) -> int | Absent:
    """The counter of all links where there is one, else their sum, which takes every one of them."""
    whole = counts.get("")
    if whole is not None:
        return whole
    bad = next((count for count in counts.values() if isinstance(count, Absent)), None)
    return bad or sum(count for count in counts.values() if not isinstance(count, Absent))


def _put_map(card: Thing, key: str, told: dict[str, Any]) -> None:
    """Members that are known; an absence where none is."""
    known = {name: value for name, value in told.items() if not isinstance(value, Absent)}
    card.put(key, Known(known) if known else next((value for value in told.values() if isinstance(value, Absent)), None))


def _put_processes(board: Board, card: Thing) -> None:
    if board.processes is not None:
        card.value("processes", tuple(_process(one, board.sign) for one in board.processes))
    if board.holders:
        card.value("allocation.holders", tuple(board.holders))


def _process(one: Process, sign: Sign) -> dict[str, object]:
    told: dict[str, object] = {"pid": int(one.pid) if len(one.pid) < 12 else one.pid}
    if one.name:
        told["name"] = one.name
    if one.kind and marker(one.kind) is None:
        told["kind"] = one.kind
    instance = {"gpu_instance_id": one.gpu_instance, "compute_instance_id": one.compute_instance}
    told.update((key, text) for key, text in instance.items() if text is not None and text.isdecimal())
    memory = measure(Board(fields={"memory.used": one.memory}, sign=sign), "memory.used", "memory.used", "MiB") if one.memory else None
    if isinstance(memory, Known):
        told["memory.used"] = memory.value
    return told


def _put_lost(board: Board, card: Thing) -> None:
    asked = [reading for key in GAUGES if (reading := card.readings.get(key)) is not None]
    silent = [reading.detail for reading in asked if isinstance(reading, Absent) and reading.why is Why.DEVICE_LOST and "reset" not in reading.detail.lower()]
    if len(asked) > 1 and len(silent) == len(asked):
        board.lost = board.lost or silent[0]
    text = board.lost
    if not text:
        return
    for key in GAUGES:
        card.absent(key, board.why, text)
    card.tell("state", text)
    if "reboot the system" in text.lower():
        card.value("recovery.action", "reboot")


def _put_vendor(board: Board, card: Thing) -> None:
    kept = {name: text for name, text in board.fields.items() if name not in _USED and not name.startswith(_SAID)}
    for name, text in {**board.extra, **kept}.items():
        if not isinstance(text, str) or marker(text) is None:
            card.tell(name, text.detail if isinstance(text, Absent) else text)


def put_model(card: Thing, board: Board, models: Models) -> None:
    """Facts of the product that the tool has no words for. What the tool was asked for and did not give stays absent."""
    device, name = card.readings.get("pci.device_id"), (board.text("name") or "").strip().lower()
    model = models.get(str(device.value)) if isinstance(device, Known) else None
    model = model or (next((each for each in models.values() if each.name.lower() == name), None) if name else None)
    if model is None:
        return
    _put_facts(card, model)


def _put_facts(card: Thing, model: Model) -> None:
    taken = []
    for key, value in model.facts.items():
        if key not in card.readings and key.startswith(("memory.kind", "memory.unified", "memory.bandwidth", "compute.", "product.architecture")):
            card.value(key, tuple(value) if isinstance(value, list) else value)
            taken.append(key)
    if taken:
        card.tell("model", {"key": model.key, "name": model.name, "source": model.source, "confidence": model.confidence, "facts": taken})
