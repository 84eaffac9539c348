# SPDX-License-Identifier: Apache-2.0
"""The audit log: everything that changed the state of the site, by whom, and whether the log is whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from muster.domain.model.errors import NotFound
from muster.domain.model.moments import rfc3339
from muster.interfaces.api.answers import AtDesk, answers, ref
from muster.interfaces.api.paging import json_answer
from muster.wire import sign_in as s
from muster.wire.shown import plain

router = APIRouter(prefix="/api/v1/audit", tags=["users"])

ENTRY_LIST = {
    "title": "AuditEntryList",
    "type": "object",
    "required": ["items"],
    "properties": {"items": {"type": "array", "items": ref("AuditEntry")}, "next": {"type": ["string", "null"]}},
}
MOST = 10_000
"""Entries of one answer."""
_TOLD = frozenset({"at", "by", "what", "asked_by", "reason"})


@router.get("", summary="The audit log", **answers(ref("AuditEntryList"), "Entries, newest first", 400))
def audit(
    desk: AtDesk,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Entries at most.")] = 500,
    cursor: Annotated[str, Query(pattern=r"^[0-9]{0,15}$", description="`next` of the answer before: older entries. The newest when left out.")] = "",
) -> Response:
    """Acts of operators, acknowledgements, tokens, sign-ins and reporters, newest first: who, what, how the server knew them, and why.

    `next` is there while there are older ones.
    """
    found = desk.reader.audited(limit + 1, int(cursor) if cursor else None)
    following = str(found[limit - 1][0]) if len(found) > limit else None
    return json_answer({"items": [_entry(row) for _, row in found[:limit]], "next": following})


@router.get("/verify", summary="Is the audit log whole", **answers(ref("AuditCheck"), "Whole, or the first entry that is not as it was written", 404))
def verify(desk: AtDesk) -> Response:
    """Goes over the whole log: each entry is chained to the one before it by a digest.

    Entries cut off its end do not show: keep `entries` and `head` elsewhere, and compare.
    """
    if desk.verify is None:
        raise NotFound("no audit log is kept here", hint="a server keeps one; this is the API within a program")
    found = desk.verify()
    return json_answer(s.AuditCheck(whole=found.broken is None, entries=found.rows, broken=found.broken, why=found.why, head=found.head))


def _entry(row: Mapping[str, Any]) -> s.AuditEntry:
    at = row.get("at")
    told = {name: str(row.get(name, "")) for name in ("by", "what", "asked_by", "reason")}
    return s.AuditEntry(at=rfc3339(at) if isinstance(at, int | float) else None, detail=plain({k: v for k, v in row.items() if k not in _TOLD}), **told)
