# SPDX-License-Identifier: Apache-2.0
"""What a node may be called: names that a person can read, type and tell apart, the same at the join and in each report."""

from __future__ import annotations

import unicodedata

from muster.domain.model.errors import InputError
from muster.wire.report import NodeDoc

NAME = 253
"""Characters of a host name."""
ID = 128
"""Characters of a machine id and of a chassis id."""


def readable(node: NodeDoc) -> None:
    """Raises InputError for a name or id that is too long, has signs that cannot be seen, or can be written in a plainer way."""
    for what, text, most in (("node.name", node.name, NAME), ("node.machine_id", node.machine_id, ID), ("node.system", node.system, ID)):
        if len(text) > most:
            raise InputError(f"{what} has {len(text)} characters; {most} are taken", hint=f"it begins with {text[:40]!r}")
        if text.isascii() and text.isprintable() and " " not in text:
            continue
        if not text.isprintable():
            raise InputError(f"{what} has signs that cannot be seen: {text[:80]!a}", hint="control characters and marks of direction are no part of a name")
        if text != unicodedata.normalize("NFC", " ".join(text.split())):
            raise InputError(f"{what} is not in its plain form: {text[:80]!a}", hint="no space at the ends or twice; accents as in NFC")
