# SPDX-License-Identifier: Apache-2.0
"""The listener of reporters with a writer that only decodes and counts: what the way in costs by itself, without a store. A server of the benchmark's."""

from __future__ import annotations

import argparse
import signal
import ssl
import sys
import threading
import time
from collections.abc import Sequence

from muster.domain.model.access import Reach, Scope, Speaker
from muster.domain.model.errors import MusterError
from muster.interfaces.ingest.limits import Limits
from muster.interfaces.ingest.listener import Ingest
from muster.wire.enrol import Enrolled, Signed, Token
from muster.wire.report import AnswerDoc, unpack


class Open:
    """A gate that knows everybody."""

    def __init__(self) -> None:
        self._known: dict[str, Speaker] = {}

    def speaker(self, token: str, now: float) -> Speaker:
        found = self._known.get(token)
        if found is None:
            found = self._known[token] = Speaker(reporter=token, scope=Scope(reach=Reach.NODE), until=now + 86_400)
        return found

    def authority(self) -> bytes:
        return b""

    def enrol(self, asked: Signed, now: float, peer: str = "") -> Enrolled:
        raise NotImplementedError

    def token(self, asked: Signed, now: float, peer: str = "") -> Token:
        raise NotImplementedError

    def renew(self, asked: Signed, now: float, peer: str = "") -> Enrolled:
        raise NotImplementedError

    def leave(self, asked: Signed, now: float, peer: str = "") -> None:
        raise NotImplementedError


class Counting:
    """A writer that decodes and counts."""

    def __init__(self) -> None:
        self.rounds = 0

    def take(self, posts: Sequence[tuple[Speaker, bytes]], now: float) -> list[AnswerDoc | MusterError]:
        del now
        for _, body in posts:
            self.rounds += len(unpack(body).heard)
        return [AnswerDoc(answer="applied") for _ in posts]


def main() -> int:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--certificate", help="PEM of a certificate and its key: TLS")
    told = parser.parse_args()
    context = None
    if told.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(told.certificate)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    ingest = Ingest(Open(), Counting(), time.time, context, Limits(connections=16_000), version="bench")
    ingest.start(port=told.port)
    print("ready", flush=True)
    ended.wait()
    ingest.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
