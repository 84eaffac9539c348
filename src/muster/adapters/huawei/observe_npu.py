# SPDX-License-Identifier: Apache-2.0
"""Cards, devices and partitions out of what the texts of one round said.

One NPU id is one card. Its chips are devices when it has several: two dies with two addresses, or two chips behind one. Power is the card's where the package
has one sensor: the first die prints it, and the other die has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from muster.adapters.huawei import words
from muster.adapters.huawei.names import digits
from muster.adapters.huawei.observe_chip import Fields, fill
from muster.adapters.huawei.said import Of, Process, Record, Said
from muster.domain.model.attributes import Level
from muster.domain.model.gather import Gather, Thing
from muster.domain.model.names import pci_address
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.units import from_mib
from muster.formats.numbers import marker

_POSITION = ("phy-id", "chip phy-id", "device", "chip logic id")
FOREIGN_ID = 32768
"""NPU ids from here on are made up by a limiter in a container."""


@dataclass(slots=True)
class _Chip:
    """All that is said of one chip."""

    fields: Fields = field(default_factory=dict)
    cut: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Npu:
    """All that is said of one NPU."""

    key: str | None
    own: _Chip = field(default_factory=_Chip)
    board: _Chip = field(default_factory=_Chip)
    chips: dict[str, _Chip] = field(default_factory=dict)
    card: Thing | None = None
    targets: dict[str, Thing] = field(default_factory=dict)
    """Chip id to the card or device that stands for it."""

    foreign: bool = False
    """True when a limiter made its id up."""
    split: bool = False
    """True for a package of several chips of which the text shows one."""

    @property
    def several(self) -> bool:
        """True when its chips are shown as devices."""
        return self.split or len(self.chips) > 1


def gather(said: Said) -> Gather:
    """The cards of a round."""
    found = Gather()
    _apart(said)
    _node(found, said)
    npus = _npus(said)
    for npu in npus:
        _card(found, npu, said)
    _processes(npus, said)
    _slices(npus, said)
    _ports(found, npus, said)
    _links(found, npus, said)
    return found


def _node(found: Gather, said: Said) -> None:
    node = found.node
    known = {"driver": "driver.version", "firmware": "firmware.version"}
    for key, text in said.node.items():
        if key in known and marker(text) is None:
            node.value(known[key], text)
        else:
            node.tell(key, text)
    if said.runtimes:
        node.value("runtime.name", "cann")
        if len(set(said.runtimes)) == 1 and said.runtimes[0]:
            node.value("runtime.version", said.runtimes[0])


# --- records to chips -------------------------------------------------------------------------------------------------------------------------------


def _apart(said: Said) -> None:
    """Rows of the summary table whose NPU and chip come again with another address are another host's.

    They get an id of their own; what is told by the bare id alone (processes, slices) may be of either host and is left out.
    """
    addresses: dict[tuple[str, str | None], list[str]] = {}
    for place, record in enumerate(said.records):
        address = pci_address(record.fields.get("Bus-Id", "")) if record.listed == "table" else None
        if record.npu is None or address is None or _foreign(record.npu):
            continue
        known = addresses.setdefault((record.npu, record.chip), [])
        if address not in known:
            known.append(address)
        if known.index(address):
            said.records[place] = replace(record, npu=f"{record.npu}@{known.index(address)}")
    twice = {npu for (npu, _), known in addresses.items() if len(known) > 1}
    if twice:
        said.mixed = True
        said.processes = [each for each in said.processes if each.npu not in twice]
        said.slices = [each for each in said.slices if each.npu not in twice]
        said.idle = [each for each in said.idle if each[0] not in twice]


def _npus(said: Said) -> list[_Npu]:
    """NPUs in order of appearance. Records that name none belong to the only NPU there is, or to one without a name."""
    records = [r for r in said.records if r.of is not Of.PORT]
    named = list(dict.fromkeys(_key(r) for r in records if _key(r) is not None))
    alone = named[0] if len(named) == 1 and not any(r.listed == "table" and r.npu is None for r in records) else None
    npus: dict[str | None, _Npu] = {}
    sole = _sole_chips(records, alone) | dict.fromkeys(said.packages, False)
    for record in records:
        key = _key(record) or alone
        if key is None and not record.fields and record.chip is None:
            continue
        npu = npus.setdefault(key, _Npu(key=key, split=record.npu in said.packages, foreign=_foreign(record.npu)))
        _add(_place(npu, record, sole.get(key)), record)
    for npu in npus.values():
        if npu.several and "" in npu.chips:
            _merge(npu.own, npu.chips.pop(""))
    return list(npus.values())


def _key(record: Record) -> str | None:
    """What tells NPUs apart: the id; the address of a row that has none, or whose id is made up."""
    if record.npu is not None and not _foreign(record.npu):
        ident, at, place = record.npu.partition("@")
        return (ident.lstrip("0") or "0") + at + place
    address = pci_address(record.fields.get("Bus-Id", ""))
    if record.listed == "table" and address is not None:
        return f"@{address}"
    return record.npu


def _foreign(ident: str | None) -> bool:
    return ident is not None and digits(ident) and int(ident[:9]) >= FOREIGN_ID


def _sole_chips(records: Iterable[Record], alone: str | None) -> dict[str | None, bool]:
    """NPUs that show one chip in every listing, whatever number the summary table gives it."""
    table: dict[str | None, set[str]] = {}
    other: dict[str | None, set[str]] = {}
    for record in records:
        if record.of is Of.CHIP and record.chip is not None and digits(record.chip):
            (table if record.listed == "table" else other).setdefault(_key(record) or alone, set()).add(record.chip)
    keys = table.keys() | other.keys()
    return {key: len(table.get(key, ())) <= 1 and len(other.get(key, ())) <= 1 for key in keys}


def _place(npu: _Npu, record: Record, sole: bool | None) -> _Chip:
    if record.of is Of.BOARD:
        return npu.board
    if record.of is Of.NPU:
        return npu.own
    chip = record.chip if record.chip is not None and digits(record.chip) and not sole else ""
    return npu.chips.setdefault(chip, _Chip())


def _add(chip: _Chip, record: Record) -> None:
    for name, text in record.fields.items():
        key = words.fold(name)
        old = chip.fields.get(key)
        if old is None or (marker(old[1]) is not None and marker(text) is None):
            chip.fields[key] = (name, text)
    chip.cut = chip.cut | frozenset(words.fold(name) for name in record.cut)


def _merge(into: _Chip, other: _Chip) -> None:
    for key, value in other.fields.items():
        into.fields.setdefault(key, value)


# --- chips to cards ---------------------------------------------------------------------------------------------------------------------------------


def _card(found: Gather, npu: _Npu, said: Said) -> None:
    card = npu.card = found.card(npu.key)
    made_up = npu.key is None or npu.key.startswith("@")
    card.named(index=None if npu.key is None or made_up else npu.key.partition("@")[0])
    name = _name(npu)
    if name:
        card.value("product.name", name)
    if "driver" in said.node and marker(said.node["driver"]) is None:
        card.value("driver.version", said.node["driver"])
    if said.soft_sliced or npu.foreign:
        _soft_slice(card, npu)
        return
    only = _Chip() if npu.several else next(iter(npu.chips.values()), _Chip())
    fill(card, {**npu.own.fields, **only.fields}, npu.own.cut | only.cut, hbm=has_hbm(name))
    _board(card, npu)
    if npu.several:
        _devices(card, npu, name)
    else:
        npu.targets = dict.fromkeys(npu.chips, card) | {"": card}
    _power(card, npu, name)


def _devices(card: Thing, npu: _Npu, name: str) -> None:
    addresses = [address for chip in npu.chips.values() if (address := _address(chip))]
    shared = len(set(addresses)) == 1 and (len(addresses) > 1 or "310P" in name)
    if shared:
        card.named(pci_address=addresses[0])
    for ident, chip in npu.chips.items():
        device = npu.targets[ident] = card.device(ident)
        position = words.first({key: text for key, (_, text) in chip.fields.items()}, _POSITION)
        device.named(index=position if position is not None and digits(position) else None)
        fields = {key: value for key, value in chip.fields.items() if not (shared and key in ("bus-id", "pcie bus info"))}
        serial = fields.pop("serial number", None)
        if serial:
            card.named(serial=serial[1])
        fill(device, fields, chip.cut, hbm=has_hbm(name))
        device.tell("Chip ID", ident)


def _address(chip: _Chip) -> str | None:
    return next((a for key in ("bus-id", "pcie bus info") if (a := pci_address(chip.fields.get(key, ("", ""))[1]))), None)


def _name(npu: _Npu) -> str:
    """The name: the summary's, but the mapping's where that is the same with the maker's word before it, so that all sources of a card say one name."""
    parts = [npu.own, *npu.chips.values()]
    said = {key: {part.fields[key][1] for part in parts if key in part.fields} for key in ("name", "chip name")}
    fuller = bool(said["name"]) and said["chip name"] == {f"Ascend {each}" for each in said["name"]}
    for key in ("chip name", "name") if fuller else ("name", "chip name", "npu name"):
        for part in parts:
            text = part.fields.get(key, ("", ""))[1]
            if text and marker(text) is None:
                for each in parts:
                    each.fields.pop(key, None)
                return text
    return ""


