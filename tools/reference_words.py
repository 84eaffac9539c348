# SPDX-License-Identifier: Apache-2.0
"""The sentences of docs/reference that stand nowhere in the code: what each closed word means to a reader. One for every word, or the build fails."""

from __future__ import annotations

from enum import StrEnum

from muster.domain.model.reading import Why
from muster.domain.model.roll import FindingKind, Happening, Presence, Rung
from muster.interfaces.cli.preferences import VARIABLES as AGENT

F, H, P, R, W = FindingKind, Happening, Presence, Rung, Why

FINDINGS: dict[FindingKind, tuple[str, str, str]] = {
    F.CARD_MISSING: (
        "a card",
        "Every source that should see it denies it, twice and a settle time apart.",
        "Look for the card; retire or store it if it was taken out.",
    ),
    F.MISSING_FROM_SOURCE: (
        "a card and a source",
        "One source no longer lists it while others still see it.",
        "Look at the driver of the source that lost it.",
    ),
    F.VALUES_DISAGREE: (
        "a card and an attribute",
        "Two fresh sources say different things, for longer than the settle time.",
        "Read both captures; the one that is wrong names what to repair.",
    ),
    F.PARTITIONS_LOST: (
        "a card",
        "Its partition mode is on, and no partition is listed where there were some.",
        "Make the partitions again, or turn the mode off.",
    ),
    F.NO_ADAPTER: ("a card", "Only the bus sees it, and no adapter speaks for its vendor.", "Install or write an adapter."),
    F.OPERATOR_CONTRADICTED: (
        "a card",
        "It was said to be stored or retired, and is still seen without ever having left.",
        "Take the word back, or take the card out.",
    ),
    F.IDENTITY_CONFLICT: (
        "an id",
        "Two nodes see a card of this id at the same time.",
        "Say which cards are the same or not the same; look for a cloned serial.",
    ),
    F.PLACEHOLDER_ID: (
        "an id or a host name",
        "So many nodes claim this id, or call themselves so, that it names nothing.",
        "Have the firmware write a real serial; give each machine a name of its own. Nothing is lost meanwhile.",
    ),
    F.PLACE_CONFLICT: ("a place", "Two sources see two different cards in one place.", "Look at which source is stale; remove a source that is gone."),
    F.SOURCE_SILENT: (
        "a source on a node",
        "It has said nothing for longer than its promise.",
        "Look at the reporter and the network; where that reporter was revoked or left, the finding says what lets it in. Remove the source if it is gone.",
    ),
    F.SOURCE_FAILED: (
        "a source on a node",
        "Its last read failed: driver, permission, time or unreadable output.",
        "`muster doctor` on that node says what is needed.",
    ),
    F.SOURCE_HUNG: ("a source on a node", "A read hangs in a call that does not return.", "Look at the kernel log of that node; the other sources go on."),
    F.SHAPE_UNKNOWN: ("a source on a node", "Its output has a layout that was never seen.", "Send the capture to the adapter's owners."),
    F.UNJOINED_VIEW: (
        "a source on a node",
        "It sees cards that could not be joined with those of better sources; they are shown aside and not counted.",
        "Give both sources an id in common, or say which cards are the same.",
    ),
    F.ADAPTER_DRIFT: (
        "a source and an attribute",
        "A value it used to give is no longer reported, with the mode unchanged.",
        "Look at what was upgraded; the adapter may need a new parser.",
    ),
    F.CLOCK_WRONG: ("a reporter", "Its clock is off by more than the tolerance; its times are corrected.", "Set the clock of that machine."),
    F.SEQUENCE_CONFLICT: (
        "a reporter",
        "It sent a second report under one number, with other words or with words that can no longer be compared; it was refused.",
        "Look for two agents with one identity, or a spool that was put back.",
    ),
    F.NODE_CLONED: ("a machine id", "Two nodes share it.", "Give the cloned one a new machine id."),
    F.COUNT_MISMATCH: ("a node", "The cluster counts more cards than are seen.", "Look at the device plugin and at the cards that are missing."),
}
"""Kind of finding: about whom, what is so, what to do."""

HISTORY: dict[Happening, str] = {
    H.INSTALLED: "first seen",
    H.IDENTIFIED: "known by a better id than before",
    H.JOINED: "two records turned out to be one card; the oldest stays",
    H.ID_CHANGED: "one source tells another id for it",
    H.MOVED: "in another slot or node",
    H.READDRESSED: "at another address in the same slot",
    H.MISSING: "not seen where it should be",
    H.FOUND: "seen again where it was",
    H.REMOVED: "another card stands in its place",
    H.STORED: "an operator said that it lies in a store",
    H.RETIRED: "an operator said that it is gone for good",
    H.RETURNED: "seen again after it was removed, stored or retired",
    H.DRIVER_CHANGED: "another driver version",
    H.FIRMWARE_CHANGED: "another firmware version",
    H.PARTITIONS_CHANGED: "other partitions or another mode",
    H.COUNTER_RESET: "a counter fell; its use goes on from there",
    H.IDENTITY_CONFLICT: "two nodes claim it",
    H.CONFLICT_ENDED: "only one node claims it again",
    H.SOURCE_LOST: "a source no longer sees it",
    H.SOURCE_BACK: "a source sees it again",
    H.SOURCE_REMOVED: "an operator removed a source",
    H.OPERATOR_CHANGED: "an operator said something about it",
}

