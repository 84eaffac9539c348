# SPDX-License-Identifier: Apache-2.0
"""What a database keeps beside its file is removed under a server that runs: nothing more is acknowledged, it says so, and what was acknowledged stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.site import server, until
from tests.faults.voices import voices, whole


@pytest.mark.slow
@pytest.mark.parametrize("ends", [("-wal", "-shm"), ("-wal",), ("-shm",)], ids=["both", "wal", "shm"])
def test_a_log_that_is_removed_is_noticed_and_its_words_are_kept(tmp_path: Path, ends: tuple[str, ...]) -> None:
    with server(tmp_path) as site:
        (voice,) = voices(site, 1)
        for _ in range(5):
            assert voice.say()
        for end in ends:
            (site.store / f"roll.sqlite{end}").unlink()
        said = until(site.ready, "the server is not well", 15)
        assert "was removed or replaced while the server ran; what it held was saved" in said
        words = {"what": "set", "card": voice.serial, "by": "tester", "values": {"asset.owner": "late"}}
        status, refused = site.ask("/api/v1/acts", words, {"Idempotency-Key": "late"})
        assert (status, "removed or replaced" in str(refused)) == (503, True)
        site.kill()
        assert site.checked().problems == ()
        site.start()
        assert site.ready() == ""
        whole(site, voice)
        assert voice.say()
