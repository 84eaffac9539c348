# SPDX-License-Identifier: Apache-2.0
"""The roll in numbers, and the state of the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response

from muster.domain.decide.view import CardView, total
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.errors import InputError
from muster.domain.model.moments import rfc3339
from muster.domain.model.observation import Role
from muster.domain.model.roll import Presence
from muster.interfaces.api.answers import AtDesk, answers, ref
from muster.interfaces.api.paging import json_answer
from muster.interfaces.api.params import At, asked_time
from muster.interfaces.api.problems import answer
from muster.interfaces.api.roll import NAMED, Then
from muster.wire import documents as d
from muster.wire import exchange as x
from muster.wire import shown
from muster.wire.report import SCHEMA

router = APIRouter(tags=["summary and health"])

TOTALS = "memory.total,memory.used,power.draw,power.limit"
"""What is summed when nothing else is asked for."""


@router.get("/api/v1/summary", summary="The roll in numbers", **answers(ref("Summary"), "Counts and totals", 400))
def summary(
    desk: AtDesk,
    totals: Annotated[str, Query(max_length=1000, description="Attributes to sum over present cards, with commas.")] = TOTALS,
    at: At = "",
) -> Response:
    """Accelerators by presence and model, open findings by kind, sources by state, and sums. Cards kept aside and displays are not counted with them."""
    keys = [key for key in dict.fromkeys(word.strip() for word in totals.split(",")) if key]
    wrong = next((key for key in keys if key not in ATTRIBUTES or not ATTRIBUTES[key].numeric), None)
    if wrong is not None:
        raise InputError(f"totals: {wrong!r} is no attribute with a number", hint=f"like totals={TOTALS}")
    now = desk.clock()
    time = asked_time(at, now)
    return json_answer(_summary(Then(desk=desk, at=time, now=now if time is None else time), keys))


def _summary(then: Then, keys: Sequence[str]) -> d.Summary:
    records = [card for card in then.cards() if card.presence is not Presence.RETIRED]
    accelerators = [card for card in records if card.role is Role.ACCELERATOR]
    views = then.sketches([card for card in accelerators if not card.aside], {*keys, *NAMED}, parts=True)
    states = Counter(shown.source_state(source) for source in then.desk.reader.sources())
    findings = Counter(row.finding.kind.value for row in then.desk.reader.findings(at=then.at))
    return d.Summary(
        at=rfc3339(then.now),
        cards=len(views),
        displays=len(records) - len(accelerators),
        aside=len(accelerators) - len(views),
        nodes=len(then.desk.reader.nodes(then.at)),
        by_presence=dict(sorted(Counter(each.record.presence.value for each in views).items())),
        models=_models(then, views),
        findings=dict(sorted(findings.items())),
        sources=d.SourceCount(total=states.total(), by_state=dict(sorted(states.items()))),
        totals={key: _total(views, key) for key in keys},
    )


def _models(then: Then, views: Sequence[CardView]) -> list[d.Model]:
    made = [((then.vendor(each), shown.model(each)), each.record.presence is Presence.PRESENT) for each in views]
    counts = Counter(make for make, _ in made)
    present = Counter(make for make, here in made if here)
    ordered = sorted(counts, key=lambda make: (-counts[make], make[0] or "", make[1] or ""))
    return [d.Model(vendor=make[0], model=make[1], cards=counts[make], present=present[make]) for make in ordered]


def _total(views: Sequence[CardView], key: str) -> d.Total:
    here = [each for each in views if each.record.presence is Presence.PRESENT]
    having = [each for each in here if _has(each, key)]
    return d.Total(value=total(having, key), unit=ATTRIBUTES[key].unit.value, cards=len(having), lacking=len(here) - len(having))


def _has(card: CardView, key: str) -> bool:
    subjects = (card.readings, *(device.readings for device in card.devices))
    return any(hasattr(found.reading, "value") for readings in subjects if (found := readings.get(key)) is not None)


@router.get("/healthz", summary="Is the server alive", **answers(ref("Health"), "It answers"))
def healthz() -> Response:
    """Answers as long as the process can."""
    return json_answer(x.Health(status="ok"))


@router.get("/readyz", summary="Can the server do its work", **answers(ref("Health"), "It reads and writes"))
def readyz(desk: AtDesk) -> Response:
    """Ready when the store can be read and written and time is being kept; 503 with what is wrong when not.

    A write that failed counts until one went through. ``checks`` of a server that is ready says what a person should know, rows that cannot be read for one.
    """
    wrong = desk.well()
    if wrong:
        return answer(503, "not_ready", "; ".join(f"{check}: {what}" for check, what in wrong.items()), hint="the server's log says more")
    return json_answer(x.Health(status="ok", checks=desk.notes()))


@router.get("/version", summary="What runs here", **answers(ref("Version"), "Versions"))
def version(desk: AtDesk) -> Response:
    """The version of the server, of this API, and of the reports it understands."""
    return json_answer(x.Version(version=desk.version, api="v1", report_schema=SCHEMA))
