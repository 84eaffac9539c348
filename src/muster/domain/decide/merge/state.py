# SPDX-License-Identifier: Apache-2.0
"""The working state of merge: one part of the site (nodes that share cards or names), as it is after some of its journal.

These are the only mutable values of the domain. A step copies the part first, or shares with it what it leaves as it was, and returns another: a state that a
step has given is never changed in place, so that merge stays a function of its arguments.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

from muster.domain.model.attributes import Level
from muster.domain.model.names import NameKind
from muster.domain.model.observation import Role
from muster.domain.model.roll import RUNGS, Change, Happening, Presence, Rung, Word
from muster.domain.model.source import Channel, Outcome, WitnessClass

Place = tuple[str, str]
"""A source on a node: (node id, source id)."""

Turn = tuple[float, int]
"""When a word had its turn: its time and its number of arrival. Words of all parts of the site stand in one order."""
NEVER: Turn = (float("-inf"), -1)

_RANK = {rung: place for place, rung in enumerate(RUNGS)}
STRONG = (NameKind.VENDOR_UUID, NameKind.SERIAL)
HARDWARE = frozenset({Channel.IN_BAND, Channel.OUT_OF_BAND})
OPERATOR = "operator"


@dataclass(slots=True)
class Sighting:
    """One source's claim on a card. ``n`` is the turn in which it was last told."""

    ids: dict[str, tuple[str, ...]]
    first_at: float
    first_n: Turn
    at: float
    n: Turn
    slot: str = ""
    addresses: tuple[str, ...] = ()
    index: str = ""
    placed_n: Turn = NEVER
    """When it began to say this place."""
    denied_at: float | None = None
    confirmed_at: float | None = None
    void: bool = False
    expired: bool = False

    def copy(self) -> Sighting:
        """A copy; what is in ``ids`` is never changed in place."""
        return Sighting(
            self.ids,
            self.first_at,
            self.first_n,
            self.at,
            self.n,
            self.slot,
            self.addresses,
            self.index,
            self.placed_n,
            self.denied_at,
            self.confirmed_at,
            self.void,
            self.expired,
        )


@dataclass(slots=True)
class Piece:
    """A device or partition of a card."""

    id: str
    level: Level
    ordinal: int
    ids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    under: str = ""
    voices: dict[Place, dict[str, Word]] = field(default_factory=dict)


@dataclass(slots=True)
class Use:
    """A counter of one source: what was used since its first reading, over resets."""

    total: float
    last: float


@dataclass(slots=True)
class Told:
    """A name that sources tell of a card: as printed, and by whom it is told now. Told by nobody any more it is a former name."""

    printed: str
    by: set[Place]
    board: bool = False


@dataclass(slots=True)
class Shelf:
    """An operator's stored or retired, until the card is seen again after it left."""

    presence: Presence
    at: float
    place: str = ""
    nodes: tuple[str, ...] = ()
    left: bool = False


@dataclass(slots=True)
class Card:
    """A card while merge works on it."""

    id: str
    created_at: float
    created_n: Turn
    presence: Presence = Presence.UNKNOWN
    presence_at: float = 0.0
    node: str | None = None
    best: Rung = Rung.NODE_INDEX
    installed: bool = False
    moved_n: Turn = NEVER
    names: dict[NameKind, dict[str, Told]] = field(default_factory=dict)
    claims: dict[Place, Sighting] = field(default_factory=dict)
    roles: dict[Place, Role] = field(default_factory=dict)
    voices: dict[Place, dict[str, Word]] = field(default_factory=dict)
    operator: dict[str, Word] = field(default_factory=dict)
    devices: list[Piece] = field(default_factory=list)
    partitions: list[Piece] = field(default_factory=list)
    cut_by: Place | None = None
    cut_stated: bool = False
    cut_mode: str = ""
    cut_lost_at: float | None = None
    history: list[Change] = field(default_factory=list)
    shelf: Shelf | None = None
    contested: set[str] = field(default_factory=set)
    uses: dict[tuple[str, str], Use] = field(default_factory=dict)
    dissent: dict[str, float] = field(default_factory=dict)
    """Attribute (or ``serial``) to when witnesses began to differ."""
    near: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    lost_at: dict[Place, float] = field(default_factory=dict)
    details: dict[Place, dict[str, Any]] = field(default_factory=dict)
    """The tools' own names and text; replaced whole, never changed in place."""

    def values(self, kind: NameKind, *, former: bool = False) -> list[str]:
        """Canonical names of a kind that are told now (or were once)."""
        return [value for value, told in self.names.get(kind, {}).items() if told.by or former]

    def note(self, kind: Happening, at: float, learnt: float, /, **detail: Any) -> None:
        """Adds a history entry; the same kind at the same moment is noted once."""
        key = digest(self.id, kind.value, f"{at:.3f}")
        if all(c.id != key for c in self.history):
            self.history.append(Change(id=key, subject=self.id, kind=kind, at=at, learnt_at=learnt, detail=detail))

    def became(self, presence: Presence, at: float) -> None:
        """Changes the presence, keeping when."""
        if self.presence is not presence:
            self.presence, self.presence_at = presence, at

    def copy(self) -> Card:
        """A copy that shares only what is never changed in place. Fields by their order: a step copies every card of its part."""
        return Card(
            self.id,
            self.created_at,
            self.created_n,
            self.presence,
            self.presence_at,
            self.node,
            self.best,
            self.installed,
            self.moved_n,
            {kind: {value: Told(told.printed, set(told.by), told.board) for value, told in by.items()} for kind, by in self.names.items()},
            {place: claim.copy() for place, claim in self.claims.items()},
            dict(self.roles),
            {place: dict(words) for place, words in self.voices.items()},
            dict(self.operator),
            [piece(p) for p in self.devices],
            [piece(p) for p in self.partitions],
            self.cut_by,
            self.cut_stated,
            self.cut_mode,
            self.cut_lost_at,
            list(self.history),
            replace(self.shelf) if self.shelf else None,
            set(self.contested),
            {key: Use(use.total, use.last) for key, use in self.uses.items()},
            dict(self.dissent),
            dict(self.near),
            dict(self.lost_at),
            dict(self.details),
        )


