# SPDX-License-Identifier: Apache-2.0
"""One look at a machine without a server: every source once, and for each that found nothing, why, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from muster.collect.collector import Collector, Round
from muster.domain.decide.fold import fold
from muster.domain.model.attributes import Level
from muster.domain.model.observation import Role
from muster.domain.model.reading import Absent, Why
from muster.domain.model.source import Outcome, ReaderKind, Source, WitnessClass
from muster.spi.adapter import Adapter
from muster.wiring.agent import CLOCK, Eyes, Sighted, eyes

OK, LIMITED, NOTHING, FAILED, STANDING_BY, ABSENT, NOT_HERE = "ok", "limited", "nothing", "failed", "standing_by", "absent", "not_here"
"""States of a source: it speaks; it may not read all; it sees no card; it fails; its chain does not need it; it is not there, and another of its chain shows
the cards; its vendor is not on this machine."""

STREAM_WAIT = timedelta(seconds=2)
"""How long a log is read that does not end."""

_HELP = {
    Outcome.NOT_PERMITTED: "run as root, or permit it",
    Outcome.DRIVER_UNUSABLE: "load or repair the vendor's driver, and look into the kernel log",
    Outcome.TIMED_OUT: "the driver hangs: look into the kernel log; the node may need a reboot",
    Outcome.UNREADABLE: "its output is not understood: `muster record` it, and report it",
    Outcome.DEVICE_LOST: "the device fell off the bus: look into the kernel log",
    Outcome.PARTIAL: "some of its cards did not answer: look into the kernel log",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one source found, in words for a person. ``help`` says what to do, where something can be done."""

    source: str
    adapter: str
    state: str
    outcome: str
    cards: int = 0
    why: str = ""
    detail: str = ""
    """What the reader or the tool itself said, where ``why`` is ours."""
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """All rounds of one look."""

    eyes: Eyes
    collector: Collector
    rounds: Sequence[Round]
    after: Mapping[str, str] = field(default_factory=dict)
    """Which source each follows in its chain."""

    def seen(self) -> list[Seen]:
        """What each source found, the bus first."""
        rows = self._placed([self._seen(each) for each in self.rounds])
        order = [str(source.id) for adapter in self.eyes.adapters for source in adapter.sources]
        return sorted(rows, key=lambda row: (row.state == NOT_HERE, order.index(row.source) if row.source in order else len(order)))

    def _placed(self, rows: Sequence[Seen]) -> list[Seen]:
        """The rows; a tool that is not there while another source of its chain shows the cards is no failure."""
        speaks: dict[str, str] = {}
        for row in rows:
            if row.cards and row.state in (OK, LIMITED):
                speaks.setdefault(self._chain(row.source), row.source)
        return [self._absent(row, speaks.get(self._chain(row.source), "")) for row in rows]

    def _chain(self, source: str) -> str:
        """The source that leads its chain."""
        seen = {source}
        while (leader := self.after.get(source)) is not None and leader not in seen:
            source = leader
            seen.add(leader)
        return source

    @staticmethod
    def _absent(row: Seen, speaker: str) -> Seen:
        if not speaker or row.state != FAILED or row.outcome != Outcome.TOOL_MISSING:
            return row
        return replace(row, state=ABSENT, why=f"{speaker} speaks in its place", detail=row.why)

    def here(self, each: Round) -> bool:
        """True when a round is worth keeping: its vendor is here, or it said something."""
        return each.standing_by or self.collector.presence.counts(each.source, each.told)

    def _seen(self, each: Round) -> Seen:
        told, source = each.told, each.source
        cards = sum(card.role is not Role.DISPLAY for card in fold(told.observations))
        vendors = self.collector.adapters[source.adapter].manifest.pci_vendors if source.adapter in self.collector.adapters else ()
        row = Seen(source=source.id, adapter=source.adapter, state=OK, outcome=told.outcome.value, cards=cards)
        if each.standing_by:
            return replace(row, state=STANDING_BY, why=f"{source.after} speaks" if source.after else "not needed")
        detail = told.detail.removesuffix(source.install).rstrip("; ") if source.install else told.detail
        if not self.here(each):
            gone = self.collector.presence.has(source.adapter) is False
            why = f"no PCI device of vendor {' or '.join(vendors)}" if gone else "nothing of this vendor was found"
            return replace(row, state=NOT_HERE, why=why, detail=detail, help=source.install)
        if told.outcome.failed or told.outcome is Outcome.DEVICE_LOST:
            return replace(row, state=FAILED, why=detail or told.unknown_shape or told.outcome.value.replace("_", " "), help=_help(source, told.outcome))
        denied = sorted({key for o in told.observations for key, r in o.readings.items() if isinstance(r, Absent) and r.why is Why.NOT_PERMITTED})
        if denied:
            return replace(row, state=LIMITED, why=f"not permitted: {', '.join(denied)}", help=source.install or _HELP[Outcome.NOT_PERMITTED])
        if not cards and source.reader is not ReaderKind.STREAM and not any(o.subject.level in (Level.NODE, Level.SERVER) for o in told.observations):
            return replace(row, state=NOTHING, why=told.detail or _nothing(source))
        return row


def _help(source: Source, outcome: Outcome) -> str:
    if outcome in (Outcome.TOOL_MISSING, Outcome.UNREACHABLE):
        return source.install
    general = _HELP.get(outcome, "")
    return f"{general} ({source.install})" if source.install and outcome is Outcome.NOT_PERMITTED else general


def _nothing(source: Source) -> str:
    return "no accelerator on the bus" if source.witness is WitnessClass.PCI else "it lists no card"


def survey(
    machine: Path | None = None,
    outside: Sequence[str] = (),
    *,
    root: str = "/",
    search: Sequence[str] = (),
    every: bool = False,
    streams: bool = False,
    heard: Callable[[Round], None] = lambda _: None,
) -> Survey:
    """Reads every source once, and tells each round to ``heard`` as it ends.

    ``search``: further folders of tools and libraries; ``every``: also those that their chain does not need; ``streams``: also what logs hold now.
    Raises NotFound or InputError for a recorded machine that cannot be used.
    """
    seen = eyes(machine, outside, root, search=search)
    try:
        after = {str(source.id): str(source.after) for each in seen.adapters for source in each.sources if source.after}
        if every:
            seen = replace(seen, adapters=tuple(_each(seen.adapters)))
        readers = dict(seen.readers)
        if not streams:
            readers.pop(ReaderKind.STREAM, None)
        elif seen.real is not None:
            readers[ReaderKind.STREAM] = seen.real.by_kind[ReaderKind.STREAM]
        seen = replace(seen, readers=readers)
        collector = seen.collector(CLOCK)
        rounds = []
        for each in collector.once():
            if each.standing_by and each.told.outcome.failed:
                continue  # absent: it was told before, in its own words
            rounds.append(each)
            heard(each)
        return Survey(eyes=seen, collector=collector, rounds=rounds, after=after)
    finally:
        seen.close()


def _each(adapters: Iterable[Adapter]) -> Iterable[Adapter]:
    """The adapters with sources that follow nobody, and with streams that are not waited for long."""
    return (Sighted(each, tuple(replace(source, after=None, deadline=_wait(source)) for source in each.sources)) for each in adapters)


def _wait(source: Source) -> timedelta:
    return min(source.deadline, STREAM_WAIT) if source.reader is ReaderKind.STREAM else source.deadline
