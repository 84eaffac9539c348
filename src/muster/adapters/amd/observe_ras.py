# SPDX-License-Identifier: Apache-2.0
"""Error counters and bad pages of an amd-smi record. Counters run since the driver was loaded; bad pages last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.adapters.amd.values import block, is_marker, measure, rows, whole, word
from muster.domain.model.gather import Thing
from muster.domain.model.reading import Known

_COUNTS = (("corrected", "correctable_count"), ("uncorrected", "uncorrectable_count"), ("deferred", "deferred_count"))

_PAGES = ("retired", "pending", "un_res")


def observe(card: Thing, record: Mapping[str, Any]) -> None:
    """Puts errors and retired pages of the record on ``card``."""
    _blocks(card, record)
    _totals(card, record)
    _pages(card, record)


def _blocks(card: Thing, record: Mapping[str, Any]) -> None:
    """Counters per block; those of the memory controller (UMC) are the memory's."""
    told = block(record, "ecc_blocks", "ecc_block")
    if told is None:
        return
    found: dict[str, dict[str, int]] = {}
    for name, row in told.items():
        if not isinstance(row, Mapping):
            continue
        counts = {ours: count for ours, theirs in _COUNTS if (count := whole(row.get(theirs))) is not None and count >= 0}
        if counts:
            found[str(name).upper()] = counts
    if found:
        card.value("errors.ras", found)
        for ours in ("corrected", "uncorrected"):
            card.value(f"errors.memory.{ours}", found.get("UMC", {}).get(ours))
    elif not told or all(is_marker(v) for v in told.values()):
        card.put("errors.ras", measure("errors.memory.corrected", "N/A"))


def _totals(card: Thing, record: Mapping[str, Any]) -> None:
    """Totals over all blocks: none in all means none in the memory; more may be anywhere, and stay under the tool's own name."""
    ecc = block(record, "ecc")
    if ecc is None:
        return
    card.tell("ecc", dict(ecc) if not isinstance(record.get("ecc"), str) else str(record["ecc"]))
    for ours in ("corrected", "uncorrected"):
        value = ecc.get(f"total_{ours.replace('ed', 'able')}_count", ecc.get(f"{ours.replace('ed', 'able')}_count"))
        total = measure(f"errors.memory.{ours}", value)
        if total is not None and (not isinstance(total, Known) or total.value == 0):
            card.put(f"errors.memory.{ours}", total)


def _pages(card: Thing, record: Mapping[str, Any]) -> None:
    """Bad pages, each counted once: retired, pending, or not to be reserved."""
    told = {name: record[name] for name in _PAGES if name in record}
    if not told:
        return
    pages = {name: _addresses(value) for name, value in told.items()}
    if all(found is None for found in pages.values()):
        first = next(iter(told.values()))
        card.put("memory.pages_retired", measure("memory.pages_retired", first if is_marker(first) else "N/A"))
        return
    if len(told) == len(_PAGES):
        card.value("memory.pages_retired", len(set().union(*(found for found in pages.values() if found))))
    if pages.get("pending") is not None:
        card.value("memory.pages_retired.pending", bool(pages["pending"]))
    card.tell("bad_pages", told)


def _addresses(value: Any) -> set[str] | None:
    """Addresses of the pages; None where the tool does not say."""
    text = word(value) if not isinstance(value, list | Mapping) else None
    if text is not None and "no bad page" in text.lower():
        return set()
    if isinstance(value, list | Mapping):
        return {str(row.get("page_address")) for row in rows(value) if row.get("page_address") is not None}
    return None
