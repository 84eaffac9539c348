# SPDX-License-Identifier: Apache-2.0
"""How often things go wrong: figures that operators have published, our own guesses where there are none, and a site on which everything happens at once.

Published figures that are used, each with where it was published:

- 16,384 H100 cards over 54 days (Llama 3 405B, Meta 2024): 419 unplanned interruptions, which is 0.47 for 1,000 cards and a day. Of 466 of all kinds
  148 were a faulty card (30.1 %), 72 its stacked memory (17.2 %), 19 its on-chip memory (4.5 %), 17 its system processor (4.1 %), 35 the network (8.4 %).
- Two research clusters of 16,000 and 8,000 A100 over 11 months (Meta, arXiv 2410.21680): 6.50 and 2.34 failures for 1,000 nodes and a day.
- New parts (ml-engineering by S. Bekman): up to a tenth of cards fail early; 5 to 10 % of nodes are kept spare.

What nobody has published is guessed, and is named a guess below.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

HOUR, DAY = 3600.0, 86400.0
INTERRUPTED = 0.47 / 1000 / 24
"""Unplanned interruptions of a card in an hour."""
FAILED_NODES = 6.50 / 1000 / 24
"""Failures of a node in an hour, the worse of the two clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Per hour: of a card, a node, or the whole site. Shares are of reports."""

    # of a card
    replace: float = 0.0
    """The card is faulty: another is put in its place, and it is never seen again."""
    retired: float = 0.5
    """Share of those that an operator says to be retired."""
    hang: float = 0.0
    """Its driver hangs in a call that does not come back."""
    recut: float = 0.0
    """Its partitions are cut anew."""
    # of a node
    crash: float = 0.0
    """It is gone for some minutes and boots."""
    agent_dies: float = 0.0
    """Its agent is killed; what it had spooled is left."""
    move: float = 0.0
    swap: float = 0.0
    shelve: float = 0.0
    """A card is moved, two change places, one is taken out, or one from the shelf is put in."""
    mute: float = 0.0
    """One of its sources is not read for a while."""
    disk_full: float = 0.0
    clock: float = 0.0
    """Its wall clock leaps: an hour, ten years, to zero."""
    renamed: float = 0.0
    """It boots with the host name, or with the machine id, of another; later it is put right."""
    stand_in: float = 0.0
    """The tool speaks in the driver's place, and stands by again."""
    cut_10m: float = 0.0
    cut_1h: float = 0.0
    cut_1d: float = 0.0
    """No path to the server: ten minutes, an hour, a day."""
    # of the site
    site_cut: float = 0.0
    """Nobody has a path to the server for some minutes; then all come back at once."""
    server_full: float = 0.0
    server_dies: float = 0.0
    """It is killed, on top of `deaths`."""
    server_clock: float = 0.0
    """The server's wall clock leaps, and is put right within ten minutes."""
    upgrade: float = 0.0
    """A new driver rolls over the site."""
    hang_all: float = 0.0
    """The driver of every node hangs at once."""
    # of reports
    lost: float = 0.0
    """The report, or its answer, is lost on the way."""
    doubled: float = 0.0
    """It comes once more, up to five minutes later."""
    late: float = 0.0
    """One from a management controller comes up to an hour late."""
    replayed: float = 0.0
    """An old one is sent again."""
    forged: float = 0.0
    """Its number comes with other words, as from a copy of a machine."""

    def times(self, factor: float) -> Rates:
        """Everything that happens by the hour, so many times as often."""
        shares = {"retired", "lost", "doubled", "late", "replayed", "forged"}
        return Rates(**{f.name: getattr(self, f.name) * (1.0 if f.name in shares else factor) for f in fields(self)})


PUBLISHED = Rates(
    replace=INTERRUPTED * 148 / 466,
    hang=INTERRUPTED * 17 / 466,
    crash=FAILED_NODES + 8 * INTERRUPTED * (72 + 19) / 466,  # cards whose memory failed are reset with their node
    cut_10m=8 * INTERRUPTED * 35 / 466 + 1 / (30 * 24),  # the network of the jobs as published; that of management is a guess: once in 30 days
    cut_1h=1 / (90 * 24),  # all that follow are guesses
    cut_1d=1 / (365 * 24),
    recut=1 / (200 * 24),
    agent_dies=1 / (14 * 24),
    move=1 / (365 * 24),
    swap=1 / (365 * 24),
    shelve=1 / (180 * 24),
    mute=1 / (60 * 24),
    disk_full=1 / (180 * 24),
    clock=1 / (180 * 24),
    renamed=1 / (730 * 24),
    stand_in=1 / (60 * 24),
    site_cut=1 / (7 * 24),
    server_full=1 / (7 * 24),
    server_dies=1 / 24,
    server_clock=1 / (7 * 24),
    upgrade=1 / (7 * 24),
    hang_all=1 / (365 * 24),
    lost=0.001,
    doubled=0.001,
    late=0.001,
    replayed=0.0003,
    forged=0.00001,
)
"""A site as it is. Figures with an equation are of the sources above."""

BUSY = Rates(
    replace=0.02, hang=0.02, recut=0.05, crash=0.15, agent_dies=0.2, move=0.2, swap=0.1, shelve=0.2, mute=0.2, disk_full=0.1, clock=0.1, renamed=0.05,
    stand_in=0.1, cut_10m=0.2, cut_1h=0.05, site_cut=0.1, server_full=0.1, server_dies=0.3, server_clock=0.1, upgrade=0.1, hang_all=0.03,
    lost=0.02, doubled=0.05, late=0.03, replayed=0.02, forged=0.002,
)  # fmt: skip
"""A site on which everything happens: a few nodes and hours see each kind."""
CALM = Rates()
NOISE = Rates(lost=0.02, doubled=0.05, late=0.03, replayed=0.02, forged=0.002)
"""Nothing befalls machines and server, but the network is bad."""
EVERY = tuple((after * HOUR, kind) for after, kind in enumerate((
    "cut_1d", "server_full", "server_dies", "upgrade", "hang_all", "crash", "agent_dies", "shelve", "move", "swap", "mute", "disk_full", "clock", "renamed",
    "stand_in", "cut_10m", "cut_1h", "replace", "hang", "recut", "site_cut", "server_clock", "server_dies",
)))  # fmt: skip
"""Each kind of fault, an hour after the one before; the first lasts over all of them."""
EVERY_HOURS = 25.0
"""So long a run takes, that the cut of a day is over before its end."""
