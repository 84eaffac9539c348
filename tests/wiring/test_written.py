# SPDX-License-Identifier: Apache-2.0
"""A store that cannot be written is asked for little before all of it is read again."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from muster.domain.model.errors import Unavailable
from muster.spi.store import Batch
from muster.store import open_store
from muster.wiring.written import Watched


def test_all_is_read_again_only_once_the_store_can_be_written(tmp_path: Path) -> None:
    store = open_store(tmp_path / "roll.sqlite")
    full = mock.Mock(side_effect=Unavailable("the disk is full"))
    watched = Watched(store.writer, lambda: full() if full.side_effect else store.probe())
    with mock.patch.object(store.writer, "load", wraps=store.writer.load) as load:
        watched.load()
        assert load.call_count == 1
        with mock.patch.object(store.writer, "commit", side_effect=Unavailable("the disk is full")), pytest.raises(Unavailable):
            watched.commit(Batch(at=1.0))
        for _ in range(3):
            with pytest.raises(Unavailable, match="full") as found:
                watched.load()
            assert found.value.hint
        assert load.call_count == 1
        full.side_effect = None
        watched.load()
        assert load.call_count == 2
        assert watched.trouble == ""
    store.close()
