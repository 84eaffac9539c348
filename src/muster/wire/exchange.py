# SPDX-License-Identifier: Apache-2.0
"""What operators say to the server and what it answers beside the roll itself: acts, the audit, its state, and problems."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from muster.wire.documents import Time


class Audit(Struct):
    """One act of an operator, as it was carried out."""

    at: Time | None
    by: str
    what: str
    reason: str
    cards: list[str]
    detail: dict[str, Any]


class ActRequest(Struct, omit_defaults=True):
    """What an operator says. ``card`` and ``other`` are a name that finds one card, or ids by kind for a card that the roll does not know yet.

    ``by`` is who says it, where the server does not know it by a token: then it is whose token it is, and ``by`` counts only from an admin, as for whom.
    ``what``: set, store, retire, remove_source, same, not_same. In ``values`` null takes an earlier word back.
    With ``dry_run`` it is only tried: the answer is the same, and nothing is said.
    """

    what: str
    by: Annotated[str, Meta(max_length=200)] = ""
    card: str | dict[str, str] = ""
    other: str | dict[str, str] = ""
    node: str = ""
    source: str = ""
    values: dict[str, Any] = {}
    place: str = ""
    reason: Annotated[str, Meta(max_length=2000)] = ""
    dry_run: bool = False


class ActAnswer(Struct):
    """The cards that an act touched, and when it takes effect: a word on one card that is two may have nothing to part before it is listed again."""

    cards: list[str]
    takes_effect: Annotated[str, Meta(extra_json_schema={"enum": ["now", "from the next listing on"]})] = "now"
    dry_run: bool = False


def acted(what: str, cards: list[str], *, dry_run: bool = False) -> ActAnswer:
    """The answer to an act that touched these cards."""
    later = what == "not_same" and not cards
    return ActAnswer(cards=cards, takes_effect="from the next listing on" if later else "now", dry_run=dry_run)


class AcknowledgeRequest(Struct, omit_defaults=True):
    """Who has seen a finding, where the server does not know it by a token, and why it may stand."""

    by: Annotated[str, Meta(max_length=200)] = ""
    reason: Annotated[str, Meta(max_length=2000)] = ""


class Health(Struct):
    """State of the server. ``checks`` says what is not well."""

    status: str
    checks: dict[str, str] = {}


class Version(Struct):
    """What runs here."""

    version: str
    api: str
    report_schema: int


class Problem(Struct, omit_defaults=True):
    """An error (RFC 9457). ``code`` is stable; ``hint`` says what to do next."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str = ""
    hint: str = ""
    errors: list[dict[str, Any]] = []
    candidates: list[dict[str, Any]] = []
    """Cards that an ambiguous name fits."""
    answer: str = ""
    """What became of a report that was refused."""
