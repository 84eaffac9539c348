# SPDX-License-Identifier: Apache-2.0
"""Enrolment: reporters come in by a one-time token and a key of their own, and show that key for short-lived access tokens.

Every change is one transaction with its entry in the audit; what cannot be audited is not done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from muster.domain.decide.sight import sees
from muster.domain.model.access import Reach, Scope, Speaker
from muster.domain.model.errors import Ambiguous, Conflict, InputError, MusterError, NotAllowed, NotFound, Unavailable
from muster.domain.model.names import PLACEHOLDERS
from muster.services import enrolment_rules as rules
from muster.services import enrolment_tokens as tokens
from muster.services.enrolment_access import LIFE, Roster
from muster.services.enrolment_denials import Denials, plain
from muster.services.enrolment_moves import Moves, known, moved
from muster.services.enrolment_proof import Asked, Doubles, Freshness, opened, proven
from muster.services.enrolment_scope import WORDS, Keys, keys_of, listed, scope_doc
from muster.spi.access import Where
from muster.spi.enrolment import Deed, EnrolmentRows, EnrolmentStore, JoinToken, Member, Signer
from muster.wire.enrol import Enrolled, EnrolRequest, LeaveRequest, RenewRequest, Signed, Token, TokenRequest
from muster.wire.report import SCHEMA, NodeDoc

LONGEST_REOPENED = 7 * 86_400.0
_REJOIN = "join again: `muster agent leave`, then the line that `muster agent token create` prints"


class Enrolment:
    """The gate of reporters (`spi.access.Gate`), their bounds (`Bounds`), and what users do about them (`Reporters`). Safe for several threads."""

    def __init__(
        self,
        store: EnrolmentStore,
        signer: Signer,
        authority: Callable[[], bytes],
        fingerprint: str,
        now: float,
        dice: Callable[[int], bytes],
        placeholders: Iterable[str] = PLACEHOLDERS,
        address: Callable[[], str] = str,
        sights: Callable[[float], Iterable[Sequence[str]]] = lambda _: (),
    ) -> None:
        self._store = store
        self._authority = authority
        self._dice = dice
        self._address = address
        self._sights = sights
        self._placeholders = frozenset(placeholders)
        self._turn = threading.Lock()
        self._fresh = Freshness(fingerprint, now)
        self._doubles = Doubles(2 * LIFE)
        self._moves = Moves()
        self._now = now
        self.roster = Roster(store, signer)
        self.denials = Denials(store)

    def authority(self) -> bytes:
        """The certificate of our authority, PEM."""
        return self._authority()

    def begin(self, now: float) -> None:
        """This server writes from now on, perhaps in the place of another: proofs of before may have been used there, and what it changed is learnt."""
        self._fresh.since = now
        self.roster.refresh(now)
        self.roster.others.clear()
        for reporter, (name, machine, system) in self._store.told():
            self.roster.hear(reporter, name, keys_of(NodeDoc(name=name, machine_id=machine, system=system), self._placeholders))

    def where(self) -> Where:
        """Where reporters join."""
        return Where(address=self._address(), fingerprint=self._fresh.server)

    def enrol(self, asked: Signed, now: float, peer: str = "") -> Enrolled:
        """Lets a reporter in by a one-time token. Raises NotAllowed, Conflict or InputError."""
        told = opened(asked, EnrolRequest)
        with self._noted("reporter.enrol", f"{told.node.name} (token {tokens.named(told.token) or 'of another form'})", now, peer):
            self._fresh.timely(told.server, told.at, now)
            if not proven(told.public_key, asked.proof, EnrolRequest, asked.body):
                raise NotAllowed("the proof does not fit the key", hint=_REJOIN)
            with self._store.change() as rows:
                admission = self._admitted(rows, told, now, peer)
            self.roster.put([admission.member])
        member = admission.member
        return Enrolled(reporter=member.reporter, scope=scope_doc(member.scope), authority=self._authority())

    def _admitted(self, rows: EnrolmentRows, told: EnrolRequest, now: float, peer: str) -> rules.Admission:
        keys = keys_of(told.node, self._placeholders)
        token = rows.token(tokens.digest(told.token))
        kin = rows.kin(told.public_key, keys.name, keys.machine, keys.system)
        found = rules.admit(told, keys, token, kin, now, lambda name: rows.member(name) is not None, self.roster.unlike)
        if found.way is rules.Way.AGAIN:
            return found
        if not rows.spend(found.member.token, now):
            raise NotAllowed(f"join token {found.member.token} is used up", hint="somebody else was faster: `muster agent list` shows who")
        rows.put(found.member)
        detail = {"token": found.member.token, "way": found.way.value, "scope": scope_doc(found.member.scope), "machine_id": told.node.machine_id, "peer": peer}
        if beside := sorted({each.reporter for each in self.roster.others.of(keys)})[:5]:
            detail["also_told_by"] = beside
        rows.audit(_deed(now, found.member.reporter, "reporter.enrol", found.member, detail))
        return found

    def token(self, asked: Signed, now: float, peer: str = "") -> Token:
        """An access token for who shows the enrolled key. Raises NotAllowed, Conflict or InputError."""
        told = opened(asked, TokenRequest)
        with self._noted("reporter.token", told.reporter, now, peer):
            member = self._shown(asked, told, TokenRequest, now)
            keys = keys_of(told.node, self._placeholders)
            rules.sensible(told.node, keys)
            if member.machine_key and keys.machine and keys.machine != member.machine_key:
                raise Conflict(
                    f"{member.reporter} joined on another machine: this key is a copy, or the node has a new system",
                    hint=f"on a copy run `muster agent leave --keep-enrolment` and join it anew; a new system: `muster agent reenrol {member.name}`",
                )
            home = not (keys.system and member.system_key) or keys.system == member.system_key
            with self._turn:
                double = self._doubles.hear(member.reporter, told.boot_id, told.instance, now, home=home)
            if double:
                member = self._doubled(member, now, peer)
            elif (keys.name, keys.system) != (member.name_key, member.system_key):
                member = self._moved(member, told.node, keys, now)
                if keys.system and member.system_key and keys.system != member.system_key and (why := self._moves.wait(member, Keys("", "", keys.system), now)):
                    raise Conflict(f"{member.reporter}: {why}", hint=f"if that is so: `muster agent reenrol {member.name}` lets the node join once more")
        text, until = self.roster.issue(member, now)
        return Token(token=text, until=until, now=now, schema=SCHEMA)

    def _shown(self, asked: Signed, told: TokenRequest | RenewRequest | LeaveRequest, kind: type[Asked], now: float) -> Member:
        """The member whose key made the proof. Raises NotAllowed or InputError."""
        self._fresh.timely(told.server, told.at, now)
        self.roster.refresh(now)
        member = self.roster.member(told.reporter)
        if member is None:
            raise NotAllowed(f"no reporter {plain(told.reporter)} is known here", hint=_REJOIN)
        if not proven(member.public_key, asked.proof, kind, asked.body):
            raise NotAllowed(f"the proof does not fit the key of {member.reporter}", hint=_REJOIN)
        if member.revoked_at is not None:
            raise NotAllowed(f"{member.reporter} was revoked", hint=f"an operator lets it in again: `muster agent reenrol {member.name}`")
        with self._turn:
            self._fresh.once(told.nonce, told.at, now)
        return member

    def _doubled(self, member: Member, now: float, peer: str) -> Member:
        """Ends the access tokens of a key that was found in two places; the place that asks now gets a new one, the other none."""
        with self._store.change() as rows:
            found = rows.member(member.reporter) or member
            found = replace(found, generation=found.generation + 1)
            rows.put(found)
            rows.audit(_deed(now, peer or "unknown", "reporter.double", found, {"why": "one key in two places at once; the copy is shut out"}))
        self.roster.put([found])
        return found

    def _moved(self, member: Member, node: NodeDoc, keys: Keys, now: float) -> Member:
        """The member by its node's new name, in its new chassis, or with an id that it did not have, as far as they are nobody else's."""
        if member.scope.reach is not Reach.NODE:
            return member
        own = known(member)
        free = [key if key != mine and not (key and self.roster.holder(kind, key, keys, own, member.reporter)) else "" for kind, key, mine in _each(keys, own)]
        new = Keys(free[0], "" if own.machine else free[1], free[2])
        stays = self._moves.wait(member, Keys(new.name, "", ""), now) or self._crosses(member, node if new.name else None, now)
        new = Keys("" if stays else new.name, new.machine, new.system)
        new = Keys(new.name, new.machine, "" if self._moves.wait(member, Keys("", "", new.system), now) else new.system)
        if not any(new):
            return member
        with self._store.change() as rows:
            was = rows.member(member.reporter) or member
            found = moved(was, node, new)
            rows.put(found)
            rows.audit(_deed(now, found.reporter, "reporter.move", found, {"was": was.name, "name": found.name, "system": found.system}))
        self._moves.note(was, new, now)
        self.roster.put([found])
        return found

    def renew(self, asked: Signed, now: float, peer: str = "") -> Enrolled:
        """Takes a new key for the old one. Raises NotAllowed, Conflict or InputError."""
        told = opened(asked, RenewRequest)
        with self._noted("reporter.renew", told.reporter, now, peer):
            member = self._shown(asked, told, RenewRequest, now)
            if told.public_key == member.public_key or not proven(told.public_key, asked.also, RenewRequest, asked.body):
                raise NotAllowed("the new key is not proven", hint="run `muster agent renew` again")
            with self._store.change() as rows:
                found = rows.member(member.reporter)
                if found is None or found.generation != member.generation:
                    raise Conflict(f"{member.reporter} was changed meanwhile", hint="run `muster agent renew` again")
                member = rules.rekeyed(found, told.public_key, now)
                rows.put(member)
                rows.audit(_deed(now, member.reporter, "reporter.renew", member, {"peer": peer}))
            self.roster.put([member])
        return Enrolled(reporter=member.reporter, scope=scope_doc(member.scope), authority=self._authority())

    def leave(self, asked: Signed, now: float, peer: str = "") -> None:
        """Ends a reporter by its own word. Raises NotAllowed or InputError."""
        told = opened(asked, LeaveRequest)
        with self._noted("reporter.leave", told.reporter, now, peer):
            member = self._shown(asked, told, LeaveRequest, now)
            self._end(member.reporter, member.reporter, "left", "reporter.leave", now)

    def speaker(self, token: str, now: float) -> Speaker:
        """Whose access token this is; one look-up when it was seen before. Raises NotAllowed: unknown, ended or revoked."""
        self._now = now
        try:
            return self.roster.speaker(token, now)
        except NotAllowed as error:
            self.denials.note("reporter.speak", "", error.message, "")
            raise

    def check(self, speaker: Speaker, reporter: str, node: NodeDoc, cluster: str = "") -> None:
        """Raises NotAllowed when a report under this name, of this node, is not the speaker's to make. What is new of its own node is taken note of."""
        if reporter == speaker.reporter and self.roster.within(speaker, node, cluster):
            return
        keys = keys_of(node, self._placeholders)
        why = f"it is {speaker.reporter}, and the report is in the name of {plain(reporter)}" if reporter != speaker.reporter else ""
        why = why or self.roster.beyond(speaker, keys, cluster)
        hint = f"a reporter speaks for the nodes it joined for alone; `muster agent reenrol {plain(speaker.reporter)}` lets one that changed join once more"
        if not why and (why := self._anew(speaker, node, keys)):
            hint = f"if that is so: `muster agent reenrol {plain(speaker.reporter)}` lets the node join once more"
        if why:
            self.denials.note("reporter.report", f"{speaker.reporter} on {node.name}", why, "")
            raise NotAllowed(f"{speaker.reporter} may not report {plain(node.name)}: {why}", hint=hint)
        self.roster.fine(speaker, node, keys, cluster)

    def _anew(self, speaker: Speaker, node: NodeDoc, keys: Keys) -> str:
        """Takes note of a new name of a node that speaks for itself, or of an id that it did not have. Returns why it may not have it now."""
        member = self.roster.member(speaker.reporter)
        if member is None or member.scope.reach is not Reach.NODE:
            return ""
        own = known(member)
        name = keys.name if keys.name != own.name and ("name", keys.name) not in member.scope.former else ""
        new = Keys(name, "" if own.machine else keys.machine, "" if own.system else keys.system)
        if not any(new):
            return ""
        if why := self._moves.wait(member, new, self._now) or self._crosses(member, node if name else None, self._now):
            return why
        self._moved(member, node, Keys(name or own.name, new.machine or own.machine, new.system or own.system), self._now)
        return ""

    def _crosses(self, member: Member, node: NodeDoc | None, now: float) -> str:
        """Why a node may not be renamed by its own word: users who see some nodes would see it then and did not before, or the other way about."""
        if node is not None and any(sees(each, member.name) != sees(each, node.name) for each in self._sights(now)):
            return f"as {plain(node.name)} other users would see it than do as {member.name}"
        return ""

    def at_home(self, reporter: str) -> None:
        """Raises NotAllowed when a program of the server's own machine, that shows no token, reports in the name of one who joined."""
        member = self.roster.member(reporter)
        if member is None or rules.left(member):
            return
        why = "it joined, and reports with its token"
        self.denials.note("reporter.report", reporter, why, "this machine")
        raise NotAllowed(f"{plain(reporter)} may not report here: {why}", hint="start the agent without --server; `muster agent status` shows where to")

    def heard(self, reporter: str, node: NodeDoc) -> None:
        """Takes note of the node of which a program of the server's own machine told: it is nobody else's for that."""
        self.roster.hear(reporter, node.name, keys_of(node, self._placeholders))

    def tick(self, now: float) -> None:
        """Writes into the audit what was refused since. To be called every few seconds, by the process that writes."""
        self.denials.write(now)

    def mint(self, scope: Scope, uses: int, lasts: float, by: str, now: float) -> tuple[JoinToken, str]:
        """A new join token, and its text, which is told once. Raises InputError."""
        scope = replace(scope, nodes=listed(scope.nodes))
        with self._store.change() as rows:
            return self._minted(rows, scope, uses, lasts, by, now)

    def _minted(self, rows: EnrolmentRows, scope: Scope, uses: int, lasts: float, by: str, now: float) -> tuple[JoinToken, str]:
        made, text = tokens.minted(scope, uses, lasts, by, now, self._dice)
        for old in rows.tokens():
            if old.expires_at <= now - tokens.LONGEST:
                rows.drop_token(old.id)
        rows.put_token(made)
        detail = {"scope": scope_doc(scope) if len(scope.nodes) <= 100 else {"reach": scope.reach.value, "nodes": len(scope.nodes)}}
        rows.audit(Deed(at=now, by=by, what="join_token.create", target=made.id, result="done", detail={**detail, "uses": uses, "expires_at": made.expires_at}))
        return made, text

    def tokens(self, now: float) -> list[JoinToken]:
        """Join tokens that can still be used, newest first."""
        usable = (each for each in self._store.tokens() if each.left > 0 and each.expires_at > now)
        return sorted(usable, key=lambda each: -each.created_at)

    def drop(self, token: str, by: str, now: float) -> None:
        """Ends a join token, by its id. Raises NotFound."""
        with self._store.change() as rows:
            if not rows.drop_token(token):
                raise NotFound(
                    f"no join token {plain(token)}", hint="`muster agent token list` shows them; one that was used up or has expired needs no deleting"
                )
            rows.audit(Deed(at=now, by=by, what="join_token.delete", target=token, result="done", detail={}))

    def members(self) -> list[Member]:
        """All who ever joined, by name of the reporter."""
        return self.roster.members()

    def ended(self, now: float) -> dict[str, str]:
        """Reporters that were revoked or have left, and what is to be said of each where it is silent."""
        self.roster.refresh(now)
        return {each.reporter: why for each in self.members() if (why := rules.ended(each))}

    def revoke(self, who: str, by: str, reason: str, now: float) -> Member:
        """Ends a reporter and its access tokens at once. Raises NotFound, Ambiguous or Conflict."""
        return self._end(self._meant(who).reporter, by, reason, "reporter.revoke", now)

    def _end(self, reporter: str, by: str, reason: str, what: str, now: float) -> Member:
        with self._store.change() as rows:
            member = rules.revoked(_there(rows, reporter), by, reason, now)
            rows.put(member)
            rows.audit(_deed(now, by, what, member, {"reason": reason}))
        self.roster.put([member])
        return member

    def reenrol(self, who: str, lasts: float, by: str, now: float) -> tuple[Member, JoinToken, str]:
        """Lets this node join once more with another key, and a token for that. Raises NotFound, Ambiguous or InputError."""
        if not 60.0 <= lasts <= LONGEST_REOPENED:
            raise InputError("a re-enrolment is open for a minute to seven days")
        reporter = self._meant(who).reporter
        with self._store.change() as rows:
            member = rules.reopened(_there(rows, reporter), lasts, now)
            scope = member.scope
            if scope.reach is Reach.NODE:
                named = {each for each in (member.name_key, member.machine_key, member.system_key) if each}
                scope = replace(scope, nodes=scope.nodes | named)
            rows.put(member)
            rows.audit(_deed(now, by, "reporter.reenrol", member, {"until": member.reenrol_until}))
            made, text = self._minted(rows, scope, 1, lasts, by, now)
        self.roster.put([member])
        return member, made, text

    def _meant(self, who: str) -> Member:
        """The member that an operator means: by reporter, else by a name of its node."""
        self.roster.refresh(float("-inf"))
        known = self.roster.member(who)
        if known is not None:
            return known
        words = listed([who])
        found = [each for each in self.roster.members() if words & {each.name_key, each.machine_key}]
        if not found:
            raise NotFound(f"no reporter of a node {plain(who)} has joined", hint="`muster agent list` shows all")
        if len(found) > 1:
            raise Ambiguous(f"{plain(who)} has several reporters: {', '.join(each.reporter for each in found)}", hint="name one of them")
        return found[0]

    @contextmanager
    def _noted(self, what: str, target: str, now: float, peer: str) -> Iterator[None]:
        """Notes a refusal for the audit. Trouble of the store is no refusal."""
        try:
            yield
        except Unavailable:
            raise
        except MusterError as error:
            self.denials.note(what, target, error.message, peer)
            self.denials.write(now)
            raise


def _there(rows: EnrolmentRows, reporter: str) -> Member:
    found = rows.member(reporter)
    if found is None:
        raise NotFound(f"no reporter {reporter} is known")
    return found


def _deed(now: float, by: str, what: str, member: Member, detail: Mapping[str, Any]) -> Deed:
    return Deed(at=now, by=by, what=what, target=member.reporter, result="done", detail={**detail, "generation": member.generation})


def _each(keys: Keys, own: Keys) -> list[tuple[str, str, str]]:
    """Kind, the name told and the one known."""
    return [(kind, key, mine) for kind, key, mine in zip(WORDS, keys, own, strict=True)]
