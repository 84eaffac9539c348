# SPDX-License-Identifier: Apache-2.0
"""States and counters of a card: modes, why clocks are held down, memory errors, retired and remapped memory, the fabric."""

from __future__ import annotations

from muster.adapters.nvidia.board import Board
from muster.adapters.nvidia.names_tree import BANKS
from muster.adapters.nvidia.readings import NARROW, choice, first, flag, measure, missing, no_value, total, words
from muster.domain.model.gather import Thing
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.formats.numbers import SENTINELS

REASON_WORDS = {
    "gpu_idle": ("idle", 0x1),
    "applications_clocks_setting": ("user_clocks", 0x2),
    "sw_power_cap": ("power_cap", 0x4),
    "hw_slowdown": ("hardware_slowdown", 0x8),
    "sync_boost": ("sync_boost", 0x10),
    "sw_thermal_slowdown": ("thermal_software", 0x20),
    "hw_thermal_slowdown": ("thermal_hardware", 0x40),
    "hw_power_brake_slowdown": ("power_brake", 0x80),
    "display_clocks_setting": ("other", 0x100),
}
"""Column to the dictionary's word and its bit in the mask."""

WHOLE_SET = 8
"""Reasons that every version of the tool prints."""

RECOVERY = {
    "none": "none",
    "gpu reset": "reset",
    "reset": "reset",
    "reset required": "reset",
    "gpu reset required": "reset",
    "node reboot": "reboot",
    "node reboot required": "reboot",
    "reboot": "reboot",
    "system reboot": "reboot",
    "drain p2p": "drain",
    "drain": "drain",
    "drain and reset": "drain_and_reset",
}
VIRTUALIZATION = {
    "none": "none",
    "pass-through": "passthrough",
    "passthrough": "passthrough",
    "vgpu": "vgpu_guest",
    "host vgpu": "vgpu_host",
    "host vsga": "vgpu_host",
}
MIG = {"enabled": "mig", "disabled": "none", "1": "mig", "0": "none"}
HEALTH_PARTS = ("summary", "bandwidth", "route_recovery_in_progress", "route_unhealthy", "access_timeout_recovery", "incorrect_configuration")


def put_states(board: Board, card: Thing) -> None:
    """Modes, reasons and the recovery that the driver asks for."""
    card.put("partition.mode", choice(board.fields.get("mig.mode.current"), MIG))
    card.put("partition.mode.pending", choice(board.fields.get("mig.mode.pending"), MIG))
    card.put("ecc.enabled", flag(board.fields.get("ecc.mode.current")))
    card.put("virtualization.mode", _virtualization(board))
    card.put("recovery.action", _recovery(board))
    card.put("throttle.reasons", _reasons(board))
    _put_time(board, card)
    _put_place(board, card)


def _virtualization(board: Board) -> Reading | None:
    text = board.fields.get("virtualization_mode")
    if isinstance(text, str) and text.strip().lower() == "none":
        return Known("none")
    return choice(text, VIRTUALIZATION)


def _recovery(board: Board) -> Reading | None:
    text = board.fields.get("gpu_recovery_action")
    if isinstance(text, str) and text.strip().lower() == "none":
        return Known("none")
    told = choice(text, RECOVERY, "other")
    if isinstance(told, Known):
        return told
    for name, word in (("drain_and_reset_recommended", "drain_and_reset"), ("reset_required", "reset")):
        if (board.text(name) or "").strip().lower() == "yes":
            return Known(word)
    if any(isinstance(value, str) and "requires reset" in value.lower() for value in board.fields.values()):
        return Known("reset")
    return told


def _reasons(board: Board) -> Reading | None:
    states = {column: flag(board.fields.get(f"clocks_event_reasons.{column}")) for column in REASON_WORDS}
    known = {column: state.value for column, state in states.items() if isinstance(state, Known)}
    mask = board.text("clocks_event_reasons.active")
    if mask is not None:
        bits = _bits(mask)
        none = bits is not None and (bits < 0 or (bits in SENTINELS and bits > NARROW))
        if none and not known:
            return Absent(Why.NOT_SUPPORTED, mask)
        if bits is not None and not none:
            known = {column: bool(bits & bit) for column, (_, bit) in REASON_WORDS.items()} | {column: True for column, on in known.items() if on}
            if bits >> 9:
                return Known((*_active(known), *(("other",) if not known["display_clocks_setting"] else ())))
    if known and board.partial and len(known) < WHOLE_SET:
        return Absent(Why.UNREADABLE, "the text ends among the reasons")
    if known:
        return Known(_active(known))
    absent = first(states.values())
    return absent if absent is not None else (missing(mask) if mask else None)


def _bits(mask: str) -> int | None:
    try:
        return int(mask, 0) if len(mask) < 24 else None
    except ValueError:
        return None


def _active(known: dict[str, bool]) -> tuple[str, ...]:
    return tuple(sorted({REASON_WORDS[column][0] for column, on in known.items() if on}))