def piece(p: Piece) -> Piece:
    """A copy of a device or partition."""
    return replace(p, ids=dict(p.ids), voices={place: dict(words) for place, words in p.voices.items()})


@dataclass(slots=True)
class Node:
    """A node while merge works on it."""

    id: str
    created_at: float
    name: str = ""
    machine_id: str = ""
    system: str = ""
    shown_system: str = ""
    former: set[str] = field(default_factory=set)
    last_at: float = 0.0
    operator: dict[str, Word] = field(default_factory=dict)
    voices: dict[str, dict[str, Word]] = field(default_factory=dict)
    more_since: float | None = None
    """Since when the cluster counts more cards than there are."""

    def copy(self) -> Node:
        """A copy that shares only what is never changed in place."""
        return Node(
            self.id,
            self.created_at,
            self.name,
            self.machine_id,
            self.system,
            self.shown_system,
            set(self.former),
            self.last_at,
            dict(self.operator),
            {source: dict(words) for source, words in self.voices.items()},
            self.more_since,
        )


@dataclass(slots=True)
class Speaker:
    """A source on a node while merge works on it."""

    channel: Channel
    witness: WitnessClass
    cadence: float
    promise: float
    reporter: str
    first_at: float
    last_at: float
    outcome: Outcome
    listed_at: float | None = None
    silent: bool = False
    removed: bool = False
    stuck: bool = False
    stuck_at: float = 0.0
    standing_by: bool = False
    failed_at: float | None = None
    detail: str = ""
    unknown_shape: str = ""
    shape_at: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    cards: int = 0
    unjoined_at: float | None = None
    word_at: float = 0.0
    """When it last said something itself, not by going on."""

    def copy(self) -> Speaker:
        """A copy that shares only what is never changed in place."""
        return Speaker(
            self.channel,
            self.witness,
            self.cadence,
            self.promise,
            self.reporter,
            self.first_at,
            self.last_at,
            self.outcome,
            self.listed_at,
            self.silent,
            self.removed,
            self.stuck,
            self.stuck_at,
            self.standing_by,
            self.failed_at,
            self.detail,
            self.unknown_shape,
            self.shape_at,
            dict(self.counts),
            self.cards,
            self.unjoined_at,
            self.word_at,
        )


@dataclass(slots=True)
class Site:
    """One part of the site."""

    clock: float = float("-inf")
    """Time of the last event or timer that had an effect."""
    n: Turn = NEVER
    nodes: dict[str, Node] = field(default_factory=dict)
    speakers: dict[Place, Speaker] = field(default_factory=dict)
    cards: dict[str, Card] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    claimed: dict[tuple[str, str], dict[str, tuple[float, float]]] = field(default_factory=dict)
    """Strong id value to the nodes that tell it, each with when and for how long that holds."""
    shared: set[tuple[str, str]] = field(default_factory=set)
    """Values that so many nodes told at once that they name nothing, each since it was found."""
    apart: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of names (``kind=value``) that an operator said are not the same card."""
    together: dict[str, str] = field(default_factory=dict)
    """Names that an operator said are of the same card, to the name they stand for."""
    drift: dict[tuple[str, str, str], dict[str, float]] = field(default_factory=dict)
    """Node, source, attribute to the cards that lost it and when."""

    def copy(self) -> Site:
        """A copy whose parts can be changed."""
        return replace(
            self,
            nodes={i: n.copy() for i, n in self.nodes.items()},
            speakers={place: s.copy() for place, s in self.speakers.items()},
            cards={i: c.copy() for i, c in self.cards.items()},
            gone=dict(self.gone),
            claimed={key: dict(nodes) for key, nodes in self.claimed.items()},
            shared=set(self.shared),
            apart=set(self.apart),
            together=dict(self.together),
            drift={key: dict(cards) for key, cards in self.drift.items()},
        )

    def promise(self, place: Place) -> float:
        """Seconds for which a word of this source holds."""
        speaker = self.speakers.get(place)
        return speaker.promise if speaker else 0.0

    def hardware(self, place: Place) -> bool:
        """True when the source sees cards itself."""
        speaker = self.speakers.get(place)
        return speaker is not None and speaker.channel in HARDWARE

    def fresh(self, place: Place, claim: Sighting, now: float) -> bool:
        """True when the source's sighting still holds at ``now``, whoever it is."""
        return not claim.void and claim.denied_at is None and now - claim.at <= self.promise(place)

    def sees(self, place: Place, claim: Sighting, now: float) -> bool:
        """True when a hardware source sees the card at ``now``."""
        return self.hardware(place) and self.fresh(place, claim, now)

    def seen(self, card: Card, now: float) -> bool:
        """True when some hardware source sees the card at ``now``."""
        return any(self.sees(place, claim, now) for place, claim in card.claims.items())


def digest(*parts: str) -> str:
    """A short stable id made of the parts: 16 hex digits."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def rank(rung: Rung) -> int:
    """Place on the ladder, 0 is best."""
    return _RANK[rung]
