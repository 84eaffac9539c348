# SPDX-License-Identifier: Apache-2.0
"""What the tests of this adapter share: asking it about a text, and reading its answer."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from muster.adapters.nvidia import interpret, recognise
from muster.domain.model.attributes import Level
from muster.domain.model.observation import Interpretation, Observation
from muster.domain.model.reading import Absent, Known
from muster.domain.model.source import Capture, SourceId
from muster.spi.adapter import HEAD, Model, Models

FOLDER = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Answer:
    """An interpretation with the questions that tests ask of it."""

    told: Interpretation

    @property
    def cards(self) -> list[Observation]:
        """Observations of cards in order."""
        return [one for one in self.told.observations if one.subject.level is Level.CARD]

    @property
    def partitions(self) -> list[Observation]:
        """Observations of partitions in order."""
        return [one for one in self.told.observations if one.subject.level is Level.PARTITION]

    @property
    def node(self) -> dict[str, Any]:
        """The node's readings."""
        return next((self.plain(one) for one in self.told.observations if one.subject.level is Level.NODE), {})

    def values(self, key: str) -> list[Any]:
        """The reading of every card: the value, or "!" and the reason."""
        return [self.plain(one).get(key) for one in self.cards]

    @property
    def events(self) -> list[tuple[str, str | None, str | None]]:
        """Kind, code and address of every event."""
        return [(event.kind, event.code, {n.kind.value: n.canonical for n in event.subject.names}.get("pci_address")) for event in self.told.events]

    @staticmethod
    def plain(one: Observation) -> dict[str, Any]:
        """Readings as values and "!reason"."""
        return {key: f"!{r.why}" if isinstance(r, Absent) else r.value for key, r in one.readings.items() if isinstance(r, Absent | Known)}

    @staticmethod
    def names(one: Observation) -> dict[str, str]:
        """Names by kind, in their canonical form."""
        return {name.kind.value: name.canonical for name in one.subject.names}


def _models() -> Models:
    rows = tomllib.loads((FOLDER / "models.toml").read_text(encoding="utf-8"))["model"]
    return {r["key"]: Model(key=r["key"], name=r["name"], facts=r["facts"], source=r["source"], confidence=r["confidence"]) for r in rows}


Ask = Callable[..., Answer]


@pytest.fixture(scope="session")
def ask() -> Ask:
    """Asks the adapter about a text; the format is recognised where it is not given."""
    models = _models()

    def asked(text: str | bytes, form: str = "", locator: Sequence[str] = (), **more: Any) -> Answer:
        payload = text.encode() if isinstance(text, str) else text
        capture = Capture(source=SourceId("test"), locator=tuple(locator), format=form or recognise(payload[:HEAD]) or "", payload=payload, **more)
        return Answer(interpret([capture], models))

    return asked
