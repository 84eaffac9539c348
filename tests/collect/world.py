# SPDX-License-Identifier: Apache-2.0
"""A small made-up world for collection: adapters whose text is ``serial product`` lines, readers that do as they are told, and a clock that is set by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from muster.collect.clock import Clock
from muster.domain.model.attributes import Level
from muster.domain.model.gather import Gather
from muster.domain.model.observation import Event, Interpretation, Subject
from muster.domain.model.source import Capture, Outcome, Read, ReaderKind, Source, SourceId, WitnessClass
from muster.spi.adapter import Manifest


@dataclass
class Hands:
    """Time that stands still until it is moved."""

    wall: float = 1_000_000.0
    mono: float = 100.0

    def clock(self) -> Clock:
        """Both clocks."""
        return Clock(lambda: self.wall, lambda: self.mono)

    def pass_(self, seconds: float) -> None:
        """Lets time pass."""
        self.wall += seconds
        self.mono += seconds


def source(
    name: str,
    adapter: str = "acme",
    *,
    after: str = "",
    provides: Sequence[str] = (),
    cadence: float = 60,
    reader: ReaderKind = ReaderKind.TOOL,
    form: str = "list",
) -> Source:
    """A source that reads one thing."""
    return Source(
        id=SourceId(name),
        adapter=adapter,
        reader=reader,
        reads=(Read(locator=(name,), format=form),),
        witness=WitnessClass.PCI if adapter == "bus" else WitnessClass.DRIVER,
        cadence=timedelta(seconds=cadence),
        deadline=timedelta(seconds=1),
        provides=tuple(provides),
        after=SourceId(after) if after else None,
    )


@dataclass
class Lines:
    """An adapter: one card per line ``serial key=value ...``; lines that begin with ``!`` are events; ``boom`` makes it raise."""

    name: str
    sources: Sequence[Source] = ()
    vendors: tuple[str, ...] = ()
    formats: tuple[str, ...] = ("list",)

    @property
    def manifest(self) -> Manifest:
        """Who it is for."""
        return Manifest(name=self.name, title=self.name, tier="seen", pci_vendors=self.vendors, formats={form: form for form in self.formats})

    def recognise(self, head: bytes) -> str | None:
        """A log is claimed by whoever stands in it by name."""
        return "log" if f"!{self.name}".encode() in head else None

    def interpret(self, captures: Sequence[Capture]) -> Interpretation:
        """Cards and events of all captures."""
        failed = [each for each in captures if each.failure]
        if failed:
            return Interpretation(outcome=failed[0].failure or Outcome.UNREADABLE, detail=failed[0].detail)
        gather, events = Gather(), []
        for line in b"\n".join(each.payload for each in captures).decode().splitlines():
            if line == "boom":
                raise ZeroDivisionError("boom")
            if line.startswith("!") or "] !" in line:
                events.append(Event(subject=Subject(level=Level.NODE), code="1", text=line[line.index("!") :], kind="log"))
                continue
            serial, *pairs = line.split()
            card = gather.card(serial).named(serial=serial)
            for key, value in (pair.split("=") for pair in pairs):
                card.value(key, int(value) if value.isdigit() and key != "pci.vendor_id" else value)
        told = gather.observations()
        return Interpretation(outcome=Outcome.DEVICES if told or events else Outcome.NO_DEVICES, complete=True, observations=told, events=tuple(events))


@dataclass
class Told:
    """A reader: what each source is to bring (bytes, an outcome, or an event to wait for)."""

    by: dict[str, bytes | Outcome | threading.Event | Exception] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)

    def read(self, source: Source, deadline: timedelta) -> Iterable[Capture]:
        """One capture."""
        self.reads.append(source.id)
        what = self.by.get(source.id, Outcome.TOOL_MISSING)
        if isinstance(what, Exception):
            raise what
        if isinstance(what, threading.Event):
            what.wait(30)
            what = Outcome.TIMED_OUT
        read = source.reads[0]
        if isinstance(what, Outcome):
            return [Capture(source=source.id, locator=read.locator, format=read.format, failure=what, detail="told to")]
        return [Capture(source=source.id, locator=read.locator, format=read.format, payload=what)]
