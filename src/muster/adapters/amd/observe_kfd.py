# SPDX-License-Identifier: Apache-2.0
"""The compute driver's topology (KFD): a node per CPU, per GPU, and per slice of a GPU. A GPU's unique id is the card's key; its slices share it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from muster.adapters.amd.parse_sysfs import Files, properties
from muster.adapters.amd.values import measure, whole
from muster.domain.model.gather import Gather, Thing
from muster.domain.model.names import NameKind, names_nothing, pci_device
from muster.domain.model.reading import Absent, Why

_NODE = re.compile(r"(?:^|/)nodes/(\d{1,4})/(.+)$")
_PART = re.compile(r"^(mem_banks|io_links|p2p_links)/(\d+)/properties$")
_AMD = 0x1002
_XGMI, _PCIE = 11, 2
_KEPT = ("drm_render_minor", "location_id", "simd_count", "num_xcc", "gfx_target_version", "fw_version", "sdma_fw_version", "capability", "hive_id")


@dataclass(slots=True)
class Node:
    """One node of the topology with its memory banks and links."""

    number: int
    told: dict[str, str] = field(default_factory=dict)
    banks: list[dict[str, str]] = field(default_factory=list)
    links: list[dict[str, str]] = field(default_factory=list)
    name: str = ""
    gpu_id: str = ""

    def get(self, key: str) -> int | None:
        """A property as a number."""
        return whole(self.told.get(key))

    @property
    def is_gpu(self) -> bool:
        """True for a GPU or a slice of one; a CPU has no shader engines."""
        return (self.get("simd_count") or 0) > 0 and self.get("vendor_id") in (_AMD, None)

    @property
    def address(self) -> str | None:
        """PCI address from domain and location (bus, device and function in one number)."""
        at = self.get("location_id")
        if not at or at > 0xFFFF:
            return None
        return f"{self.get('domain') or 0:04x}:{at >> 8:02x}:{at >> 3 & 31:02x}.{at & 7}"

    @property
    def unique(self) -> str | None:
        """The chip's unique id in hex as other sources print it."""
        value = self.get("unique_id")
        text = f"0x{value:016x}" if value else ""
        return text if text and not names_nothing(NameKind.VENDOR_UUID, text) else None

    @property
    def memory(self) -> int | None:
        """Bytes of its own memory (public and private banks), None where the topology does not say."""
        sizes = [
            int(size) for bank in self.banks if bank.get("heap_type") in ("1", "2") and (size := bank.get("size_in_bytes", "")).isdecimal() and len(size) < 16
        ]
        return sum(sizes) or self.get("local_mem_size") or None

    @property
    def units(self) -> int | None:
        """Compute units."""
        simds, per = self.get("simd_count"), self.get("simd_per_cu")
        return simds // per if simds and per else None


def nodes(found: Files) -> dict[int, Node]:
    """Nodes by number."""
    told: dict[int, Node] = {}
    for path, rows in found.items():
        match = _NODE.search(path)
        if match is None:
            continue
        node = told.setdefault(int(match.group(1)), Node(int(match.group(1))))
        part = _PART.match(match.group(2))
        if part is not None:
            (node.banks if part.group(1) == "mem_banks" else node.links).append(properties(rows))
        elif match.group(2) == "properties":
            node.told = properties(rows)
        elif match.group(2) in ("name", "gpu_id") and rows:
            setattr(node, match.group(2), rows[0])
    return told


def observe(gather: Gather, found: Files) -> bool:
    """Puts the topology's cards into ``gather``, onto the card at the same address where the driver's files told of it already.

    Gives False when links lead to nodes that are not in the files: then the listing is not whole.
    """
    all_nodes = nodes(found)
    gpus = {number: node for number, node in all_nodes.items() if node.is_gpu}
    unsure = _doubtful(gpus.values())
    groups: dict[str, list[Node]] = defaultdict(list)
    for node in gpus.values():
        address = node.address if node.address not in unsure else None
        groups[node.unique or (f"at {pci_device(address)}" if address else f"node {node.number}")].append(node)
    cards: dict[int, Thing] = {}
    for key, parts in groups.items():
        parts.sort(key=lambda node: (node.address or "", node.number))
        card = _card(gather, key, parts, unsure)
        cards.update({node.number: card for node in parts})
    _peers(gpus, cards)
    _pairs(gpus, cards)
    ends = {to for node in all_nodes.values() for link in node.links if (to := whole(link.get("node_to"))) is not None}
    return ends <= all_nodes.keys() and all(node.told for node in all_nodes.values())


