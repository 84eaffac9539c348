# SPDX-License-Identifier: Apache-2.0
"""Figures of the server's own work, as Prometheus reads them: requests by route and code, their time, what is open, and what the writer says of itself."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BARE: Callable[[], None] = disable_created_metrics
"""No second series for each, with the time when the first came to be: nobody asks for that."""
_UNFIT = re.compile(r"[^a-zA-Z0-9_]")


class _Meters(Collector):
    """What the writer says of itself: ``ingest_reports_total`` becomes ``muster_ingest_reports_total``; a name that ends so is a counter."""

    def __init__(self, meters: Callable[[], Mapping[str, float]]) -> None:
        self._meters = meters

    def collect(self) -> Iterator[Metric]:
        """The figures as they are now."""
        for name, value in sorted(self._meters().items()):
            full = "muster_" + _UNFIT.sub("_", name)
            words = name.replace("_", " ")
            if full.endswith("_total"):
                yield CounterMetricFamily(full.removesuffix("_total"), f"Server: {words.removesuffix(' total')}, since it began.", value=value)
            else:
                yield GaugeMetricFamily(full, f"Server: {words}.", value=value)


class Figures:
    """The figures of one application."""

    def __init__(self, meters: Callable[[], Mapping[str, float]]) -> None:
        _BARE()
        self.registry = CollectorRegistry()
        self.requests = Counter("muster_http_requests", "Requests answered, by route and status.", ["method", "route", "code"], registry=self.registry)
        self.seconds = Histogram(
            "muster_http_request_seconds", "How long requests took to the last byte, by route.", ["route"], registry=self.registry, buckets=_BUCKETS
        )
        self._gauges: dict[str, Gauge] = {}
        self.registry.register(_Meters(meters))

    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Shows ``value`` under ``name`` from now on."""
        gauge = self._gauges[name] = Gauge(name, about, registry=self.registry)
        gauge.set_function(value)

    def text(self) -> bytes:
        """All figures in Prometheus' text form."""
        return generate_latest(self.registry)

    def told(self, method: str, route: str, code: int, seconds: float) -> None:
        """One request was answered."""
        self.requests.labels(method, route, str(code)).inc()
        self.seconds.labels(route).observe(seconds)


class Metered:
    """Counts requests and their time. A path that is no route counts as ``none``, so that names from outside make no series."""

    def __init__(self, app: ASGIApp, figures: Callable[[Scope], Figures | None]) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on, and counts."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        code = 500

        async def watching(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watching)
        finally:
            figures = self._figures(scope)
            if figures is not None:
                route = getattr(scope.get("route"), "path", "none")
                figures.told(_method(scope["method"]), route, code, time.perf_counter() - began)


def _method(method: str) -> str:
    return method if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS") else "other"
