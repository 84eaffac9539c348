# SPDX-License-Identifier: Apache-2.0
"""A connection seen from its transport: whether it may stay, what it is waited for, when nothing more is read, how it ends."""

from __future__ import annotations

import asyncio
from enum import IntEnum
from typing import cast

from muster.interfaces.ingest import answers
from muster.interfaces.ingest.reception import Reception, Wait


class Stage(IntEnum):
    """How far the request is."""

    NONE = 0
    HEAD = 1
    BODY = 2
    WORK = 3
    LEAVING = 4


class Hold(IntEnum):
    """Why nothing more is read."""

    FULL = 1
    """The client does not read its answers."""
    GATE = 2
    """It is not known yet who speaks."""
    MORE = 4
    """Another request has begun before this one was answered."""


class Link(asyncio.Protocol):
    """What a connection is, whatever it says."""

    __slots__ = ("_holds", "_reception", "_stage", "_transport", "_wait")

    def __init__(self, reception: Reception) -> None:
        self._reception = reception
        self._transport: asyncio.Transport | None = None
        self._stage = Stage.NONE
        self._wait: Wait | None = None
        self._holds = 0

    def came(self, transport: asyncio.Transport) -> bool:
        """A connection came. False when it may not stay."""
        if not self._reception.admit(self):
            return False
        self._transport = transport
        self._watch(Wait.HEAD)
        return True

    def ready(self) -> None:
        """Requests may come."""
        self._watch(Wait.FIRST)

    def insecure(self) -> None:
        """Its handshake failed."""
        self._reception.meters.handshakes_failed += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection without TLS came."""
        wire = cast(asyncio.Transport, transport)
        if self.came(wire):
            self.ready()
        else:
            reception = self._reception
            wire.write(answers.away("too many connections are open", reception.retry(), close=True).whole(reception.date()))
            wire.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended, for whatever reason."""
        del exc
        self._transport = None
        self._unwatch()
        self._reception.dismiss(self)

    def pause_writing(self) -> None:
        """Answers are not read."""
        self._hold(Hold.FULL)

    def resume_writing(self) -> None:
        """Answers are read again."""
        self._unhold(Hold.FULL)

    @property
    def peer(self) -> str:
        """The address of the other side."""
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(name[0]) if name else ""

    def leave(self) -> None:
        """The door closes."""
        if self._stage is Stage.NONE:
            self._leave()

    def overdue(self, wait: Wait) -> None:
        """It was waited for too long."""
        self._wait = None
        if self._transport is None:
            return
        if wait in (Wait.HEAD, Wait.BODY):
            self._reception.meters.cut_off += 1
        if wait is Wait.END or (self._stage is Stage.NONE and wait is Wait.HEAD):
            self._transport.abort()
        elif wait in (Wait.FIRST, Wait.REQUEST):
            self._leave()
        else:
            self._cut(wait)

    def _cut(self, wait: Wait) -> None:
        """Ends a request that does not come to its end."""
        raise NotImplementedError

    def _watch(self, wait: Wait) -> None:
        """What is waited for from now on; nothing new when it is the same as before."""
        if self._wait is not wait:
            self._reception.watch(self, wait, self._wait)
            self._wait = wait

    def _unwatch(self) -> None:
        if self._wait is not None:
            self._reception.forget(self, self._wait)
            self._wait = None

    def _leave(self, *, reading: bool = False) -> None:
        """Ends the connection once all is sent. While the client still sends it is read for a moment, or it would not see the answer."""
        self._stage = Stage.LEAVING
        transport = self._transport
        if transport is None:
            return
        self._watch(Wait.END)
        if reading and transport.can_write_eof():
            transport.write_eof()
            self._unhold(Hold.FULL | Hold.GATE | Hold.MORE)
        else:
            transport.close()

    def _hold(self, why: int) -> None:
        if not self._holds and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        self._holds |= why

    def _unhold(self, why: int) -> None:
        before, self._holds = self._holds, self._holds & ~why
        if before and not self._holds and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
