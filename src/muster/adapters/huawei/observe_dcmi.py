# SPDX-License-Identifier: Apache-2.0
"""Cards and devices out of the library's answers. Units are the library's: 0.1 W, 0.01 V, MHz, MB (MiB), percent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muster.adapters.huawei.failures import CODES
from muster.adapters.huawei.names import die, hex_code
from muster.domain.model.gather import Gather, Thing
from muster.domain.model.names import pci_address
from muster.domain.model.observation import Interpretation
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.source import Outcome
from muster.domain.model.units import from_mhz, from_mib, from_percent, scaled

_HEALTH = {0: "ok", 1: "warning", 2: "critical", 3: "critical"}
_ECC = {
    "errors.memory.corrected": ("single_bit_error_cnt",),
    "errors.memory.uncorrected": ("double_bit_error_cnt",),
    "errors.memory.corrected.lifetime": ("total_single_bit_error_cnt",),
    "errors.memory.uncorrected.lifetime": ("total_double_bit_error_cnt",),
    "memory.pages_retired": ("single_bit_isolated_pages_cnt", "double_bit_isolated_pages_cnt"),
    "memory.pages_retired.next": ("single_bit_next_isolated_pages_cnt", "double_bit_next_isolated_pages_cnt"),
}
_RATES = {"aicore": "utilization.core", "vector": "utilization.vector"}
_PCI = {"venderid": "pci.vendor_id", "deviceid": "pci.device_id", "subvenderid": "pci.subsystem_vendor_id", "subdeviceid": "pci.subsystem_device_id"}
_NOT_HERE = 0xFFFFFFFF


def gather(told: Mapping[str, Any]) -> tuple[Gather, Interpretation]:
    """The cards of one snapshot, and the outcome without observations."""
    head, found = _map(told.get("dcmi")), Gather()
    started = _rc(head.get("init"))
    if started != 0:
        outcome = Outcome.NOT_PERMITTED if started == -8002 else Outcome.DRIVER_UNUSABLE
        return found, Interpretation(outcome=outcome, detail=f"dcmi_init: {_said(started)}")
    for key, call in (("driver.version", "driver_version"), ("runtime.library.version", "dcmi_version")):
        text = _value(head.get(call))
        found.node.value(key, text if isinstance(text, str) and text else None)
    listed = _rc(head.get("card_list"))
    cards = [card for card in _list(told.get("cards")) if isinstance(card, dict) and isinstance(card.get("card_id"), int)]
    lost = [card for card in cards if _rc(card.get("device_ids")) != 0]
    for card in cards:
        _card(found, card)
    return found, _outcome(listed, len(cards), _value(head.get("card_list")), lost)


def _outcome(listed: int, cards: int, promised: Any, lost: list[dict[str, Any]]) -> Interpretation:
    if listed == -8008 or (listed == 0 and not cards and promised == 0):
        return Interpretation(outcome=Outcome.NO_DEVICES, complete=True, detail=_said(listed) if listed else "")
    if listed != 0:
        return Interpretation(outcome=Outcome.NOT_PERMITTED if listed == -8002 else Outcome.DRIVER_UNUSABLE, detail=f"dcmi_get_card_list: {_said(listed)}")
    short = isinstance(promised, int) and cards < promised
    detail = "; ".join(f"card {card['card_id']}: {_said(_rc(card.get('device_ids')))}" for card in lost)
    return Interpretation(outcome=Outcome.PARTIAL if lost or short else Outcome.DEVICES, complete=not short, detail=detail)


def _card(found: Gather, told: Mapping[str, Any]) -> None:
    card = found.card(told["card_id"]).named(index=told["card_id"])
    card.put("driver.version", found.node.readings.get("driver.version"))
    known = [chip for chip in _list(told.get("devices")) if isinstance(chip, dict) and isinstance(chip.get("device_id"), int)]
    chips = list({chip["device_id"]: chip for chip in reversed(known)}.values())[::-1]
    addresses = [address for chip in chips if (address := _address(chip))]
    shared = len(set(addresses)) == 1 and len(addresses) == len(chips)
    for chip in chips:
        _names_of_board(card, chip)
        thing = card if len(chips) == 1 else card.device(chip.get("device_id"))
        position = _value(chip.get("phy_id")) if _value(chip.get("phy_id")) is not None else _value(chip.get("logic_id"))
        if thing is not card:
            thing.named(index=position if isinstance(position, int) else None)
        (card if shared else thing).named(pci_address=_address(chip))
        _chip(thing, chip)
        thing.tell("phy_id", position)
    _power(card, told, chips)
    if not chips:
        card.absent("memory.total", *_why(_rc(told.get("device_ids"))))


def _names_of_board(card: Thing, chip: Mapping[str, Any]) -> None:
    label, info = _map(_value(chip.get("label"))), _map(_value(chip.get("chip")))
    serial = label.get("serial_number")
    card.named(serial=serial if isinstance(serial, str) else None)
    for key in ("product_name", "model", "manufacturer"):
        if label.get(key):
            card.tell(key, label[key])
    name = info.get("chip_name")
    if isinstance(name, str) and name:
        card.value("product.name", name)
        card.tell("chip_type", info.get("chip_type"))


def _chip(thing: Thing, chip: Mapping[str, Any]) -> None:
    words = _map(_value(chip.get("vdie"))).get("soc_die")
    thing.named(vendor_uuid=die(words) if isinstance(words, list) else None)
    info, pcie = _map(_value(chip.get("chip"))), _map(_value(chip.get("pcie")))
    units = info.get("aicore_cnt")
    thing.value("compute.units", units if isinstance(units, int) and units else None)
    for field, key in _PCI.items():
        thing.value(key, f"{pcie[field] & 0xFFFF:04x}" if isinstance(pcie.get(field), int) else None)
    thing.put("temperature.core", _reading(chip.get("temperature"), lambda v: v))
    thing.put("voltage.core", _positive(chip.get("voltage"), lambda v: scaled(v, 0.01)))
    _memory(thing, chip)
    _clocks(thing, chip)
    _ecc(thing, chip)
    _health(thing, chip)
    _processes(thing, chip)
    thing.tell("network_health", _map(chip.get("network_health")))


def _memory(thing: Thing, chip: Mapping[str, Any]) -> None:
    hbm, ddr = chip.get("hbm"), chip.get("memory")
    size = _map(_value(hbm)).get("memory_size", 0)
    has_hbm = bool(size)
    rates = _map(chip.get("rates"))
    unknown = _unknown(hbm)
    if unknown is not None:
        thing.put("memory.total", unknown).put("memory.used", unknown)
    elif has_hbm:
        thing.put("memory.total", _of(hbm, "memory_size", from_mib)).put("memory.used", _of(hbm, "memory_usage", from_mib))
        thing.put("temperature.memory", _of(hbm, "temp", lambda v: v))
    else:
        thing.put("memory.total", _of(ddr, "memory_size", from_mib))
        size, free = _map(_value(ddr)).get("memory_size"), _map(_value(ddr)).get("memory_available")
        if isinstance(size, int) and isinstance(free, int) and 0 <= free <= size:
            thing.value("memory.used", from_mib(size - free)).value("memory.free", from_mib(free))
    if thing.readings.get("memory.total") == Known(0):
        thing.readings["memory.total"] = Absent(Why.IMPLAUSIBLE, "0 as given")
    thing.put("utilization.memory_bandwidth", unknown or _rate(rates.get("hbm_bandwidth" if has_hbm else "ddr_bandwidth")))
    for name, key in _RATES.items():
        thing.put(key, _rate(rates.get(name)))


def _unknown(hbm: Any) -> Absent | None:
    """Why it is not known whether the chip has HBM; None where that is known. The memory of the control processors never stands in for it."""
    code = hbm.get("rc") if isinstance(hbm, dict) else None
    if not isinstance(code, int) or (code == 0 and not isinstance(hbm.get("value"), dict)):
        return Absent(Why.UNREADABLE, "no answer on HBM")
    why, said = _why(code) if code else (Why.NOT_SUPPORTED, "")
    return None if why is Why.NOT_SUPPORTED else Absent(why, said)


def _clocks(thing: Thing, chip: Mapping[str, Any]) -> None:
    for key, call in _map(chip.get("frequency")).items():
        if key.startswith("clock."):
            thing.put(key, _positive(call, from_mhz))


def _ecc(thing: Thing, chip: Mapping[str, Any]) -> None:
    calls = [chip.get("ecc_ddr"), chip.get("ecc_hbm")]
    answers = [_map(_value(call)) for call in calls if _rc(call) == 0]
    for key, fields in _ECC.items():
        counts = [answer[field] for answer in answers for field in fields if isinstance(answer.get(field), int)]
        good = [count for count in counts if count != _NOT_HERE]
        thing.put(key, _odd(answers, fields) or (Known(sum(good)) if good else _missing(calls)))
    pending = thing.readings.get("memory.pages_retired.next")
    if isinstance(pending, Known):
        thing.value("memory.pages_retired.pending", pending.value > 0)
    flags = [answer["enable_flag"] for answer in answers if isinstance(answer.get("enable_flag"), int)]
    thing.put("ecc.enabled", Known(any(flag == 1 for flag in flags)) if flags else _missing(calls))


def _odd(answers: Iterable[Mapping[str, Any]], fields: tuple[str, ...]) -> Absent | None:
    """Why a sum over ``fields`` is not known although some of them are: one does not read, or is not there beside its brothers."""
    for answer in answers:
        told = [field for field in fields if field in answer]
        if told and (len(told) < len(fields) or not all(isinstance(answer[field], int) for field in told)):
            return Absent(Why.UNREADABLE, repr({field: answer.get(field) for field in fields})[:120])
    return None


def _health(thing: Thing, chip: Mapping[str, Any]) -> None:
    health = _reading(chip.get("health"), lambda v: v)
    if _value(chip.get("health")) == _NOT_HERE:
        health = Absent(Why.DEVICE_LOST, "the device is not there or not started")
    if isinstance(health, Known):
        thing.value("health.vendor", str(health.value)).value("health.reported", _HEALTH.get(health.value, "unknown"))
    else:
        thing.put("health.vendor", health).put("health.reported", health)
    thing.put("fault.codes", _listing(chip.get("error_codes"), lambda v: sorted({hex_code(code) for code in v if isinstance(code, int)})))


def _processes(thing: Thing, chip: Mapping[str, Any]) -> None:
    def rows(listed: Iterable[Any]) -> list[dict[str, Any]]:
        found = [row for row in listed if isinstance(row, dict) and isinstance(row.get("pid"), int)]
        return [{"pid": row["pid"], **({"memory.used": row["bytes"]} if isinstance(row.get("bytes"), int) else {})} for row in found]

    thing.put("processes", _listing(chip.get("processes"), rows))


def _power(card: Thing, told: Mapping[str, Any], chips: list[dict[str, Any]]) -> None:
    """One sensor per package: each die gives the package's value. The 310 family has one per chip, or one on the board."""
    readings = [(chip, _positive(chip.get("power"), lambda v: scaled(v, 0.1))) for chip in chips]
    known = [(chip, reading) for chip, reading in readings if isinstance(reading, Known)]
    name = card.readings.get("product.name")
    per_chip = len(known) > 1 and isinstance(name, Known) and "310" in str(name.value)
    board = _positive(told.get("board_power"), lambda v: scaled(v, 0.1))
    if isinstance(board, Known):
        card.put("power.draw", board)
    elif known and not per_chip:
        card.put("power.draw", known[0][1])
    elif readings and not known:
        card.put("power.draw", readings[0][1])
    for chip, reading in readings if len(chips) > 1 else ():
        if per_chip:
            card.device(chip.get("device_id")).put("power.draw", reading)
        elif known and chip is not known[0][0]:
            card.device(chip.get("device_id")).absent("power.draw", Why.NOT_PRESENT, "one sensor for the card")


