# SPDX-License-Identifier: Apache-2.0
"""What each route needs of the user who asks. Denied by default: a route that is not in the table is not served, and the API does not start with one.

Objects are held apart by the desk: a user whose scope is some nodes gets a reader that knows no others, so that an id out of sight is not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from muster.domain.decide.sight import may, reaches
from muster.domain.model.access import Grade, Part, User
from muster.domain.model.errors import NotAllowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a route asks of a user. ``changes``: it changes something. ``here``: only who comes from this machine. ``public``: nobody is asked who they are."""

    grade: Grade
    part: Part
    changes: bool = False
    here: bool = False
    public: bool = False


def _sees(part: Part, grade: Grade = Grade.VIEWER) -> Need:
    return Need(grade=grade, part=part)


def _does(part: Part, grade: Grade = Grade.OPERATOR, *, here: bool = False) -> Need:
    return Need(grade=grade, part=part, changes=True, here=here)


_OPEN = Need(grade=Grade.VIEWER, part=Part.METRICS, public=True)
_V1 = "/api/v1"
UNNAMED = "who comes without a token"
"""How a user of this machine is called who has shown no name."""

NEEDS: dict[tuple[str, str], Need] = {
    ("GET", "/healthz"): _OPEN,
    ("GET", "/readyz"): _OPEN,
    ("GET", "/livez"): _OPEN,
    ("GET", "/version"): _OPEN,
    ("POST", f"{_V1}/login/oidc"): Need(grade=Grade.VIEWER, part=Part.ACCESS, changes=True, public=True),
    ("GET", "/openapi.json"): _sees(Part.ROLL),
    ("GET", "/metrics"): _sees(Part.METRICS),
    ("GET", f"{_V1}/whoami"): _sees(Part.ROLL),
    ("POST", f"{_V1}/logout"): _sees(Part.ROLL),
    ("GET", f"{_V1}/summary"): _sees(Part.ROLL),
    ("GET", f"{_V1}/cards"): _sees(Part.ROLL),
    ("GET", f"{_V1}/cards/{{card:path}}"): _sees(Part.ROLL),
    ("GET", f"{_V1}/cards/{{card:path}}/series"): _sees(Part.ROLL),
    ("GET", f"{_V1}/cards/{{card:path}}/history"): _sees(Part.HISTORY),
    ("GET", f"{_V1}/devices"): _sees(Part.ROLL),
    ("GET", f"{_V1}/devices/{{device:path}}"): _sees(Part.ROLL),
    ("GET", f"{_V1}/partitions"): _sees(Part.ROLL),
    ("GET", f"{_V1}/partitions/{{partition:path}}"): _sees(Part.ROLL),
    ("GET", f"{_V1}/nodes"): _sees(Part.ROLL),
    ("GET", f"{_V1}/nodes/{{node:path}}"): _sees(Part.ROLL),
    ("GET", f"{_V1}/sources"): _sees(Part.ROLL),
    ("GET", f"{_V1}/sources/{{source:path}}"): _sees(Part.ROLL),
    ("GET", f"{_V1}/adapters"): _sees(Part.ROLL),
    ("GET", f"{_V1}/adapters/{{adapter}}"): _sees(Part.ROLL),
    ("GET", f"{_V1}/changes"): _sees(Part.HISTORY),
    ("GET", f"{_V1}/changes/{{number}}"): _sees(Part.HISTORY),
    ("GET", f"{_V1}/changes/stream"): _sees(Part.HISTORY),
    ("GET", f"{_V1}/findings"): _sees(Part.FINDINGS),
    ("GET", f"{_V1}/findings/{{finding:path}}"): _sees(Part.FINDINGS),
    ("POST", f"{_V1}/findings/{{finding:path}}/acknowledge"): _does(Part.FINDINGS),
    ("GET", f"{_V1}/events"): _sees(Part.EVENTS),
    ("GET", f"{_V1}/captures/{{digest}}"): _sees(Part.CAPTURES),
    ("POST", f"{_V1}/acts"): _does(Part.ROLL),
    ("GET", f"{_V1}/acts"): _sees(Part.AUDIT, Grade.OPERATOR),
    ("POST", f"{_V1}/reports"): _does(Part.ROLL, here=True),
    ("GET", f"{_V1}/audit"): _sees(Part.AUDIT, Grade.OPERATOR),
    ("GET", f"{_V1}/audit/verify"): _sees(Part.AUDIT, Grade.ADMIN),
    ("GET", f"{_V1}/tokens"): _sees(Part.ACCESS, Grade.ADMIN),
    ("POST", f"{_V1}/tokens"): _does(Part.ACCESS, Grade.ADMIN),
    ("DELETE", f"{_V1}/tokens/{{token}}"): _does(Part.ACCESS, Grade.ADMIN),
    ("GET", f"{_V1}/reporters"): _sees(Part.ACCESS),
    ("POST", f"{_V1}/reporters/{{reporter:path}}/revoke"): _does(Part.ACCESS),
    ("POST", f"{_V1}/reporters/{{reporter:path}}/reenrol"): _does(Part.ACCESS),
    ("GET", f"{_V1}/join-tokens"): _sees(Part.ACCESS, Grade.ADMIN),
    ("POST", f"{_V1}/join-tokens"): _does(Part.ACCESS, Grade.ADMIN),
    ("DELETE", f"{_V1}/join-tokens/{{token}}"): _does(Part.ACCESS, Grade.ADMIN),
}
"""Each route of the API by method and path, and what it needs. Whoever adds a route adds its row."""

