# SPDX-License-Identifier: Apache-2.0
"""A whole server in this process, with its doors, whose clocks the test turns."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from tests.faults.site import until
from tests.faults.voices import Voice

from muster.domain.model.access import Reach, Scope
from muster.interfaces.api.app import build
from muster.interfaces.ingest.opened import reporters
from muster.wiring.clock import SteadyClock
from muster.wiring.server import Server
from muster.wiring.settings import load_settings


@dataclass
class Hand:
    """A wall clock and a monotonic one, set by hand; the server goes by them as it goes by those of its machine."""

    wall: float = field(default_factory=lambda: time.time() // 60 * 60)
    mono: float = 1000.0


class Site:
    """The server, its clocks, and ways to ask it."""

    def __init__(self, server: Server, hand: Hand) -> None:
        self.server, self.hand = server, hand
        self.after: list[Voice] = []
        self.ticks = 0
        self._tick = server.writing.keeping.tick

        self.real = hand.wall - hand.mono
        """What the clocks of agents are off from the monotonic one."""

    def counted(self, now: float) -> None:
        """What is due is done; that is counted."""
        self._tick(now)
        self.ticks += 1

    @property
    def now(self) -> float:
        """The server's time."""
        return self.server.writing.clock()

    def pass_(self, seconds: float) -> None:
        """Time goes on, a minute at a time at most, as far as clocks are concerned; what is due is done."""
        left = seconds
        while left > 0:
            step = min(left, 60.0)
            self.hand.wall += step
            self.hand.mono += step
            left -= step
            self.server.writing.clock()
        ticked = self.ticks
        until(lambda: self.ticks > ticked + 1, "time passes", every=0.01)

    def voices(self, count: int, prefix: str = "node") -> list[Voice]:
        """So many reporters that have joined."""
        authority, enrolment = self.server.authority, self.server.writing.enrolment
        assert authority is not None
        assert enrolment is not None
        assert self.server.ingest is not None
        _, token = enrolment.mint(Scope(reach=Reach.NODE), count, 3600, "test", self.now)
        found = []
        for number in range(count):
            found.append(Voice(f"{prefix}-{number}", authority.authority(), self.server.ingest.port))
            self.after.append(found[-1])
            found[-1].join(token, self.now)
        return found

    def get(self, path: str) -> Any:
        """What the API answers; it must."""
        connection = http.client.HTTPConnection("muster", timeout=20)
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(self.server.socket)
            connection.request("GET", f"/api/v1/{path}")
            answer = connection.getresponse()
            told = json.loads(answer.read())
            assert answer.status == 200, (path, told)
            return told
        finally:
            connection.close()

    def all(self, path: str) -> list[Any]:
        """The items of a list; all must fit on one page."""
        page = self.get(f"{path}{'&' if '?' in path else '?'}limit=1000")
        assert not page.get("next")
        found: list[Any] = page["items"]
        return found

    def findings(self, kind: str) -> list[Any]:
        """Open findings of a kind."""
        return [each for each in self.all("findings") if each["kind"] == kind and each["closed_at"] is None]


@contextmanager
def site(folder: Path, hand: Hand | None = None) -> Iterator[Site]:
    """A server that runs. Its real time passes only in its threads; what it knows of time is the hand's."""
    told = hand or Hand()
    settings = load_settings(port=0, ingest_port=0, state=folder / "state", runtime=folder / "run", tick=0.05)
    with mock.patch("muster.wiring.writing.SteadyClock", return_value=SteadyClock(lambda: told.wall, lambda: told.mono)):
        server = Server(settings, build, reporters)
    server.start()
    made = Site(server, told)
    held = mock.patch.object(server.writing.keeping, "tick", made.counted)
    held.start()
    try:
        yield made
    finally:
        for voice in made.after:
            voice.close()
        server.stop()
        held.stop()
