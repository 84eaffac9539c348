# SPDX-License-Identifier: Apache-2.0
"""Records as of the last word of their sources: what a source told last in full holds until it last said the same again, and that stands on its slot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from muster.domain.decide.essence import moving
from muster.domain.model.roll import CardRecord, Claim, NodeRecord, PartRecord, SourceRecord, Voice, Word

Runs = Mapping[tuple[str, str], tuple[float, float]]
"""By node and source: when it told last in full (or what it said since was folded), and until when it said the same."""


def by_node(runs: Runs) -> dict[str, dict[tuple[str, str], tuple[float, float]]]:
    """The runs of each node."""
    found: dict[str, dict[tuple[str, str], tuple[float, float]]] = {}
    for place, run in runs.items():
        found.setdefault(place[0], {})[place] = run
    return found


def card_on(card: CardRecord, runs: Runs, only: Collection[str] | None = None) -> CardRecord:
    """The card with the times of what its sources said again; of a card without parts those of some readings ``only``, where no others are asked for."""
    if not any((claim.node, claim.source) in runs for claim in card.claims) and not any((v.node, v.source) in runs for v in card.voices):
        return card
    return replace(
        card,
        claims=tuple(_claim(claim, runs) for claim in card.claims),
        voices=_voices(card.voices, runs, only),
        devices=tuple(_part(part, runs) for part in card.devices),
        partitions=tuple(_part(part, runs) for part in card.partitions),
    )


def node_on(node: NodeRecord, runs: Runs) -> NodeRecord:
    """The node with the times of what its sources said again; ``runs`` are those of its sources."""
    last = max((until for _, until in runs.values()), default=node.last_at)
    return replace(node, last_at=max(node.last_at, last), voices=_voices(node.voices, runs))


def source_on(source: SourceRecord, runs: Runs) -> SourceRecord:
    """The source with the time at which it last said the same again."""
    run = runs.get((source.node, source.source))
    if run is None or source.last_at < run[0] or run[1] <= source.last_at:
        return source
    listed = run[1] if source.listed_at == source.last_at else source.listed_at
    return replace(source, last_at=run[1], listed_at=listed)


def _claim(claim: Claim, runs: Runs) -> Claim:
    run = runs.get((claim.node, claim.source))
    if run is None or claim.at < run[0] or claim.denied_at is not None:
        return claim
    return replace(claim, at=max(claim.at, run[1]))


def _part(part: PartRecord, runs: Runs) -> PartRecord:
    return replace(part, voices=_voices(part.voices, runs))


def _voices(voices: Iterable[Voice], runs: Runs, only: Collection[str] | None = None) -> tuple[Voice, ...]:
    return tuple(_voice(voice, *run, only) if (run := runs.get((voice.node, voice.source))) is not None else voice for voice in voices)


def _voice(voice: Voice, told: float, until: float, only: Collection[str] | None) -> Voice:
    if only is None:
        return replace(voice, words={key: _word(key, word, told, until) for key, word in voice.words.items()})
    moved = {key: _word(key, voice.words[key], told, until) for key in only if key in voice.words}
    return replace(voice, words={**voice.words, **moved}) if moved else voice


def _word(key: str, word: Word, told: float, until: float) -> Word:
    if moving(key, word):
        return word
    at = word.at if word.at is None or word.at < told else max(word.at, until)
    why_at = word.why_at if word.why_at is None or word.why_at < told else max(word.why_at, until)
    return word if (at, why_at) == (word.at, word.why_at) else replace(word, at=at, why_at=why_at)
