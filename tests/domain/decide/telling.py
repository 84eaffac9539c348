# SPDX-License-Identifier: Apache-2.0
"""What random histories of a part of the site are made of: who speaks, since when, and how all that is said is gone through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from muster.domain.decide.merge import Merged, Roll, merge, tick
from muster.domain.model.attributes import Level
from muster.domain.model.names import names
from muster.domain.model.observation import Observation, Subject
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Act, Again, Listing, NodeNames, Same, Voice, Witness, Word
from muster.domain.model.source import Channel, Outcome, WitnessClass

T0 = 1_700_000_000.0
Step: TypeAlias = "Listing | Act | Again | float"
"""A word, or a moment at which time passes."""
WITNESSES = {
    "driver": Witness(source="driver", channel=Channel.IN_BAND, witness=WitnessClass.DRIVER, cadence=60),
    "twin": Witness(source="twin", channel=Channel.IN_BAND, witness=WitnessClass.DRIVER, cadence=60),
    "exporter": Witness(source="exporter", channel=Channel.IN_BAND, witness=WitnessClass.EXPORTER, cadence=30),
    "bmc": Witness(source="bmc", channel=Channel.OUT_OF_BAND, witness=WitnessClass.BMC, cadence=120),
    "bus": Witness(source="bus", channel=Channel.IN_BAND, witness=WitnessClass.PCI, cadence=300),
    "cluster": Witness(source="cluster", channel=Channel.CLUSTER, witness=WitnessClass.CLUSTER, cadence=60),
}


def played(steps: Iterable[Step], policy: Policy) -> list[Merged]:
    """What each step of a history gives."""
    site, found = Roll(), list[Merged]()
    for order, said in enumerate(steps):
        found.append(tick(site, policy, said) if isinstance(said, float) else merge(site, said, order, policy, said.received_at))
        site = found[-1].roll
    return found


def again(spans: Sequence[tuple[Listing, float]], received_at: float) -> Again:
    """What was said by these listings still holds, each until its time."""
    same = tuple(Same(node=each.node, source=each.witness.source, since=each.at, at=until) for each, until in spans)
    return Again(at=max(each.at for each in same), received_at=received_at, same=same)


def voices(said: Iterable[tuple[str, dict[str, Word]]]) -> list[Voice]:
    """What witnesses said of one thing on one node."""
    return [Voice(node="n", source=name, channel=WITNESSES[name].channel, witness=WITNESSES[name].witness, promise=90.0, words=words) for name, words in said]


def listing(source: str, *cards: dict[str, str]) -> Listing:
    """A whole listing of cards that have names and nothing else."""
    return Listing(
        node=NodeNames(name="n0"),
        witness=WITNESSES[source],
        reporter=source,
        incarnation="i",
        sequence=1,
        at=T0,
        received_at=T0,
        complete=True,
        outcome=Outcome.DEVICES,
        observations=tuple(Observation(subject=Subject(level=Level.CARD, names=names(**each))) for each in cards),
    )
