# SPDX-License-Identifier: Apache-2.0
"""The use cases of the roll: take reports, take an operator's word, let time pass. What comes of one batch is committed once.

Rounds go two ways. One that says the facts its source said before only moves numbers. One with other facts goes through merge into history.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from muster.domain.decide.merge import Roll
from muster.domain.model.access import Speaker
from muster.domain.model.errors import InputError, MusterError, Unavailable
from muster.domain.model.policy import Policy
from muster.domain.model.roll import FindingKind, Listing, NodeNames
from muster.services.arrivals import Arrivals, refusal, told
from muster.services.departed import Departed, Ended, nobody
from muster.services.events import place_events
from muster.services.folding import Folding, id_names, never, node_names
from muster.services.journal import keep_act, keep_listing, listing, seen_at
from muster.services.namesakes import Namesakes
from muster.services.older import placed
from muster.services.operator import understand
from muster.services.regions import DamagedError
from muster.services.sources import Source, digest
from muster.services.windows import Copy
from muster.spi.access import Bounds
from muster.spi.store import Answered, CaptureRow, FindingRow, Heard, RollWriter, Under
from muster.wire import report as wire
from muster.wire.exchange import acted
from muster.wire.lanes import facts, part, whole
from muster.wire.report import ActDoc, AnswerDoc, FactsDoc, HeardDoc, ListingDoc, ReportDoc
from muster.wire.sound import opened, sound

APPLIED, DUPLICATE, REFUSED = "applied", "duplicate", "refused"


class Inventory:
    """The writer's half of the roll. Single-threaded: the caller hands it one thing at a time.

    ``bounds`` says for whom a reporter may speak; ``quiet`` are seconds after the start, and after the store could not be written, in which nobody's
    silence is held against them, since nobody could be heard before.
    """

    def __init__(self, writer: RollWriter, policy: Policy, now: float, *, bounds: Bounds | None = None, quiet: float = 0.0, ended: Ended = nobody) -> None:
        self._writer = writer
        self._policy = policy
        self._bounds = bounds
        self._quiet = quiet
        self._listening = now + quiet
        self._whole = _Whole()
        self._counted: Counter[str] = Counter()
        self._namesakes = Namesakes(policy)
        self._ended = ended
        self._load(now)

    def figures(self) -> dict[str, float]:
        """What it counted since the start, and what it holds, by name."""
        held = {
            "reporters": len(self._arrivals),
            "reporters_spool_bytes": self._arrivals.spooled,
            "roll_parts": self._fold.parts,
            "roll_parts_held": len(self._fold.regions),
            "roll_parts_damaged": len(self.damaged),
        }
        return {name: float(value) for name, value in (*held.items(), *((f"{name}_total", count) for name, count in sorted(self._counted.items())))}

    def _load(self, now: float) -> None:
        loaded = self._writer.load()
        if old := placed(loaded, self._policy, now):
            self._writer.commit(old)
            loaded = self._writer.load()
        self._arrivals = Arrivals(loaded.reporters)
        for slot in loaded.slots:
            self._arrivals.reach(slot)
        self._fold = Folding(self._writer, loaded, self._policy)
        self._departed = Departed(self._ended)
        self._whole.lost = False
        if now >= self._listening:
            self._fold.pass_time(now)
            self._commit(now)

    def take(self, posts: Sequence[tuple[Speaker, bytes]], now: float) -> list[AnswerDoc | MusterError]:
        """Takes packed reports in, all in one commit; one answer for each, durable when this returns."""
        answers: list[AnswerDoc | MusterError] = []
        try:
            self._ready(now)
            for speaker, body in posts:
                answers.append(self._post(speaker, body, now))
            self._commit(now)
        except Unavailable as error:
            return [error] * len(posts)
        return answers

    def _post(self, speaker: Speaker, body: bytes, now: float) -> AnswerDoc | MusterError:
        try:
            doc = opened(body)
            if self._bounds is not None:
                self._bounds.check(speaker, doc.reporter, doc.node)
            with self._whole:
                return self._report(doc, now)
        except MusterError as error:
            if self._whole.lost:
                raise
            return error

    def report(self, doc: ReportDoc, now: float) -> AnswerDoc:
        """Takes a report: applied, a duplicate of one taken before, or refused because its number was used for other words."""
        self._ready(now)
        with self._whole:
            answer = self._report(sound(doc), now)
        self._commit(now)
        return answer

    def act(self, doc: ActDoc, now: float, *, dry_run: bool = False, under: Under | None = None) -> list[str]:
        """Takes an operator's word; returns the ids of the cards it changed. With ``dry_run`` those that it would change, and nothing is kept.

        ``under`` are the key and the digest of the request: its answer is kept with what it does, so that it is not done again.

        Raises NotFound, Ambiguous, Conflict or InputError.
        """
        self._ready(now)
        with self._whole:
            said = understand(self._meant(doc), doc, now)
            touched = self._fold.act(said, keep_act(doc, said), now, dry_run=dry_run)
        if not dry_run:
            self._fold.gathered.audit.append(_audit(doc, now))
            if under is not None:
                self._fold.gathered.answered.append(_answered(under, doc, touched, now))
            self._commit(now)
        return touched

    def _meant(self, doc: ActDoc) -> Roll:
        """The parts of the site that an act may be about."""
        names = id_names((*doc.card.items(), *doc.other.items()))
        if doc.node:
            names |= node_names(NodeNames(name=doc.node), self._policy) | {("node", doc.node)}
        return self._fold.roll(names) if names else self._fold.everything()

    def tick(self, now: float, enough: Callable[[], bool] = never) -> bool:
        """Lets time pass. True when ``enough`` broke it off before all that is due was looked at: it goes on with the next call."""
        self._ready(now)
        listening = now >= self._listening
        more = False
        with self._whole:
            self._departed.look(self._fold.sources, self._fold.standing, self._fold.gathered, now)
            if listening:
                more = self._fold.pass_time(now, enough)
            if not more:
                self._namesakes.look(self._fold.sources, self._fold.standing, self._fold.gathered, now, ends=listening)
        self._commit(now)
        return more

    def hold(self, until: float) -> None:
        """Holds nobody's silence against them before ``until``: we were deaf."""
        self._listening = max(self._listening, until)

    @property
    def damaged(self) -> dict[str, str]:
        """Parts of the site that the store did not give back, and why."""
        return self._fold.regions.damaged

    def acknowledge(self, finding: str, by: str, reason: str, now: float) -> FindingRow:
        """Marks an open finding as seen by a person."""
        return self._writer.acknowledge(finding, by, now, reason)

    def _report(self, doc: ReportDoc, now: float) -> AnswerDoc:
        rounds = [*doc.heard, *(part(each) for each in doc.listings)]
        known = [digest(each.facts) for each in rounds]
        said = told(doc, rounds, known)
        copy = self._arrivals.judge(doc, said, rounds, known)
        self._counted[f"reports_{copy.value}"] += 1
        if copy is Copy.SAME:
            return AnswerDoc(DUPLICATE)
        gathered = self._fold.gathered
        if copy is not Copy.NEW:
            about = refusal(copy, doc)
            self._fold.standing.raise_own(FindingKind.SEQUENCE_CONFLICT, doc.reporter, about, now, gathered)
            return AnswerDoc(REFUSED, about)
        skew = self._clock(doc, now)
        steps = [self._round(doc, each, seen, skew, now) for each, seen in zip(rounds, known, strict=True)]
        self._fold.standing.lower_own(FindingKind.SEQUENCE_CONFLICT, doc.reporter, gathered)
        wanted = [step.heard.capture for step in sorted(steps, key=_when) if step.taken(self._fold) and step.heard.capture]
        light = sum([step.light for step in steps])
        self._counted["rounds_again"] += light
        self._counted["rounds_full"] += len(steps) - light
        if (row := self._arrivals.take(doc, said, rounds, skew, now, alone=0 < light == len(steps))) is not None:
            gathered.reporters[doc.reporter] = row
        if doc.events:
            gathered.events.extend(place_events(self._fold.roll(_names_of(doc, self._policy)), doc, self._policy))
        captures = [_capture(doc, each) for each in doc.captures if hashlib.sha256(each.payload).hexdigest() == each.digest]
        gathered.captures.extend(captures)
        asked = [each for each in dict.fromkeys(wanted) if each not in {kept.digest for kept in captures}]
        return AnswerDoc(APPLIED, wanted=self._writer.lacking(asked) if asked else [])

    def _round(self, doc: ReportDoc, heard: HeardDoc, seen: bytes, skew: float, now: float) -> _Step:
        """What there is to do for a round, found out before anything is done for the report: what does not fit is refused whole."""
        at = seen_at(doc, heard, skew, now)
        source = self._fold.sources.get((doc.reporter, heard.source, doc.node.name))
        if len(heard.numbers) % 8:
            raise InputError(f"round of {heard.source}: its numbers are cut", hint="float64, little endian, eight bytes each")
        step = _Step(doc, heard, source, seen, at, skew, now)
        if source is None or not source.takes(seen, step.numbers, at):
            self._fold.bound(step.read()[2], now)
        return step

    def _clock(self, doc: ReportDoc, now: float) -> float:
        """Seconds to add to the reporter's wall clock; 0 while it is within tolerance."""
        skew = now - doc.sent_at
        gathered, standing = self._fold.gathered, self._fold.standing
        if abs(skew) <= self._policy.clock_tolerance:
            standing.lower_own(FindingKind.CLOCK_WRONG, doc.reporter, gathered)
            return 0.0
        about = f"{doc.reporter}: its clock is {abs(skew):.0f} s {'behind' if skew > 0 else 'ahead'}; its times are corrected by that; set the clock there"
        standing.raise_own(FindingKind.CLOCK_WRONG, doc.reporter, about, now, gathered, skew_s=round(skew, 3))
        return skew

    def _ready(self, now: float) -> None:
        """What is in memory and not in the store is nothing: after a failed commit all is read again."""
        if self._whole.lost:
            self._listening = max(self._listening, now + self._quiet)
            self._load(now)

    def _commit(self, now: float) -> None:
        gathered = self._fold.gathered
        if not gathered:
            return
        try:
            self._writer.commit(gathered.batch(now))
        except BaseException:
            self._whole.lost = True
            raise
        self._fold.committed()


