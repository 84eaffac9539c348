# SPDX-License-Identifier: Apache-2.0
"""Who speaks by which access token: members in memory, and tokens that were seen before."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from muster.domain.model.access import Reach, Speaker
from muster.domain.model.errors import NotAllowed, Unavailable
from muster.services.enrolment_moves import known
from muster.services.enrolment_others import Others, Telling
from muster.services.enrolment_rules import left
from muster.services.enrolment_scope import WORDS, Keys, beyond
from muster.spi.enrolment import EnrolmentStore, Member, Signer
from muster.wire.report import NodeDoc

LIFE = 3600.0
"""Seconds for which an access token holds."""
LOOK = 1.0
"""Seconds after which is looked whether another process changed something."""
AUDIENCE = "muster"
MOST_SEEN = 100_000
"""Access tokens that are known by heart; beyond that those that ended are forgotten."""
AGENT = "agent@"
"""How agents call themselves, joined or not."""
_ASK = "the agent asks for another by itself; if it goes on, `muster agent status` on the node says more"


class Roster:
    """Members, and who speaks by which token. `speaker` is one look-up where the token was seen before; safe for several threads."""

    def __init__(self, store: EnrolmentStore, signer: Signer) -> None:
        self._store = store
        self._signer = signer
        self._turn = threading.Lock()
        self._version = 0
        self._looked = float("-inf")
        self.others = Others()
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
            if member.scope.reach is Reach.NODE:
                self.others.forget(member.reporter)

    def _index(self, member: Member, *, there: bool) -> None:
        """A node keeps its names also when it was revoked: they are nobody else's for that. What left by itself lets them go."""
        if member.scope.reach is not Reach.NODE or left(member):
            return
        former = [("former", key) for kind, key in member.scope.former if kind == "name"]
        for kind, key in (*known(member).told(), *former):
            if there:
                self._holders.setdefault((kind, key), {})[member.reporter] = member.name
            else:
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

    def fine(self, speaker: Speaker, node: NodeDoc, keys: Keys, cluster: str) -> None:
        """The speaker may speak of the node, until something changes. Who does not speak for one node is remembered by what it tells."""
        if speaker.scope.reach is not Reach.NODE:
            self.hear(speaker.reporter, node.name, keys)
        self._fine[speaker.reporter] = (node, cluster)

    def hear(self, reporter: str, name: str, keys: Keys) -> None:
        """Takes note of what a reporter calls a node that it did not join for."""
        member = self._members.get(reporter)
        if member is not None and member.scope.reach is Reach.NODE and not left(member):
            return
        if self.others.hear(Telling(reporter, name, keys, agent=reporter.startswith(AGENT))):
            self._fine = {}

    def beyond(self, speaker: Speaker, node: Keys, cluster: str) -> str:
        """Why the speaker may not speak of the node; empty when it may."""
        member = self._members.get(speaker.reporter)
        if member is None or member.scope.reach is not Reach.NODE:
            return beyond(speaker.scope, node, Keys("", "", ""), lambda kind, key: self._member_of(kind, key, speaker.reporter), cluster)
        own = known(member)
        return beyond(member.scope, node, own, lambda kind, key: self.holder(kind, key, node, own, member.reporter), cluster)

    def _member_of(self, kind: str, key: str, but: str) -> str:
        return next((name for reporter, name in tuple(self._holders.get((kind, key), {}).items()) if reporter != but), "")

    def holder(self, kind: str, key: str, node: Keys, own: Keys, reporter: str) -> str:
        """Whose name it is, but the reporter's own, that is known by ``own`` and now calls itself ``node``; empty for nobody's."""
        return self._member_of(kind, key, reporter) or self._formerly(kind, key, node, reporter) or self.others.holder(kind, key, own, reporter)

    def _formerly(self, kind: str, key: str, node: Keys, but: str) -> str:
        """Who was called so before, and cannot be told apart from a node of these names by an id."""
        if kind != "name":
            return ""
        for reporter in tuple(self._holders.get(("former", key), {})):
            member = self._members.get(reporter)
            if member is not None and reporter != but and not known(member).apart(node):
                return f"{member.name}, which was called so before"
        return ""

    def unlike(self, keys: Keys) -> str:
        """Why a node that joins by a token for any node may not have these names; empty when it may.

        Who has joined is not looked at. A node of which only collectors tell gets its agent so. One that has an agent is joined by itself alone.
        """
        if why := self.others.unlike(keys) or self._formerly("name", keys.name, keys, ""):
            return why if why.startswith("its ") else f"its name is that of {why}"
        for each in self.others.of(keys):
            if each.agent or each.keys.name != keys.name:
                continue
            for kind, key in each.keys.told():
                for reporter in tuple(self._holders.get((kind, key), {})):
                    if not known(self._members[reporter]).apart(keys):
                        return f"its name is that by which {each.reporter} tells of {self._members[reporter].name} ({WORDS[kind]} {key})"
        return ""