# --- calls to readings --------------------------------------------------------------------------------------------------------------------------------


def _reading(call: Any, convert: Any) -> Reading | None:
    """Known where the call succeeded, else why it did not; None where it was never made."""
    if not isinstance(call, dict):
        return None
    rc = _rc(call)
    if rc != 0:
        return Absent(*_why(rc))
    value = call.get("value")
    if value == _NOT_HERE and not isinstance(value, bool):
        return Absent(Why.NOT_SUPPORTED, "0xffffffff")
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _NOT_HERE**2:
        return Absent(Why.UNREADABLE, repr(value)[:80])
    return Known(convert(value))


def _listing(call: Any, convert: Any) -> Reading | None:
    """The same for a call that gives a list."""
    if _rc(call) != 0 or not isinstance(call, dict):
        return _reading(call, convert)
    value = call.get("value")
    return Known(convert(value)) if isinstance(value, list) else Absent(Why.UNREADABLE, repr(value)[:80])


def _positive(call: Any, convert: Any) -> Reading | None:
    reading = _reading(call, lambda v: v)
    if not isinstance(reading, Known):
        return reading
    if not isinstance(reading.value, int) or reading.value <= 0:
        return Absent(Why.IMPLAUSIBLE, f"{reading.value} as given")
    return Known(convert(reading.value))


