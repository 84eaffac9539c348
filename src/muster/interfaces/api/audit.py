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
    "properties": {"items": {"type": "array", "items": ref("AuditEntry")}},
}
_TOLD = frozenset({"at", "by", "what", "asked_by", "reason"})


@router.get("", summary="The audit log", **answers(ref("AuditEntryList"), "Entries, newest first", 400))
def audit(desk: AtDesk, limit: Annotated[int, Query(ge=1, le=10_000, description="Entries at most.")] = 500) -> Response:
    """Acts of operators, acknowledgements, tokens, sign-ins and reporters, newest first: who, what, how the server knew them, and why."""
    return json_answer({"items": [_entry(row) for row in desk.reader.audit(limit)]})


@router.get("/verify", summary="Is the audit log whole", **answers(ref("AuditCheck"), "Whole, or the first entry that is not as it was written", 404))
def verify(desk: AtDesk) -> Response:
    """Goes over the whole log: each entry is chained to the one before it by a digest."""
    if desk.verify is None:
        raise NotFound("no audit log is kept here", hint="a server keeps one; this is the API within a program")
    found = desk.verify()
    return json_answer(s.AuditCheck(whole=found.broken is None, entries=found.rows, broken=found.broken, why=found.why))


def _entry(row: Mapping[str, Any]) -> s.AuditEntry:
    at = row.get("at")
    told = {name: str(row.get(name, "")) for name in ("by", "what", "asked_by", "reason")}
    return s.AuditEntry(at=rfc3339(at) if isinstance(at, int | float) else None, detail=plain({k: v for k, v in row.items() if k not in _TOLD}), **told)
