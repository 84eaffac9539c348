# SPDX-License-Identifier: Apache-2.0
"""Reporters that joined, and the tokens by which they may. Each change is one transaction, with its entry of the audit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Select, bindparam, delete, func, literal_column, or_, select, update

from muster.domain.model.access import Reach, Scope
from muster.domain.model.errors import Conflict, Unavailable
from muster.spi.enrolment import Deed, JoinToken, Member
from muster.store import audit
from muster.store.connections import Connections
from muster.store.schema_access import join_tokens, members
from muster.store.schema_gauges import layouts, slots
from muster.store.statements import Session, adding, compiled, replacing
from muster.store.unread import UNREADABLE

_TOKENS = select(join_tokens).order_by(join_tokens.c.created_at, join_tokens.c.id)
_MEMBERS = select(members).order_by(members.c.reporter)
_TOKEN = compiled(select(join_tokens).where(join_tokens.c.digest == bindparam("digest_")))
_ALL_TOKENS = compiled(_TOKENS)
_ADD_TOKEN = compiled(adding(join_tokens))
_DROP_TOKEN = compiled(delete(join_tokens).where(join_tokens.c.id == bindparam("id_")))
_SPEND = compiled(
    update(join_tokens)
    .where(join_tokens.c.id == bindparam("id_"), join_tokens.c.left > literal_column("0"), join_tokens.c.expires_at > bindparam("now_"))
    .values(left=join_tokens.c.left - literal_column("1"))
)
_ALL = compiled(_MEMBERS)
_ONE = compiled(select(members).where(members.c.reporter == bindparam("reporter_")))
_OF_KEY = compiled(select(members.c.reporter).where(members.c.public_key == bindparam("key_")))
_KEYS = ("name_key", "machine_key", "system_key")
_KIN = compiled(
    select(members)
    .where(
        or_(
            members.c.public_key == bindparam("key_"),
            *((members.c[each] == bindparam(f"{each}_")) & (members.c[each] != literal_column("''")) for each in _KEYS),
        )
    )
    .order_by(members.c.reporter)
)
_PUT = replacing(members, [members.c.reporter])
_LATEST = select(func.coalesce(func.max(members.c.changed), literal_column("0")).label("changed"))
_LAST = compiled(_LATEST)
_TOLD = select(slots.c.reporter, layouts.c.names).join(layouts, layouts.c.number == slots.c.layout).distinct()


def changed_within(after: int, latest: int) -> Select[Any]:
    """Members that changed after a number, up to another. The end is named so that a database that knows nothing of the table yet expects few."""
    return select(members).where(members.c.changed > after, members.c.changed <= latest).order_by(members.c.changed)


class AccessRows:
    """One transaction: `spi.enrolment.EnrolmentRows`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changed = 0

    def token(self, digest: str) -> JoinToken | None:
        """The token of this digest."""
        row = self._session.execute(_TOKEN, {"digest_": digest}).fetchone()
        return None if row is None else token_of(_named(row, join_tokens))

    def tokens(self) -> list[JoinToken]:
        """All tokens."""
        return [token_of(_named(row, join_tokens)) for row in self._session.execute(_ALL_TOKENS, {})]

    def put_token(self, token: JoinToken) -> None:
        """Keeps a new token."""
        self._session.execute(_ADD_TOKEN, {**_fields(token), "scope": _scope_text(token.scope)})

    def drop_token(self, id_: str) -> bool:
        """Forgets a token. False when there is none."""
        return self._session.execute(_DROP_TOKEN, {"id_": id_}).rowcount > 0

    def spend(self, id_: str, now: float) -> bool:
        """Takes one use away. False when none is left or it has ended."""
        return self._session.execute(_SPEND, {"id_": id_, "now_": now}).rowcount > 0

    def members(self) -> list[Member]:
        """All members."""
        return [member_of(_named(row, members)) for row in self._session.execute(_ALL, {})]

    def kin(self, public_key: bytes, name_key: str, machine_key: str, system_key: str) -> list[Member]:
        """Members that have this key, or one of these names."""
        asked = {"key_": public_key, "name_key_": name_key, "machine_key_": machine_key, "system_key_": system_key}
        return [member_of(_named(row, members)) for row in self._session.execute(_KIN, asked)]

    def member(self, reporter: str) -> Member | None:
        """The member of this name."""
        row = self._session.execute(_ONE, {"reporter_": reporter}).fetchone()
        return None if row is None else member_of(_named(row, members))

    def put(self, member: Member) -> None:
        """Keeps a member. Raises Conflict when its key is another's."""
        taken = self._session.execute(_OF_KEY, {"key_": member.public_key}).fetchone()
        if taken is not None and taken[0] != member.reporter:
            raise Conflict(f"this key is that of {taken[0]}", hint="let the node make a key of its own: `muster agent leave`, then join again")
        self._changed = self._changed or int(self._session.execute(_LAST, {}).fetchone()[0]) + 1
        self._session.execute(_PUT, {**_fields(member), "scope": _scope_text(member.scope), "changed": self._changed})

    def audit(self, deed: Deed) -> None:
        """Writes the audit."""
        entry = {"at": deed.at, "by": deed.by, "what": deed.what, "target": deed.target, "result": deed.result, **deed.detail}
        audit.record(self._session, [entry], deed.at)


