# SPDX-License-Identifier: Apache-2.0
"""Who sits at the door of users: so many connections in all, and from one address. Where there is no seat left, the one that has said nothing longest goes."""

from __future__ import annotations

import logging
import resource
from collections import defaultdict
from collections.abc import Callable
from ipaddress import ip_address, ip_network

from muster.wiring.seldom import Seldom

log = logging.getLogger("muster.server")
MOST = 400
"""Connections of users at once; less where this process may open few files, so that reporters and the socket have theirs."""
EACH = 200
"""Of one address; of one network of the last 64 bits, where the address has 128."""
LOCAL = 100
"""Connections at the socket."""
QUARTER = 4
"""The part of the files that this process may open which users may take is one of so many."""


class Seats:
    """All seats at one door. In its loop."""

    def __init__(self, door: str, most: int, each: int) -> None:
        self._door = door
        self._most = most
        self._each = each
        self._taken: defaultdict[str, set[Seat]] = defaultdict(set)
        self._count = 0
        self._idle: dict[Seat, None] = {}
        self._seldom = Seldom()

    def __len__(self) -> int:
        return self._count

    def take(self, host: str, cut: Callable[[], None]) -> Seat | None:
        """A seat for one from this address; ``cut`` ends its connection. None when there is none left."""
        place = _place(host)
        most = self._fitting()
        if len(self._taken.get(place, ())) >= min(self._each, most) and not self._make_room(place):
            return None
        if self._count >= most and not (self._make_room(max(self._taken, key=lambda each: len(self._taken[each]))) or self._make_room("")):
            return None
        seat = Seat(self, place, cut)
        self._taken[place].add(seat)
        self._count += 1
        self._idle[seat] = None
        return seat

    def _fitting(self) -> int:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return self._most if soft == resource.RLIM_INFINITY else max(1, min(self._most, soft // QUARTER))

    def _make_room(self, place: str) -> bool:
        """Ends the connection from there, or from anywhere, that has asked nothing for longest. False when all are at work."""
        self._say()
        seat = next((each for each in self._idle if not place or each.place == place), None)
        if seat is None:
            return False
        seat.leave()
        seat.cut()
        return True

    def _say(self) -> None:
        if self._seldom.may():
            log.warning("%s: %d connections are open, and others are closed or turned away: those first that say nothing", self._door, self._count)

    def idle(self, seat: Seat, *, idle: bool) -> None:
        """Says whether the one who sits there is waited for."""
        self._idle.pop(seat, None)
        if idle and seat in self._taken.get(seat.place, ()):
            self._idle[seat] = None

    def leave(self, seat: Seat) -> None:
        """The seat is free."""
        self._idle.pop(seat, None)
        there = self._taken.get(seat.place)
        if there is None or seat not in there:
            return
        there.discard(seat)
        self._count -= 1
        if not there:
            del self._taken[seat.place]


class Seat:
    """One connection's. It is idle until a request has come."""

    __slots__ = ("_seats", "cut", "place")

    def __init__(self, seats: Seats, place: str, cut: Callable[[], None]) -> None:
        self._seats = seats
        self.place = place
        self.cut = cut

    def rest(self) -> None:
        """Its next request is waited for."""
        self._seats.idle(self, idle=True)

    def work(self) -> None:
        """A request has come."""
        self._seats.idle(self, idle=False)

    def leave(self) -> None:
        """The connection has ended."""
        self._seats.leave(self)


def _place(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped) if mapped is not None else str(ip_network((address, 64), strict=False))
