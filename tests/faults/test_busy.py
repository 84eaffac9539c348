# SPDX-License-Identifier: Apache-2.0
"""A server that cannot take in what comes sends agents away, and holds nobody's silence against them; when it can again, who stays away is silent."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from tests.faults.clocks import site
from tests.faults.test_clocks import STEP, calm, rounds

from muster.interfaces.ingest.gathering import Gathering
from muster.wire.report import pack


def test_who_is_sent_away_is_not_silent(tmp_path: Path) -> None:
    with site(tmp_path) as there:
        one, other = these = there.voices(2)
        rounds(there, these, 2 * STEP)
        with mock.patch.object(Gathering, "behind", return_value="2000 reports wait for the writer"):
            for _ in range(20):
                there.pass_(STEP)
                one.known(there.now)
                said = one.post(pack(one.report(one.sequence + 1, there.hand.wall)))
                assert (said.status, said.retry > 0) == (429, True)
                there.pass_(1)
                assert "nobody is called silent" in there.server.notes()["load"]
                assert there.findings("source_silent") == []
        rounds(there, [one], STEP)
        assert there.findings("source_silent") == []
        rounds(there, [one], 3 * STEP)
        calm_but_one = there.findings("source_silent")
        assert len(calm_but_one) == 1
        assert other.name in calm_but_one[0]["about"]
        assert "load" not in there.server.notes()
        rounds(there, these, STEP)
        calm(there, these)
