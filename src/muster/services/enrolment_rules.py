# SPDX-License-Identifier: Apache-2.0
"""Who may join: the decision on a token, a key and the names of a node, against those who joined before. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from muster.domain.model.access import Reach, Scope
from muster.domain.model.errors import Conflict, InputError, NotAllowed
from muster.domain.model.moments import rfc3339
from muster.services.enrolment_moves import kept
from muster.services.enrolment_scope import LONGEST, Keys, own_scope
from muster.spi.enrolment import JoinToken, Member
from muster.wire.enrol import EnrolRequest
from muster.wire.naming import readable
from muster.wire.report import NodeDoc

_ROLES = {Reach.NODE: "agent", Reach.LIST: "collector", Reach.CLUSTER: "controller"}
_AGAIN = "if this is the same node with a new system: `muster agent reenrol {name}` lets it join once more, and gives a token for it"
_MINT = "`muster agent token create` makes one"


class Way(StrEnum):
    """How one comes in."""

    NEW = "new"
    AGAIN = "again"
    """It was let in before, by this token and key; only the answer was lost."""
    REPLACED = "replaced"
    """A new key in the place of an old one, as an operator allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Who comes in, and how. All but AGAIN use the token up by one."""

    way: Way
    member: Member
    before: Member | None = None


def admit(
    asked: EnrolRequest,
    keys: Keys,
    token: JoinToken | None,
    kin: Sequence[Member],
    now: float,
    taken: Callable[[str], bool] = lambda _: False,
    unlike: Callable[[Keys], str] = lambda _: "",
) -> Admission:
    """Lets in or refuses. ``kin`` are the members that have the key or one of the names; ``taken`` knows every reporter's name.

    ``unlike`` says why a node of these names is not one of which others tell that have not joined; where an operator named the node it is not asked.

    Raises NotAllowed for what the token does not allow, Conflict where the key or a name is another's, InputError for a request that makes no sense.
    """
    sensible(asked.node, keys)
    reach = _asked_for(asked)
    if token is None:
        raise NotAllowed("the join token is not known", hint=f"it was mistyped, deleted, or is of another server; {_MINT}")
    same_key = next((each for each in kin if each.public_key == asked.public_key), None)
    if same_key is not None and not (same_key.reenrol_until is not None and now < same_key.reenrol_until):
        return Admission(way=Way.AGAIN, member=_again(same_key, token, keys, reach))
    _usable(token, now)
    scope = _granted(token, reach, keys)
    vouched = bool(token.scope.nodes)
    rivals = [each for each in kin if each.scope.reach is reach and _of_same_name(each, keys, vouched=vouched)]
    before = _replaceable(rivals, asked, keys, now, vouched=vouched) if rivals else None
    if reach is Reach.NODE and not vouched and before is None and (why := unlike(keys)):
        raise Conflict(why, hint=f"if it is that node: `muster agent token create --node {asked.node.name}` gives a token for it")
    generation = before.generation + 1 if before else 1
    member = Member(
        reporter=before.reporter if before else _name(reach, asked, taken),
        name=asked.node.name,
        machine_id=asked.node.machine_id,
        system=asked.node.system,
        name_key=keys.name,
        machine_key=keys.machine,
        system_key=keys.system,
        public_key=asked.public_key,
        scope=scope,
        generation=generation,
        token=token.id,
        enrolled_at=now,
        keyed_at=now,
        agent_version="".join(sign for sign in asked.agent_version[:LONGEST] if sign.isprintable()),
    )
    return Admission(way=Way.REPLACED if before else Way.NEW, member=kept(member, before), before=before)


def sensible(node: NodeDoc, keys: Keys) -> None:
    """Raises InputError for a node whose names are none."""
    if not keys.name:
        raise InputError("the node has no name that can be used", hint="set its host name (hostnamectl set-hostname NAME)")
    readable(node)


def _asked_for(asked: EnrolRequest) -> Reach:
    try:
        return Reach(asked.reach)
    except ValueError as wrong:
        raise InputError(f"{asked.reach[:40]!r} is nothing to speak for", hint=f"one of {', '.join(Reach)}") from wrong


def _usable(token: JoinToken, now: float) -> None:
    if now >= token.expires_at:
        raise NotAllowed(f"join token {token.id} has expired", hint=_MINT)
    if token.left <= 0:
        raise NotAllowed(f"join token {token.id} is used up", hint=f"somebody joined with it already: `muster agent list` shows who; {_MINT}")


def _granted(token: JoinToken, reach: Reach, keys: Keys) -> Scope:
    """The scope within the token's that was asked for. Raises NotAllowed."""
    scope = token.scope
    if reach is Reach.NODE:
        if scope.nodes and not scope.nodes & {*keys}:
            raise NotAllowed(f"join token {token.id} is not for this node", hint="it names other nodes; make one with --node NAME for this")
        return own_scope(keys, scope.cluster)
    if reach is not scope.reach:
        raise NotAllowed(f"join token {token.id} does not let one speak for a {reach}", hint="make one with --nodes FILE or --cluster UID")
    return scope