class AccessStore:
    """`spi.enrolment.EnrolmentStore` over one store. ``check`` is called within each change: who may not write raises there."""

    def __init__(self, connections: Connections, check: Callable[[Session], None]) -> None:
        self._connections = connections
        self._check = check

    @contextmanager
    def change(self) -> Iterator[AccessRows]:
        """One transaction, durable when it ends."""
        with self._connections.transaction() as session:
            self._check(session)
            yield AccessRows(session)

    def changed(self, after: int) -> tuple[int, Sequence[Member]]:
        """The number of the last change, and members changed after number ``after``."""
        (told,) = self._connections.rows(_LATEST)
        latest = int(told[0]["changed"])
        if latest <= after:
            return after, ()
        (rows,) = self._connections.rows(changed_within(after, latest))
        return latest, [_read(row) for row in rows]

    def told(self) -> list[tuple[str, tuple[str, str, str]]]:
        """Reporters, and how they call the nodes that they tell of: name, machine id, system."""
        (rows,) = self._connections.rows(_TOLD)
        return [each for row in rows if (each := _told(row)) is not None]

    def tokens(self) -> list[JoinToken]:
        """All tokens."""
        (rows,) = self._connections.rows(_TOKENS)
        return [token_of(row) for row in rows]


def _told(row: Mapping[str, Any]) -> tuple[str, tuple[str, str, str]] | None:
    """A reporter, and how it calls a node; None where the row of its source is damaged: that one is passed over, as when the sources are loaded."""
    try:
        return (row["reporter"], _names(row["names"])) if isinstance(row["reporter"], str) else None
    except UNREADABLE:
        return None


def _names(text: str) -> tuple[str, str, str]:
    name, machine, system = json.loads(text)
    return name, machine, system


def _named(row: Sequence[Any], table: Any) -> dict[str, Any]:
    return dict(zip((column.name for column in table.columns), row, strict=True))


def _fields(record: JoinToken | Member) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def _scope_text(scope: Scope) -> str:
    former = {"former": scope.former} if scope.former else {}
    return json.dumps({"reach": scope.reach.value, "nodes": sorted(scope.nodes), "cluster": scope.cluster, **former})


def _scope(text: str) -> Scope:
    told = json.loads(text)
    former = tuple((str(kind), str(key)) for kind, key in told.get("former", ()))
    return Scope(reach=Reach(told["reach"]), nodes=frozenset(told["nodes"]), cluster=told["cluster"], former=former)


def token_of(row: Mapping[str, Any]) -> JoinToken:
    """The token of a row."""
    return JoinToken(**{**row, "scope": _scope(row["scope"])})


def _read(row: Mapping[str, Any]) -> Member:
    """The member of a row. Raises Unavailable that names the row, for one that is damaged: who may report must not be guessed."""
    try:
        return member_of(row)
    except UNREADABLE as error:
        hint = "`muster server check` names every such row; stop the server and put a backup back: `muster server restore FILE`"
        why = str(error) or type(error).__name__
        raise Unavailable(f"the store is damaged: row {row['reporter']} of the table members cannot be read ({why})", hint=hint) from error


def member_of(row: Mapping[str, Any]) -> Member:
    """The member of a row."""
    told = {name: value for name, value in row.items() if name != "changed"}
    return Member(**{**told, "scope": _scope(row["scope"]), "public_key": bytes(row["public_key"])})