def _put_time(board: Board, card: Thing) -> None:
    spent: dict[str, float] = {}
    for column, (word, _) in REASON_WORDS.items():
        text = board.text(f"clocks_event_reasons_counters.{column}")
        bare = (text or "").strip().lower()
        number = bare.removesuffix("us").removesuffix("s").strip()
        if number.replace(".", "", 1).isdecimal() and len(number) < 24 and no_value("throttle.time", float(number)) is None:
            spent[word] = round(float(number) * (1e-6 if bare.endswith("us") else 1), 6)
    if spent and not board.partial:
        card.value("throttle.time", spent)


def _put_place(board: Board, card: Thing) -> None:
    chassis = words(board.fields.get("platform.chassis_serial_number"))
    if not isinstance(chassis, Known):
        return
    parts = {"slot": "slot_number", "tray": "tray_index", "module": "module_id"}
    told = [f"{name} {reading.value}" for name, field in parts.items() if isinstance(reading := words(board.fields.get(f"platform.{field}")), Known)]
    if told:
        card.value("platform.slot", f"chassis {chassis.value} " + " ".join(told))


def put_errors(board: Board, card: Thing) -> None:
    """ECC counters, retired pages and remapped rows. A counter that has parts is known only where all of them are."""
    for key, side, span in (
        ("errors.memory.corrected", "corrected", "volatile"),
        ("errors.memory.uncorrected", "uncorrected", "volatile"),
        ("errors.memory.corrected.lifetime", "corrected", "aggregate"),
        ("errors.memory.uncorrected.lifetime", "uncorrected", "aggregate"),
    ):
        stem = f"ecc.errors.{side}.{span}"
        card.put(key, first(measure(board, key, f"{stem}.{part}", "") for part in ("dram", "device_memory", "total")))
    _put_sram(board, card)
    _put_retired(board, card)
    _put_remapped(board, card)


def _put_sram(board: Board, card: Thing) -> None:
    card.put("errors.sram.corrected", measure(board, "errors.sram.corrected", "ecc.errors.corrected.volatile.sram", ""))
    for key, span in (("errors.sram.uncorrected", "volatile"), ("errors.sram.uncorrected.lifetime", "aggregate")):
        stem = f"ecc.errors.uncorrected.{span}.sram"
        parts = total(measure(board, key, f"{stem}.{part}", "") for part in ("parity", "secded"))
        card.put(key, first((measure(board, key, stem, ""), parts)))


def _put_retired(board: Board, card: Thing) -> None:
    key = "memory.pages_retired"
    causes = total(measure(board, key, f"retired_pages.{cause}.count", "") for cause in ("single_bit_ecc", "double_bit"))
    card.put(key, first((measure(board, key, "retired_pages.total", ""), causes)))
    card.put("memory.pages_retired.pending", flag(board.fields.get("retired_pages.pending")))


def _put_remapped(board: Board, card: Thing) -> None:
    whole = board.text("remapped_rows")
    none = missing(whole) if whole else None
    corrected = measure(board, "memory.rows_remapped.corrected", "remapped_rows.correctable", "")
    uncorrected = measure(board, "memory.rows_remapped.uncorrected", "remapped_rows.uncorrectable", "")
    card.put("memory.rows_remapped.corrected", first((corrected, none)))
    card.put("memory.rows_remapped.uncorrected", first((uncorrected, none)))
    card.put("memory.remap.pending", first((flag(board.fields.get("remapped_rows.pending")), none)))
    card.put("memory.remap.failed", first((flag(board.fields.get("remapped_rows.failure")), none)))
    banks = {bank: measure(board, "memory.pages_retired", f"remapped_rows.histogram.{bank}", "") for bank in BANKS}
    known = {bank: reading.value for bank, reading in banks.items() if isinstance(reading, Known)}
    if len(known) == len(BANKS):
        card.value("memory.remap.banks", known)


def put_fabric(board: Board, card: Thing) -> None:
    """The fast fabric between cards: its state, and the domain as ``<cluster uuid>.<clique>``."""
    card.put("fabric.state", words(board.fields.get("fabric.state")))
    cluster = words(board.fields.get("fabric.clusterUuid"))
    if isinstance(cluster, Known):
        clique = words(board.fields.get("fabric.cliqueId"))
        domain = f"{cluster.value}.{clique.value}" if isinstance(clique, Known) else None
        card.put("fabric.domain", Known(domain) if domain else clique or Absent(Why.NOT_REPORTED, "no clique"))
    elif cluster is not None:
        card.put("fabric.domain", Absent(Why.NOT_PRESENT, cluster.detail) if cluster.why is Why.WITHHELD else cluster)
    parts = {part: words(board.fields.get(f"fabric.health.{part}")) for part in HEALTH_PARTS}
    known = {part: reading.value for part, reading in parts.items() if isinstance(reading, Known)}
    if isinstance(board.text("fabric.health.incorrect_configuration"), str) and board.text("fabric.health.incorrect_configuration") == "None" and known:
        known["incorrect_configuration"] = "None"
    if known:
        card.value("fabric.health", known)
    if board.links or board.extra.pop("topology", False):
        card.value("link.peers", dict(board.links))
