# SPDX-License-Identifier: Apache-2.0
"""The head of a request: what of it we use, and what is wrong with it."""

from __future__ import annotations

from muster.interfaces.ingest import answers
from muster.interfaces.ingest.answers import Answer
from muster.interfaces.ingest.limits import Limits
from muster.interfaces.ingest.routes import MSGPACK, ROUTES, SMALL, Route

_KEPT = frozenset(
    {b"host", b"authorization", b"content-type", b"content-encoding", b"content-length", b"transfer-encoding", b"expect"},
)
_ONCE = "is there twice"


class Head:
    """One head, filled line by line."""

    __slots__ = ("fields", "size", "twice", "url")

    def __init__(self) -> None:
        self.url = b""
        self.size = 0
        self.fields: dict[bytes, bytes] = {}
        self.twice = b""

    def add(self, name: bytes, value: bytes) -> None:
        """One header line."""
        self.size += len(name) + len(value)
        name = name.lower()
        if name in _KEPT:
            if name in self.fields:
                self.twice = name
            self.fields[name] = value

    @property
    def path(self) -> str:
        """What is asked for, without the query."""
        path = self.url.partition(b"?")[0]
        if not path.startswith(b"/") and b"://" in path:
            path = b"/" + path.partition(b"://")[2].partition(b"/")[2]
        return path.decode("latin-1")

    @property
    def length(self) -> int:
        """Bytes that the body is said to have; -1 when it comes in chunks, or nothing is said."""
        said = self.fields.get(b"content-length")
        return int(said) if said is not None and not self.chunked else -1

    @property
    def chunked(self) -> bool:
        """True when the body comes in chunks."""
        return b"transfer-encoding" in self.fields

    @property
    def kind(self) -> str:
        """The media type of the body."""
        return self.fields.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")

    @property
    def packed(self) -> bool:
        """True for a body in gzip."""
        return self.fields.get(b"content-encoding", b"").lower() in (b"gzip", b"x-gzip")

    @property
    def token(self) -> str:
        """The access token; empty when there is none."""
        scheme, _, token = self.fields.get(b"authorization", b"").partition(b" ")
        return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""

    @property
    def waits(self) -> bool:
        """True when the body comes only after a word of ours."""
        return self.fields.get(b"expect", b"").lower() == b"100-continue"


def wrong(head: Head, method: bytes, version: str, path: str, limits: Limits) -> Answer | None:
    """Why this request is turned away at its head; None when it is not."""
    if head.size + len(head.url) > limits.head:
        return too_long(limits)
    if head.twice:
        return malformed(f"the header {head.twice.decode()} {_ONCE}")
    if b"host" not in head.fields and version == "1.1":
        return malformed("the header Host is missing")
    route = ROUTES.get(path)
    if route is None:
        return answers.problem(404, "not_found", "nothing is here", "reports go to /v1/reports; users ask the API, which has another port", path=path)
    if method != route.method and not (method == b"HEAD" and route.method == b"GET"):
        allowed = b"GET, HEAD" if route.method == b"GET" else route.method
        return answers.problem(
            405,
            "method_not_allowed",
            f"{method.decode('latin-1')} is not allowed here",
            "the header Allow names what is",
            path=path,
            more=b"Allow: %b\r\n" % allowed,
        )
    if b"expect" in head.fields and not head.waits:
        return answers.problem(417, "bad_request", "this expectation cannot be met", "leave the header Expect out", path=path, close=True)
    return _wrong_body(head, route, path, limits)


def most(route: Route | None, limits: Limits) -> int:
    """Bytes that the body of this request may have."""
    return limits.body if route is not None and route.answer is None else min(SMALL, limits.body)


def _wrong_body(head: Head, route: Route, path: str, limits: Limits) -> Answer | None:
    if head.length > most(route, limits):
        return too_large(most(route, limits), path)
    if route.method != b"POST":
        return None
    if head.length < 0 and not head.chunked:
        return answers.problem(
            answers.CODES["length_required"], "length_required", "the request does not say how long its body is", "send Content-Length", path=path, close=True
        )
    if head.kind not in MSGPACK:
        hint = f"send Content-Type: {answers.MSGPACK}"
        return answers.problem(415, "unsupported_media_type", f"the body is {head.kind or 'of no type'}", hint, path=path)
    coding = head.fields.get(b"content-encoding", b"identity").lower()
    if coding != b"identity" and not (head.packed and route.answer is None):
        hint = "send it as it is; a report may be packed by gzip"
        return answers.problem(415, "unsupported_media_type", f"Content-Encoding {coding.decode('latin-1')} is not known here", hint, path=path)
    return None


def malformed(detail: str) -> Answer:
    """What is no request in HTTP/1.1."""
    return answers.problem(400, "bad_request", f"the request is malformed: {detail}", "this port speaks HTTP/1.1", close=True)


def too_long(limits: Limits) -> Answer:
    """A head over the bound."""
    return answers.problem(431, "too_large", f"the head of the request is more than {limits.head} bytes", "send fewer or shorter headers", close=True)


def too_large(bound: int, path: str) -> Answer:
    """A body over the bound."""
    return answers.problem(413, "too_large", f"the body is more than {bound} bytes", "split the report", path=path, close=True)


def unnamed(path: str, detail: str = "the request has no access token", hint: str = "send Authorization: Bearer TOKEN; /v1/token gives one") -> Answer:
    """Nobody whom we know asks."""
    return answers.problem(401, "not_allowed", detail, hint, path=path, more=b"WWW-Authenticate: Bearer\r\n")
