# SPDX-License-Identifier: Apache-2.0
"""What an agent says at a terminal never ends it, and is one line each time."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from muster.collect.answer import Fate, Posted, judged
from muster.domain.model.errors import PROBLEM_TYPE, NotAllowed, Unavailable
from muster.wiring.agent import CLOCK
from muster.wiring.aloud import Aloud, waiting

NOBODY: Any = None


def ours(status: int, code: str) -> Posted:
    """What a server of Muster answers."""
    document = json.dumps({"type": f"{PROBLEM_TYPE}{code}", "code": code, "detail": "for a reason"}).encode()
    return judged(status, {"Content-Type": "application/problem+json"}, document)


def away(detail: str) -> Posted:
    """Nobody answered."""
    return Posted(Fate.LATER, detail)


class Gone(io.StringIO):
    """A terminal that was closed."""

    def write(self, _: str, /) -> int:
        raise OSError(5, "Input/output error")


def test_a_terminal_that_is_gone() -> None:
    Aloud(to=Gone(), clock=CLOCK, collector=NOBODY, delivery=NOBODY).begin("n1", "http://x", Path("/state"), once=True)


def test_a_name_of_another_stays_in_its_line() -> None:
    screen = io.StringIO()
    Aloud(to=screen, clock=CLOCK, collector=NOBODY, delivery=NOBODY).begin("n1\x1b[2J\nforged", "http://x", Path("/state"), once=True)
    assert screen.getvalue().count("\n") == 1
    assert "\x1b" not in screen.getvalue()


@pytest.mark.parametrize(
    ("failed", "kind", "hint"),
    [
        (ours(401, "not_signed_in"), NotAllowed, "muster agent join"),
        (ours(403, "not_allowed"), NotAllowed, "muster agent join"),
        (ours(503, "not_ready"), Unavailable, "cannot take them now"),
        (judged(502, {}, b"bad gateway"), Unavailable, "somebody answers there"),
        (judged(403, {}, b"<html>blocked</html>"), Unavailable, "somebody answers there"),
        (judged(503, {}, b"<html>maintenance</html>"), Unavailable, "somebody answers there"),
        (judged(200, {}, b"<html>welcome</html>"), Unavailable, "somebody answers there"),
        (away("http://x: it speaks TLS; use https://"), Unavailable, "name it so: --server https://"),
        (away("no server is running here"), Unavailable, "`muster server` starts one"),
        (away("https://x: Connection refused"), Unavailable, "`muster server` starts one"),
        (away("HTTP 401: nobody said this"), Unavailable, "`muster server` starts one"),
    ],
)
def test_what_to_do_where_reports_wait(failed: Posted, kind: type[Exception], hint: str) -> None:
    found = waiting(Path("/state/spool"), failed, None)
    assert isinstance(found, kind)
    assert hint in found.hint
    assert failed.detail in found.message


def test_where_nothing_failed_the_server_is_slow() -> None:
    assert "the server takes them slowly" in waiting(Path("/state/spool"), None, None).message
