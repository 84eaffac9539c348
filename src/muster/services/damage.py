# SPDX-License-Identifier: Apache-2.0
"""What an adapter makes of damaged captures and of bytes not its own: it raises nothing, invents no card and no number, and says when it cannot read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from muster.domain.decide.fold import FoldedCard
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.names import NameKind
from muster.domain.model.reading import Known
from muster.domain.model.source import Capture, SourceId
from muster.services.hearing import Heard, Raised, hear
from muster.services.mutations import Mutation, mutations, strangers
from muster.spi.adapter import HEAD, Adapter

_SHOWN = 3
_NUMBER = re.compile(r"\d+")


def mutated(adapter: Adapter, heard: Heard) -> Iterator[str]:
    """What goes wrong when one capture of the round is damaged. Of reads that differ in their numbers only, the first and the last stand for all."""
    if heard.told is None:
        return
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, capture in enumerate(heard.captures):
        alike.setdefault((capture.format, *(_NUMBER.sub("0", part) for part in capture.locator)), []).append(place)
    chosen = {place for places in alike.values() for place in (places[0], places[-1])}
    for place, capture in enumerate(heard.captures):
        if place not in chosen or capture.failure is not None or not capture.payload:
            continue
        for mutation in mutations(capture):
            captures = [*heard.captures[:place], mutation.capture, *heard.captures[place + 1 :]]
            yield from (f"{heard.source}, {capture.format}, {mutation.name}: {problem}" for problem in _damage(adapter, heard, captures, mutation))


def _damage(adapter: Adapter, heard: Heard, captures: Sequence[Capture], mutation: Mutation) -> Iterator[str]:
    now = hear(adapter, heard.machine, heard.source, captures)
    if now.told is None:
        yield now.problem
        return
    before, after = _named(heard.cards), _named(now.cards)
    if len(now.cards) > len(heard.cards):
        yield f"{len(now.cards)} cards instead of {len(heard.cards)}"
    if mutation.whole and before != after:
        yield f"names lost or new: {_told(before ^ after)}"
    if mutation.unspoken:
        return
    if after - before:
        yield f"names that were not there: {_told(after - before)}"
    if now.told.complete and before - after:
        yield f"a complete listing without {_told(before - after)}"
    yield from _wrong_numbers(heard.cards, now.cards)


def _told(names: set[tuple[str, str]]) -> str:
    return ", ".join(f"{kind} {value}" for kind, value in sorted(names)[:_SHOWN])


def _named(cards: Iterable[FoldedCard]) -> set[tuple[str, str]]:
    """Names that last; an index is a place in a listing and names nothing by itself."""
    return {(name.kind.value, name.canonical) for card in cards for name in card.names if name.kind is not NameKind.INDEX}


def _wrong_numbers(before: Sequence[FoldedCard], after: Sequence[FoldedCard]) -> Iterator[str]:
    for card in after:
        same = [each for each in before if each.names & card.names and {n.canonical for n in card.names} <= {n.canonical for n in each.names}]
        for key, reading in card.readings.items() if len(same) == 1 else ():
            old = same[0].readings.get(key)
            if isinstance(reading, Known) and key in ATTRIBUTES and ATTRIBUTES[key].numeric and isinstance(old, Known) and old.value != reading.value:
                yield f"{key} became {reading.value!r}, was {old.value!r}"


def on_strangers(adapter: Adapter) -> Iterator[str]:
    """What goes wrong with bytes that are no output of this vendor's tools."""
    for name, payload in strangers():
        with Raised() as raised:
            form = adapter.recognise(payload[:HEAD])
            if form is not None:
                yield f"{name} is claimed as {form}"
        if raised.error:
            yield f"{name}: recognise raised {raised.error}"
        yield from (problem for form in adapter.manifest.formats for problem in _stranger(adapter, name, payload, form))
    with Raised() as raised:
        adapter.interpret([])
    if raised.error:
        yield f"no captures at all: interpret raised {raised.error}"


def _stranger(adapter: Adapter, name: str, payload: bytes, form: str) -> Iterator[str]:
    source = next((s.id for s in adapter.sources if any(read.format == form for read in s.reads)), SourceId("offline"))
    now = hear(adapter, "", source, [Capture(source=source, locator=("stranger",), format=form, payload=payload)])
    if now.told is None:
        yield f"{name} as {form}: {now.problem}"
    elif now.cards:
        yield f"{name} as {form}: {len(now.cards)} cards"
