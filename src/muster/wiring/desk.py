# SPDX-License-Identifier: Apache-2.0
"""What a door is handed: the store's reader, and the one writer behind a lock. The server fills it; tests fill it with recorded parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from muster.domain.decide import sight
from muster.domain.model.access import Grade, Speaker, User
from muster.domain.model.errors import InputError, MusterError, NotAllowed, NotFound
from muster.domain.model.policy import Policy
from muster.services.users import asker
from muster.services.users_sight import Limited
from muster.spi.adapter import Adapter
from muster.spi.store import AuditCheck, FindingRow, RollReader, Under
from muster.spi.users import TokenOffice
from muster.wire.report import ActDoc, AnswerDoc, ReportDoc
from muster.wiring.entrance import EMBEDDED, HERE, Entrance


class Keeper(Protocol):
    """The writer as doors see it. Not for several threads at once."""

    def report(self, doc: ReportDoc, now: float) -> AnswerDoc:
        """Takes a report in."""

    def act(self, doc: ActDoc, now: float, *, dry_run: bool = False, under: Under | None = None) -> list[str]:
        """Carries out an operator's word, or only tries it; ids of the cards touched. Raises NotFound, Ambiguous, Conflict, InputError.

        Its answer is kept in the same commit, ``under`` the key of the request.
        """

    def tick(self, now: float, enough: Callable[[], bool] = ...) -> bool:
        """Lets time pass: silences and settle times. True when ``enough`` broke it off; the next call goes on."""

    def acknowledge(self, finding: str, by: str, reason: str, now: float) -> FindingRow:
        """Marks a finding as seen. Raises NotFound or Conflict."""

    def take(self, posts: Sequence[tuple[Speaker, bytes]], now: float) -> list[AnswerDoc | MusterError]:
        """Takes packed reports in, all in one commit."""

    def hold(self, until: float) -> None:
        """Holds nobody's silence against them before ``until``."""

    def figures(self) -> Mapping[str, float]:
        """What it counted and what it holds, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The parts a door works with. ``clock`` is the only clock it may ask."""

    reader: RollReader
    keeper: Keeper
    policy: Policy
    clock: Callable[[], float]
    adapters: Sequence[Adapter] = ()
    version: str = ""
    well: Callable[[], dict[str, str]] = dict
    """What is not well with the server, by check; empty when it can do its work."""
    notes: Callable[[], dict[str, str]] = dict
    """What a person should know of a server that does its work all the same, by check."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    entrance: Entrance = EMBEDDED
    """Who comes in without a token."""
    users: TokenOffice | None = None
    """Who knows the tokens; None: nobody comes by one."""
    user: User = HERE
    """Who asks."""
    verify: Callable[[], AuditCheck] | None = None
    """Goes over the whole audit log."""
    enrolment: Any = None
    """Who lets reporters in."""
    numbers: Any = None
    """The newest numbers of all subjects, by column."""
    answers: Any = None
    """Answers that are kept for a request that comes again."""
    meters: Callable[[], Mapping[str, float]] = dict
    """Figures of the server's own work, by name."""
    scan_limit: int = 5000
    """Rows that a question may look at one by one."""
    streams: int = 64
    """Streams that may be open at once."""

    def of(self, user: User) -> Desk:
        """The desk as that user sees it."""
        return replace(self, user=user, reader=Limited(self.reader, user.nodes) if user.nodes else self.reader)

    @property
    def who(self) -> str:
        """Who asks, for the audit of what is no act on the roll."""
        return self.user.name or "a program on the server's machine"

    @property
    def whole(self) -> bool:
        """True when nothing is hidden from who asks."""
        return not self.user.nodes

    def sees(self, node: str | None) -> bool:
        """True when who asks may see what stands on the node of that name."""
        return sight.sees(self.user.nodes, node)

    def report(self, doc: ReportDoc) -> AnswerDoc:
        """Takes a report in, one at a time."""
        with self.lock:
            return self.keeper.report(doc, self.clock())

    def act(self, doc: ActDoc, *, dry_run: bool = False, under: Under | None = None) -> list[str]:
        """Carries out an act of who asks, or only tries it, one at a time. Raises NotFound for what is out of their sight."""
        self._may_change()
        meant = self._in_sight(doc)
        signed = msgspec.structs.replace(meant, by=self._signed(doc.by), asked_by=asker(self.user))
        with self.lock:
            return self.keeper.act(signed, self.clock(), dry_run=dry_run, under=under)

    def acknowledge(self, finding: str, by: str, reason: str) -> FindingRow:
        """Acknowledges a finding for who asks, one at a time. Raises NotFound for one out of their sight."""
        self._may_change()
        if isinstance(self.reader, Limited):
            self.reader.finding(finding)
        signed = self._signed(by)
        with self.lock:
            return self.keeper.acknowledge(finding, signed, reason, self.clock())

    def tick(self) -> None:
        """Lets time pass."""
        with self.lock:
            self.keeper.tick(self.clock())

    def _may_change(self) -> None:
        if self.user.reads or not sight.reaches(self.user.grade, Grade.OPERATOR):
            raise NotAllowed(f"{self.user.name} may only read", hint="ask an admin for a token with --role operator")

    def _in_sight(self, doc: ActDoc) -> ActDoc:
        """The act, its cards by our id among those that who asks sees. Raises NotFound when it names what they do not see."""
        reader = self.reader
        if not isinstance(reader, Limited):
            return doc
        if doc.node and not reader.node(doc.node):
            raise NotFound(f"no node {doc.node!r}", hint="`muster get nodes` lists them")
        meant = []
        for names in (doc.card, doc.other):
            ids = {reader.card(word).id for word in names.values()}
            if len(ids) > 1:
                raise NotFound(f"no card {names}", hint="`muster get cards -o wide` lists them")
            meant.append({**names, "id": ids.pop()} if ids else names)
        if not (doc.node or doc.card):
            raise NotFound("the act names no card or node", hint="name one that you see")
        return msgspec.structs.replace(doc, card=meant[0], other=meant[1])

    def _signed(self, by: str) -> str:
        """Who it is said of in the audit: the user, for whom they say it where they may, or who the program on this machine names. Raises InputError."""
        user, said = self.user, by.strip()
        if user.via == "local":
            if not (said or user.name):
                raise InputError("by is empty", hint="say who acts; it goes into the audit")
            return said or user.name
        return f"{user.name} for {said}" if user.grade is Grade.ADMIN and said not in ("", user.name) else user.name
