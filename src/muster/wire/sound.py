# SPDX-License-Identifier: Apache-2.0
"""What every report must be, whoever sent it: named, numbered, and with times that are times."""

from __future__ import annotations

import math

import msgspec

from muster.domain.model.errors import InputError
from muster.domain.model.moments import LATEST
from muster.wire import bounds
from muster.wire.naming import readable
from muster.wire.report import OLDEST, HeardDoc, ListingDoc, ReportDoc, unpack


def opened(body: bytes) -> ReportDoc:
    """The report in ``body`` (msgpack). Raises InputError."""
    try:
        return sound(unpack(body))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as wrong:
        raise InputError(f"the report does not fit: {wrong}", hint="/openapi.json describes it") from wrong


def sound(report: ReportDoc) -> ReportDoc:
    """The report itself, when it can be taken. Raises InputError naming what is wrong."""
    if report.schema < OLDEST:
        raise InputError(f"schema {report.schema} is not known", hint=f"this server reads schema {OLDEST} and newer")
    for name, text in (("reporter", report.reporter), ("incarnation", report.incarnation), ("node.name", report.node.name)):
        if not text.strip():
            raise InputError(f"{name} is empty", hint="a report names who reports, since when, and the node")
    if not 0 <= report.sequence < 2**63:
        raise InputError("sequence is out of range", hint="count reports from 0 or 1 up")
    if not (_time(report.sent_at) and math.isfinite(report.sent_mono)):
        raise _no_time("sent_at")
    rounds: tuple[ListingDoc | HeardDoc, ...] = (*report.listings, *report.heard)
    for each in rounds:
        if not _time(each.observed_at):
            raise _no_time(f"round of {each.source}: observed_at")
    if report.listings or report.events or report.captures:
        _parts(report)
    readable(report.node)
    bounds.report(report)
    return report


def _parts(report: ReportDoc) -> None:
    for number, listing in enumerate(report.listings):
        if not _time(listing.cadence):
            raise _no_time(f"listings[{number}].cadence")
    for number, event in enumerate(report.events):
        if not (_time(event.first_at) and _time(event.last_at)):
            raise _no_time(f"events[{number}]")
    for number, capture in enumerate(report.captures):
        if not _time(capture.taken_at):
            raise _no_time(f"captures[{number}].taken_at")


def _time(at: float) -> bool:
    return 0 <= at <= LATEST


def _no_time(name: str) -> InputError:
    return InputError(f"{name} is no time", hint="times are seconds since 1970 in UTC")
