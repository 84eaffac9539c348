# SPDX-License-Identifier: Apache-2.0
"""Damaged output of every format: nothing is raised, no number is wrong, no card is lost unseen. The quick part takes our own recordings and texts.

`pytest tests/fuzz -m slow --hypothesis-profile=fuzz` (`make fuzz`) goes on with more examples, and through the corpus where there is one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.domain.model.source import Outcome
from muster.services.hearing import Heard
from tests.fuzz import damages
from tests.fuzz.promises import faults
from tests.fuzz.rounds import again, rounds

OURS = rounds()
QUICK, LONG = 6, 100
GARBAGE = (b"", b"\n", b"{", b"<", b"core dumped\n", b"\x00" * 64, b"\xff\xfe\x00", b"Segmentation fault (core dumped)\n", b"[]", b"null\n", b"0\n", b"ok\n")


def payload(name: str, place: int) -> bytes:
    """The whole text of a capture of ours."""
    return OURS[name].captures[place].payload


def one_capture(name: str, draw: st.DataObject) -> int:
    """A capture of the round."""
    return draw.draw(st.integers(0, len(OURS[name].captures) - 1), label="capture")


ELSEWHERE = {"amd/apu/amd.sysfs": ("clock.core", "power.draw")}
"""Readings that a second file tells as well, read a moment later: it is taken where the first does not read."""


def check(name: str, after: Heard, *, renamed: bool = False, whole: bool = False) -> None:
    """No promise is broken."""
    found = faults(OURS[name], after, renamed=renamed, whole=whole)
    assert [each for each in found if not any(f" {key} became " in each for key in ELSEWHERE.get(name, ()))] == []


def cut(name: str, draw: st.DataObject) -> None:
    """Cut at any byte, and told as cut."""
    place = one_capture(name, draw)
    at = draw.draw(st.integers(0, len(payload(name, place))), label="cut at")
    check(name, again(OURS[name], name, place, payload=payload(name, place)[:at], cut=True))


def cut_unsaid(name: str, draw: st.DataObject) -> None:
    """Cut at any byte, and nobody says so: no card may be invented, and nothing raised."""
    place = one_capture(name, draw)
    at = draw.draw(st.integers(0, len(payload(name, place))), label="cut at")
    after = again(OURS[name], name, place, payload=payload(name, place)[:at])
    assert after.told is not None, after.problem
    assert len(after.cards) <= len(OURS[name].cards)


def doubled(name: str, draw: st.DataObject) -> None:
    """Some lines come twice."""
    place = one_capture(name, draw)
    lines = payload(name, place).count(b"\n") + 1
    start, count = draw.draw(st.integers(0, lines - 1), label="from line"), draw.draw(st.integers(1, 4), label="lines")
    check(name, again(OURS[name], name, place, payload=damages.doubled(payload(name, place), start, count)))


def harmless(name: str, draw: st.DataObject) -> None:
    """NULs, colours, other line ends and byte order marks between lines take nothing away."""
    place = one_capture(name, draw)
    text = payload(name, place)
    if draw.draw(st.booleans(), label="CRLF"):
        text = text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    for _ in range(draw.draw(st.integers(1, 4), label="times")):
        at = draw.draw(st.sampled_from(damages.line_starts(text)), label="at")
        text = damages.inserted(text, at, draw.draw(st.sampled_from([b"\x00", b"\x1b[0m", b"\x1b[31;1m", b"\x1b]0;top\x07", b"\x07", b"\x00\x00\x1b[K"])))
    check(name, again(OURS[name], name, place, payload=text), whole=True)


def encoded(name: str, draw: st.DataObject) -> None:
    """The whole text in another encoding, with its mark."""
    place = one_capture(name, draw)
    words = payload(name, place).decode("utf-8")
    how = draw.draw(st.sampled_from(["utf-8-sig", "utf-16"]), label="encoding")
    check(name, again(OURS[name], name, place, payload=words.encode(how)), whole=how == "utf-8-sig")


def mixed(name: str, draw: st.DataObject) -> None:
    """A byte of another encoding in the midst of the text."""
    place = one_capture(name, draw)
    at = draw.draw(st.integers(0, len(payload(name, place))), label="at")
    check(
        name,
        again(OURS[name], name, place, payload=damages.inserted(payload(name, place), at, draw.draw(st.sampled_from([b"\xe9", b"\xb0C", b"\xff", b"\xc3"])))),
        renamed=True,
    )


def commas(name: str, draw: st.DataObject) -> None:
    """Fractions with a comma: the same number, or none."""
    place = one_capture(name, draw)
    check(name, again(OURS[name], name, place, payload=damages.decimal_commas(payload(name, place))), renamed=True)


def quoted(name: str, draw: st.DataObject) -> None:
    """JSON numbers as text."""
    place = one_capture(name, draw)
    if payload(name, place).lstrip()[:1] not in (b"{", b"["):
        return
    check(name, again(OURS[name], name, place, payload=damages.numbers_as_text(payload(name, place))))


def long_line(name: str, draw: st.DataObject) -> None:
    """A line of 1 MiB anywhere between the lines."""
    place = one_capture(name, draw)
    at = draw.draw(st.sampled_from(damages.line_starts(payload(name, place))), label="at")
    sign = draw.draw(st.sampled_from([b"x", b" ", b"|", b"[", b"0,", b"\xff"]), label="sign")
    line = sign * (damages.MEBI // len(sign)) + b"\n"
    check(name, again(OURS[name], name, place, payload=damages.inserted(payload(name, place), at, line)), renamed=True)


def nested(name: str, draw: st.DataObject) -> None:
    """A thousand levels in the place of a number."""
    place = one_capture(name, draw)
    text = payload(name, place)
    spans = [span for span in damages.values(text) if text[span[0] - 1 : span[0]] != b'"']
    if not spans:
        return
    start, end = draw.draw(st.sampled_from(spans), label="value")
    check(name, again(OURS[name], name, place, payload=text[:start] + draw.draw(st.sampled_from(damages.deep(text))) + text[end:]), renamed=True)


def marked(name: str, draw: st.DataObject) -> None:
    """A spelling of "no value" where a number stood."""
    place = one_capture(name, draw)
    spans = damages.values(payload(name, place))
    if not spans:
        return
    text = draw.draw(st.sampled_from(damages.SPELLINGS), label="spelling")
    span = draw.draw(st.sampled_from(spans), label="value")
    after = again(OURS[name], name, place, payload=damages.put(payload(name, place), span, text))
    assert after.told is not None, after.problem
    if text not in damages.NUMBERS_THAT_MEAN_NOTHING:
        check(name, after, renamed=True)


def exited(name: str, draw: st.DataObject) -> None:
    """Good output with a status that says failure: every card is still there, with its numbers."""
    place = one_capture(name, draw)
    status = draw.draw(st.sampled_from([1, 2, 15, 139, 255, -9, -11]), label="status")
    after = again(OURS[name], name, place, exit_status=status, stderr=draw.draw(st.sampled_from([b"", b"warning: old driver\n", b"\xff\n"])))
    check(name, after, whole=True)


def garbage(name: str, draw: st.DataObject) -> None:
    """Garbage with a status that says success: no card, and never a complete listing."""
    place = one_capture(name, draw)
    after = again(OURS[name], name, place, payload=draw.draw(st.sampled_from(GARBAGE), label="bytes"), exit_status=0)
    check(name, after)
    if after.told is not None and len(OURS[name].captures) == 1:
        assert not after.cards
        assert not after.told.complete or after.told.outcome is Outcome.NO_DEVICES


DAMAGES: tuple[Callable[[str, st.DataObject], None], ...] = (
    *(cut, cut_unsaid, doubled, harmless, encoded, mixed, commas, quoted, long_line, nested, marked, exited, garbage),
)
CASES = [(name, each) for name in OURS for each in DAMAGES]
IDS = [f"{name}:{each.__name__}" for name, each in CASES]


@pytest.mark.parametrize(("name", "damage"), CASES, ids=IDS)
@settings(max_examples=QUICK, database=None)
@given(draw=st.data())
def test_damage(name: str, damage: Callable[[str, st.DataObject], None], draw: st.DataObject) -> None:
    damage(name, draw)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "damage"), CASES, ids=IDS)
@settings(max_examples=LONG, database=None, derandomize=False)
@given(draw=st.data())
def test_damage_at_length(at_length: None, name: str, damage: Callable[[str, st.DataObject], None], draw: st.DataObject) -> None:
    damage(name, draw)
