# SPDX-License-Identifier: Apache-2.0
"""Kernel log lines: times, continuation, and what is passed over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from muster.formats.kernel_log import entries, read_line


@pytest.mark.parametrize(
    ("line", "text", "stamp", "seconds", "at"),
    [
        ("[ 1843.308145] bad", "bad", "1843.308145", 1843.308145, None),
        ("6,77,1843308145,-;bad", "bad", "1843.308145", 1843.308145, None),
        ("<3>[ 1843.308145][ T99] bad", "bad", "1843.308145", 1843.308145, None),
        ("[Mon Feb  3 04:05:06 2025] bad", "bad", "Mon Feb  3 04:05:06 2025", None, datetime(2025, 2, 3, 4, 5, 6)),  # noqa: DTZ001  # the log prints no zone
        (
            "2025-02-03T04:05:06,500000+02:00 bad",
            "bad",
            "2025-02-03T04:05:06,500000+02:00",
            None,
            datetime(2025, 2, 3, 4, 5, 6, 500000, timezone(timedelta(hours=2))),
        ),
        ("Mon 2025-02-03 04:05:06 UTC n1 kernel: bad", "bad", "2025-02-03 04:05:06", None, datetime(2025, 2, 3, 4, 5, 6, tzinfo=UTC)),
        ("Feb  3 04:05:06 n1 kernel: bad", "bad", "Feb  3 04:05:06", None, None),
        ("Feb  3 04:05:06 n1 kernel: [   12.000001] bad", "bad", "Feb  3 04:05:06", 12.000001, None),
        ("[   12.000001] n1 kernel: bad", "bad", "12.000001", 12.000001, None),
        ("04:05:06 bad", "bad", "04:05:06", None, None),
        ("bad", "bad", "", None, None),
    ],
)
def test_times(line: str, text: str, stamp: str, seconds: float | None, at: datetime | None) -> None:
    entry = read_line(line)

    assert entry is not None
    assert (entry.text, entry.stamp, entry.seconds, entry.at) == (text, stamp, seconds, at)


@pytest.mark.parametrize(
    "line", ["", "   ", "-- Boot 0d9c --", "Feb  3 04:05:06 n1 sshd[7]: bad", " SUBSYSTEM=pci", '{"MESSAGE": 5}', "{broken", "[1]".replace("[1]", "{}")]
)
def test_passed_over(line: str) -> None:
    assert read_line(line) is None


def test_a_line_without_a_time_has_that_of_the_line_before() -> None:
    told = entries(b"[ 10.000000] first\n             second\n\n[ 11.000000] third\n")

    assert [(entry.text.strip(), entry.seconds) for entry in told] == [("first", 10.0), ("second", 10.0), ("third", 11.0)]


def test_dates() -> None:
    (entry,) = entries(b"[ 10.000000] first\n")

    assert (entry.dated(None), entry.dated(datetime(2026, 1, 1, tzinfo=UTC))) == (None, datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC))
