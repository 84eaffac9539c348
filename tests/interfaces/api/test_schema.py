# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document: valid, complete, checked in, and kept by every answer (schemathesis, in process)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis import GenerationMode
from schemathesis.python.asgi import HOST
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.interfaces.api.fleet import app, fleet

from muster.interfaces.api.spec import text

CHECKED_IN = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"


def test_checked_in() -> None:
    regenerate = "run: make docs"

    assert CHECKED_IN.read_text(encoding="utf-8") == text(), regenerate


def test_valid() -> None:
    assert list(OpenAPIV31SpecValidator(json.loads(text())).iter_errors()) == []


def test_every_parameter_is_described_and_every_trouble_is_a_problem() -> None:
    document = json.loads(text())
    operations = [(path, method, each) for path, item in document["paths"].items() for method, each in item.items()]

    assert len(operations) > 25
    for path, method, each in operations:
        assert each["summary"], (path, method)
        assert each["description"], (path, method)
        for status, answer in each["responses"].items():
            media = {"/api/v1/changes/stream": "text/event-stream", "/metrics": "text/plain"}.get(path, "application/json")
            assert (media if status == "200" else "application/problem+json") in answer["content"], (path, method, status)
    undescribed = [(path, p["name"]) for path, _, each in operations for p in each.get("parameters", ()) if not p.get("description")]
    assert undescribed == [(path, "limit") for path, name in undescribed if name == "limit"]


@pytest.fixture(scope="module")
def running() -> Any:
    with fleet() as desk:
        yield schemathesis.openapi.from_asgi("/openapi.json", app(desk, HOST))


PATHS = json.loads(text())["paths"]
ENDLESS = "/api/v1/changes/stream"
"""It ends only when it is asked to: its own tests ask it."""
OPERATIONS = [(path, method) for path, item in PATHS.items() for method in item if path != ENDLESS]
BOUNDED = settings(
    max_examples=40, deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck)
)


def fallible(path: str, method: str) -> bool:
    """True when something besides the path is given, so that it can be wrong."""
    operation = PATHS[path][method]
    return "requestBody" in operation or any(each["in"] == "query" for each in operation.get("parameters", ()))


@pytest.mark.slow
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_answers_keep_to_the_document(running: Any, path: str, method: str) -> None:
    """Filters, times and names have a grammar that no schema says, so an answer of 400 to them is right."""

    @given(running[path][method].as_strategy())
    @BOUNDED
    def asked(case: Any) -> None:
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    asked()


@pytest.mark.slow
@pytest.mark.parametrize(("path", "method"), [(path, method) for path, method in OPERATIONS if fallible(path, method)])
def test_what_does_not_fit_is_refused(running: Any, path: str, method: str) -> None:
    @given(running[path][method].as_strategy(generation_mode=GenerationMode.NEGATIVE))
    @BOUNDED
    def asked(case: Any) -> None:
        case.call_and_validate()

    asked()
