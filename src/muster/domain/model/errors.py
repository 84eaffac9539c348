# SPDX-License-Identifier: Apache-2.0
"""The errors of Muster. The type says what a caller can do; the code is stable.

MusterError
├── InputError        what was given cannot be used; the message says what to give instead
│   └── Ambiguous     a short name fits several things; the message lists them
├── NotFound          nothing of that name
├── Conflict          the state forbids it (already removed, already said)
├── NotAllowed        the caller may not
└── Unavailable       a server, source or file does not answer now; trying again later may help
"""

from __future__ import annotations

PROBLEM_TYPE = "urn:muster:problem:"
"""What the type of each problem document (RFC 9457) of a server of ours begins with; the code follows."""


class MusterError(Exception):
    """The root: ``code`` is stable, ``hint`` says what to do next."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(MusterError):
    """What was given cannot be used."""

    code = "invalid_input"


class Ambiguous(InputError):
    """A short name fits several things."""

    code = "ambiguous"


class NotFound(MusterError):
    """Nothing of that name."""

    code = "not_found"


class Conflict(MusterError):
    """The state forbids it."""

    code = "conflict"


class NotAllowed(MusterError):
    """The caller may not."""

    code = "not_allowed"


class Unavailable(MusterError):
    """Something outside does not answer now."""

    code = "unavailable"
