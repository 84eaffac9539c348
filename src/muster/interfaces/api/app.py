# SPDX-License-Identifier: Apache-2.0
"""The application: routes, problems, the OpenAPI document and the guard of the host name, put together on a desk."""

from __future__ import annotations

from functools import partial
from ipaddress import ip_address
from typing import Any

import msgspec
from fastapi import Depends, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.types import ASGIApp, Receive, Scope, Send

from muster.interfaces.api import audit, cards, changes, findings, parts, places, problems, reporters, summary, tokens, writing
from muster.interfaces.api.answers import SELECTED, page_schema
from muster.interfaces.api.guard import check, guard
from muster.interfaces.api.identity import Attempts, Identity, Refusals
from muster.interfaces.api.metrics import Figures, Metered
from muster.interfaces.api.paging import json_answer
from muster.interfaces.api.params import known_only
from muster.interfaces.api.rooms import Rooms
from muster.wire import documents as d
from muster.wire import exchange as x
from muster.wire import reporters as r
from muster.wire import sign_in as s
from muster.wire.report import AnswerDoc, ReportDoc
from muster.wiring.desk import Desk

HOSTS = frozenset({"localhost", "muster"})
"""Host names that a server answers to beside addresses of loopback; "muster" is what clients of the socket say."""

_LISTS = ("Card", "Device", "Partition", "Node", "Source", "Adapter", "Finding", "Change", "Event")
_DOCUMENTS: tuple[type[msgspec.Struct], ...] = (
    d.ValueReading, d.AbsentReading, d.Card, d.Device, d.Partition, d.Node, d.Source, d.Adapter, d.Finding, d.Change, d.Event, d.CaptureInfo, d.Series,
    d.Summary, x.Audit, x.ActRequest, x.ActAnswer, x.AcknowledgeRequest, x.Health, x.Version, x.Problem, s.Whoami, s.UserToken,
    s.UserTokenRequest, s.UserTokenMade, s.SignInRequest, s.AuditEntry, s.AuditCheck, r.Reporter, r.JoinToken, r.JoinTokenRequest,
    r.JoinTokenMade, r.RevokeRequest, r.ReenrolRequest, r.Reopened, ReportDoc, AnswerDoc,
)  # fmt: skip


class Api(FastAPI):
    """The application with our own OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        """The document."""
        return document(self)


def build(desk: Desk, hosts: frozenset[str] = HOSTS) -> FastAPI:
    """The API on ``desk``."""
    app = Api(
        title="Muster",
        version=desk.version or "0",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(guard), Depends(known_only)],
    )
    app.state.desk = desk
    app.state.refusals, app.state.attempts = Refusals(), Attempts()
    problems.install(app)
    for room in (cards, parts, places, changes, findings, writing, tokens, audit, reporters, summary):
        app.include_router(room.router)
    app.add_api_route("/openapi.json", _described, methods=["GET", "HEAD"], include_in_schema=False)
    check(app)
    app.add_middleware(Identity, desk, app.state.refusals, app.state.attempts)
    app.add_middleware(HostGuard, hosts | desk.entrance.names)
    app.add_middleware(Metered, partial(_figures, app))
    return app


def _figures(app: FastAPI, scope: Scope) -> Figures | None:
    """The figures of the application's own work, once its rooms are made."""
    del scope
    rooms: Rooms | None = getattr(app.state, "rooms", None)
    return rooms.figures if rooms is not None else None


def _described(request: Request) -> Response:
    """The OpenAPI document."""
    return json_answer(document(request.app))


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the schemas of all documents."""
    if app.openapi_schema is None:
        told = get_openapi(title=app.title, version="v1", description=_ABOUT, routes=app.routes, openapi_version="3.1.0")
        for each in (operation for path in told["paths"].values() for operation in path.values()):
            each["responses"].pop("422", None)  # what does not fit is a problem of status 400
        told["components"] = {"schemas": dict(sorted(schemas().items()))}
        app.openapi_schema = told
    return app.openapi_schema


_ABOUT = (
    "The roll of every accelerator: what each card is, where, whether it is present, and where each value comes from. "
    "A reading is a value with unit, source and age, or an absence with its reason: `absent` is one of not_supported, not_permitted, not_present, "
    "not_reported, moved, withheld, not_sampled, error, device_lost, unreachable, timed_out, implausible, unreadable. Every error is a problem (RFC 9457)."
)


def schemas() -> dict[str, Any]:
    """Schemas by name."""
    _, components = msgspec.json.schema_components(_DOCUMENTS, ref_template="#/components/schemas/{name}")
    pages = {f"{name}Page": page_schema(name) for name in _LISTS}
    return {
        **components,
        **pages,
        "AuditList": writing.AUDIT_LIST,
        "AuditEntryList": audit.ENTRY_LIST,
        "UserTokenList": tokens.TOKEN_LIST,
        "ReporterList": reporters.REPORTER_LIST,
        "JoinTokenList": reporters.JOIN_TOKEN_LIST,
        "Selected": SELECTED,
    }


class HostGuard:
    """Refuses requests made under another host's name: a page elsewhere that points its name at this machine gets nothing.

    Nor does a page elsewhere that lets its reader's browser ask us: what would change something and names another origin is refused, whatever the verb.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what is for us."""
        if scope["type"] == "http" and (told := self._wrong(scope)):
            hint = "use http://127.0.0.1 or the socket; a name that is the server's own belongs into its setting `names`"
            await problems.answer(421, "wrong_host", told, hint=hint)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _wrong(self, scope: Scope) -> str:
        if not self._own(_host(_header(scope, b"host")), scope):
            return "this server answers only to its own names"
        origin = _header(scope, b"origin")
        if origin and scope["method"] not in ("GET", "HEAD") and not self._own(_host(origin.partition("://")[2]), scope):
            return "a page of another site asks for a change"
        return ""

    def _own(self, host: str, scope: Scope) -> bool:
        """True for a name of ours, loopback, and the very address that the request was sent to."""
        try:
            return host in self._hosts or (found := ip_address(host.strip("[]"))).is_loopback or found == ip_address((scope.get("server") or ("",))[0])
        except ValueError:
            return False


def _header(scope: Scope, wanted: bytes) -> str:
    return next((bytes(value).decode("latin-1") for name, value in scope["headers"] if name == wanted), "").lower()


def _host(text: str) -> str:
    """A host without its port."""
    return text if text.endswith("]") else text.rpartition(":")[0] or text
