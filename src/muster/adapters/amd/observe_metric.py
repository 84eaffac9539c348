# SPDX-License-Identifier: Apache-2.0
"""What an amd-smi record says of a card now: power, clocks, temperatures, use, errors, links, processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.adapters.amd.observe_ras import observe as observe_ras
from muster.adapters.amd.values import block, generation, is_marker, measure, percent, pick, plain, text_reading, whole, word
from muster.domain.model.gather import Thing
from muster.domain.model.reading import Absent, Known, Reading, Why

Record = Mapping[str, Any]

_KEPT = (
    "throttle",
    "xgmi_err",
    "voltage_curve",
    "overdrive",
    "mem_overdrive",
    "link_metrics",
    "link_status",
    "xgmi_link_status",
    "partition_profiles",
    "partition_resources",
)
SWITCHED_OFF = 0.1
"""Volts below which a core rail is off: the tools print 6 mV then, which is no voltage of a running core."""
_REASONS = (
    ("prochot", "thermal_hardware"),
    ("ppt", "power_cap"),
    ("socket_thermal", "thermal_hardware"),
    ("socket_thrm", "thermal_hardware"),
    ("vr_thermal", "thermal_hardware"),
    ("vr_thrm", "thermal_hardware"),
    ("hbm_thermal", "thermal_hardware"),
    ("hbm_thrm", "thermal_hardware"),
    ("low_utilization", "idle"),
    ("gfx_clk_below_host_limit_p", "power_cap"),
    ("gfx_clk_below_host_limit_t", "thermal_software"),
    ("gfx_clk_below_host_limit", "other"),
    ("total_gfx_clk_below_host_limit", "other"),
)


def observe(card: Thing, record: Record) -> None:
    """Puts gauges and counters of the record on ``card``."""
    _usage(card, record)
    _power(card, record)
    _clocks(card, record)
    _temperatures(card, record)
    _pcie(card, record)
    _fan(card, record)
    _memory(card, record)
    _throttle(card, record)
    observe_ras(card, record)
    _processes(card, record)
    _links(card, record)
    for name in _KEPT:
        if name in record:
            card.tell(name, record[name])


def _usage(card: Thing, record: Record) -> None:
    usage = block(record, "usage")
    if usage is None:
        return
    card.put("utilization.core", percent("utilization.core", pick(usage, "gfx_activity", "gfx_usage")))
    card.put("utilization.memory_bandwidth", percent("utilization.memory_bandwidth", pick(usage, "umc_activity", "mem_usage")))
    for key in ("encoder", "decoder"):
        card.put(f"utilization.{key}", percent(f"utilization.{key}", usage.get(key)))
    card.tell("usage", dict(usage))


def _power(card: Thing, record: Record) -> None:
    power = block(record, "power")
    if power is not None:
        now = pick(power, "socket_power", "current_socket_power", "current_power", "average_socket_power", "average_power")
        card.put("power.draw", measure("power.draw", now, "W"))
        card.put("power.draw.average", measure("power.draw.average", pick(power, "average_socket_power", "average_power"), "W"))
        card.put("power.limit", _positive(measure("power.limit", pick(power, "power_limit", "power_cap"), "W")))
        card.put("voltage.core", core_voltage(measure("voltage.core", power.get("gfx_voltage"), "mV")))
        card.put("voltage.soc", measure("voltage.soc", power.get("soc_voltage"), "mV"))
        card.put("voltage.memory", measure("voltage.memory", power.get("mem_voltage"), "mV"))
        card.tell("power", dict(power))
    energy = block(record, "energy")
    if energy is not None:
        card.put("energy.total", _positive(measure("energy.total", energy.get("total_energy_consumption"), "J")))
    level = word(record.get("perf_level"))
    if level is not None:
        card.value("performance.state", level.removeprefix("AMDSMI_DEV_PERF_LEVEL_").lower())


def core_voltage(reading: Reading | None) -> Reading | None:
    """A core voltage, or ``not_sampled`` while the core is switched off."""
    if isinstance(reading, Known) and reading.value < SWITCHED_OFF:
        return Absent(Why.NOT_SAMPLED, f"{reading.value:g} volt: the core is switched off")
    return reading


def _positive(reading: Reading | None) -> Reading | None:
    """Zero of a counter that cannot be nought, or of a limit, is what the tool prints where the part has none."""
    return Absent(Why.NOT_SUPPORTED, "0") if isinstance(reading, Known) and reading.value == 0 else reading


def _clocks(card: Thing, record: Record) -> None:
    clock = block(record, "clock")
    if clock is None:
        return
    for name, key in (("gfx", "clock.core"), ("mem", "clock.memory"), ("vclk", "clock.video")):
        found = [each for n in (f"{name}_0", name, *(f"{name}_{i}" for i in range(1, 8))) if (each := block(clock, n)) is not None]
        if not found:
            continue
        card.put(key, _first(measure(key, pick(each, "clk", "cur_clk", "current_frequency"), "MHz") for each in found))
        if name != "vclk":
            card.put(f"{key}.max", _positive(_first(measure(f"{key}.max", pick(each, "max_clk", "max_frequency"), "MHz") for each in found)))
    if any(str(name)[-2:-1] == "_" for name in clock):
        card.tell("clock", {name: value for name, value in clock.items() if not is_marker(value)})


def _first(readings: Any) -> Reading | None:
    """The first that is known, else the first."""
    found = [each for each in readings if each is not None]
    return next((each for each in found if isinstance(each, Known)), found[0] if found else None)


def _temperatures(card: Thing, record: Record) -> None:
    heat = block(record, "temperature")
    if heat is None:
        return
    for key, names in (
        ("core", ("edge", "edge_temperature")),
        ("hotspot", ("hotspot", "junction", "hotspot_temperature")),
        ("memory", ("mem", "vram", "mem_temperature")),
    ):
        card.put(f"temperature.{key}", zero_heat(measure(f"temperature.{key}", pick(heat, *names), "C")))
    rest = {name: value for name, value in heat.items() if name not in ("edge", "hotspot", "mem") and not is_marker(value)}
    if rest:
        card.tell("temperature", rest)


def zero_heat(reading: Reading | None) -> Reading | None:
    """Nought degrees is what a missing sensor gives."""
    return Absent(Why.IMPLAUSIBLE, "0 celsius") if isinstance(reading, Known) and reading.value == 0 else reading


def _pcie(card: Thing, record: Record) -> None:
    pcie = block(record, "pcie")
    if pcie is None:
        return
    card.put("pci.link.width", _positive(measure("pci.link.width", pick(pcie, "width", "current_lanes", "pcie_lanes", "pcie_width"))))
    card.put("pci.link.generation", generation(pick(pcie, "speed", "current_speed", "pcie_speed")))
    card.put("pci.replays", measure("pci.replays", pick(pcie, "replay_count", "pcie_replay_count")))
    for key, name in (("transmit", "current_bandwidth_sent"), ("receive", "current_bandwidth_received")):
        card.put(f"pci.bandwidth.{key}", measure(f"pci.bandwidth.{key}", pcie.get(name), "Mb/s"))
    card.tell("pcie", dict(pcie))


def _fan(card: Thing, record: Record) -> None:
    fan = block(record, "fan")
    if fan is None:
        return
    share = percent("fan.speed", pick(fan, "usage", "usage_percent"))
    if not isinstance(share, Known):
        speed, top = whole(fan.get("speed")), whole(fan.get("max"))
        if speed is not None and top and 0 <= speed <= top:
            share = Known(round(speed / top, 4))
    card.put("fan.speed", share)
    card.put("fan.rpm", measure("fan.rpm", fan.get("rpm")))


def _memory(card: Thing, record: Record) -> None:
    memory = block(record, "mem_usage", "fb_usage")
    if memory is None:
        return
    for key, names in (("total", ("total_vram", "fb_total", "total")), ("used", ("used_vram", "fb_used", "used")), ("free", ("free_vram", "free"))):
        reading = measure(f"memory.{key}", pick(memory, *names), "MB")
        card.put(f"memory.{key}", _positive(reading) if key == "total" else reading)
    card.tell("mem_usage", dict(memory))


def _throttle(card: Thing, record: Record) -> None:
    """Reasons that hold now. Accumulators are history and make none."""
    power, throttle = block(record, "power") or {}, block(record, "throttle", "violation")
    word_now = power.get("throttle_status") if not isinstance(power.get("throttle_status"), list) else None
    reasons: set[str] = set()
    spoken = False
    for name, value in (throttle or {}).items():
        if not name.endswith("_status"):
            continue
        states = _states(value)
        spoken = spoken or bool(states)
        if "ACTIVE" in states:
            reasons.add(_reason(name))
    simple = word(word_now)
    if spoken or (simple is not None and simple.upper() in ("THROTTLED", "UNTHROTTLED")):
        if not spoken and simple is not None and simple.upper() == "THROTTLED":
            reasons.add("other")
        card.value("throttle.reasons", sorted(reasons))
    elif throttle is not None or word_now is not None:
        card.put("throttle.reasons", text_reading(word_now) if isinstance(word_now, str) and is_marker(word_now) else Absent(Why.NOT_SUPPORTED, "N/A"))


def _states(value: Any) -> set[str]:
    """The states in a violation's value, which may be a word, a flag, or lists of words per partition; markers left out."""
    if isinstance(value, Mapping) and "value" not in value:
        return set().union(*(_states(each) for each in list(value.values())[:64]))
    if isinstance(value, list):
        return set().union(*(_states(each) for each in value[:64] if not isinstance(each, list)))
    if isinstance(value, bool):
        return {"ACTIVE" if value else "NOT ACTIVE"}
    text = word(value)
    return {text.upper()} if text is not None else set()


