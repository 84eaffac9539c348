# SPDX-License-Identifier: Apache-2.0
"""The captures of one round of one source to observations and events: every layout goes one way, live and offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from muster.adapters.nvidia import (
    parse_csv,
    parse_dcgm,
    parse_kernel,
    parse_list,
    parse_nvml,
    parse_prometheus,
    parse_q,
    parse_rows,
    parse_table,
    parse_xml,
    seen,
)
from muster.adapters.nvidia.board import Board, Listing
from muster.adapters.nvidia.failures import failure, lost
from muster.adapters.nvidia.observe import say
from muster.adapters.nvidia.parse_list import uncounted
from muster.adapters.nvidia.recognise import recognise
from muster.adapters.nvidia.versions import parse_versions
from muster.domain.model.attributes import Level
from muster.domain.model.gather import Gather
from muster.domain.model.names import names, pci_address
from muster.domain.model.observation import Event, Interpretation, Subject
from muster.domain.model.reading import Why
from muster.domain.model.source import Capture, Outcome
from muster.formats.shape import lacking, sentences
from muster.spi.adapter import HEAD, Models

_PARSERS: dict[str, Callable[[bytes], Listing]] = {
    "nvidia-smi-xml": parse_xml.parse,
    "nvidia-smi-q": parse_q.parse_text,
    "nvidia-smi-list": parse_list.parse,
    "nvidia-smi-table": parse_table.parse,
    "nvidia-smi-monitor": parse_rows.parse_monitor,
    "nvidia-smi-topo": parse_rows.parse_topology,
    "nvidia-smi-version": parse_versions,
    "dcgmi-text": parse_dcgm.parse,
    "prometheus-text": parse_prometheus.parse,
}
_TOOL = "nvidia-smi-"
_NO_LISTING = ("kernel-log", "nvidia-smi-topo", "nvidia-smi-version", "nvidia-smi-profiles", "nvidia-smi-monitor", "prometheus-text")
_RANK = (Outcome.DEVICES, Outcome.PARTIAL, Outcome.DEVICE_LOST, Outcome.NO_DEVICES)


@dataclass(slots=True)
class _Round:
    """What the captures so far have said."""

    gather: Gather = field(default_factory=Gather)
    events: list[Event] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    detail: list[str] = field(default_factory=list)
    attached: int | None = None
    version: str = ""
    news: list[str] = field(default_factory=list)
    form: str = ""


def interpret(captures: Sequence[Capture], models: Models) -> Interpretation:
    """Cards, their partitions and the driver's events in these captures. Text that cannot be read gives ``unreadable``; nothing raises."""
    told = _Round()
    for capture in captures:
        _one(capture, models, told)
    outcome = _outcome(told)
    observations = told.gather.observations()
    return Interpretation(
        outcome=outcome,
        complete=bool(told.whole) and all(told.whole) and outcome in (Outcome.DEVICES, Outcome.NO_DEVICES),
        format=told.form,
        detail="; ".join(dict.fromkeys(told.detail))[:400],
        tool_version=told.version,
        unknown_shape=sentences(*told.news),
        counts={Level.CARD: told.attached} if told.attached is not None else {},
        observations=observations,
        events=tuple(told.events),
    )


def _one(capture: Capture, models: Models, told: _Round) -> None:
    form = capture.format if capture.format in _PARSERS or capture.format in _OTHERS else recognise(capture.payload[:HEAD]) or capture.format
    told.form = told.form or form
    if capture.failure is not None:
        _fail(told, capture.failure, capture.detail)
        return
    if form == "kernel-log":
        told.events.extend(_events(capture))
        _fail(told, Outcome.DEVICES, "")
        return
    listing, outcome = _listing(capture, form)
    told.news.append(seen.news(form, capture.payload, listing))
    told.version = told.version or listing.head.get("tool_version", "") or listing.head.get("driver_version", "")
    report = any(key.startswith(parse_dcgm.REPORT) for key in listing.head)
    if not listing.boards and outcome is None and not report and form not in ("nvidia-smi-version", "nvidia-smi-profiles"):
        outcome = _why_empty(capture, listing, told)
    if outcome is Outcome.UNREADABLE:
        _misfit(capture, form, listing, told)
    if outcome is not None:
        _fail(told, outcome, listing.note, whole=outcome is Outcome.NO_DEVICES)
        return
    _take(capture, form, listing, models, told)


_OTHERS = ("nvidia-smi-csv", "nvml-json", "nvidia-smi-text", "nvidia-smi-profiles", "kernel-log")


def _listing(capture: Capture, form: str) -> tuple[Listing, Outcome | None]:
    if form == "nvml-json":
        return parse_nvml.parse(capture.payload)
    if form == "nvidia-smi-csv":
        return parse_csv.parse(capture.payload, capture.locator), None
    parser = _PARSERS.get(form)
    listing = parser(capture.payload) if parser else Listing()
    if capture.cut and form == "nvidia-smi-list" and listing.boards:
        uncounted(listing.boards[-1])
    return listing, None


