# SPDX-License-Identifier: Apache-2.0
"""Sentences of the kernel that are whole in one line: hanging tasks, lockups, memory errors, devices that left the bus."""

from __future__ import annotations

import re
from dataclasses import dataclass

from muster.formats.kernel_log import Entry

_ADDRESS = r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_WHO = rf"^[\w.-]{{1,64}} {_ADDRESS}: "


@dataclass(frozen=True, slots=True)
class Said:
    """What one line says: a family, a code where the family has several, and who is meant. ``address`` and ``slot`` are empty for what concerns the node."""

    kind: str
    code: str | None
    text: str
    address: str = ""
    slot: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    code: str | None
    pattern: re.Pattern[str]
    must: str
    """A text that stands in every such line, looked for before the pattern is tried."""


def _rule(kind: str, code: str | None, must: str, pattern: str) -> _Rule:
    return _Rule(kind, code, re.compile(pattern, re.IGNORECASE), must)


_RULES = (
    _rule("hung_task", None, "blocked", r"^(?:INFO: )?task (?P<task>.{1,64}):(?P<pid>\d+) blocked for more than (?P<seconds>\d+) seconds"),
    _rule("hung_task", None, "blocked", r"^(?:INFO: )?task (?P<task>.{1,64}):(?P<pid>\d+) (?:is )?blocked (?:on|in I/O wait for)"),
    _rule("lockup", "soft", "lockup", r"^(?:watchdog: )?BUG: soft lockup - CPU#\d+ stuck for"),
    _rule("lockup", "hard", "LOCKUP", r"^(?:watchdog: )?(?:NMI watchdog: )?Watchdog detected hard LOCKUP on cpu \d+"),
    _rule("lockup", "rcu", "stall", r"^(?:rcu: )?INFO: rcu\w* (?:self-)?detected (?:expedited )?stalls?"),
    _rule("mce", "memory_failure", "Memory failure", r"^Memory failure: 0x[0-9a-f]+: "),
    _rule("mce", None, "achine", r"^(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: (?:CPU \d+: Machine Check|Machine check events logged)"),
    _rule("edac", "uncorrected", "EDAC", r"^EDAC \S+: (?:\d+ UE|UE |.*uncorrect)"),
    _rule("edac", "corrected", "EDAC", r"^EDAC \S+: (?:\d+ CE|CE |.*corrected)"),
    _rule("hotplug", "link_down", "Slot(", r"^(?:\S+ \S+: )?pciehp: Slot\((?P<slot>[^)]{1,32})\): Link Down"),
    _rule("hotplug", "card_not_present", "Slot(", r"^(?:\S+ \S+: )?pciehp: Slot\((?P<slot>[^)]{1,32})\): Card not present"),
    _rule("hotplug", "power_fault", "Slot(", r"^(?:\S+ \S+: )?pciehp: Slot\((?P<slot>[^)]{1,32})\): Power fault"),
    _rule("pci", "power_state", "power state", _WHO + r"(?:Refused to change power state|(?:can't|Unable to) change power state)"),
    _rule("pci", "not_ready", "not ready", _WHO + r"not ready \d+ms after .*; giving up"),
    _rule("iommu", "fault", "fault", r"^DMAR: .*Request device \[(?P<address>[0-9a-f:.]{7,13})\].*fault"),
    _rule(
        "iommu", "fault", "IO_PAGE_FAULT", rf"^(?:\S+ {_ADDRESS}: )?[A-Z]{{2,8}}-Vi: Event logged \[IO_PAGE_FAULT(?: device=(?P<device>[0-9a-f:.]{{7,13}}))?"
    ),
)


def parse_line(entry: Entry) -> Said | None:
    """What the line says, or None when it is no sentence of the kernel that is known here."""
    for rule in _RULES:
        if rule.must in entry.text and (match := rule.pattern.match(entry.text)) is not None:
            groups = match.groupdict()
            address = groups.get("device") or groups.get("address") or ""
            return Said(rule.kind, rule.code, entry.text.strip(), address, groups.get("slot") or "")
    return None
