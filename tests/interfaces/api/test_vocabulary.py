# SPDX-License-Identifier: Apache-2.0
"""A filter that asks for a word that there is not: refused with what is near, where all words of a field are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.interfaces.api.fleet import get

from muster.domain.model.source import Outcome
from muster.interfaces.api.vocabulary import STATES, WORDS
from muster.wire.shown import source_state


@dataclass
class Record:
    """What of a source makes its state."""

    removed: bool = False
    stuck: bool = False
    standing_by: bool = False
    silent: bool = False
    outcome: Outcome = Outcome.DEVICES


@pytest.mark.parametrize(
    ("path", "text", "near"),
    [
        ("/api/v1/cards", 'presence == "presnt"', "presence is never 'presnt'; near it: present"),
        ("/api/v1/cards", 'has(model) && (presence != "missng" || role == "display")', "presence is never 'missng'; near it: missing"),
        ("/api/v1/cards", '!(presence in ["present", "gone"])', "presence is never 'gone'"),
        ("/api/v1/cards", '"card_mising" in findings', "findings is never 'card_mising'; near it: card_missing"),
        ("/api/v1/cards", 'rung == "node+slt"', "near it: node+slot"),
        ("/api/v1/devices", 'role == "acelerator"', "near it: accelerator"),
        ("/api/v1/partitions", 'presence == "Present"', "near it: present"),
        ("/api/v1/sources", 'state == "silnt"', "near it: silent"),
        ("/api/v1/sources", 'outcome == "timedout"', "near it: timed_out"),
        ("/api/v1/sources", 'channel == "inband"', "near it: in_band"),
        ("/api/v1/findings", 'kind == "source silent"', "near it: source_silent"),
        ("/api/v1/changes", 'kind == "moovd"', "near it: moved"),
    ],
)
def test_a_word_that_a_field_never_has(api: TestClient, path: str, text: str, near: str) -> None:
    told = get(api, path, 400, filter=text)

    assert near in told["detail"]
    assert "its words are " in told["hint"]


def test_words_that_are_not_all_known_are_left_alone(api: TestClient) -> None:
    assert get(api, "/api/v1/events", filter='kind == "whatever"')["items"] == []
    assert get(api, "/api/v1/nodes", filter='name == "nobody"')["items"] == []
    assert get(api, "/api/v1/cards", filter='presence.startsWith("mis")')["items"] == []


def test_every_word_is_taken(api: TestClient) -> None:
    for name, fields in WORDS.items():
        for path, words in fields.items():
            for each in words:
                get(api, f"/api/v1/{name}", filter=f'"{each}" in {path}' if path == "findings" else f'{path} == "{each}"')


def test_the_states_of_a_source_are_those_that_are_told() -> None:
    def state(**flags: Any) -> str:
        record: Any = Record(**flags)
        return source_state(record)

    told = {state(), state(outcome=Outcome.TIMED_OUT), *(state(**{flag: True}) for flag in ("removed", "stuck", "standing_by", "silent"))}
    assert told == set(STATES)