def _misfit(capture: Capture, form: str, listing: Listing, told: _Round) -> None:
    """What a person needs to know of a text that no parser fits: its version, and where it leaves what is known."""
    told.version = told.version or seen.version(listing, capture.payload)
    tool, _, number = told.version.rpartition(" ")
    told.news.append(seen.DRIVERS.news(number) if tool.lower() == "nvidia-smi" else "")
    told.detail.append(lacking(f"no card in {len(capture.payload)} bytes of {form or 'text'}", seen.misfit(form, capture.payload)))


def _why_empty(capture: Capture, listing: Listing, told: _Round) -> Outcome | None:
    """The outcome of a text without cards; None when cards that were lost are named, which is a listing of its own."""
    if lost(capture.payload, capture.stderr):
        return None
    spelled = failure(capture.payload, capture.stderr)
    if spelled is not None:
        told.detail.append(spelled.line)
        return spelled.outcome
    if listing.attached == 0 and not listing.cut:
        return Outcome.NO_DEVICES
    code = capture.exit_status or int("".join(filter(str.isdigit, listing.note)) or 0)
    if code in _EXITS:
        told.detail.append(f"exit status {code}")
        return _EXITS[code]
    return Outcome.UNREADABLE


_EXITS = {
    4: Outcome.NOT_PERMITTED,
    6: Outcome.NO_DEVICES,
    8: Outcome.DEVICE_LOST,
    9: Outcome.DRIVER_UNUSABLE,
    10: Outcome.DRIVER_UNUSABLE,
    12: Outcome.TOOL_MISSING,
    13: Outcome.TOOL_MISSING,
    15: Outcome.DEVICE_LOST,
    17: Outcome.NOT_PERMITTED,
    18: Outcome.DRIVER_UNUSABLE,
    127: Outcome.TOOL_MISSING,
}
"""Exit codes of the tool, a hint only: used when it printed nothing that says why."""


def _take(capture: Capture, form: str, listing: Listing, models: Models, told: _Round) -> None:
    whole_before = len(listing.boards)
    if form.startswith(_TOOL):
        _add_lost(capture, listing)
    say(listing, told.gather, models)
    gone = [board for board in listing.boards if board.lost]
    odd = listing.attached is not None and listing.attached != whole_before
    mixed = form not in _NO_LISTING and _repeats(listing)
    partial = capture.cut or (listing.cut and form not in _NO_LISTING) or odd
    if gone:
        alone = Outcome.NOT_PERMITTED if gone[0].why is Why.NOT_PERMITTED else Outcome.DEVICE_LOST
        told.outcomes.append(alone if len(gone) == len(listing.boards) else Outcome.PARTIAL)
        told.detail.append(f"{len(gone)} card(s) do not answer: {gone[0].lost}")
    else:
        told.outcomes.append(Outcome.PARTIAL if partial else Outcome.DEVICES)
    if mixed:
        told.detail.append("an index stands for several cards: this is no listing of one host")
    if odd:
        told.detail.append(f"{listing.attached} cards attached, {whole_before} shown")
    elif partial and not gone:
        told.detail.append("the text was cut or is broken")
    told.whole.append(listing.whole and not gone and not mixed and not capture.cut and form not in _NO_LISTING)
    told.attached = listing.attached if told.attached is None else told.attached


def _repeats(listing: Listing) -> bool:
    indexes = [index for board in listing.boards if (index := board.text("index")) is not None]
    return len(set(indexes)) < len(indexes)


def _add_lost(capture: Capture, listing: Listing) -> None:
    shown = {pci_address(board.text("pci.bus_id") or "") for board in listing.boards}
    for address, words in lost(capture.payload, capture.stderr).items():
        if pci_address(address) not in shown:
            board = Board(lost=words)
            board.offer("pci.bus_id", address)
            listing.boards.append(board)


def _fail(told: _Round, outcome: Outcome, detail: str, *, whole: bool = False) -> None:
    told.outcomes.append(outcome)
    told.whole.append(whole)
    if detail:
        told.detail.append(detail)


def _outcome(told: _Round) -> Outcome:
    """One outcome of several captures: cards seen, though one capture failed, are a partial answer."""
    if not told.outcomes:
        return Outcome.UNREADABLE
    if len(set(told.outcomes)) == 1:
        return told.outcomes[0]
    if told.gather.cards or Outcome.DEVICES in told.outcomes:
        return Outcome.PARTIAL
    return next((outcome for outcome in _RANK if outcome in told.outcomes), told.outcomes[0])


def _booted(capture: Capture) -> datetime | None:
    try:
        return datetime.fromisoformat(capture.context.get("booted_at", ""))
    except ValueError:
        return None


def _events(capture: Capture) -> list[Event]:
    return [
        Event(
            subject=Subject(
                level=Level.CARD if line.address or line.kind in ("xid", "sxid") else Level.NODE,
                names=names(pci_address=line.address or None, vendor_uuid=line.uuid or None, serial=line.serial or None),
            ),
            code=line.code,
            text=line.text,
            at=line.at,
            kind=line.kind,
        )
        for line in parse_kernel.parse(capture.payload, _booted(capture))
    ]
