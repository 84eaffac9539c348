# SPDX-License-Identifier: Apache-2.0
"""The small fleet behind a door that asks for tokens, and users of each kind who have one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.interfaces.api.fleet import Clock, app, fleet
from tests.services.gate import ANY, Node, doc, gate_on

from muster.domain.model.access import Grade, Part, User
from muster.services.enrolment import Enrolment
from muster.services.users import Tokens
from muster.spi.users import NewToken
from muster.store import open_store
from muster.wiring.desk import Desk
from muster.wiring.entrance import Entrance

ROOT = User(name="root", grade=Grade.ADMIN, via="local")
PEOPLE = {
    "viewer": NewToken(name="viewer", grade=Grade.VIEWER),
    "operator": NewToken(name="operator", grade=Grade.OPERATOR),
    "admin": NewToken(name="admin", grade=Grade.ADMIN),
    "viewer of a": NewToken(name="viewer-a", grade=Grade.VIEWER, nodes=("node-a",)),
    "operator of a": NewToken(name="operator-a", grade=Grade.OPERATOR, nodes=("NODE-[a]", "rack9-*")),
    "reads findings": NewToken(name="reads", grade=Grade.VIEWER, reads=frozenset({Part.FINDINGS})),
}


@dataclass
class Site:
    """The site, its API, and the secrets of its users."""

    desk: Desk
    api: TestClient
    tokens: Tokens
    secrets: dict[str, str]
    clock: Clock
    app: FastAPI
    gate: Enrolment

    def joins(self, name: str) -> str:
        """A node joins; the name of its reporter."""
        text = self.gate.mint(ANY, 1, 600.0, "root", self.clock())[1]
        return Node(doc(name)).joins(self.gate, text, self.clock()).reporter

    def ask(self, who: str | None, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        """A request by one of the users; None shows no token."""
        headers = {} if who is None else {"authorization": f"Bearer {self.secrets.get(who, who)}"}
        return self.api.request(method, path, headers=headers | more.pop("headers", {}), json=body, **more)


@contextmanager
def site(**entrance: Any) -> Iterator[Site]:
    """A site to which everybody comes from afar with a token."""
    clock, store = Clock(), open_store(None)
    tokens = Tokens(store.users, os.urandom)
    told = {"loopback": False, "beyond": True, **entrance}
    gate = gate_on(store, clock(), address=lambda: "https://muster.example:7461")
    with fleet(clock) as plain:
        desk = replace(plain, users=tokens, entrance=Entrance(**told), verify=store.verify, enrolment=gate)
        secrets = {who: tokens.create(asked, ROOT, clock())[1] for who, asked in PEOPLE.items()}
        ended = {"revoked": NewToken(name="gone", grade=Grade.ADMIN), "expired": NewToken(name="old", grade=Grade.ADMIN, lifetime=60.0)}
        secrets |= {who: tokens.create(asked, ROOT, clock() - 61)[1] for who, asked in ended.items()}
        tokens.revoke("gone", ROOT, clock())
        served = app(desk)
        api = TestClient(served, base_url="http://127.0.0.1", raise_server_exceptions=False, client=("192.0.2.7", 4711))
        yield Site(desk, api, tokens, secrets, clock, served, gate)
    store.close()
