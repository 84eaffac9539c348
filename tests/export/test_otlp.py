# SPDX-License-Identifier: Apache-2.0
"""OTLP as a real receiver decodes it: the hardware conventions, and unknown that is neither good nor bad."""

from __future__ import annotations

import gzip
import importlib
from typing import Any

import pytest
from hypothesis import given
from tests.export.fleets import ABSENT, T0, card, fleet, fleets, told
from tests.export.receiver import receiver

from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.export import conventions, otlp
from muster.export.conventions import MAPPING, SCHEMA_URL, Instrument
from muster.export.fleet import Card, Fleet, Node, Part
from muster.interfaces.cli.main import run
from muster.wiring.server import Server

service: Any = importlib.import_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
NANOS = 1_000_000_000


def decoded(body: bytes) -> Any:
    return service.ExportMetricsServiceRequest.FromString(gzip.decompress(body))


def sent(this: Fleet) -> Any:
    return decoded(otlp.sealed(list(otlp.resources(this, "1.2.3"))))


def words(attributes: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in attributes}


def metrics(request: Any) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Points of each metric: attributes and value."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                data = metric.gauge if metric.WhichOneof("data") == "gauge" else metric.sum
                points = [(words(each.attributes), getattr(each, each.WhichOneof("value"))) for each in data.data_points]
                found.setdefault(metric.name, []).extend(points)
    return found


def states(request: Any, id_: str) -> dict[str, float]:
    return {about["hw.state"]: value for about, value in metrics(request)["hw.status"] if about["hw.id"] == id_}


def unknown(request: Any, id_: str) -> list[float]:
    return [value for about, value in metrics(request)["muster.card.unknown"] if about["hw.id"] == id_]


NOTHING = {"ok": 0, "degraded": 0, "failed": 0, "predicted_failure": 0}


@pytest.mark.parametrize(("word", "state"), [("ok", "ok"), ("warning", "degraded"), ("critical", "failed")])
def test_a_known_state_holds_alone(word: str, state: str) -> None:
    request = sent(fleet(card(1, {"health.reported": told(word)})))

    assert states(request, card(1).id) == {**NOTHING, state: 1}
    assert unknown(request, card(1).id) == [0]


@pytest.mark.parametrize(
    "one",
    [
        card(1),
        card(1, {"health.reported": ABSENT}),
        card(1, {"health.reported": told("unknown")}),
        card(1, {"health.reported": told("ok", stale=True)}),
        card(1, {"health.reported": told("ok")}, presence="missing"),
        card(1, {"health.reported": told("ok")}, presence="unknown"),
        card(1, {"health.reported": told("a word of a later version")}),
    ],
)
def test_of_an_unknown_card_no_state_holds(one: Card) -> None:
    request = sent(fleet(one))

    assert states(request, one.id) == NOTHING
    assert unknown(request, one.id) == [1]


def test_devices_speak_for_a_card_that_says_nothing() -> None:
    device = Part(id="c-1.d0", ordinal=0, readings={"health.reported": told("ok"), "temperature.core": told(40)})
    request = sent(fleet(card(1, devices=[device])))

    assert states(request, "c-1.d0") == {**NOTHING, "ok": 1}
    assert states(request, card(1).id) == {}
    (about, value) = metrics(request)["hw.temperature"][0]
    assert (about["hw.id"], about["hw.parent"], about["hw.sensor_location"], value) == ("c-1.d0/core", "c-1.d0", "core", 40)


def test_each_attribute_goes_where_the_table_says() -> None:
    request = sent(fleet(card(1, {row.key: told(number + 0.5) for number, row in enumerate(MAPPING)})))
    found = metrics(request)

    for number, row in enumerate(MAPPING):
        mine = [about for about, value in found[row.metric.name] if value == number + 0.5]
        assert len(mine) == 1
        assert row.attributes.items() <= mine[0].items()
        assert ATTRIBUTES[row.key].numeric
        assert (row.metric.instrument is Instrument.COUNTER) == (ATTRIBUTES[row.key].kind is Kind.COUNTER)
    assert all(about["hw.type"] == "gpu" for name, told_ in found.items() if not name.startswith("hw.temperature") for about, _ in told_)


def test_sums_are_sums_and_gauges_are_gauges() -> None:
    request = sent(fleet(card(1, {row.key: told(1) for row in MAPPING})))
    (resource,) = request.resource_metrics
    kinds = {
        metric.name: (metric.WhichOneof("data"), metric.sum.is_monotonic, metric.sum.aggregation_temporality, metric.unit)
        for metric in resource.scope_metrics[0].metrics
    }

    assert kinds["hw.energy"] == ("sum", True, 2, "J")
    assert kinds["hw.gpu.memory.usage"] == ("sum", False, 2, "By")
    assert kinds["hw.power"] == ("gauge", False, 0, "W")
    assert kinds["hw.status"] == ("sum", False, 2, "1")
    assert kinds["hw.errors"][3] == "{error}"