def _again(member: Member, token: JoinToken, keys: Keys, reach: Reach) -> Member:
    """The member that asks a second time with its own key."""
    if member.revoked_at is not None:
        raise _revoked(member)
    if member.machine_key != keys.machine or member.scope.reach is not reach:
        raise Conflict(
            f"this key joined as {member.reporter}, on another machine",
            hint="the agent's state was copied: on the copy run `muster agent leave --keep-enrolment`, then join again",
        )
    if member.token != token.id:
        raise Conflict(f"this node joined already, as {member.reporter}", hint="`muster agent status` shows it; `muster agent leave` ends it")
    return member


def _of_same_name(member: Member, keys: Keys, *, vouched: bool) -> bool:
    """True when a node is known by a name of the member. A chassis id may be that of another where an operator named the node: makers repeat them."""
    if member.scope.reach is not Reach.NODE:
        return member.name_key == keys.name and member.machine_key == keys.machine
    pairs = [(member.name_key, keys.name), (member.machine_key, keys.machine)]
    if not vouched:
        pairs.append((member.system_key, keys.system))
    return any(mine and mine == theirs for mine, theirs in pairs)


def _replaceable(rivals: Sequence[Member], asked: EnrolRequest, keys: Keys, now: float, *, vouched: bool) -> Member:
    """The member whose place the node takes, as an operator allowed. Raises Conflict or NotAllowed with what to do.

    The place of a node is open for a token that names it: many nodes may have one that is for any.
    """
    if len(rivals) > 1:
        names = ", ".join(sorted(each.reporter for each in rivals)[:5])
        raise Conflict(f"its names are those of several reporters: {names}", hint="revoke or rename what is wrong; `muster agent list` shows all")
    (member,) = rivals
    reopened = member.reenrol_until is not None and now < member.reenrol_until
    if left(member) or (reopened and (vouched or member.scope.reach is not Reach.NODE)):
        return member
    if reopened:
        raise NotAllowed(
            f"the place of {member.reporter} is open, but not for a token that is for any node",
            hint=f"join with the token that `muster agent reenrol {member.name}` printed",
        )
    if member.revoked_at is not None:
        raise _revoked(member)
    same_machine = bool(keys.machine) and member.machine_key == keys.machine
    if same_machine and member.name_key == keys.name:
        raise Conflict(f"{member.name} joined already, with another key", hint=_AGAIN.format(name=member.name))
    if same_machine:
        raise Conflict(
            f"its machine id is that of {member.name}, which joined before: {asked.node.name} looks like a clone of it",
            hint="give the clone a machine id of its own (rm /etc/machine-id; systemd-machine-id-setup); " + _AGAIN.format(name=member.name),
        )
    if member.name_key == keys.name:
        raise Conflict(f"the name {asked.node.name} is taken: another machine joined with it", hint="rename this one; " + _AGAIN.format(name=member.name))
    raise Conflict(
        f"its chassis id is that of {member.name}, which joined before",
        hint=_AGAIN.format(name=member.name) + f"; if it is another machine, name it: `muster agent token create --node {asked.node.name}`",
    )


def _revoked(member: Member) -> NotAllowed:
    return NotAllowed(f"{member.reporter} was revoked", hint=f"an operator lets it in again: `muster agent reenrol {member.name}`")


def _name(reach: Reach, asked: EnrolRequest, taken: Callable[[str], bool]) -> str:
    made = f"{_ROLES[reach]}@{asked.node.name}"
    return f"{made}-{asked.public_key[:6].hex()}" if taken(made) else made


def left(member: Member) -> bool:
    """True for one that ended by its own word: it may come again as it came first."""
    return member.revoked_at is not None and member.revoked_by == member.reporter


def ended(member: Member) -> str:
    """By whom and when the member was ended, and how it comes again; empty for one that may speak."""
    if member.revoked_at is None:
        return ""
    if left(member):
        return f"its reporter {member.reporter} left at {rfc3339(float(int(member.revoked_at)))}; it may join again by a new token"
    why = f" ({member.reason})" if member.reason else ""
    told = f"its reporter {member.reporter} was revoked by {member.revoked_by} at {rfc3339(float(int(member.revoked_at)))}{why}"
    return f"{told}; `muster agent reenrol {member.name}` lets it in again"


def revoked(member: Member, by: str, reason: str, now: float) -> Member:
    """The member, ended. Raises Conflict when it was before."""
    if member.revoked_at is not None and member.reenrol_until is None and not left(member):
        raise Conflict(f"{member.reporter} was revoked before, by {member.revoked_by}")
    return replace(member, revoked_at=now, revoked_by=by, reason=reason, reenrol_until=None, generation=member.generation + 1)


def reopened(member: Member, lasts: float, now: float) -> Member:
    """The member, whose place another key may take for a while."""
    return replace(member, reenrol_until=now + lasts)


def rekeyed(member: Member, key: bytes, now: float) -> Member:
    """The member with a new key."""
    return replace(member, public_key=key, keyed_at=now, generation=member.generation + 1)
