# SPDX-License-Identifier: Apache-2.0
"""Exit codes: the one table of the command line. The docs print it, `main` applies it."""

from __future__ import annotations

from muster.domain.model.errors import Conflict, InputError, MusterError, NotAllowed, NotFound, Unavailable

OK, FAILED, USAGE, NOT_FOUND, NOT_ALLOWED, CONFLICT, UNREACHABLE, TIMED_OUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 7, 130

EXITS: dict[int, str] = {
    OK: "fine",
    FAILED: "failed: what was asked could not be done, or a check did not pass",
    USAGE: "usage: an option, name or filter cannot be used as given",
    NOT_FOUND: "not found: nothing of that name",
    NOT_ALLOWED: "not allowed, or not signed in",
    CONFLICT: "conflict: the state forbids it, you said no, or nobody was there to be asked (-y says yes)",
    UNREACHABLE: "the server, a source or a file does not answer",
    TIMED_OUT: "timed out",
    INTERRUPTED: "interrupted (Ctrl-C)",
}
"""Code to meaning. A broken pipe is quiet and ends with 0."""


class TimedOut(Unavailable):
    """It did not answer within the time given."""

    code = "timed_out"


KINDS: tuple[tuple[type[MusterError], int], ...] = (
    (TimedOut, TIMED_OUT),
    (InputError, USAGE),
    (NotFound, NOT_FOUND),
    (NotAllowed, NOT_ALLOWED),
    (Conflict, CONFLICT),
    (Unavailable, UNREACHABLE),
)


def exit_code(error: MusterError) -> int:
    """The exit code of an error; `FAILED` for a kind that has none of its own."""
    return next((code for kind, code in KINDS if isinstance(error, kind)), FAILED)
