# SPDX-License-Identifier: Apache-2.0
"""Devices and partitions of a card: told apart by their own names, else by their place in the listing; a cut listing never shrinks them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

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
_UUID, _ADDRESS, _INSTANCE, _COMPUTE = (kind.value for kind in (NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS, NameKind.GPU_INSTANCE, NameKind.COMPUTE_INSTANCE))
_Key = tuple[object, ...]


class _Free:
    """Pieces that no part of the listing was found to be yet, by what they can be found by: work for each part does not grow with how many there are."""

    __slots__ = ("_by", "_taken")

    def __init__(self, told: Iterable[tuple[_Key, tuple[int, Piece]]]) -> None:
        self._by: dict[_Key, deque[tuple[int, Piece]]] = defaultdict(deque)
        self._taken: set[str] = set()
        for key, each in told:
            self._by[key].append(each)

    def take(self, piece: Piece) -> None:
        """The piece is found: it is no other part, too."""
        self._taken.add(piece.id)

    def first(self, *keys: _Key) -> Piece | None:
        """The first piece that is found by one of these."""
        found: tuple[int, Piece] | None = None
        for key in keys:
            queue = self._by.get(key)
            while queue and queue[0][1].id in self._taken:
                queue.popleft()
            if queue and (found is None or queue[0][0] < found[0]):
                found = queue[0]
        return found[1] if found else None


def _strong(kind: str, ids: Mapping[str, tuple[str, ...]]) -> list[_Key]:
    return [(kind, value) for value in ids.get(kind, ())]


def _unlike(kind: str, ids: Mapping[str, tuple[str, ...]]) -> tuple[bool, ...]:
    """Whether pieces that have a name of this kind may be meant by ids that none of them shares: only where these have none."""
    return (False,) if ids.get(kind) else (False, True)


def part_ids(part: Part, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Names of a part, canonical, by kind."""
    found: dict[str, tuple[str, ...]] = {}
    for each in sorted(part.names, key=lambda n: (n.kind, n.value)):
        if not nothing(each.kind, each.value, policy.placeholders):
            found[each.kind.value] = (*found.get(each.kind.value, ()), form(each.kind, each.value))
    return found


def devices(card: Card, group: Group, moment: Moment, capture: str, policy: Policy) -> None:
    """Takes the group's devices as words on the card's."""
    if not group.folded.devices:
        return
    free, known = _Free(_device_keys(card.devices)), {device.id for device in card.devices}
    for part in group.folded.devices:
        ids = part_ids(part, policy)
        piece = _device(card, ids, part.ordinal, free, known)
        free.take(piece)
        piece.ids = {**piece.ids, **ids}
        hear(piece.voices.setdefault(group.place, {}), part.readings, moment, capture)
        moment.measured(piece, group.place, part.readings)


def _device_keys(pieces: Sequence[Piece]) -> Iterable[tuple[_Key, tuple[int, Piece]]]:
    for each in enumerate(pieces):
        ids = each[1].ids
        for kind in _STRONG_PART:
            for key in _strong(kind.value, ids):
                yield key, each
        yield (each[1].ordinal, bool(ids.get(_UUID)), bool(ids.get(_ADDRESS))), each


def _device(card: Card, ids: dict[str, tuple[str, ...]], ordinal: int, free: _Free, known: set[str]) -> Piece:
    """The device by a strong name, else the one at this place whose names are not others."""
    for kind in _STRONG_PART:
        if (found := free.first(*_strong(kind.value, ids))) is not None:
            return found
    if (found := free.first(*((ordinal, uuid, address) for uuid in _unlike(_UUID, ids) for address in _unlike(_ADDRESS, ids)))) is not None:
        return found
    made = Piece(id=f"{card.id}.d{ordinal}", level=Level.DEVICE, ordinal=ordinal)
    while made.id in known:
        made.id += "x"
    known.add(made.id)
    card.devices.append(made)
    return made


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
    free = _Free(_partition_keys(card.partitions, group.place))
    for part in told:
        ids = part_ids(part, policy)
        piece = _partition(card, ids, part, free, moment)
        free.take(piece)
        piece.ids, piece.ordinal = {**piece.ids, **ids}, part.ordinal
        piece.under = f"{card.id}.d{part.under}" if part.under is not None and card.devices else ""
        hear(piece.voices.setdefault(group.place, {}), part.readings, moment, capture)
        moment.measured(piece, group.place, part.readings)
        kept.append(piece)
    whole = states and mode in WHOLE
    if not complete and not whole:
        told_ids = {p.id for p in kept}
        kept.extend(p for p in card.partitions if p.id not in told_ids)
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
    free = _Free(_partition_keys(card.partitions, place))
    for part in told:
        found = _same(free, part_ids(part, policy))
        if found is not None:
            hear(found.voices.setdefault(place, {}), part.readings, moment, capture)
            moment.measured(found, place, part.readings)


def _partition_keys(pieces: Sequence[Piece], place: Place) -> Iterable[tuple[_Key, tuple[int, Piece]]]:
    for each in enumerate(pieces):
        ids, named = each[1].ids, bool(each[1].ids.get(_UUID))
        for key in _strong(_UUID, ids):
            yield key, each
        if ids.get(_INSTANCE):
            yield (_INSTANCE, ids[_INSTANCE], ids.get(_COMPUTE), named), each
        if ids.get(_ADDRESS):
            yield (_ADDRESS, ids[_ADDRESS], named), each
        if not ids and place in each[1].voices:
            yield (each[1].ordinal,), each


def _same(free: _Free, ids: dict[str, tuple[str, ...]]) -> Piece | None:
    """The partition of this UUID, else of these instances where not both have a UUID."""
    found = free.first(*_strong(_UUID, ids))
    if found is None and ids.get(_INSTANCE):
        found = free.first(*((_INSTANCE, ids[_INSTANCE], ids.get(_COMPUTE), named) for named in _unlike(_UUID, ids)))
    return found


def _partition(card: Card, ids: dict[str, tuple[str, ...]], part: Part, free: _Free, moment: Moment) -> Piece:
    found = _same(free, ids)
    if found is None and ids.get(_ADDRESS):
        found = free.first(*((_ADDRESS, ids[_ADDRESS], named) for named in _unlike(_UUID, ids)))
    if found is None and not ids:
        found = free.first((part.ordinal,))
    if found is not None and profile(found) in ("", _profile_of(part)):
        return found
    seed = sorted(f"{k}={v}" for k, v in ids.items()) or [f"#{part.ordinal}"]
    return Piece(id=f"{card.id}.p" + digest("part", f"{moment.at:.3f}", str(part.ordinal), *seed)[:8], level=Level.PARTITION, ordinal=part.ordinal)


def _profile_of(part: Part) -> str:
    found: Reading | None = part.readings.get("partition.profile")
    return str(found.value) if isinstance(found, Known) else ""