def has_hbm(name: str) -> bool:
    """True for products whose memory is HBM; the DDR that they show belongs to their control processors."""
    return re.search(r"9[15]0", name) is not None


def _board(card: Thing, npu: _Npu) -> None:
    """What the board's controller says: its own temperature, and the card's power where it has the sensor."""
    for key, (name, text) in npu.board.fields.items():
        if key in words.FIELDS and words.FIELDS[key][0] == "temperature.core":
            card.put("temperature.board", words.read("temperature.board", text, 1))
        elif key in words.POWER:
            card.put("power.draw", words.power(text))
        else:
            card.tell(f"mcu {name}", text)


def _power(card: Thing, npu: _Npu, name: str) -> None:
    """One sensor per package, but one per chip on the 310 family."""
    said: dict[str, str] = {}
    for ident, chip in [("", npu.own), *npu.chips.items()]:
        text = words.first({key: text for key, (_, text) in chip.fields.items()}, words.POWER)
        if text is not None:
            said[ident] = text
        elif "power(w)" in chip.cut:
            card.absent("power.draw", Why.UNREADABLE, "the line was cut")
        else:
            for printed in (printed for key, (printed, _) in chip.fields.items() if "power.draw" in words.other_unit(key)):
                card.absent("power.draw", Why.UNREADABLE, f"unit not known: {printed}")
    readings = {ident: words.power(text) for ident, text in said.items()}
    known = [reading for reading in readings.values() if isinstance(reading, Known)]
    per_chip = npu.several and "310" in name and len(known) > 1
    if not per_chip:
        card.put("power.draw", known[0] if known else next(iter(readings.values()), None))
    for ident, reading in readings.items():
        if not npu.several or not ident:
            continue
        if per_chip:
            card.device(ident).put("power.draw", reading)
        elif isinstance(reading, Absent) and known:
            card.device(ident).absent("power.draw", Why.NOT_PRESENT, f"{said[ident]}: one sensor for the card")