class _Whole:
    """What the store or a fault of ours breaks off within is not whole: all is read again before the next. What does not fit changed nothing."""

    __slots__ = ("lost",)

    def __init__(self) -> None:
        self.lost = False
        """True until all is read again."""

    def __enter__(self) -> None:
        """Something is begun."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            ours = isinstance(error, MusterError) and not isinstance(error, Unavailable)
            self.lost = not (ours or isinstance(error, DamagedError))


class _Step:
    """One round of a report on its way."""

    __slots__ = ("at", "doc", "heard", "light", "now", "numbers", "seen", "skew", "source", "whole")

    def __init__(self, doc: ReportDoc, heard: HeardDoc, source: Source | None, seen: bytes, at: float, skew: float, now: float) -> None:
        self.doc, self.heard, self.source, self.seen, self.at, self.skew, self.now = doc, heard, source, seen, at, skew, now
        self.numbers = np.frombuffer(heard.numbers) if heard.numbers else np.zeros(0)
        self.light = False
        self.whole: tuple[FactsDoc, ListingDoc, Listing] | None = None

    def row(self, slot: int, *, again: bool) -> Heard:
        """The round as the store takes it."""
        return Heard(
            slot=slot,
            at=self.at,
            received_at=self.now,
            numbers=self.heard.numbers,
            incarnation=self.doc.incarnation,
            sequence=self.doc.sequence,
            again=again,
            facts=self.seen,
            capture=self.heard.capture,
        )

    def read(self) -> tuple[FactsDoc, ListingDoc, Listing]:
        """Makes a whole word of it. Raises InputError."""
        told = facts(self.heard)
        made = whole(self.heard, told)
        word, _ = listing(self.doc, made, self.skew, self.now)
        self.whole = told, made, word
        return self.whole

    def taken(self, fold: Folding) -> bool:
        """Takes it in, by numbers alone where its source still allows it. True when it brought news."""
        source = self.source or fold.sources.get((self.doc.reporter, self.heard.source, self.doc.node.name))
        if source is not None and source.takes(self.seen, self.numbers, self.at):
            fold.again(source, self.numbers, self.at, self.row(source.slot, again=True))
            self.light = True
            return False
        if source is not None and source.again_at is not None and self.at > source.last and source.fell(self.seen, self.numbers):
            self._recall(fold, source, source.again_at)
        told, made, word = self.whole or self.read()
        return fold.listing(word, keep_listing(self.doc, made, word), told, self.row(source.slot if source is not None else 0, again=False))

    def _recall(self, fold: Folding, source: Source, at: float) -> None:
        """Tells merge of the round before this one, in which the counters had not fallen yet."""
        before = msgspec.structs.replace(self.heard, numbers=source.numbers.tobytes(), observed_at=at)
        told = facts(before)
        made = whole(before, told)
        word = replace(listing(self.doc, made, 0.0, self.now)[0], at=at)
        fold.recall(source, word, keep_listing(self.doc, made, word), self.now)


def _when(step: _Step) -> float:
    return step.at


def _names_of(doc: ReportDoc, policy: Policy) -> set[tuple[str, str]]:
    names = node_names(NodeNames(name=doc.node.name, machine_id=doc.node.machine_id, system=doc.node.system), policy)
    return names | id_names(each for event in doc.events for each in event.ids)


def _audit(doc: ActDoc, now: float) -> dict[str, Any]:
    rest = {key: value for key, value in msgspec.to_builtins(doc).items() if key not in ("by", "what") and value}
    return {"at": now, "by": doc.by, "what": doc.what, **rest}


def _answered(under: Under, doc: ActDoc, touched: list[str], now: float) -> Answered:
    key, digest = under
    return Answered(key=key, digest=digest, at=now, status=200, body=msgspec.json.encode(acted(doc.what, touched)))


def _capture(doc: ReportDoc, each: wire.CaptureDoc) -> CaptureRow:
    return CaptureRow(
        digest=each.digest,
        source=each.source,
        node=doc.node.name,
        format=each.format,
        locator=tuple(each.locator),
        taken_at=each.taken_at,
        exit_status=each.exit_status,
        stderr=each.stderr,
        cut=each.cut,
        payload=each.payload,
    )