PRESENCE: dict[Presence, str] = {
    P.PRESENT: "a hardware source sees it now",
    P.UNKNOWN: "nobody sees it now and nobody denies it: takes no new work, nothing is evicted",
    P.MISSING: "denied, twice; it keeps its place",
    P.REMOVED: "another card stands in its place, and nobody knows where it is",
    P.STORED: "in a store, as an operator said",
    P.RETIRED: "gone for good, as an operator said",
}

RUNGS: dict[Rung, str] = {
    R.UUID: "by the vendor's UUID",
    R.SERIAL_MODEL: "by serial and model",
    R.SERIAL_SLOT: "by a serial that several cards share, and its slot",
    R.NODE_SLOT: "by node and slot",
    R.NODE_ADDRESS: "by node and bus address",
    R.NODE_INDEX: "by node and index: the weakest, it may be another card tomorrow",
}

WHYS: dict[Why, str] = {
    W.NOT_SUPPORTED: "the part or driver cannot say it",
    W.NOT_PERMITTED: "the reporter may not read it",
    W.NOT_PRESENT: "the part lacks what would be measured (no fan)",
    W.NOT_REPORTED: "the tool no longer prints it",
    W.MOVED: "the source says to look elsewhere",
    W.WITHHELD: "privacy or policy",
    W.NOT_SAMPLED: "none yet",
    W.ERROR: "the tool said so",
    W.DEVICE_LOST: "the driver has lost the device",
    W.UNREACHABLE: "tool missing, driver silent or host away; which stands in the detail",
    W.TIMED_OUT: "no answer within the deadline",
    W.IMPLAUSIBLE: "a sentinel or out of range; the raw text is kept",
    W.UNREADABLE: "cut, garbled or ambiguous",
}

ERRORS = {
    "bad_request": "the request cannot be read",
    "method_not_allowed": "this resource has no such method",
    "too_large": "the body, or the head of a request, is larger than it may be",
    "unsupported_media_type": "the body has a form that this resource does not take",
    "wrong_host": "the request was meant for another host",
    "not_ready": "the server cannot do its work now; `/readyz` says what is wrong",
    "unexpected": "an error of ours; the server's log has it with the time of the answer",
    "not_signed_in": "No token came, or one that is unknown, ended or revoked: sign in with `muster login`, or use the server's socket.",
    "not_acceptable": "The form that `Accept` or `format` asks for is not one of those that the route gives.",
    "changed": "What `If-Match` names has changed since: look at it anew, and say it again.",
    "too_many_attempts": "Too many tokens were wrong from this address: wait as long as `Retry-After` says.",
    "key_used": "This `Idempotency-Key` came with another body before: take a new key for another thing to do.",
    "busy": "Reporters: too much waits for the writer; the report stays with the agent, which sends it again after `Retry-After`.",
    "too_slow": "Reporters: the request did not come in time.",
    "length_required": "Reporters: the request does not say how long its body is.",
}
"""Codes that only HTTP has; the others say themselves what they mean."""

VARIABLES = {
    **{each.variable: each.about for each in AGENT},
    "MUSTER_CONFIG": "The server's settings file, before the usual places.",
    "NO_COLOR": "Set: no colours on a terminal. It wins over `FORCE_COLOR`.",
    "FORCE_COLOR": "Set: tables with colours where stdout is no terminal, too (`| less -R`).",
}
"""Environment variables beside those of the settings."""

_JOINED = "a reporter with an access token, within its scope"
_SIGNED = "who signs with the key of the reporter"
LISTENER: dict[str, tuple[str, str]] = {
    "/v1/reports": (_JOINED, "takes a report in; answered when it is durable"),
    "/api/v1/reports": (_JOINED, "the same, under the path that the API has"),
    "/v1/authority": (
        "everybody",
        "the authority's certificate, to be checked against the fingerprint before anything is sent; versions of reports; the time",
    ),
    "/v1/enrol": ("who has a join token", "a node joins with a key of its own"),
    "/v1/token": (_SIGNED, "an access token, good for an hour"),
    "/v1/renew": (_SIGNED, "another key takes the place of the old one"),
    "/v1/leave": (_SIGNED, "the reporter ends itself"),
    "/version": ("everybody", "versions"),
    "/healthz": ("everybody", "200 as long as the writer answers, else 503"),
    "/readyz": ("everybody", "the same"),
}
"""Routes of the listener for reporters: who may, and what it does."""


def unmarked(text: str) -> str:
    """A docstring as a line of Markdown."""
    return " ".join(text.replace("``", "`").split())


def unsaid() -> list[str]:
    """Words of the closed lists that have no sentence here."""
    tables: tuple[tuple[type[StrEnum], set[str]], ...] = (
        (FindingKind, set(FINDINGS)),
        (Happening, set(HISTORY)),
        (Presence, set(PRESENCE)),
        (Rung, set(RUNGS)),
        (Why, set(WHYS)),
    )
    return [f"{kind.__name__}.{word.name}" for kind, said in tables for word in kind if word not in said]