def _reason(name: str) -> str:
    return next((reason for start, reason in _REASONS if name.startswith(start)), "other")


def _processes(card: Thing, record: Record) -> None:
    told = record.get("process_list")
    if not isinstance(told, list):
        return
    found = [row for each in told if isinstance(each, Mapping) and (row := _process(each.get("process_info", each))) is not None]
    unique = list({row["pid"]: row for row in found}.values())
    says_none = any("no running" in str(each.get("process_info", "")).lower() for each in told if isinstance(each, Mapping))
    if unique or says_none or not told:
        card.value("processes", unique)


def _process(info: Any) -> dict[str, Any] | None:
    if not isinstance(info, Mapping):
        return None
    pid = whole(info.get("pid"))
    if pid is None or pid <= 0:
        return None
    row: dict[str, Any] = {"pid": pid}
    name = word(info.get("name"))
    if name is not None:
        row["name"] = name
    usage = block(info, "memory_usage") or {}
    used = measure("memory.used", pick(usage, "vram_mem", "vram"), "B")
    if isinstance(used, Known):
        row["memory.used"] = used.value
    return row


def _links(card: Thing, record: Record) -> None:
    """Peers and the kind of link to each, in the words and spelling of the tool."""
    peers: dict[str, str] = {}
    metrics = record.get("link_metrics")
    links = record.get("links") or (metrics.get("links") if isinstance(metrics, Mapping) else None)
    for row in links if isinstance(links, list) else ():
        peer, kind = (word(row.get("bdf")), word(row.get("link_type"))) if isinstance(row, Mapping) else (None, None)
        kind = kind or (word(metrics.get("link_type")) if isinstance(metrics, Mapping) else None) or ("XGMI" if isinstance(metrics, Mapping) else None)
        if peer is not None and kind is not None and kind.upper() != "SELF" and not card_is(card, peer):
            peers[peer] = kind
    if isinstance(metrics, Mapping):
        card.put("link.speed", measure("link.speed", metrics.get("max_bandwidth"), "Gb/s"))
    states = [str(plain(state)).upper() for state in record["link_status"]] if isinstance(record.get("link_status"), list) else []
    if "U" in states or "D" in states:
        card.value("link.active", states.count("U")).value("link.total", states.count("U") + states.count("D"))
    old = record.get("link_type")
    if isinstance(old, Mapping):
        peers.update({str(peer): str(plain(kind)) for peer, kind in old.items() if word(kind) and str(kind).upper() != "SELF"})
    card.value("fabric.domain", word(record.get("fabric")))
    if peers:
        card.value("link.peers", {**(_known(card.readings.get("link.peers"))), **peers})


def _known(reading: Reading | None) -> dict[str, Any]:
    return dict(reading.value) if isinstance(reading, Known) else {}


def card_is(card: Thing, address: str) -> bool:
    """True when the address is the card's own."""
    return any(n.value.lower() == address.lower() for n in card.names)