PUBLIC = frozenset(key for key, need in NEEDS.items() if need.public)
"""What answers without a token. All of it is a path without a name in it."""


def refusal(need: Need | None, user: User) -> str:
    """Why the user may not; empty when they may."""
    if need is None:
        return "nobody may, for what it needs is not declared"
    if need.public:
        return ""
    if need.here and user.via != "local":
        return "this is for programs on the server's own machine"
    return may(user if user.name else replace(user, name=UNNAMED), need.grade, need.part, changes=need.changes)


async def guard(request: Request) -> None:
    """Lets the request through, or raises NotAllowed. Every route has it."""
    user: User = request.state.user
    need = NEEDS.get(key(request.method, request.scope["route"].path))
    why = refusal(need, user)
    if why:
        request.app.state.refusals.told(403, why, request.scope, user)
        raise NotAllowed(f"{request.method} {request.url.path}: {why}", hint=_hint(need, user))


def _hint(need: Need | None, user: User) -> str:
    if need is None:
        return "please report it: this version of the server should not have this route"
    if need.here and user.via != "local":
        return "agents report to the listener for reporters, once they joined: muster agent join"
    if user.via == "local" and need.grade is Grade.ADMIN:
        return "use the server's socket: left alone, the command line finds it when run by the server's user or root"
    if user.reads and reaches(user.grade, need.grade):
        return f"ask an admin for a token that may read that: muster token create NAME --role viewer --scope read={need.part}"
    return f"ask an admin for a token with that role: muster token create NAME --role {need.grade}"


def key(method: str, path: str) -> tuple[str, str]:
    """A route in the table; HEAD needs what GET needs."""
    return ("GET" if method == "HEAD" else method, path)


def routes(found: Sequence[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Method and path of every route, those of rooms that were included too. Raises TypeError for a kind that the guard does not see."""
    for each in found:
        room: Any = getattr(each, "original_router", None)
        if room is not None:
            yield from routes(room.routes)
            continue
        if not isinstance(each, APIRoute):
            raise TypeError(f"{each!r} is no route of the API: the guard would not be asked")
        yield from ((method, each.path) for method in sorted(each.methods or ()))


def check(app: FastAPI, needs: Mapping[tuple[str, str], Need] = NEEDS) -> None:
    """Raises LookupError when a route has no need declared: the API does not start with a door that nobody guards."""
    bare = sorted({key(*each) for each in routes(app.routes)} - needs.keys())
    if bare:
        raise LookupError("not declared in interfaces/api/guard.py NEEDS: " + ", ".join(f'("{method}", "{path}")' for method, path in bare))