def test_the_host_is_a_resource_and_the_version_is_pinned() -> None:
    request = sent(fleet(card(1), card(2, node=None, node_id=None), nodes=[Node(id="n-1", name="n1", machine_id="5f3c")]))
    by_host, without = request.resource_metrics

    assert words(by_host.resource.attributes) == {"service.name": "muster", "host.name": "n1", "host.id": "5f3c"}
    assert words(without.resource.attributes) == {"service.name": "muster"}
    assert by_host.schema_url == by_host.scope_metrics[0].schema_url == SCHEMA_URL == "https://opentelemetry.io/schemas/1.44.0"
    assert (by_host.scope_metrics[0].scope.name, by_host.scope_metrics[0].scope.version) == (conventions.SCOPE, "1.2.3")
    assert not [about for about, _ in metrics(request)["hw.status"] if "host.name" in about]


def test_a_point_has_the_time_of_its_reading() -> None:
    request = sent(fleet(card(1, {"power.draw": told(1)}), at=T0 + 50))
    scope = request.resource_metrics[0].scope_metrics[0]
    times = {metric.name: {each.time_unix_nano for each in (metric.gauge.data_points or metric.sum.data_points)} for metric in scope.metrics}

    assert times["hw.power"] == {int(T0) * NANOS}
    assert times["hw.status"] == {int(T0 + 50) * NANOS}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, "7", None, True and [1]])
def test_what_is_no_number_is_not_told(value: object) -> None:
    assert "hw.power" not in metrics(sent(fleet(card(1, {"power.draw": told(value)}))))


@pytest.mark.parametrize("value", [0, -5, 2**62, -(2**63), 2**63, 2**70, 1.5, -0.25])
def test_numbers_arrive_as_they_are(value: float) -> None:
    ((_, got),) = metrics(sent(fleet(card(1, {"energy.total": told(value)}))))["hw.energy"]

    assert got == value


@given(fleets())
def test_any_fleet_is_a_request_that_reads_back(this: Fleet) -> None:
    request = sent(this)
    status = metrics(request).get("hw.status", [])

    ids = {card_.id for card_ in this.cards} | {device.id for card_ in this.cards for device in card_.devices}
    assert {about["hw.id"] for about, _ in status} <= ids
    for id_ in {about["hw.id"] for about, _ in status}:
        assert sum(states(request, id_).values()) + unknown(request, id_)[0] == 1


def test_a_receiver_that_took_less_says_so() -> None:
    partial = service.ExportMetricsServiceResponse(partial_success={"rejected_data_points": 300, "error_message": "too old"})

    assert otlp.rejected(partial.SerializeToString()) == 300
    assert otlp.rejected(b"") == 0
    assert otlp.rejected(b"<html>") == 0


def test_the_command_pushes_to_a_receiver(server: Server) -> None:
    with receiver() as there:
        there.answers.append((503, {"Retry-After": "0"}, b"not yet"))
        code = run(["export", "otlp", "--endpoint", there.url, "--server", server.url, "--once"])

    assert code == 0
    assert there.paths == ["/v1/metrics", "/v1/metrics"]
    assert (there.headers[1]["content-type"], there.headers[1]["content-encoding"]) == ("application/x-protobuf", "gzip")
    request = decoded(there.bodies[1])
    assert there.bodies[0] == there.bodies[1]
    names = {about["hw.name"].rpartition(" · ")[2]: about for about, _ in metrics(request)["hw.status"]}
    assert names["Acme X1"]["hw.driver_version"] == "1.2"
    assert words(request.resource_metrics[0].resource.attributes)["host.name"] == "alpha"
    assert states(request, names['Acme "X2"']["hw.id"]) == {**NOTHING, "failed": 1}
    assert states(request, names["Acme Duo"]["hw.id"]) == NOTHING
    assert sorted(value for _, value in metrics(request)["hw.power"]) == [10, 11, 61.25]


def test_the_command_fails_when_the_receiver_refuses(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    with receiver() as there:
        there.usual = (403, {}, b"no\x1b[2J")
        code = run(["export", "otlp", "--endpoint", f"{there.url}/custom/path", "--server", server.url, "--once"])

    assert code == 1
    assert there.paths == ["/custom/path"]
    assert "refused: HTTP 403 no[2J" in capsys.readouterr().err
