# SPDX-License-Identifier: Apache-2.0
"""Joining a server and leaving it, a new key, and how it stands: what `muster agent` does on the node. Standard library and msgspec alone."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from muster.domain.model.errors import Conflict, InputError, MusterError, NotAllowed, NotFound, Unavailable
from muster.wire.enrol import Asking, Enrolled, EnrolRequest, LeaveRequest, RenewRequest, Signed
from muster.wire.report import NodeDoc
from muster.wiring.gate_calls import ask, authority_of, document, fingerprint, mark_of, pinned, server_url, unpinned
from muster.wiring.lock import running
from muster.wiring.membership import FILE, KEY, NEXT_KEY, STATE, WALL, Card, Membership, card, folder_of, joined, keep, signed, signing_child

TOKEN_LIMIT = 4096
"""Bytes of a file with a token."""
CLOCK_S = 86_400.0
FORGETS = 3

_ANEW = "`muster agent status` shows it, `muster agent leave` ends it; if it was revoked and is let in again: `muster agent leave --keep-enrolment`, then join"


def join(
    state: Path,
    server: str,
    mark: str,
    token: str,
    node: NodeDoc,
    reach: str = "node",
    agent_version: str = "",
    wall: Callable[[], float] = WALL,
) -> Card:
    """Joins the server, if its authority has this fingerprint. The token is sent only to a server that has proven to be of that authority.

    Raises InputError, NotAllowed, Conflict or Unavailable; a join whose answer was lost can be said again as it was.
    """
    url, wanted = server_url(server), mark_of(mark)
    if not token.strip():
        raise InputError("the token is empty", hint="`muster agent token create` on the server makes one")
    there = card(state)
    if there is not None:
        raise Conflict(f"this node joined {there.url} already, as {there.reporter}", hint=_ANEW)
    told = authority_of(url, unpinned())
    shown = fingerprint(told.authority)
    if shown != wanted:
        raise NotAllowed(
            f"{url} shows another authority than {wanted}: {shown}",
            hint="nothing was sent to it; take the fingerprint from the server itself. If it is the one you gave, somebody stands between",
        )
    off = told.now - wall()
    key = _new_key(state, KEY)
    asked = EnrolRequest(token=token.strip(), node=node, public_key=key, server=wanted, at=told.now, reach=reach, agent_version=agent_version)
    context = pinned(told.authority)
    try:
        answer = ask(url, context, "POST", "/v1/enrol", _sealed(signed(asked, folder_of(state) / KEY)))
    except NotAllowed as error:
        if abs(off) < CLOCK_S:
            raise
        raise NotAllowed(f"the clock of this node is {abs(off):.0f} s {'behind' if off > 0 else 'ahead of'} the server's", hint="set it (NTP)") from error
    enrolled = document(answer, Enrolled, url)
    made = Card(url=url, fingerprint=wanted, reporter=enrolled.reporter, node=node, scope=enrolled.scope, joined_at=wall())
    keep(state, made, told.authority)
    return made


def token_text(given: str | None, file: str | None, read_stdin: Callable[[], str]) -> str:
    """The token from the option, from a file, or from stdin (``-``). Raises InputError."""
    if given and file:
        raise InputError("give --token or --token-file, not both", hint="the file is safer: other users of this node see arguments")
    if given and given != "-":
        return given
    if given == "-" or file == "-":
        return read_stdin().strip()
    if not file:
        raise InputError("a join needs a token", hint="give --token-file FILE, or --token - and the token on stdin; --token TOKEN shows it to other users here")
    try:
        with Path(file).open(encoding="ascii") as source:
            return source.read(TOKEN_LIMIT).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}", hint="a file with the token alone") from error


def _new_key(state: Path, name: str) -> bytes:
    """The public key of the node, made when there is none. Raises Unavailable."""
    folder = folder_of(state)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise Unavailable(f"{folder} cannot be made: {error.strerror}", hint="run this as the agent's user, or name another folder with --state") from error
    return bytes.fromhex(signing_child("new", folder / name).decode("ascii").strip())


def _sealed(request: Signed) -> bytes:
    return msgspec.msgpack.encode(request)


def renew(state: Path, wall: Callable[[], float] = WALL) -> Membership:
    """Makes a new key, and has the server take it for the old one. Raises NotAllowed, Conflict or Unavailable."""
    member = joined(state)
    folder = folder_of(state)
    key = _new_key(state, NEXT_KEY)

    def request(at: float) -> Asking:
        return RenewRequest(reporter=member.reporter, server=member.card.fingerprint, at=at, nonce=secrets.token_bytes(16), public_key=key)

    try:
        _proven(member, "/v1/renew", request, wall, also=folder / NEXT_KEY)
    except (NotAllowed, Conflict, InputError):
        member.proven()  # the answer to an earlier try may have been lost: then the server knows the new key, and this puts it in its place
        if (folder / NEXT_KEY).exists():
            (folder / NEXT_KEY).unlink()
            raise
        return member
    (folder / NEXT_KEY).replace(folder / KEY)
    return member


def _proven(member: Membership, path: str, request: Callable[[float], Asking], wall: Callable[[], float], also: Path | None = None) -> None:
    """Sends a proven request; once more by the server's clock when ours is off."""
    answer = ask(member.card.url, member.context(), "POST", path, _sealed(signed(request(wall()), member.folder / KEY, also)))
    if answer.status == 400 and answer.at is not None:
        answer = ask(member.card.url, member.context(), "POST", path, _sealed(signed(request(answer.at + 0.5), member.folder / KEY, also)))
    if answer.status >= 300:
        document(answer, dict, member.card.url)


