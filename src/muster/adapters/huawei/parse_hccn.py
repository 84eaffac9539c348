# SPDX-License-Identifier: Apache-2.0
"""`hccn_tool`: answers about one chip's own network port. The tool names the chip only in its command line, by the id of its device node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from muster.adapters.huawei.said import Of, Record, Said

_PAIR = re.compile(r"^\s*(?:\[devid \d+\])?\s*([A-Za-z][A-Za-z0-9 _.-]{0,60}?)\s*:\s*(.*)$")
_CHANGE = re.compile(r"(?:\[devid (\d+)\])?\s*(\w{3} \w{3}\s+\d+ \d\d:\d\d:\d\d \d{4})\s+LINK (UP|DOWN)")
_LINK = re.compile(r"\bLINK\b|\d\d:\d\d:\d\d \d{4}\s+[A-Z]")
_DEVID = re.compile(r"^\s*\[devid (\d{1,6})\]")


def read(lines: Sequence[str], said: Said, ident: str | None, topic: str, *, open_end: bool = False) -> bool:
    """Adds the answer of one call. ``ident`` is the id it was asked for (else the one each line names), ``topic`` its option ("link_stat")."""
    named = next((found.group(1) for line in lines if (found := _DEVID.match(line))), None)
    ident = ident if ident is not None else named
    if ident is None:
        return False
    fields: dict[str, str] = {}
    body = lines[:-1] if open_end and lines else lines
    for line in body:
        found = _PAIR.match(line)
        if found and not _CHANGE.search(line):
            fields.setdefault(f"{topic}.{found.group(1).strip()}", found.group(2).strip())
    state = newest([found.groups()[1:] for line in body if (found := _CHANGE.search(line))])
    if state and not any(_LINK.search(line) and not _CHANGE.search(line) for line in body):
        fields["link_stat.newest record"] = state
    said.records.append(Record(of=Of.PORT, npu=ident, fields=fields, listed="hccn"))
    return True


def newest(changes: list[tuple[str | None, ...]]) -> str:
    """State ("UP", "DOWN") of the newest of (time, state) records. Of two in the same second the one nearer to the newest end of the list counts."""
    dated = [(at, state) for time, state in changes if time and state and (at := _time(time))]
    if not dated:
        return ""
    if dated[0][0] < dated[-1][0]:
        dated.reverse()
    return max(dated, key=lambda entry: entry[0])[1]


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(f"{text} +0000", "%a %b %d %H:%M:%S %Y %z")
    except ValueError:
        return None
