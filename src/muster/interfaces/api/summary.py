# SPDX-License-Identifier: Apache-2.0
"""The roll in numbers, and the state of the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from muster.domain.decide.pick_numbers import totals as sums
from muster.domain.decide.view import CardView, total
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.errors import InputError
from muster.domain.model.moments import rfc3339
from muster.domain.model.observation import Role
from muster.domain.model.roll import Presence
from muster.domain.model.snapshot import Coded, Mask, Snapshot
from muster.interfaces.api import tags
from muster.interfaces.api.answers import AtDesk, answers, ref
from muster.interfaces.api.cards import of_word
from muster.interfaces.api.metrics import MEDIA
from muster.interfaces.api.paging import json_answer
from muster.interfaces.api.params import At, asked_time
from muster.interfaces.api.problems import answer
from muster.interfaces.api.roll import NAMED, Then
from muster.interfaces.api.rooms import InRooms, upon
from muster.wire import documents as d
from muster.wire import exchange as x
from muster.wire import shown
from muster.wire.report import SCHEMA

router = APIRouter(tags=["summary and health"])

TOTALS = "memory.total,memory.used,power.draw,power.limit"
"""What is summed when nothing else is asked for."""


@router.get("/api/v1/summary", summary="The roll in numbers", **answers(ref("Summary"), "Counts and totals", 400))
async def summary(
    request: Request,
    desk: AtDesk,
    rooms: InRooms,
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
    then = Then(desk=desk, views=rooms.views, at=time, now=now if time is None else time)
    if time is not None:
        return tags.told(request, await upon(rooms, lambda: _past(then, keys), then=True))
    await upon(rooms, lambda: None)
    if rooms.views.lists.old():
        await run_in_threadpool(rooms.views.lists.renew)
    return tags.told(request, _present(then, keys) if desk.whole else await run_in_threadpool(_present, then, keys))


def _present(then: Then, keys: Sequence[str]) -> d.Summary:
    snapshot = then.views.cards()
    there = then.seen(snapshot) & ~of_word(snapshot, "presence", Presence.RETIRED.value)
    accelerators = there & of_word(snapshot, "role", Role.ACCELERATOR.value)
    counted = accelerators & ~of_word(snapshot, "aside", word=True)
    present = counted & of_word(snapshot, "presence", Presence.PRESENT.value)
    nodes, sources = then.views.lists.nodes().snapshot, then.views.lists.sources().snapshot
    states = counts(sources, "state", then.seen(sources))
    return d.Summary(
        at=rfc3339(then.now),
        cards=int(counted.sum()),
        displays=int(there.sum() - accelerators.sum()),
        aside=int(accelerators.sum() - counted.sum()),
        nodes=int(then.seen(nodes, "name").sum()),
        by_presence=dict(sorted(counts(snapshot, "presence", counted).items())),
        models=_makes(snapshot, counted, present),
        findings=dict(sorted(_open_kinds(then).items())),
        sources=d.SourceCount(total=states.total(), by_state=dict(sorted(states.items()))),
        totals={key: _sum(then, key, present) for key in keys},
    )


def _open_kinds(then: Then) -> Counter[str]:
    if then.desk.whole:
        return then.views.opened.kinds
    return then.views.opened.seen(then.views.node_names, then.sees)


def counts(snapshot: Snapshot, path: str, among: Mask) -> Counter[str]:
    """How many rows have each word of a column."""
    column = snapshot.columns.get(path)
    if not isinstance(column, Coded):
        return Counter()
    values = list(column.words.values)
    found = np.bincount(column.codes[among & (column.codes >= 0)], minlength=len(values)).tolist()
    return Counter({str(value): count for value, count in zip(values, found, strict=False) if count})


def _makes(snapshot: Snapshot, counted: Mask, present: Mask) -> list[d.Model]:
    """Cards by maker and model, the most first."""
    vendor, model = snapshot.columns.get("vendor"), snapshot.columns.get("model")
    none = np.full(snapshot.rows, -1, np.int32)
    vendors, models = (column.codes if isinstance(column, Coded) else none for column in (vendor, model))
    kinds = int(models.max(initial=-1)) + 2
    both = (vendors.astype(np.int64) + 1) * kinds + models + 1
    made, cards = np.unique(both[counted], return_counts=True)
    here = dict(zip(*(each.tolist() for each in np.unique(both[present], return_counts=True)), strict=True))
    found = [
        d.Model(vendor=_word(vendor, each // kinds - 1), model=_word(model, each % kinds - 1), cards=count, present=here.get(each, 0))
        for each, count in zip(made.tolist(), cards.tolist(), strict=True)
    ]
    return sorted(found, key=lambda make: (-make.cards, make.vendor or "", make.model or ""))


def _word(column: object, code: int) -> str | None:
    return str(column.words.values[code]) if isinstance(column, Coded) and code >= 0 else None


def _sum(then: Then, key: str, present: Mask) -> d.Total:
    own, owners, devices = then.views.own(key)
    value, cards = sums(present, own, owners, devices)
    return d.Total(value=value, unit=ATTRIBUTES[key].unit.value, cards=cards, lacking=int(present.sum()) - cards)


def _past(then: Then, keys: Sequence[str]) -> d.Summary:
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
async def healthz() -> Response:
    """Answers as long as the process can."""
    return json_answer(x.Health(status="ok"))


@router.get("/livez", summary="Is the process alive", **answers(ref("Health"), "It answers"))
async def livez() -> Response:
    """Answers as long as the process can: the same as /healthz, under the name that clusters ask for."""
    return json_answer(x.Health(status="ok"))


@router.get("/metrics", summary="Figures of the server itself", **answers({"type": "string"}, "Prometheus' text form", media="text/plain"))
async def metrics(rooms: InRooms) -> Response:
    """Requests by route and status, how long they took, open streams, columns, and what the writer says of itself: for a Prometheus that watches the server."""
    return Response(await run_in_threadpool(rooms.figures.text), headers={"content-type": MEDIA})


@router.get("/readyz", summary="Can the server do its work", **answers(ref("Health"), "It reads and writes"))
async def readyz(desk: AtDesk, rooms: InRooms) -> Response:
    """Ready when the store can be read and written, time is being kept and the roll stands in columns; 503 with what is wrong when not.

    A write that failed counts until one went through. ``checks`` of a server that is ready says what a person should know, rows that cannot be read for one.
    """
    wrong = await run_in_threadpool(desk.well) | rooms.views.wrong()
    if wrong:
        return answer(503, "not_ready", "; ".join(f"{check}: {what}" for check, what in wrong.items()), hint="the server's log says more")
    return json_answer(x.Health(status="ok", checks=desk.notes()))


@router.get("/version", summary="What runs here", **answers(ref("Version"), "Versions"))
async def version(desk: AtDesk) -> Response:
    """The version of the server, of this API, and of the reports it understands."""
    return json_answer(x.Version(version=desk.version, api="v1", report_schema=SCHEMA))