def _doubtful(gpus: Iterable[Node]) -> set[str | None]:
    """Addresses that several chips claim: they name none of them."""
    claims: Counter[str | None] = Counter()
    seen: set[tuple[str | None, str | None]] = set()
    for node in gpus:
        if (node.address, node.unique) not in seen:
            seen.add((node.address, node.unique))
            claims[node.address] += 1
    return {address for address, count in claims.items() if count > 1}


def _card(gather: Gather, key: str, parts: list[Node], unsure: set[str | None]) -> Thing:
    first = parts[0]
    address = first.address if first.address not in unsure else None
    base = f"{pci_device(address)}.0" if address and len(parts) > 1 else address
    card = gather.card(base or key)
    card.named(pci_address=base, vendor_uuid=first.unique)
    _facts(card, first)
    totals = [node.memory for node in parts]
    card.put(
        "memory.total",
        measure("memory.total", sum(t for t in totals if t), "B") if all(totals) else Absent(Why.NOT_REPORTED, "local_mem_size 0 and no memory banks"),
    )
    units = [node.units for node in parts]
    card.value("compute.units", sum(u for u in units if u) if all(units) else None)
    if len(parts) > 1:
        for place, node in enumerate(parts):
            _slice(card, place, node, unsure)
    return card


def _facts(card: Thing, node: Node) -> None:
    for key, name in (("pci.vendor_id", "vendor_id"), ("pci.device_id", "device_id")):
        value = node.get(name)
        card.value(key, f"{value:04x}" if value and 0 < value <= 0xFFFF else None)
    card.value("product.architecture", architecture(node.get("gfx_target_version")))
    card.put("clock.core.max", measure("clock.core.max", node.told.get("max_engine_clk_fcompute"), "MHz"))
    clocks = [clock for bank in node.banks if bank.get("heap_type") in ("1", "2") and (clock := bank.get("mem_clk_max"))]
    if clocks:
        card.put("clock.memory.max", measure("clock.memory.max", clocks[0], "MHz"))
    hive = node.get("hive_id")
    card.value("fabric.domain", str(hive) if hive else None)
    kept = {key: node.told[key] for key in _KEPT if key in node.told}
    card.tell("kfd", {"node": node.number, "gpu_id": node.gpu_id, "name": node.name, **kept})


def _slice(card: Thing, place: int, node: Node, unsure: set[str | None]) -> None:
    part = card.partition(place)
    part.named(index=place, pci_address=node.address if node.address not in unsure else None)
    part.value("compute.units", node.units)
    if node.memory:
        part.put("memory.total", measure("memory.total", node.memory, "B"))
    part.tell("kfd", {"node": node.number, "gpu_id": node.gpu_id, "drm_render_minor": node.told.get("drm_render_minor", "")})


def architecture(version: int | None) -> str | None:
    """``gfx90a`` for 90010: major, minor and step of two decimal digits each, the last two printed in hex."""
    if not version or version > 999_999:
        return None
    return f"gfx{version // 10_000}{version // 100 % 100:x}{version % 100:x}"


def _peers(gpus: Mapping[int, Node], cards: Mapping[int, Thing]) -> None:
    words = {_XGMI: "XGMI", _PCIE: "PCIE"}
    for number, node in gpus.items():
        told: dict[str, str] = {}
        for link in node.links:
            to, kind = whole(link.get("node_to")), words.get(whole(link.get("type")) or 0)
            if to is not None and to in gpus and kind and cards[to] is not cards[number]:
                told[gpus[to].address or f"node {to}"] = kind
        if told and "link.peers" not in cards[number].readings:
            cards[number].value("link.peers", told)


def _pairs(gpus: Mapping[int, Node], cards: Mapping[int, Thing]) -> None:
    """Two dies of one module have the widest link to each other; where each is the other's one widest, the pair is told."""
    widest: dict[int, int] = {}
    for number, node in gpus.items():
        width: dict[int, int] = {}
        for link in node.links:
            to, bandwidth = whole(link.get("node_to")), whole(link.get("max_bandwidth"))
            if to in gpus and to is not None and whole(link.get("type")) == _XGMI and bandwidth:
                width[to] = max(bandwidth, width.get(to, 0))
        best = [to for to, bandwidth in width.items() if bandwidth == max(width.values())]
        if len(best) == 1:
            widest[number] = best[0]
    for number, to in widest.items():
        if widest.get(to) == number and cards[number] is not cards[to]:
            cards[number].tell("module", "+".join(sorted((cards_key(cards[number]), cards_key(cards[to])))))


def cards_key(card: Thing) -> str:
    """A text that tells cards of one round apart."""
    return str(card.key)
