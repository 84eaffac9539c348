# SPDX-License-Identifier: Apache-2.0
"""All captures of one round of one source, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muster.adapters.huawei import observe_dcmi, observe_exporter, observe_logs, observe_npu, parse_exporter, parse_logs, parse_samples, parse_text, seen
from muster.adapters.huawei.catalogue import add_models
from muster.adapters.huawei.failures import outcome_of
from muster.adapters.huawei.recognise import DCMI, EXPORTER, INFO, LOG, SAMPLES
from muster.adapters.huawei.said import Said
from muster.domain.model.attributes import Level
from muster.domain.model.gather import Gather
from muster.domain.model.observation import Event, Interpretation, Observation
from muster.domain.model.source import Capture, Outcome
from muster.formats import jsontext
from muster.formats.prometheus import samples
from muster.formats.shape import lacking, sentences
from muster.formats.text import decode, lines
from muster.spi.adapter import Models


def interpret(captures: Sequence[Capture], models: Models) -> Interpretation:
    """What one round says. Texts are read together: the summary, the mapping and the views speak of the same cards."""
    failed = [c for c in captures if c.failure is not None]
    useful = [c for c in captures if c.failure is None]
    if not useful:
        first = failed[0] if failed else None
        return Interpretation(outcome=(first.failure if first else None) or Outcome.UNREADABLE, detail=first.detail if first else "nothing was captured")
    readers = {DCMI: _dcmi, EXPORTER: _exporter, LOG: _log}
    texts = [c for c in useful if c.format not in readers]
    told = [readers[c.format](c, models) for c in useful if c.format in readers] + ([_texts(texts, models)] if texts else [])
    found = told[0] if len(told) == 1 else _together(told)
    return replace(found, format=useful[0].format, complete=found.complete and not any(c.cut for c in useful))


def _together(told: Sequence[Interpretation]) -> Interpretation:
    """Several kinds of captures in one round: what each says stands beside the others; the best outcome counts."""
    best = next((each for wanted in (Outcome.DEVICES, Outcome.PARTIAL) for each in told if each.outcome is wanted), told[0])
    return replace(
        best,
        complete=any(each.complete for each in told),
        detail="; ".join(dict.fromkeys(each.detail for each in told if each.detail)),
        tool_version=next((each.tool_version for each in told if each.tool_version), ""),
        unknown_shape=sentences(*(each.unknown_shape for each in told)),
        observations=tuple(observation for each in told for observation in each.observations),
        events=tuple(event for each in told for event in each.events),
    )


def _texts(captures: Sequence[Capture], models: Models) -> Interpretation:
    said = Said()
    for capture in captures:
        said.cut = said.cut or capture.cut
        if capture.format == SAMPLES:
            parse_samples.read(capture.payload, said)
            continue
        text, before = decode(capture.payload), len(said.records)
        parse_text.read(lines(capture.payload), said, capture.locator, open_end=bool(text) and not text.endswith("\n"))
        said.cut = said.cut or (capture.format == INFO and len(captures) > 1 and len(said.records) == before)
        if capture.stderr:
            parse_text.read(lines(capture.stderr[:8192]), said)
    found = observe_npu.gather(said)
    outcome, detail = outcome_of(captures, said, len(found.cards))
    payloads = [capture.payload for capture in captures if capture.format != SAMPLES]
    if outcome is Outcome.UNREADABLE:
        detail = lacking(detail, seen.misfit(capture.payload for capture in captures))
        said.tool = said.tool or next(filter(None, map(seen.printed, payloads)), "")
    whole = said.whole or (said.ended and all(c.exit_status == 0 for c in captures))
    return Interpretation(
        outcome=outcome,
        complete=outcome is Outcome.DEVICES and whole and not said.cut and not said.soft_sliced and not said.mixed,
        detail=detail or ("an NPU id stands for several cards: this is no listing of one host" if said.mixed else ""),
        tool_version=said.tool,
        unknown_shape=seen.news(said, payloads),
        counts={Level.CARD: said.total} if said.total is not None else {},
        observations=_observations(found, models),
    )


def _dcmi(capture: Capture, models: Models) -> Interpretation:
    document = jsontext.first(capture.payload)
    if document is None or not isinstance(document.value, dict):
        return Interpretation(outcome=Outcome.UNREADABLE, detail=seen.first_of(capture.payload, "no JSON document"), tool_version=seen.printed(capture.payload))
    found, told = observe_dcmi.gather(document.value)
    if document.cut:
        told = replace(told, outcome=Outcome.PARTIAL if found.cards else Outcome.UNREADABLE, complete=False, detail="the document is cut")
    return replace(told, unknown_shape=seen.of_snapshot({} if document.cut else document.value), observations=_observations(found, models))


def _exporter(capture: Capture, models: Models) -> Interpretation:
    payload = capture.payload
    ended = payload[-1:] in (b"\n", b"\r", b"\x00")
    page = parse_exporter.read(samples(payload))
    found, counts = observe_exporter.gather(page)
    promised = counts.get(Level.DEVICE)
    news = seen.of_page(page, payload)
    short = promised is not None and len(page.chips) < promised
    if not page.chips:
        outcome = Outcome.NO_DEVICES if promised == 0 else Outcome.UNREADABLE
        detail = "no sample of a chip" if outcome is Outcome.NO_DEVICES else seen.first_of(payload, "no sample of a chip")
        return Interpretation(outcome=outcome, counts=counts, detail=detail, tool_version=page.version or seen.printed(payload), unknown_shape=news)
    return Interpretation(
        outcome=Outcome.PARTIAL if short or not ended else Outcome.DEVICES,
        counts=counts,
        tool_version=page.version,
        unknown_shape=news,
        observations=_observations(found, models),
    )


def _log(capture: Capture, models: Models) -> Interpretation:
    text = lines(capture.payload)
    if text and text[-1]:
        text = text[:-1]
    log = parse_logs.faults(text)
    events: tuple[Event, ...] = ()
    if log.rounds:
        found, events = observe_logs.faults(log)
    else:
        found = observe_logs.soft_share(parse_logs.settings(text))
    outcome = Outcome.DEVICES if found.cards else Outcome.UNREADABLE
    detail = "" if found.cards else seen.first_of(capture.payload, "the log names no NPU")
    return Interpretation(outcome=outcome, detail=detail, observations=_observations(found, models), events=events)


def _observations(found: Gather, models: Models) -> tuple[Observation, ...]:
    add_models(found, models)
    return found.observations()
