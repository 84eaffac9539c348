# SPDX-License-Identifier: Apache-2.0
"""Who speaks by which access token: members in memory, and tokens that were seen before."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from muster.domain.model.access import Reach, Speaker
from muster.domain.model.errors import NotAllowed, Unavailable
from muster.services.enrolment_scope import Keys, beyond
from muster.spi.enrolment import EnrolmentStore, Member, Signer
from muster.wire.report import NodeDoc

LIFE = 3600.0
"""Seconds for which an access token holds."""
LOOK = 1.0
"""Seconds after which is looked whether another process changed something."""
AUDIENCE = "muster"
MOST_SEEN = 100_000
"""Access tokens that are known by heart; beyond that those that ended are forgotten."""
_ASK = "the agent asks for another by itself; if it goes on, `muster agent status` on the node says more"


class Roster:
    """Members, and who speaks by which token. `speaker` is one look-up where the token was seen before; safe for several threads."""

    def __init__(self, store: EnrolmentStore, signer: Signer) -> None:
        self._store = store
        self._signer = signer
        self._turn = threading.Lock()
        self._version = 0
        self._looked = float("-inf")
        self._members: dict[str, Member] = {}
        self._holders: dict[tuple[str, str], dict[str, str]] = {}
        self._seen: dict[str, Speaker] = {}
        self._tokens: dict[str, set[str]] = {}
        self._fine: dict[str, tuple[NodeDoc, str]] = {}
        with self._turn:
            self._look()

    def issue(self, member: Member, now: float) -> tuple[str, float]:
        """An access token for this generation of the member, and when it ends."""
        until = float(int(now + LIFE))
        return self._signer.sign({"aud": AUDIENCE, "sub": member.reporter, "gen": member.generation, "iat": int(now), "exp": int(until)}), until

    def speaker(self, token: str, now: float) -> Speaker:
        """Whose token this is. Raises NotAllowed."""
        found = self._seen.get(token)
        if found is not None and 0.0 <= now - self._looked < LOOK and now < found.until:
            return found
        with self._turn:
            if not 0.0 <= now - self._looked < LOOK:
                self._refresh(now)
            found = self._seen.get(token) or self._first(token, now)
        if not now < found.until <= now + 2 * LIFE:
            raise NotAllowed("the access token has ended", hint=_ASK)
        return found

    def _first(self, token: str, now: float) -> Speaker:
        claims = self._signer.read(token)
        reporter, generation, until = claims.get("sub"), claims.get("gen"), claims.get("exp")
        if claims.get("aud") != AUDIENCE or not isinstance(reporter, str) or not isinstance(until, int):
            raise NotAllowed("the access token is not one of a reporter", hint=_ASK)
        member = self._members.get(reporter)
        if member is None or member.revoked_at is not None:
            raise NotAllowed(f"{reporter} was revoked" if member else f"no reporter {reporter} is known", hint="`muster agent status` on the node says more")
        if member.generation != generation:
            raise NotAllowed("the access token is of an earlier key", hint=_ASK)
        if len(self._seen) >= MOST_SEEN:
            self._sweep(now)
        found = self._seen[token] = Speaker(reporter=reporter, scope=member.scope, until=float(until))
        self._tokens.setdefault(reporter, set()).add(token)
        return found

    def _sweep(self, now: float) -> None:
        for token in [token for token, each in self._seen.items() if each.until <= now] or list(self._seen)[: MOST_SEEN // 2]:
            self._tokens.get(self._seen.pop(token).reporter, set()).discard(token)

    def refresh(self, now: float) -> None:
        """Learns what other processes changed."""
        with self._turn:
            self._refresh(now)

    def _refresh(self, now: float) -> None:
        self._looked = now
        try:
            self._look()
        except Unavailable:
            return  # what is known holds until the store answers; then all that changed meanwhile is told

    def _look(self) -> None:
        self._version, changed = self._store.changed(self._version)
        self._take(changed)

    def put(self, members: Iterable[Member]) -> None:
        """Takes members in that this process has just changed: at once, whatever the store answers next."""
        with self._turn:
            self._take(members)

    def _take(self, members: Iterable[Member]) -> None:
        for member in members:
            self._fine = {}
            old = self._members.get(member.reporter)
            if old is not None and old.generation > member.generation:
                continue
            for token in self._tokens.pop(member.reporter, ()):
                self._seen.pop(token, None)
            if old is not None:
                self._index(old, there=False)
            self._members[member.reporter] = member
            self._index(member, there=True)

    def _index(self, member: Member, *, there: bool) -> None:
        if member.scope.reach is not Reach.NODE or member.revoked_at is not None:
            return
        for kind, key in (("name", member.name_key), ("machine", member.machine_key), ("system", member.system_key)):
            if key and there:
                self._holders.setdefault((kind, key), {})[member.reporter] = member.name
            elif key:
                holders = self._holders.get((kind, key), {})
                holders.pop(member.reporter, None)
                if not holders:
                    self._holders.pop((kind, key), None)

    def member(self, reporter: str) -> Member | None:
        """The member of this name, as it is known here."""
        return self._members.get(reporter)

    def members(self) -> list[Member]:
        """All members, by reporter."""
        with self._turn:
            return [self._members[reporter] for reporter in sorted(self._members)]

    def within(self, speaker: Speaker, node: NodeDoc, cluster: str) -> bool:
        """True when the speaker spoke of this node before, and nothing has changed since."""
        return self._fine.get(speaker.reporter) == (node, cluster)

    def beyond(self, speaker: Speaker, node: NodeDoc, keys: Keys, cluster: str) -> str:
        """Why the speaker may not speak of the node; empty when it may."""
        fine = self._fine
        why = self._beyond(speaker, keys, cluster)
        if not why:
            fine[speaker.reporter] = (node, cluster)
        return why

    def _beyond(self, speaker: Speaker, node: Keys, cluster: str) -> str:
        member = self._members.get(speaker.reporter)
        own = Keys(member.name_key, member.machine_key, member.system_key) if member else Keys("", "", "")

        def holder(kind: str, key: str) -> str:
            others = self._holders.get((kind, key))
            if not others:
                return ""
            return next((name for reporter, name in tuple(others.items()) if reporter != speaker.reporter), "")

        return beyond(speaker.scope, node, own, holder, cluster)
