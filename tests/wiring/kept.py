# SPDX-License-Identifier: Apache-2.0
"""A server's state in a file and in PostgreSQL, for the tests of its upkeep."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.postgres import binaries, postgres, postgres_store_url, postgres_template, postgres_url
from tests.store.samples import card, change

from muster.spi.store import Batch
from muster.store import Store, open_store
from muster.wiring import upkeep
from muster.wiring.settings import ServerSettings, load_settings

__all__ = ["NOW", "Place", "filed", "in_postgres", "keys", "place", "postgres", "postgres_store_url", "postgres_template", "postgres_url", "programs", "told"]
NOW = 1_700_000_000.0


def told(state: Path, runtime: Path, database: str = "") -> ServerSettings:
    """Settings of a server there."""
    return load_settings(state=state, runtime=runtime, database=database)


@dataclass
class Place:
    """A server's state, in one of two kinds of stores."""

    settings: ServerSettings

    @property
    def at(self) -> Path | str:
        """Where its store is."""
        return upkeep.place_of(self.settings)

    def opened(self) -> Store:
        """The store, as a server has it."""
        return open_store(self.at)

    def write(self, *names: str) -> None:
        """Writes cards, an entry of the audit log for each, and ends."""
        store = self.opened()
        for name in names:
            store.writer.commit(Batch(at=1.0, cards=[card(name)], changes=[change(f"h-{name}", 1.0)], audit=[{"by": "ann", "what": name}]))
        store.close()

    def cards(self) -> list[str]:
        """What is in it."""
        store = self.opened()
        found = [each.id for each in store.reader.cards()]
        assert store.verify().broken is None
        store.close()
        return found


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of PostgreSQL on the PATH, where this machine has them."""
    found = binaries()
    if found:
        monkeypatch.setenv("PATH", f"{found}:{os.environ['PATH']}")


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    url = str(request.getfixturevalue("postgres_url")) if request.param == "postgres" else ""
    state = tmp_path / "state"
    state.mkdir()
    return Place(told(state, tmp_path / "run", url))


@pytest.fixture
def filed(tmp_path: Path) -> Place:
    state = tmp_path / "state"
    state.mkdir()
    return Place(told(state, tmp_path / "run"))


def in_postgres(place: Place) -> bool:
    return isinstance(place.at, str)


def keys(place: Place, **files: str) -> Path:
    folder = place.settings.state / "authority"
    folder.mkdir(exist_ok=True)
    for name, body in files.items():
        (folder / f"{name}.pem").write_text(body)
    (folder / "lock").touch()
    return folder
