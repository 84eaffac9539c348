# SPDX-License-Identifier: Apache-2.0
"""Devices and partitions of a card: told apart by their own names, else by their place in the listing; a cut listing never shrinks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.domain.decide.fold import WHOLE, Part, form, nothing
from muster.domain.decide.merge.groups import Group
from muster.domain.decide.merge.match import Moment
from muster.domain.decide.merge.state import Card, Piece, Place, Site, digest
from muster.domain.decide.merge.words import hear as into
from muster.domain.model.attributes import Level
from muster.domain.model.names import NameKind
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known, Reading
from muster.domain.model.roll import Happening, Word

_STRONG_PART = (NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS, NameKind.SERIAL)


def part_ids(part: Part, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Names of a part, canonical, by kind."""
    found: dict[str, tuple[str, ...]] = {}
    for each in sorted(part.names, key=lambda n: (n.kind, n.value)):
        if not nothing(each.kind, each.value, policy.placeholders):
            found[each.kind.value] = (*found.get(each.kind.value, ()), form(each.kind, each.value))
    return found


def devices(card: Card, group: Group, moment: Moment, capture: str, policy: Policy) -> None:
    """Takes the group's devices as words on the card's."""
    seen: set[str] = set()
    for part in group.folded.devices:
        ids = part_ids(part, policy)
        piece = _device(card, ids, part.ordinal, seen)
        seen.add(piece.id)
        piece.ids = {**piece.ids, **ids}
        hear(piece.voices.setdefault(group.place, {}), part.readings, moment, capture)
        moment.measured(piece, group.place, part.readings)


def _device(card: Card, ids: dict[str, tuple[str, ...]], ordinal: int, seen: set[str]) -> Piece:
    free = [d for d in card.devices if d.id not in seen]
    for kind in _STRONG_PART:
        for each in free:
            if set(each.ids.get(kind.value, ())) & set(ids.get(kind.value, ())):
                return each
    for each in free:
        if each.ordinal == ordinal and not _other(each, ids):
            return each
    made = Piece(id=f"{card.id}.d{ordinal}", level=Level.DEVICE, ordinal=ordinal)
    while any(d.id == made.id for d in card.devices):
        made.id += "x"
    card.devices.append(made)
    return made


def _other(piece: Piece, ids: dict[str, tuple[str, ...]]) -> bool:
    return any(
        piece.ids.get(k.value) and ids.get(k.value) and not set(piece.ids[k.value]) & set(ids[k.value]) for k in (NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS)
    )


def device_of(card: Card, group: Group) -> Piece | None:
    """The device of a card of several that the group, told as a card of its own, speaks of."""
    if len(card.devices) < 2 or group.folded.devices:
        return None
    mine = {*group.addresses, *group.uuids}
    found = [d for d in card.devices if mine & {v for kind in _STRONG_PART for v in d.ids.get(kind.value, ())}]
    return found[0] if len(found) == 1 else None


def hear(words: dict[str, Word], readings: Mapping[str, Reading], moment: Moment, capture: str) -> None:
    """Takes readings into the words of one source."""
    into(words, readings, moment.at, capture, moment.made)


def partitions(site: Site, card: Card, group: Group, moment: Moment, capture: str, policy: Policy, *, complete: bool) -> None:
    """Takes the group's partitions: a source that states the mode speaks of them; another only adds readings, or partitions where nobody states the mode."""
    mode = group.folded.mode
    told = group.folded.partitions
    if mode is None and not told:
        return
    states = mode is not None
    if not _may_speak(site, card, group.place, moment.at, policy, states=states):
        _overhear(card, told, group.place, moment, capture, policy)
        return
    before = _cut(card)
    known = card.cut_by is not None
    kept: list[Piece] = []
    for part in told:
        ids = part_ids(part, policy)
        piece = _partition(card, ids, part, group.place, {p.id for p in kept}, moment)
        piece.ids, piece.ordinal = {**piece.ids, **ids}, part.ordinal
        piece.under = f"{card.id}.d{part.under}" if part.under is not None and card.devices else ""
        hear(piece.voices.setdefault(group.place, {}), part.readings, moment, capture)
        moment.measured(piece, group.place, part.readings)
        kept.append(piece)
    whole = states and mode in WHOLE
    if not complete and not whole:
        kept.extend(p for p in card.partitions if all(p.id != k.id for k in kept))
    card.partitions = [] if whole else kept
    stated = card.cut_stated
    card.cut_by, card.cut_stated, card.cut_mode = group.place, states or stated, mode if mode is not None else card.cut_mode
    after = _cut(card)
    if known and before != after and (stated or before[1] != after[1]):
        card.note(Happening.PARTITIONS_CHANGED, moment.at, moment.learnt, mode=card.cut_mode, partitions=[p for _, p in after[1]])
    _lost(card, moment, had=bool(before[1]))