def leave(state: Path, *, tell: bool, wall: Callable[[], float] = WALL) -> tuple[Card, MusterError | None]:
    """Forgets key and server; with ``tell`` the server is told that this reporter ends. Why that could not be told is the second of the answer.

    It is NotAllowed where the server does not let the reporter in any more, as one that was revoked.
    """
    try:
        found = card(state)
    except Unavailable:
        found = None
    if found is None:
        if not (folder_of(state) / FILE).exists():
            raise NotFound(f"nobody has joined from {state}", hint="--state FOLDER names another agent of this machine; there is nothing to leave here")
        _forget(folder_of(state))
        raise Unavailable("the membership was damaged; it is gone", hint="the server may know this node still: `muster agent revoke` there")
    trouble: MusterError | None = None
    if tell:
        member = joined(state)

        def request(at: float) -> Asking:
            return LeaveRequest(reporter=found.reporter, server=found.fingerprint, at=at, nonce=secrets.token_bytes(16))

        try:
            _proven(member, "/v1/leave", request, wall)
        except MusterError as error:
            trouble = error
    _forget(folder_of(state))
    return found, trouble


def _forget(folder: Path) -> None:
    """Deletes a membership, the card first: an agent that runs reports no more from then on, and may leave word here once more."""
    (folder / FILE).unlink(missing_ok=True)
    for _ in range(FORGETS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
    shutil.rmtree(folder)


def status(state: Path) -> dict[str, Any]:
    """How it stands: where joined, until when the token holds, what waits, what was delivered last, and what is wrong, since when, and what helps."""
    found = card(state)
    token = _told(folder_of(state) / STATE)
    delivery = _told(state / "delivery.json")
    waiting, size = _spool(state / "spool")
    wrong = [(each, each.get("trouble_at") or each.get("at")) for each in (token, delivery) if each.get("trouble")]
    return {
        "joined": found is not None,
        "server": found.url if found else None,
        "authority": found.fingerprint if found else None,
        "reporter": found.reporter if found else None,
        "node": found.node.name if found else None,
        "scope": found.scope if found else None,
        "joined_at": found.joined_at if found else None,
        "token_until": token.get("until"),
        "clock_off": token.get("off"),
        "delivered_at": delivery.get("delivered_at"),
        "refused": delivery.get("refused"),
        "spool_reports": delivery.get("spool_reports", waiting),
        "spool_bytes": delivery.get("spool_bytes", size),
        "process": running(state),
        "wrong": list(dict.fromkeys(str(each["trouble"]) for each, _ in wrong)),
        "wrong_since": next((at for _, at in wrong if isinstance(at, int | float)), None),
        "help": list(dict.fromkeys(str(each["help"]) for each, _ in wrong if each.get("help"))),
    }


def _told(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        told = json.loads(path.read_bytes())
        if isinstance(told, dict):
            return told
    return {}


def _spool(folder: Path) -> tuple[int, int]:
    """Reports that wait, and their bytes."""
    sizes = []
    with suppress(OSError):
        for each in folder.glob("*.report"):
            with suppress(OSError):
                sizes.append(each.stat().st_size)
    return len(sizes), sum(sizes)