# --- slices, processes, ports, links ------------------------------------------------------------------------------------------------------------------


def _soft_slice(card: Thing, npu: _Npu) -> None:
    """Inside a container with a limiter: memory and use are the slice's, the address is the real card's, the id is made up."""
    own = {"memory.used", "memory.total", "utilization.core"}
    for ident, chip in npu.chips.items():
        part = card.partition(ident)
        whole = Thing(Level.CARD, ident)
        fill(whole, {**npu.own.fields, **chip.fields}, chip.cut)
        card.names.update(n for n in whole.names if n.kind not in {m.kind for m in card.names})
        for key, reading in whole.readings.items():
            (part if key in own else card).put(key, reading)
        card.vendor.update(whole.vendor)
        npu.targets[ident] = card
    _power(card, npu, "")


def _processes(npus: list[_Npu], said: Said) -> None:
    rows: dict[int, tuple[Thing, list[dict[str, object]]]] = {}
    by = {npu.key: npu for npu in npus}
    for thing in [target for ident, chip in said.idle for target in _targets(by, ident, chip)]:
        rows.setdefault(id(thing), (thing, []))
    for process in said.processes:
        for thing in _targets(by, process.npu, process.chip)[:1]:
            rows.setdefault(id(thing), (thing, []))[1].append(_process(process))
    for thing, listed in rows.values():
        thing.value("processes", listed)


