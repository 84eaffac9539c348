# SPDX-License-Identifier: Apache-2.0
"""One connection of a reporter: requests one after the other, in HTTP/1.1, bounded in size and time.

A request goes through stages: nothing yet, its head, its body, work. What is wrong is answered at the earliest moment; after an answer to what was
no HTTP, or to a body that is not worth reading, the connection ends. A second request before the first is answered is not read: the connection ends
with the first answer, which says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import httptools

from muster.domain.model.access import Speaker
from muster.domain.model.errors import MusterError, NotAllowed
from muster.interfaces.ingest import answers, heads, routes
from muster.interfaces.ingest.answers import Answer
from muster.interfaces.ingest.gathering import HeldBackError, StrangerError
from muster.interfaces.ingest.heads import Head
from muster.interfaces.ingest.line import Outcome
from muster.interfaces.ingest.link import Hold, Link, Stage
from muster.interfaces.ingest.reception import Reception, Wait
from muster.wire.report import AnswerDoc

log = logging.getLogger("muster.ingest")
T = TypeVar("T")
CROWD = "too many have come at once"
DRAIN = 64 * 1024
"""A body that nobody will use is read to its end up to here, so that the connection can stay."""


class Connection(Link):
    """See above."""

    __slots__ = (
        "_answered",
        "_asking",
        "_body",
        "_fed",
        "_head",
        "_held",
        "_keep",
        "_more",
        "_parser",
        "_path",
        "_route",
        "_size",
        "_token",
        "_trusted",
        "_who",
    )

    def __init__(self, reception: Reception) -> None:
        super().__init__(reception)
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._token = ""
        self._trusted = False
        self._more = False
        self._fed = 0
        self._begin()

    def _begin(self) -> None:
        self._head = Head()
        self._route: routes.Route | None = None
        self._path = ""
        self._body: list[bytes] = []
        self._size = 0
        self._held = 0
        self._who = ""
        self._keep = False
        self._answered = False
        self._asking = False

    # what the transport says

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended. A request at work is let go when its answer comes."""
        super().connection_lost(exc)
        self._parser = None
        if self._stage is not Stage.WORK:
            self._release()

    def eof_received(self) -> bool:
        """The other side sends no more; it may still want its answer."""
        self._keep = False
        return self._stage is Stage.WORK

    def data_received(self, data: bytes) -> None:
        """Some bytes, of whatever length."""
        if self._stage is Stage.LEAVING or self._parser is None:
            return
        self._fed += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._garbled("the protocol cannot be changed here")
        except httptools.HttpParserCallbackError:
            log.exception("a request could not be handled")
            self._turn_away(answers.unexpected(self._path))
        except httptools.HttpParserError as wrong:
            self._garbled(str(wrong))
        else:
            self._after()

    def _after(self) -> None:
        """What is waited for now that these bytes are read."""
        stage = self._stage
        if stage is Stage.WORK:
            if self._more:
                self._hold(Hold.MORE)
        elif stage is Stage.HEAD:
            if self._fed > self._reception.limits.head:
                self._turn_away(heads.too_long(self._reception.limits))
            else:
                self._watch(Wait.HEAD)
        elif stage is Stage.BODY:
            if self._fed > 2 * self._reception.limits.body + DRAIN:  # chunks of a byte each are mostly frame
                self._turn_away(heads.too_large(self._reception.limits.body, self._path))
            else:
                self._watch(Wait.BODY)

    # what the parser says

    def on_message_begin(self) -> None:
        """A request begins."""
        if self._stage >= Stage.WORK:
            self._more = True
            return
        self._begin()
        self._stage = Stage.HEAD

    def on_url(self, url: bytes) -> None:
        """A piece of what is asked for."""
        if not self._more:
            self._head.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head, or of a trailer, which is passed over."""
        if self._stage is Stage.HEAD:
            self._head.add(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole: now it is known who asks for what."""
        if self._stage is not Stage.HEAD or self._parser is None:
            return
        self._stage = Stage.BODY
        self._fed = 0
        self._keep = self._parser.should_keep_alive()
        self._path = path = self._head.path
        self._route = routes.ROUTES.get(path)
        limits = self._reception.limits
        refusal = heads.wrong(self._head, self._parser.get_method(), self._parser.get_http_version(), path, limits) or self._make_room()
        if refusal is not None:
            self._early(refusal)
        elif self._head.waits and self._transport is not None:
            self._transport.write(answers.CONTINUE)

    def on_body(self, chunk: bytes) -> None:
        """Some of the body."""
        if self._answered or self._more or self._stage is not Stage.BODY:
            return
        self._size += len(chunk)
        bound = heads.most(self._route, self._reception.limits)
        if self._size > bound:
            self._early(heads.too_large(bound, self._path))
        elif self._size > self._held and not self._hold_room(self._size - self._held):
            self._early(replace(self._no_room(), close=True))
        else:
            self._body.append(chunk)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self._more or self._stage is not Stage.BODY:
            return
        if not self._answered:
            self._stage = Stage.WORK
            self._work()
        elif self._keep:
            self._rest()
        else:
            self._leave()

    # who speaks, and whether there is room

    def _make_room(self) -> Answer | None:
        """Why this request cannot be taken now; None when it can. For a report it is found out who speaks."""
        reception, path = self._reception, self._path
        if reception.closing:
            return answers.away("the server stops", reception.retry(), path, close=True)
        if self._route is not None and self._route.answer is None:
            refusal = self._identify()
            if refusal is not None:
                return refusal
        if not self._hold_room(max(self._head.length, 0)):
            return self._no_room()
        return None

    def _identify(self) -> Answer | None:
        reception, path, token = self._reception, self._path, self._head.token
        if not token:
            return heads.unnamed(path)
        if reason := reception.behind():
            return answers.busy(reason, path, reception.retry())
        self._token = token
        self._who = reception.reporter(token)
        if reception.knows(token):
            held = reception.held_back(token)
            return self._mistake(held) if held is not None else None
        self._asking = reception.ask(partial(reception.gate.speaker, token, reception.clock()), partial(self._spoken, self._head))
        if not self._asking:
            return answers.busy(CROWD, path, reception.retry())
        self._hold(Hold.GATE)
        return None

    def _spoken(self, head: Head, found: Speaker | MusterError) -> None:
        """The gate has said whose token it is."""
        if head is not self._head or not self._asking:
            return
        self._stop_asking()
        if isinstance(found, MusterError):
            refused = StrangerError(found.message, hint=found.hint) if isinstance(found, NotAllowed) else found
            if self._stage is Stage.WORK:
                self._finish(refused)
            elif self._stage is Stage.BODY:
                self._early(self._mistake(refused))
        else:
            self._reception.note(self._token, found.reporter)
            if self._stage is Stage.WORK:
                self._submit()

    def _stop_asking(self) -> None:
        if self._asking:
            self._asking = False
            self._unhold(Hold.GATE)

    def _hold_room(self, size: int) -> bool:
        if not self._reception.room(size, self._who):
            return False
        self._held += size
        return True

    def _no_room(self) -> Answer:
        busy = answers.held_back if self._reception.holds_much(self._who) else answers.busy
        return busy("no room for more", self._path, self._reception.retry())

    def _release(self) -> None:
        self._reception.vacate(self._held, self._who)
        self._held = 0
        self._body = []

    # work

    def _work(self) -> None:
        reception, route = self._reception, self._route
        reception.meters.received += self._size
        if route is None or route.answer is None:
            if self._asking:
                self._watch(Wait.GATE)
            else:
                self._submit()
            return
        method = self._parser.get_method().decode("latin-1") if self._parser is not None else ""
        asked = routes.Asked(method=method, path=self._path, body=b"".join(self._body), peer=self.peer)
        make = partial(route.answer, reception, asked)
        if not route.slow:
            self._finish(make())
        else:
            self._ask(make, self._finish)

    def _ask(self, question: Callable[[], T], then: Callable[[T | MusterError], None]) -> None:
        """Has a thread of the gate find what this request needs. What comes when the request was answered otherwise is dropped."""
        head = self._head

        def found(what: T | MusterError) -> None:
            if head is self._head and self._stage is Stage.WORK:
                then(what)

        if self._reception.ask(question, found):
            self._watch(Wait.GATE)
        else:
            self._finish(answers.busy(CROWD, self._path, self._reception.retry()))

    def _submit(self) -> None:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body = []
        if not self._head.packed:
            self._put(body)
        else:
            self._ask(partial(routes.inflated, body, self._reception.limits.body), self._inflated)

    def _inflated(self, found: bytes | MusterError) -> None:
        if isinstance(found, MusterError):
            self._finish(found)
        elif not self._hold_room(max(len(found) - self._size, 0)):
            self._finish(self._no_room())
        else:
            self._put(found)

    def _put(self, body: bytes) -> None:
        if self._transport is None:
            self._release()
        else:
            self._trusted = True
            self._unwatch()
            self._reception.put(self, self._token, body)

    def answered(self, outcome: Outcome) -> None:
        """The writer's answer."""
        self._finish(outcome)

    def _finish(self, found: Answer | Outcome) -> None:
        """The answer to a request that is whole; then the next may come."""
        self._release()
        if self._transport is None or self._stage is not Stage.WORK:
            return
        if self._send(self._answer(found)):
            self._leave()
        else:
            self._rest()

    def _answer(self, found: Answer | Outcome) -> Answer:
        if isinstance(found, AnswerDoc):
            return answers.report_answer(found, self._path)
        return self._mistake(found) if isinstance(found, MusterError) else found

    def _mistake(self, error: MusterError) -> Answer:
        if isinstance(error, StrangerError):
            self._reception.note(self._token, None)
            return heads.unnamed(self._path, error.message, error.hint)
        if isinstance(error, HeldBackError):
            return answers.held_back(error.message, self._path, error.retry)
        return answers.mistake(error, self._path, self._reception.retry())

    def _early(self, answer: Answer) -> None:
        """The answer to a request whose body is not in yet."""
        self._answered = True
        self._stop_asking()
        self._release()
        self._keep = self._keep and not self._head.chunked and self._head.length <= DRAIN and not self._head.waits
        if self._send(answer):
            self._leave(reading=True)

    def _garbled(self, detail: str) -> None:
        if self._stage is Stage.WORK:
            self._more = True
            self._hold(Hold.MORE)
            return
        self._reception.meters.malformed += 1
        self._turn_away(heads.malformed(detail))

    def _turn_away(self, answer: Answer) -> None:
        """The last answer of this connection, unless this request has had one."""
        if self._stage is Stage.LEAVING:
            return
        self._keep = False
        self._stop_asking()
        if not self._answered:
            self._send(answer)
        self._release()
        self._leave(reading=True)

    def _cut(self, wait: Wait) -> None:
        if wait is Wait.GATE:
            self._stop_asking()
            self._finish(answers.away("the gate does not answer", self._reception.retry(), self._path))
            return
        self._turn_away(
            answers.problem(answers.CODES["too_slow"], "too_slow", "the request did not come in time", "send it at once", path=self._path, close=True)
        )

    def _send(self, answer: Answer) -> bool:
        """Sends an answer; True when it is the connection's last."""
        reception = self._reception
        last = self._more or not self._keep or reception.closing or answer.close
        if answer.held_back:
            reception.meters.held_back += 1
        else:
            reception.meters.answers[self._path if self._route is not None else "", answer.status] += 1
        if self._transport is not None:
            bare = self._parser is not None and self._parser.get_method() == b"HEAD"
            self._transport.write(answer.whole(reception.date(), last=last, bare=bare))
        return last

    # from one request to the next

    def _rest(self) -> None:
        self._stage = Stage.NONE
        self._answered = False
        self._fed = 0
        self._path, self._route = "", None
        self._unwatch()
        self._watch(Wait.REQUEST if self._trusted else Wait.FIRST)
