# SPDX-License-Identifier: Apache-2.0
"""The cards of one listing with their names in the form in which they are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from muster.domain.decide.fold import FoldedCard, fold, nothing
from muster.domain.decide.fold import form as spelt
from muster.domain.decide.merge.state import Place, Site, Speaker
from muster.domain.model.attributes import Level
from muster.domain.model.names import Name, NameKind
from muster.domain.model.observation import Observation, Role
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known
from muster.domain.model.source import WitnessClass

DISPLAY_CLASSES = ("03",)
NOT_DISPLAY = "0302"


@dataclass(slots=True)
class Group:
    """One card of one listing. ``ids`` are canonical by kind; ``printed`` keeps the spelling."""

    folded: FoldedCard
    place: Place
    ordinal: int
    role: Role
    ids: dict[NameKind, list[str]] = field(default_factory=dict)
    printed: dict[tuple[NameKind, str], str] = field(default_factory=dict)
    board: frozenset[str] = frozenset()
    nothing: set[tuple[str, str]] = field(default_factory=set)
    """Names in it that were found to name nothing."""

    @property
    def uuids(self) -> list[str]:
        """Canonical UUIDs of the card and its devices."""
        return self.ids.get(NameKind.VENDOR_UUID, [])

    @property
    def serials(self) -> list[str]:
        """Canonical serials that are no board's."""
        return [s for s in self.ids.get(NameKind.SERIAL, []) if s not in self.board]

    @property
    def addresses(self) -> tuple[str, ...]:
        """Canonical PCI addresses of the card and its devices."""
        return tuple(sorted(self.ids.get(NameKind.PCI_ADDRESS, [])))

    @property
    def slot(self) -> str:
        """The slot in the form in which it is compared; empty when not told."""
        return next(iter(self.ids.get(NameKind.CHASSIS_SLOT, [])), "")

    @property
    def index(self) -> str:
        """The listing's index; the place in the listing for a card without any name."""
        return next(iter(self.ids.get(NameKind.INDEX, [])), "" if self.ids else f"#{self.ordinal}")

    def says(self, key: str) -> Any:
        """The known value of an attribute, or None."""
        found = self.folded.readings.get(key)
        if isinstance(found, Known):
            return found.value
        return next((r.value for d in self.folded.devices if isinstance(r := d.readings.get(key), Known)), None)


def groups(observations: Iterable[Observation], place: Place, site: Site, speaker: Speaker, policy: Policy) -> list[Group]:
    """Cards of a listing, folded and named."""
    return [_group(card, i, place, site, speaker, policy) for i, card in enumerate(fold(observations))]


def _group(card: FoldedCard, ordinal: int, place: Place, site: Site, speaker: Speaker, policy: Policy) -> Group:
    made = Group(folded=card, place=place, ordinal=ordinal, role=Role.ACCELERATOR, board=card.board_serials)
    named: dict[NameKind, list[str]] = defaultdict(list)
    for each in _names(card):
        if nothing(each.kind, each.value, policy.placeholders):
            continue
        canonical = spelt(each.kind, each.value)
        form = site.together.get(f"{each.kind}={canonical}", canonical) if site.together else canonical
        if (each.kind, form) in site.shared:
            made.nothing.add((each.kind.value, form))
            continue
        if form not in named[each.kind]:
            named[each.kind].append(form)
        made.printed.setdefault((each.kind, form), canonical if each.kind is NameKind.PCI_ADDRESS else each.value.strip())
    made.ids = {kind: forms for kind, forms in named.items() if forms}
    made.role = card.role or _role(made, speaker)
    return made


def _names(card: FoldedCard) -> Iterable[Name]:
    """Names of the card, then those of its devices that hold beyond the listing."""
    yield from sorted(card.names, key=lambda n: (n.kind, n.value))
    for device in card.devices:
        yield from (n for n in device.names if n.kind in (NameKind.VENDOR_UUID, NameKind.SERIAL, NameKind.PCI_ADDRESS))


def _role(group: Group, speaker: Speaker) -> Role:
    if speaker.witness is not WitnessClass.PCI:
        return Role.ACCELERATOR
    code = str(group.says("pci.class") or "").lower().removeprefix("0x")
    display = code.startswith(DISPLAY_CLASSES) and not code.startswith(NOT_DISPLAY)
    return Role.DISPLAY if display else Role.ACCELERATOR


def node_readings(observations: Iterable[Observation]) -> list[Observation]:
    """What a listing says of the node and its server."""
    return [o for o in observations if o.subject.level in (Level.NODE, Level.SERVER)]