def _process(process: Process) -> dict[str, object]:
    row: dict[str, object] = {"pid": process.pid}
    if process.name and marker(process.name) is None:
        row["name"] = process.name
    if digits(process.memory) and len(process.memory) < 10:
        row["memory.used"] = from_mib(int(process.memory))
    return row


def _targets(by: Mapping[str | None, _Npu], ident: str | None, chip: str | None) -> list[Thing]:
    """The card or devices that a process or slice row means."""
    npu = by.get(ident.lstrip("0") or "0" if ident else ident)
    if npu is None or npu.card is None:
        return []
    if not npu.several:
        return [npu.card]
    return [thing for key, thing in npu.targets.items() if key == chip] if chip else list(npu.targets.values())


def _slices(npus: list[_Npu], said: Said) -> None:
    by = {npu.key: npu for npu in npus}
    for piece in said.slices:
        for thing in (_targets(by, piece.npu, piece.chip) or [n.card for n in npus[:1] if n.card is not None and len(npus) == 1])[:1]:
            part = thing.partition(piece.ident).named(index=piece.ident)
            thing.value("partition.mode", "vnpu")
            part.put("partition.profile", Known(piece.template) if marker(piece.template) is None else Absent(Why.NOT_REPORTED, piece.template))


def _ports(found: Gather, npus: list[_Npu], said: Said) -> None:
    """The network tool counts chips by device node: the physical id where cards have several chips, else the NPU id."""
    by = {npu.key: npu for npu in npus}
    physical = {_index(thing): thing for npu in npus if npu.several for thing in npu.targets.values()}
    for record in said.records:
        if record.of is not Of.PORT or record.npu is None:
            continue
        key = record.npu.lstrip("0") or "0"
        thing = physical.get(key) if physical else by[key].card if key in by else None
        if thing is None:
            thing = found.card(key if not physical else f"port {key}").named(index=key)
        state = record.fields.get("link_stat.newest record") or record.fields.get("link.link status", "")
        if state.lower() in ("up", "down"):
            thing.value("network.state", state.lower())
        for name, text in record.fields.items():
            thing.vendor.setdefault(f"hccn {name}", text)


def _index(thing: Thing) -> str:
    return next((n.value for n in thing.names if n.kind == "index"), "")


def _links(found: Gather, npus: list[_Npu], said: Said) -> None:
    """Rows of the link matrix: NPU ids are cards; physical ids are chips, and two that are joined inside a package are one card."""
    chips = {_index(thing): thing for npu in npus for thing in npu.targets.values() if npu.several}
    for npu in npus:
        position = [text for chip in npu.chips.values() for key, (_, text) in chip.fields.items() if key in _POSITION[:2]]
        if not npu.several and npu.card is not None and position:
            chips.setdefault(position[0], npu.card)
    for label, peers in said.peers.items():
        ident = label.removeprefix("NPU").removeprefix("Phy-ID").lstrip("0") or "0"
        if label.startswith("NPU"):
            thing = next((npu.card for npu in npus if npu.key == ident and npu.card is not None), None) or found.card(ident).named(index=ident)
        elif ident in chips:
            thing = chips[ident]
        else:
            thing = found.card(f"package {_package(label, said)}").device(ident).named(index=ident)
        thing.value("link.peers", dict(peers))


def _package(label: str, said: Said) -> int:
    """The lowest physical id among the chips that are joined with this one inside a package, by either one's row."""
    joined = {label, *(peer for peer, word in said.peers.get(label, {}).items() if word == "SIO")}
    joined |= {row for row, peers in said.peers.items() if peers.get(label) == "SIO"}
    return min(int(each.removeprefix("Phy-ID")) for each in joined if each.startswith("Phy-ID"))
