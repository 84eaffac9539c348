# SPDX-License-Identifier: Apache-2.0
"""Reporters as they told of themselves last: beside their node, and beside each source that they read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from muster.domain.model.moments import rfc3339
from muster.domain.model.roll import SourceRecord
from muster.spi.store import Reporter, RollReader
from muster.wire import documents as d
from muster.wire import shown
from muster.wire.report import AgentDoc


def of_nodes(reader: RollReader, names: Iterable[str]) -> Mapping[str, list[d.Agent]]:
    """Reporters by the name of the node that they spoke of last."""
    by: dict[str, list[d.Agent]] = defaultdict(list)
    for each in reader.reporters(nodes=list(names)):
        by[each.node].append(agent(each))
    return by


def sources(reader: RollReader, told: Iterable[tuple[SourceRecord, str | None]], now: float) -> list[d.Source]:
    """Documents of sources, each with its adapter, and with what its reporter told of its cost and worker."""
    rows = list(told)
    said = {each.reporter: state(each) for each in reader.reporters({record.reporter for record, _ in rows})}
    return [_source(record, adapter, said.get(record.reporter), now) for record, adapter in rows]


def _source(record: SourceRecord, adapter: str | None, said: AgentDoc | None, now: float) -> d.Source:
    if said is None:
        return shown.source(record, adapter, None, None, now)
    worker = said.workers.get(adapter or "", "")
    at_it = worker.startswith("stuck") or worker.endswith(f" {record.source}")
    return shown.source(record, adapter, said.costs.get(record.source), worker if at_it else None, now)


def agent(told: Reporter) -> d.Agent:
    """A reporter's document."""
    said = state(told)
    spool = d.Spool(reports=said.spool_reports, bytes=said.spool_bytes, oldest=round(said.spool_oldest, 3)) if said is not None else None
    return d.Agent(
        reporter=told.reporter,
        version=told.agent_version or None,
        incarnation=told.incarnation,
        sequence=told.high,
        skew=round(told.skew, 3),
        heard_at=rfc3339(told.received_at),
        spool=spool,
        dropped=said.dropped if said is not None else None,
        refused=said.refused if said is not None else None,
        memory=said.memory if said is not None else None,
        cpu=round(said.cpu, 3) if said is not None else None,
        workers=dict(said.workers) if said is not None else {},
    )


def state(told: Reporter) -> AgentDoc | None:
    """What a reporter said of itself; None when it said nothing, or nothing that can be read."""
    if not told.state:
        return None
    try:
        return msgspec.msgpack.decode(told.state, type=AgentDoc)
    except msgspec.MsgspecError:
        return None