def _rate(call: Any) -> Reading | None:
    reading = _reading(call, lambda v: v)
    return Known(from_percent(reading.value)) if isinstance(reading, Known) and isinstance(reading.value, int) else reading


def _of(call: Any, field: str, convert: Any) -> Reading | None:
    if not isinstance(call, dict):
        return None
    return _reading({"rc": _rc(call), "value": _map(call.get("value")).get(field)}, convert)


def _missing(calls: list[Any]) -> Reading | None:
    codes = [_rc(call) for call in calls if isinstance(call, dict)]
    return Absent(*_why(codes[-1])) if codes and codes[-1] != 0 else None


def _why(rc: int) -> tuple[Why, str]:
    return CODES.get(rc, (Why.ERROR, ""))[0], _said(rc)


def _said(rc: int) -> str:
    return f"ret is {rc} ({CODES[rc][1]})" if rc in CODES else f"ret is {rc}"


def _rc(call: Any) -> int:
    code = call.get("rc") if isinstance(call, dict) else None
    return code if isinstance(code, int) else -99998


def _value(call: Any) -> Any:
    return call.get("value") if isinstance(call, dict) and call.get("rc") == 0 else None


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _address(chip: Mapping[str, Any]) -> str | None:
    pcie = _map(_value(chip.get("pcie")))
    parts = [pcie.get(key) for key in ("domain", "bdf_busid", "bdf_deviceid", "bdf_funcid")]
    if not all(isinstance(part, int) and part >= 0 for part in parts):
        return None
    domain, bus, device, function = (int(part or 0) for part in parts)
    return pci_address(f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
