# SPDX-License-Identifier: Apache-2.0
"""Who comes in without a token, and under which names the server answers. The server makes it from its settings; a door goes by it."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass, field
from ipaddress import ip_address

from muster.domain.model.access import Grade, User

PEER = "unix"
"""What stands for the host of one who comes by the socket; the port is then the user id, as the kernel tells it."""
HERE = User(name="", grade=Grade.ADMIN, via="local")
"""The program itself, where the API runs within it."""
NOBODY = User(name="nobody", grade=Grade.VIEWER, via="nobody", nodes=("",))
"""Who shows no token where none is asked for: sees no node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """The way in. ``embedded``: no server, the API runs within the program that asks."""

    uid: int = field(default_factory=os.geteuid)
    loopback: bool = False
    """Programs of this machine come in by TCP without a token: only while the server listens on loopback alone."""
    names: frozenset[str] = frozenset()
    """Host names of the server beside those of loopback."""
    beyond: bool = False
    """The server listens beyond loopback."""
    embedded: bool = False

    def known(self, client: tuple[str, int] | None) -> User | None:
        """The user that the way alone tells: of the socket by the peer's user id, of loopback as long as nobody else reaches it; None: show a token."""
        if self.embedded:
            return HERE
        if client is None:
            return None
        host, number = client
        if host == PEER:
            return User(name=account(number), grade=Grade.ADMIN, via="local") if number in (0, self.uid) else None
        return User(name="", grade=Grade.OPERATOR, via="local") if self.loopback and is_loopback(host) else None


EMBEDDED = Entrance(embedded=True, loopback=True)


def is_loopback(host: str) -> bool:
    """True for an address of this machine alone."""
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback


def account(uid: int) -> str:
    """The name of a user id; the number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
