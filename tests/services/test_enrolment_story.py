# SPDX-License-Identifier: Apache-2.0
"""Any order of tokens, joins, revocations, restarts and time: the gate lets speak whom a plain model of the rules lets speak, and nobody else."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from muster.domain.model.access import Reach, Scope
from muster.domain.model.errors import Conflict, MusterError, NotAllowed
from muster.services.enrolment_access import LIFE
from muster.services.enrolment_tokens import named
from muster.store import open_store
from tests.services.gate import NOW, Node, doc, gate_on

NAMES = ("gpu-1", "gpu-2", "gpu-3")


@dataclass
class Token:
    """A join token as the model knows it."""

    text: str
    left: int
    ends: float
    nodes: frozenset[str]
    used_by: set[bytes] = field(default_factory=set)


@dataclass
class Seat:
    """What the model knows of one name: whose key holds it, and how."""

    key: bytes
    joined_by: str
    revoked: bool = False
    left: bool = False
    reopened: float = 0.0


class Story(RuleBasedStateMachine):
    """The gate beside the model."""

    def __init__(self) -> None:
        super().__init__()
        self.store = open_store(None)
        self.now = NOW
        self.gate = gate_on(self.store, self.now)
        self.tokens: list[Token] = []
        self.seats: dict[str, Seat] = {}
        self.nodes = {name: [Node(doc(name)), Node(doc(name))] for name in NAMES}
        self.access: list[tuple[str, bytes, str, float]] = []
        """Access tokens: name, key, text, end."""

    def teardown(self) -> None:
        self.store.close()

    @rule(uses=st.integers(1, 3), lasts=st.sampled_from([60.0, 3600.0, 86_400.0]), nodes=st.frozensets(st.sampled_from(NAMES), max_size=2))
    def mint(self, uses: int, lasts: float, nodes: frozenset[str]) -> None:
        scope = Scope(reach=Reach.LIST if len(nodes) > 1 else Reach.NODE, nodes=nodes)
        text = self.gate.mint(scope, uses, lasts, "admin", self.now)[1]
        self.tokens.append(Token(text, uses, self.now + lasts, nodes))

    @precondition(lambda self: self.tokens)
    @rule(name=st.sampled_from(NAMES), which=st.integers(0, 1), pick=st.integers(0, 100))
    def join(self, name: str, which: int, pick: int) -> None:
        token = self.tokens[pick % len(self.tokens)]
        node, seat = self.nodes[name][which], self.seats.get(name)
        expected = self._may_join(node, name, seat, token)
        try:
            node.joins(self.gate, token.text, self.now)
        except (NotAllowed, Conflict):
            assert not expected
            return
        assert expected
        if seat is not None and seat.key == node.public and not self.now < seat.reopened:
            return
        token.left -= 1
        self.seats[name] = Seat(node.public, token.text)

    def _may_join(self, node: Node, name: str, seat: Seat | None, token: Token) -> bool:
        if token.text not in [each.text for each in self.tokens]:
            return False
        reopened = seat is not None and self.now < seat.reopened
        if seat is not None and seat.key == node.public and not reopened:
            return not seat.revoked and seat.joined_by == token.text
        usable = token.left > 0 and self.now < token.ends and (not token.nodes or name in token.nodes)
        return usable and (seat is None or reopened or seat.left)

    @precondition(lambda self: self.tokens)
    @rule(pick=st.integers(0, 100))
    def drop(self, pick: int) -> None:
        token = self.tokens.pop(pick % len(self.tokens))
        self.gate.drop(named(token.text), "admin", self.now)

    @rule(name=st.sampled_from(NAMES), which=st.integers(0, 1))
    def ask(self, name: str, which: int) -> None:
        node, seat = self.nodes[name][which], self.seats.get(name)
        expected = seat is not None and not seat.revoked and seat.key == node.public
        try:
            told = node.token(self.gate, f"agent@{name}", self.now)
        except MusterError:
            assert not expected
            return
        assert expected
        self.access.append((name, node.public, told.token, told.until))

    @rule(name=st.sampled_from(NAMES))
    def revoke(self, name: str) -> None:
        seat = self.seats.get(name)
        expected = seat is not None and not (seat.revoked and not seat.left and not seat.reopened)
        try:
            self.gate.revoke(name, "op", "", self.now)
        except MusterError:
            assert not expected
            return
        assert expected
        assert seat is not None
        seat.revoked, seat.left, seat.reopened = True, False, 0.0

    @rule(name=st.sampled_from(NAMES))
    def reenrol(self, name: str) -> None:
        seat = self.seats.get(name)
        try:
            _, _, text = self.gate.reenrol(name, 600, "op", self.now)
        except MusterError:
            assert seat is None
            return
        assert seat is not None
        seat.reopened = self.now + 600
        self.tokens.append(Token(text, 1, self.now + 600, frozenset({name})))

    @rule(name=st.sampled_from(NAMES), which=st.integers(0, 1))
    def leave(self, name: str, which: int) -> None:
        node, seat = self.nodes[name][which], self.seats.get(name)
        expected = seat is not None and not seat.revoked and seat.key == node.public
        try:
            node.leaves(self.gate, f"agent@{name}", self.now)
        except MusterError:
            assert not expected
            return
        assert expected
        assert seat is not None
        seat.revoked, seat.left, seat.reopened = True, True, 0.0

    @rule(seconds=st.sampled_from([1.0, 59.0, 601.0, LIFE, 86_400.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def restart(self) -> None:
        self.now += 1
        self.gate = gate_on(self.store, self.now)

    @invariant()
    def who_speaks_is_whom_the_model_lets_speak(self) -> None:
        for name, key, text, until in self.access[-20:]:
            seat = self.seats.get(name)
            expected = seat is not None and seat.key == key and not seat.revoked and self.now < until
            try:
                speaker = self.gate.speaker(text, self.now)
            except NotAllowed:
                assert not expected or self._of_an_earlier_seat(name, text)
                continue
            assert expected
            self.gate.check(speaker, f"agent@{name}", doc(name))

    def _of_an_earlier_seat(self, name: str, text: str) -> bool:
        """True for a token from before the same key was let in anew: it ended then."""
        member = self.gate.roster.member(f"agent@{name}")
        return member is not None and self.gate.roster._signer.read(text)["gen"] < member.generation

    @invariant()
    def uses_are_counted(self) -> None:
        told = {each.id: each.left for each in self.gate.tokens(self.now)}
        assert told == {named(each.text): each.left for each in self.tokens if each.left > 0 and self.now < each.ends}

    @invariant()
    def the_audit_holds(self) -> None:
        assert self.store.verify().broken is None


TestStory = Story.TestCase
TestStory.settings = settings(max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
