# SPDX-License-Identifier: Apache-2.0
"""What an agent says to a person who starts it at a terminal. In a journal it stays as quiet as ever: there its log says what goes wrong."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from muster.collect.answer import Posted
from muster.collect.clock import Clock
from muster.collect.collector import Collector
from muster.collect.delivery import Delivery
from muster.collect.words import LINE, plain
from muster.domain.model.errors import MusterError, NotAllowed, Unavailable
from muster.wiring.membership import Membership

SHUT_OUT = (401, 403)
"""How a server answers one that it does not let in."""
JOIN = "a node joins a server on another machine, and its agent needs no --server and no MUSTER_TOKEN then: `muster agent join`"
PATIENCE_S = 30.0
"""Seconds in which it should be known whose cards are here; what is known by then is said."""


@dataclass(slots=True, kw_only=True)
class Aloud:
    """Says what the agent does, once each. Why a membership holds no more, and what to do, the log has said: here it is said for those without one."""

    to: TextIO
    clock: Clock
    collector: Collector
    delivery: Delivery
    member: Membership | None = None
    _began: float = 0.0
    _counted: bool = False
    _greeted: bool = False
    _trouble: str = ""

    @classmethod
    def at(cls, stream: TextIO | None, clock: Clock, collector: Collector, delivery: Delivery, member: Membership | None) -> Aloud | None:
        """One that speaks to the person at ``stream``; None where that is no terminal."""
        if stream is None or not stream.isatty():
            return None
        return cls(to=stream, clock=clock, collector=collector, delivery=delivery, member=member)

    def begin(self, node: str, server: str, state: Path, *, once: bool) -> None:
        """Says of which node what is told to whom. ``server`` is the one that is named; empty for the one joined, else the one on this machine."""
        self._began = self.clock.mono()
        to = server or (f"{self.member.card.url} as {self.member.reporter}" if self.member else "the server on this machine")
        self._say(f"muster: reports {node} to {to}, {'each source once' if once else 'until Ctrl-C'}; its state is in {state}")

    def look(self) -> None:
        """Says how many sources are read, as soon as it is known whose cards are here. After each step of collecting."""
        if not self._counted:
            self._sources()

    def heard(self) -> None:
        """Says when it is connected, and how a stranger comes in. After each step of delivering, in its thread."""
        trouble = self.delivery.trouble
        if trouble:
            if not self._trouble and self.member is None and (hint := _hint(self.delivery.failed)):
                self._say(f"muster: the server does not let this agent in; {hint}")
            self._trouble = trouble
        elif self.delivery.delivered and (self._trouble or not self._greeted):
            self._say("muster: connected again" if self._trouble and self._greeted else "muster: connected; the server takes the reports")
            self._greeted, self._trouble = True, ""

    def end(self) -> None:
        """Says what was done, where each source was read once."""
        if not self._counted:
            self._sources(last=True)
        count = self.delivery.delivered
        self._say(f"muster: {count} {'report' if count == 1 else 'reports'} delivered")

    def _sources(self, *, last: bool = False) -> None:
        has = {name: self.collector.presence.has(name) for name in self.collector.adapters}
        if None in has.values() and not last and self.clock.mono() - self._began < PATIENCE_S:
            return
        self._counted = True
        counts = {name: len(each.sources) for name, each in self.collector.adapters.items()}
        here = sum(count for name, count in counts.items() if has[name] is not False)
        absent = sum(counts.values()) - here
        apart = f"; {absent} of makers without a card here are only looked at now and then" if absent else ""
        self._say(f"muster: {here} {'source is' if here == 1 else 'sources are'} read{apart}")

    def _say(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal may be gone
            self.to.write(f"{plain(text, LINE)}\n")
            self.to.flush()


def waiting(spool: Path, failed: Posted | None, member: Membership | None) -> MusterError:
    """Why the reports wait in ``spool``, and what to do: NotAllowed when the server does not let this node in, else Unavailable."""
    told = f"the reports wait in {spool}: {failed.detail if failed else 'the server takes them slowly'}"
    status = "`muster agent status` says how this node stands"
    if member is None:
        hint = _hint(failed)
        return NotAllowed(told, hint=hint) if hint else Unavailable(told, hint=_away(failed))
    return NotAllowed(told, hint=member.shut_out.hint or status) if member.shut_out else Unavailable(told, hint=status)


def _away(failed: Posted | None) -> str:
    """What to do where reports are not taken, and nobody shut this node out."""
    if failed and failed.ours and failed.status == 503:
        return "a server runs there and cannot take them now, for the reason that it gives; they are sent when this is over, and the agent runs"
    if failed and failed.status:
        return "somebody answers there who does not take them: is it the server's address? Its log, or that of what stands before it, may say more"
    if failed and failed.detail.endswith("use https://"):
        return "name it so: --server https://..., or MUSTER_SERVER"
    return "`muster server` starts one, --server URL names another"


def _hint(failed: Posted | None) -> str:
    return JOIN if failed and failed.ours and failed.status in SHUT_OUT else ""
