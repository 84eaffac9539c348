# SPDX-License-Identifier: Apache-2.0
"""How an interpretation of a corpus file is held against the file of truth beside it: cards, parts, facts, absences, processes, node.

A difference is a sentence. What truth does not speak of may be there too; a card, device or partition it does not list may not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.names import NameKind, canonical, names_nothing
from muster.domain.model.reading import Why

Node: TypeAlias = Mapping[str, Any]

RELATIVE = 2e-3
"""Half of the last digit that a tool prints is never more than this share of the number."""
PARTS = ("devices", "partitions")
LASTING = ("serial", "vendor_uuid", "pci_address")
_STRENGTH = ("serial", "vendor_uuid", "pci_address", "chassis_slot", "k8s_device", "gpu_instance_id", "index", "compute_instance_id")
_REASONS = frozenset(why.value for why in Why)


@dataclass(frozen=True, slots=True)
class Pair:
    """An entry of truth and what was read for it; None when nothing fits."""

    wanted: Node
    found: Node | None


def differences(truth: Node, told: Node) -> Iterator[str]:
    """Everything in which ``told`` (the document of `muster interpret`) does not say what ``truth`` says."""
    if truth["outcome"] != told["outcome"]:
        yield f"outcome {told['outcome']}, truth {truth['outcome']}"
    cards = told.get("cards") or []
    for key, value in (truth.get("node") or {}).items():
        said = [found for node in (told.get("node") or {}, *cards, *chain(*(card.get("devices") or () for card in cards))) if (found := _reading(node, key))]
        if not any(_says(reading, value) for reading in said[:1]):
            yield f"node {key}: {said[:1] or 'nobody speaks of it'}, truth {value!r}"
    yield from _level("card", truth.get("cards") or [], cards, ())


def _level(kind: str, wanted: Sequence[Node], found: Sequence[Node], above: tuple[Node, ...]) -> Iterator[str]:
    pairs, spare = pair(wanted, found)
    yield from (f"a {kind} too many: {each.get('ids')}" for each in spare)
    for each in pairs:
        where = f"{kind} {each.wanted.get('ids') or '(without a name)'}"
        if each.found is None:
            yield f"{where} is missing"
        else:
            yield from (f"{where}: {fault}" for fault in _entry(each.wanted, each.found, above))


def _entry(wanted: Node, found: Node, above: tuple[Node, ...]) -> Iterator[str]:
    devices = found.get("devices") or []
    seen = (found, *above, *(devices if len(devices) == 1 else ()))
    yield from _names(wanted, found, devices)
    for key, value in (wanted.get("facts") or {}).items():
        reading = _first(seen, key)
        if reading is None or not _says(reading, value):
            yield f"{key}: {reading}, truth {value!r}"
    for key in wanted.get("absent") or []:
        reading = _first(seen, key)
        if reading is None or reading.get("absent") not in _REASONS:
            yield f"{key}: {reading}, truth is an absence with its reason"
    yield from _processes(wanted.get("processes") or [], found)
    if wanted.get("devices"):
        yield from _level("device", wanted["devices"], devices, (found, *above))
    inner = [part for device in devices for part in device.get("partitions") or ()]
    own = [*(found.get("partitions") or ()), *inner]
    if wanted.get("partitions") or (own and "partitions" in wanted):
        yield from _level("partition", wanted["partitions"], own, (found, *above))


def _names(wanted: Node, found: Node, devices: Sequence[Node]) -> Iterator[str]:
    have = names(found) | (names(devices[0]) if len(devices) == 1 else set())
    for kind, value in (wanted.get("ids") or {}).items():
        if kind in LASTING and not names_nothing(NameKind(kind), str(value)) and not _spellings(kind, value) & have:
            yield f"{kind} {found.get('ids', {}).get(kind)}, truth {value}"


def _processes(wanted: Sequence[Node], found: Node) -> Iterator[str]:
    rows = [row for node in _all(found) for row in node.get("processes") or ()]
    for each in wanted:
        same = [row for row in rows if str(row.get("pid")) == str(each.get("pid"))]
        if not any("memory.used" not in each or equal(each["memory.used"], row.get("memory.used")) for row in same):
            yield f"process {each.get('pid')}: {same}, truth {each}"


def _all(node: Node) -> Iterator[Node]:
    yield node
    for kind in PARTS:
        for part in node.get(kind) or ():
            yield from _all(part)


def pair(wanted: Sequence[Node], found: Sequence[Node]) -> tuple[list[Pair], list[Node]]:
    """Entries of truth with what was read for each, by their strongest common name; those without names in order. Then what was read beyond them."""
    left, of = list(range(len(found))), dict[int, int]()
    for kind in _STRENGTH:
        for place, each in enumerate(wanted):
            mine = {(k, v) for k, v in names(each) if k == kind}
            hit = next((n for n in left if mine & names(found[n], with_device=True)), None) if place not in of else None
            if hit is not None:
                of[place] = hit
                left.remove(hit)
    for place, each in enumerate(wanted):
        if place not in of and left and not names(each):
            of[place] = left.pop(0)
    return [Pair(each, found[of[place]] if place in of else None) for place, each in enumerate(wanted)], [found[n] for n in left]


def names(node: Node, *, with_device: bool = False) -> set[tuple[str, str]]:
    """The names of an entry, each in every spelling that means the same."""
    devices = node.get("devices") or []
    told = [node, *(devices if with_device and len(devices) == 1 else ())]
    return {each for n in told for kind, value in (n.get("ids") or {}).items() for one in _several(value) for each in _spellings(kind, one)}


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _spellings(kind: str, value: Any) -> set[tuple[str, str]]:
    text = canonical(NameKind(kind), str(value))
    told = {text}
    if kind in ("serial", "vendor_uuid"):
        bare = re.sub(r"[^0-9a-z]", "", text).removeprefix("0x").lstrip("0") or "0"
        told |= {bare, f"{int(bare):x}"} if bare.isdigit() else {bare}
    if kind == "pci_address":
        told = {text.rpartition(".")[0] or text}
    return {(kind, each) for each in told}


def _first(nodes: Sequence[Node], key: str) -> Node | None:
    return next((reading for node in nodes if (reading := _reading(node, key)) is not None), None)


def _reading(node: Node, key: str) -> Node | None:
    found: Node | None = (node.get("readings") or {}).get(key)
    return found


def _says(reading: Node, value: Any) -> bool:
    return "value" in reading and equal(value, reading["value"])


def equal(wanted: Any, found: Any) -> bool:
    """The same value: numbers to the last digit printed, text without case, a mapping as far as it is wanted, a list in any order."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return math.isclose(wanted, found, rel_tol=RELATIVE, abs_tol=1e-6)
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return all(key in found and equal(value, found[key]) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list | tuple | set | frozenset):
        return sorted(map(_text, wanted)) == sorted(map(_text, found))
    return _text(wanted) == _text(found)


def _text(value: Any) -> str:
    return str(value).strip().lower()


def implausible(told: Node) -> Iterator[str]:
    """Readings that no card can have: out of the dictionary's range, or a marker where a value should be."""
    for node in chain.from_iterable(_all(card) for card in told.get("cards") or ()):
        for key, reading in (node.get("readings") or {}).items():
            entry, value = ATTRIBUTES.get(key), reading.get("value")
            if "value" not in reading:
                if reading.get("absent") not in _REASONS:
                    yield f"{key}: an absence without a reason of the list: {reading}"
            elif value is None or (isinstance(value, str) and value.strip().lower() in {"", "-", "n/a", "na", "nan", "null", "not supported", "unknown error"}):
                yield f"{key}: a marker as a value: {value!r}"
            elif entry is not None and entry.numeric and not _within(value, entry.low, entry.high):
                yield f"{key}: {value!r} is out of its range"


def _within(value: Any, low: float | None, high: float | None) -> bool:
    return isinstance(value, int | float) and value == value and (low is None or value >= low) and (high is None or value <= high)
