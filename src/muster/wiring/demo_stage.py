# SPDX-License-Identifier: Apache-2.0
"""What the demo changes in its small world: cards pulled and put in, log lines held back. Vendor-neutral, at the level of what a source told.

The captures stay as they were recorded; what an adapter made of them is edited on its way into the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from muster.domain.model.attributes import Level
from muster.domain.model.names import Name, NameKind, name, pci_address
from muster.domain.model.observation import Interpretation, Observation
from muster.domain.model.source import Capture, Source, SourceId
from muster.spi.adapter import Adapter, Manifest

Names = frozenset[Name]
Change = Callable[[SourceId, str, Interpretation], Interpretation]
"""Source, adapter and what was told, to what is reported."""
_STRONG = (NameKind.VENDOR_UUID, NameKind.SERIAL, NameKind.PCI_ADDRESS)
_OF_A_PLACE = frozenset({NameKind.PCI_ADDRESS, NameKind.CHASSIS_SLOT, NameKind.INDEX})


def unchanged(source: SourceId, adapter: str, told: Interpretation) -> Interpretation:
    """The change that is none."""
    del source, adapter
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """An adapter as one recorded machine has it: its sources at the demo's pace, each text interpreted once, and ``change`` applied to what it says."""

    inner: Adapter
    sources: Sequence[Source]
    change: Change = unchanged
    memory: dict[tuple[object, ...], Interpretation] = field(default_factory=dict)

    @property
    def manifest(self) -> Manifest:
        """The adapter's own."""
        return self.inner.manifest

    def recognise(self, head: bytes) -> str | None:
        """The adapter's own."""
        return self.inner.recognise(head)

    def interpret(self, captures: Sequence[Capture]) -> Interpretation:
        """What the adapter said of these bytes the first time, changed."""
        key = tuple((each.source, each.locator, each.format, each.payload, each.failure) for each in captures)
        told = self.memory.get(key)
        if told is None:
            told = self.memory[key] = self.inner.interpret(captures)
        return self.change(captures[0].source, self.manifest.name, told) if captures else told


class Stage:
    """The changes, by node. The one who tells the story makes them, the reporters' thread applies them; ``wall`` gives seconds since the epoch."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._pulled: dict[str, tuple[Names, ...]] = {}
        self._put: dict[tuple[str, SourceId], tuple[Observation, ...]] = {}
        self._held: set[str] = set()
        self._told: set[tuple[str, SourceId, str]] = set()

    def pull(self, node: str, card: Names) -> None:
        """From now on no source of ``node`` lists this card."""
        self._pulled[node] = (*self._pulled.get(node, ()), card)

    def put(self, node: str, source: SourceId, card: Observation) -> None:
        """From now on ``source`` of ``node`` lists this card too, in a place of its own there."""
        self._put[node, source] = (*self._put.get((node, source), ()), card)

    def hold_events(self, node: str) -> None:
        """The log of ``node`` is quiet until `release_events`."""
        self._held.add(node)

    def release_events(self, node: str) -> None:
        """The lines of the log are written now."""
        self._held.discard(node)

    def change(self, node: str) -> Change:
        """The change that applies to a node's tellings."""

        def changed(source: SourceId, adapter: str, told: Interpretation) -> Interpretation:
            for card in self._pulled.get(node, ()):
                told = without(told, card)
            for card_put in self._put.get((node, source), ()):
                told = with_card(told, card_put)
            return self._events(node, source, adapter, told)

        return changed

    def _events(self, node: str, source: SourceId, adapter: str, told: Interpretation) -> Interpretation:
        """Events once, as if the last of them happened now."""
        if not told.events:
            return told
        if node in self._held or (node, source, adapter) in self._told:
            return replace(told, events=())
        self._told.add((node, source, adapter))
        last = max((each.at for each in told.events if each.at), default=None)
        shift = datetime.fromtimestamp(self._wall(), UTC) - last if last else timedelta(0)
        return replace(told, events=tuple(replace(each, at=each.at + shift) if each.at else each for each in told.events))


def same_card(one: Iterable[Name], other: Iterable[Name]) -> bool:
    """True when both name one card, by the strongest kind of name that both have; two cards of one board may share a serial."""
    mine, theirs = _by_kind(one), _by_kind(other)
    return next((bool(mine[kind] & theirs[kind]) for kind in _STRONG if kind in mine and kind in theirs), False)


def _by_kind(these: Iterable[Name]) -> Mapping[NameKind, set[str]]:
    found: dict[NameKind, set[str]] = {}
    for each in these:
        found.setdefault(each.kind, set()).add(each.canonical)
    return found


def without(told: Interpretation, card: Names) -> Interpretation:
    """What was told without the card, its devices and its partitions; numbers that the tool counted are one less."""
    kept: list[Observation] = []
    gone: list[Names] = []
    for each in told.observations:
        subject = each.subject
        if (subject.level is Level.CARD and same_card(subject.names, card)) or (subject.parent and subject.parent in gone):
            gone.append(subject.names)
        else:
            kept.append(each)
    return replace(told, observations=tuple(kept), counts=_counted(told, -1)) if gone else told


def with_card(told: Interpretation, card: Observation) -> Interpretation:
    """What was told with one more card, in a free place."""
    cards = [each for each in told.observations if each.subject.level is Level.CARD]
    known = [each for observation in told.observations for each in observation.subject.names]
    kept = frozenset(each for each in card.subject.names if each.kind not in _OF_A_PLACE)
    place = frozenset({name(NameKind.PCI_ADDRESS, free_address(known)), name(NameKind.INDEX, str(free_index(known)))})
    subject = replace(card.subject, names=kept | place, ordinal=len(cards))
    return replace(told, observations=(*told.observations, replace(card, subject=subject)), counts=_counted(told, 1))


def _counted(told: Interpretation, more: int) -> Mapping[Level, int]:
    return {level: count + more if level in (Level.CARD, Level.DEVICE) else count for level, count in told.counts.items()}


def free_address(known: Iterable[Name]) -> str:
    """A PCI address at which nothing of ``known`` stands."""
    taken = {each.canonical for each in known if each.kind is NameKind.PCI_ADDRESS}
    spare = (f"0000:{bus:02x}:00.0" for bus in range(0x41, 0xFF, 0x10))
    return next(each for each in spare if pci_address(each) not in taken)


def free_index(known: Iterable[Name]) -> int:
    """The index after the last of ``known``."""
    return max((int(each.value) for each in known if each.kind is NameKind.INDEX and each.value.isdecimal()), default=-1) + 1
