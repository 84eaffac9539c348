# SPDX-License-Identifier: Apache-2.0
"""Functions of the bus to cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muster.adapters.pci.choose import Verdict, choose, role
from muster.adapters.pci.function import ALL_ONES_WIDTH, Function, generation, number
from muster.adapters.pci.parse_lspci import parse_lspci, strangers
from muster.adapters.pci.parse_sysfs import parse_sysfs
from muster.adapters.pci.recognise import LSPCI
from muster.domain.model.gather import Gather, Thing
from muster.domain.model.observation import Interpretation, Role
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.source import Capture, Outcome
from muster.formats.shape import first_misfit, lacking
from muster.spi.adapter import Models

KNOWN_VENDORS = "known_vendors"
"""Key of a capture's context: vendor ids of all manifests, parted by commas."""

_HOST_BRIDGE = "0600"


def interpret(captures: Sequence[Capture], models: Models) -> Interpretation:
    """Cards and displays on the bus of one node, from its sysfs or from a text of lspci."""
    del models
    functions: dict[str, Function] = {}
    for capture in captures:
        for address, function in _parsed(capture).items():
            functions.setdefault(address, function)
    form = captures[0].format if captures else ""
    if not functions:
        odd = (first_misfit(capture.payload) for capture in captures)
        return Interpretation(outcome=Outcome.UNREADABLE, format=form, detail=lacking("no PCI function in it", next(filter(None, odd), "")))
    return _told(functions.values(), _known(captures), form, whole=_whole(captures, functions.values()))


def _parsed(capture: Capture) -> dict[str, Function]:
    return parse_lspci(capture.payload) if capture.format == LSPCI else parse_sysfs(capture.payload)


def _known(captures: Sequence[Capture]) -> frozenset[str]:
    return frozenset(part.strip().lower() for capture in captures for part in capture.context.get(KNOWN_VENDORS, "").split(",") if part.strip())


def _whole(captures: Sequence[Capture], functions: Iterable[Function]) -> bool:
    """True when the listing shows the whole bus: not cut, each function with its class; and, in a text that may have been
    filtered, the host bridge too and no line that is none of a listing."""
    if any(capture.cut for capture in captures):
        return False
    listed = tuple(functions)
    if any(capture.format == LSPCI for capture in captures):
        strange = any(strangers(capture.payload) for capture in captures if capture.format == LSPCI)
        return not strange and any(function.kind == _HOST_BRIDGE for function in listed)
    return all(function.class_ and function.vendor for function in listed)


def _told(functions: Iterable[Function], known: frozenset[str], form: str, *, whole: bool) -> Interpretation:
    gather = Gather()
    verdicts: list[Verdict] = []
    cards: list[Function] = []
    for function in functions:
        verdicts.append(choose(function, known))
        if verdicts[-1] is Verdict.CARD:
            cards.append(function)
            _card(gather.card(function.address), function, role(function, known))
    accelerators = [function for function in cards if role(function, known) is Role.ACCELERATOR]
    undecided = verdicts.count(Verdict.UNDECIDED)
    outcome = Outcome.DEVICES if accelerators else Outcome.NO_DEVICES
    if any(function.gone for function in accelerators):
        outcome = Outcome.DEVICE_LOST
    return Interpretation(
        outcome=outcome,
        complete=whole and not undecided,
        format=form,
        detail=f"{undecided} functions of other classes may be accelerators; the text does not tell" if undecided else "",
        observations=gather.observations(),
    )


def _card(card: Thing, function: Function, use: Role) -> None:
    card.role = use
    card.named(pci_address=function.address, chassis_slot=function.slot or None)
    for key, text in (
        ("pci.class", function.class_),
        ("pci.vendor_id", function.vendor),
        ("pci.device_id", function.device),
        ("pci.subsystem_vendor_id", _id(function.subsystem_vendor)),
        ("pci.subsystem_device_id", _id(function.subsystem_device)),
    ):
        card.value(key, text or None)
    for key, reading in _link(function).items():
        card.put(key, reading)
    card.put("numa.node", _numa(function))
    card.put("driver.name", _driver(function))
    for name, text in (("name", function.name), ("revision", function.revision), ("slot", function.slot)):
        if text:
            card.tell(name, text)
    for name, mark in function.marks.items():
        card.tell(name, mark)


def _id(text: str) -> str:
    """A subsystem id; zeros are none."""
    return text if text.strip("0") else ""


def _link(function: Function) -> dict[str, Reading | None]:
    return {
        "pci.link.generation": _generation(function.speed, function, "current_link_speed"),
        "pci.link.generation.max": _generation(function.speed_max, function, "max_link_speed"),
        "pci.link.width": _width(function.width, function, "current_link_width"),
        "pci.link.width.max": _width(function.width_max, function, "max_link_width"),
    }


def _generation(text: str, function: Function, name: str) -> Reading | None:
    found = generation(text)
    return Known(found) if found is not None and not function.gone else _missing(text, function, name)


def _width(text: str, function: Function, name: str) -> Reading | None:
    found = number(text)
    usable = found is not None and 0 < found < ALL_ONES_WIDTH and not function.gone
    return Known(found) if usable else _missing(text, function, name)


def _missing(text: str, function: Function, name: str) -> Reading | None:
    """Why a part of the link is not known; None when the listing does not speak of it."""
    if function.gone:
        return Absent(Why.DEVICE_LOST, text or "the device does not answer on the bus")
    if name in function.marks:
        return _marked(function.marks[name])
    if not text:
        return Absent(Why.NOT_REPORTED, "no link in the listing") if function.told - {"numa_node"} else None
    known = text.lower().startswith("unknown") or number(text) in (0, 255)
    return Absent(Why.NOT_REPORTED if known else Why.UNREADABLE, text[:80])


def _marked(mark: str) -> Absent:
    return Absent(Why.NOT_PERMITTED if mark == "!not_permitted" else Why.ERROR, mark.removeprefix("!"))


def _numa(function: Function) -> Reading | None:
    if "numa_node" in function.marks:
        return _marked(function.marks["numa_node"])
    if "numa_node" not in function.told:
        return None
    if function.numa.strip() == "-1":
        return Absent(Why.NOT_PRESENT, "-1")
    found = number(function.numa)
    return Known(found) if found is not None else Absent(Why.UNREADABLE, function.numa[:80])


def _driver(function: Function) -> Reading | None:
    if function.driver:
        return Known(function.driver)
    return Absent(Why.NOT_PRESENT, "no driver is bound") if "class" in function.told and "driver" not in function.marks else None