def _lost(card: Card, moment: Moment, *, had: bool) -> None:
    on = card.cut_mode not in WHOLE
    if not on or card.partitions:
        card.cut_lost_at = None
    elif had and card.cut_lost_at is None:
        card.cut_lost_at = moment.at


def _cut(card: Card) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Mode and parts in a form that changes when the cut does."""
    return ("" if card.cut_mode in WHOLE else card.cut_mode), tuple(sorted((_key(p), profile(p)) for p in card.partitions))


def _key(piece: Piece) -> str:
    for kind in (NameKind.GPU_INSTANCE, NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS, NameKind.INDEX):
        if piece.ids.get(kind.value):
            return f"{kind}={piece.ids[kind.value][0]}/{(piece.ids.get(NameKind.COMPUTE_INSTANCE.value) or ('',))[0]}"
    return f"#{piece.ordinal}"


def profile(piece: Piece) -> str:
    """The partition's profile as it was last told; empty when nobody told one."""
    for words in piece.voices.values():
        word = words.get("partition.profile")
        if word is not None and word.at is not None:
            return str(word.value)
    return ""


def _may_speak(site: Site, card: Card, place: Place, now: float, policy: Policy, *, states: bool) -> bool:
    if card.cut_by is None or card.cut_by == place or card.cut_by not in card.claims:
        return True
    claim = card.claims[card.cut_by]
    if not site.sees(card.cut_by, claim, now):
        return True
    if card.cut_stated != states:
        return states
    order = policy.order("partition.mode")
    return order.index(site.speakers[place].witness) <= order.index(site.speakers[card.cut_by].witness)


def _overhear(card: Card, told: Sequence[Part], place: Place, moment: Moment, capture: str, policy: Policy) -> None:
    for part in told:
        ids = part_ids(part, policy)
        found = _same(card.partitions, ids)
        if found is not None:
            hear(found.voices.setdefault(place, {}), part.readings, moment, capture)
            moment.measured(found, place, part.readings)


def _same(pieces: Sequence[Piece], ids: dict[str, tuple[str, ...]]) -> Piece | None:
    uuid, instance, compute = (kind.value for kind in (NameKind.VENDOR_UUID, NameKind.GPU_INSTANCE, NameKind.COMPUTE_INSTANCE))
    for piece in pieces:
        if set(piece.ids.get(uuid, ())) & set(ids.get(uuid, ())):
            return piece
    for piece in pieces:
        both = bool(piece.ids.get(uuid)) and bool(ids.get(uuid))
        if piece.ids.get(instance) and piece.ids.get(instance) == ids.get(instance) and piece.ids.get(compute) == ids.get(compute) and not both:
            return piece
    return None


def _partition(card: Card, ids: dict[str, tuple[str, ...]], part: Part, place: Place, taken: set[str], moment: Moment) -> Piece:
    free = [p for p in card.partitions if p.id not in taken]
    found = _same(free, ids)
    if found is None:
        address = NameKind.PCI_ADDRESS.value
        found = next((p for p in free if ids.get(address) and p.ids.get(address) == ids[address] and not _other(p, ids)), None)
    if found is None and not ids:
        found = next((p for p in free if p.ordinal == part.ordinal and place in p.voices and not p.ids), None)
    if found is not None and profile(found) in ("", _profile_of(part)):
        return found
    seed = sorted(f"{k}={v}" for k, v in ids.items()) or [f"#{part.ordinal}"]
    return Piece(id=f"{card.id}.p" + digest("part", f"{moment.at:.3f}", str(part.ordinal), *seed)[:8], level=Level.PARTITION, ordinal=part.ordinal)


def _profile_of(part: Part) -> str:
    found: Reading | None = part.readings.get("partition.profile")
    return str(found.value) if isinstance(found, Known) else ""
