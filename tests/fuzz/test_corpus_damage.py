# SPDX-License-Identifier: Apache-2.0
"""Real output, damaged: every corpus file that an adapter reads is cut, doubled, its values marked. Slow, and only where there is a corpus."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.services.hearing import Heard
from tests.fuzz import damages
from tests.fuzz.promises import faults
from tests.fuzz.rounds import again, corpus_rounds

SERIES = ("dmon", "sampled", "nic-stats")
"""Files with several moments of one card: an earlier moment is shown when the later one is gone."""
KNOWN = {
    "amd/amd/kfd/topo-vega10.txt": "two cards of this recording give one location; of a cut listing only one is left, and it keeps it",
}


@cache
def real() -> dict[str, Heard]:
    return {name: told for name, told in corpus_rounds().items() if told.told is not None and name not in KNOWN}


def tried(name: str) -> list[str]:
    return [each for each in real() if each.startswith(f"{name}/")]


@pytest.mark.slow
@pytest.mark.parametrize("vendor", ["nvidia", "amd", "huawei", "pci", "kernel_log"])
@settings(max_examples=300, database=None, derandomize=False, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_damaged_corpus(corpus: Path, at_length: None, vendor: str, draw: st.DataObject) -> None:
    del corpus
    name = draw.draw(st.sampled_from(tried(vendor)), label="file")
    before = real()[name]
    text = before.captures[0].payload
    how = draw.draw(st.sampled_from(["cut", "doubled", "marked", "commas", "exited"]), label="damage")
    if how == "cut":
        after = again(before, name, 0, payload=text[: draw.draw(st.integers(0, len(text)), label="at")], cut=True)
    elif how == "doubled":
        start = draw.draw(st.integers(0, text.count(b"\n")), label="line")
        after = again(before, name, 0, payload=damages.doubled(text, start, draw.draw(st.integers(1, 4), label="lines")))
    elif how == "marked":
        spans = damages.values(text)
        spelling = draw.draw(st.sampled_from(sorted(set(damages.SPELLINGS) - damages.NUMBERS_THAT_MEAN_NOTHING)), label="spelling")
        after = again(before, name, 0, payload=damages.put(text, draw.draw(st.sampled_from(spans), label="value"), spelling) if spans else text)
    elif how == "commas":
        after = again(before, name, 0, payload=damages.decimal_commas(text))
    else:
        after = again(before, name, 0, exit_status=draw.draw(st.sampled_from([1, 15, 255, -9]), label="status"))
    found = faults(before, after, renamed=how in ("marked", "commas"))

    assert [each for each in found if not (any(word in name for word in SERIES) and " became " in each)] == []
