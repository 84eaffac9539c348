# SPDX-License-Identifier: Apache-2.0
"""A server that takes reports and counts them: ``python bench/stub/sink.py PORT_FILE COUNT_FILE``. It understands what it takes, and keeps nothing of it."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from muster.wire import lanes
from muster.wire.report import SCHEMA, unpack


class Handler(BaseHTTPRequestHandler):
    """One agent."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    counts: ClassVar[dict[str, Any]] = {"reports": 0, "bytes": 0, "connections": 0, "rounds": {}, "changed": {}, "cards": {}, "agent": None}
    known: ClassVar[dict[str, bytes]] = {}
    file = Path()

    def setup(self) -> None:
        """A new connection."""
        super().setup()
        self.counts["connections"] += 1

    def do_GET(self) -> None:
        """What runs here."""
        self._say(json.dumps({"report_schema": SCHEMA}).encode())

    def do_POST(self) -> None:
        """A report."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        report = unpack(body)
        self.counts["reports"] += 1
        self.counts["bytes"] += len(body)
        for each in report.heard:
            if self.known.get(each.source) != each.facts:
                self.counts["changed"][each.source] = self.counts["changed"].get(each.source, 0) + 1
                self.counts["cards"][each.source] = sum(row.level == "card" for row in lanes.facts(each).observations)
            self.known[each.source] = each.facts
            self.counts["rounds"][each.source] = self.counts["rounds"].get(each.source, 0) + 1
        if report.agent is not None:
            self.counts["agent"] = {"memory": report.agent.memory, "cpu": report.agent.cpu, "costs": report.agent.costs}
        self.file.write_text(json.dumps(self.counts))
        self._say(b'{"answer": "applied"}')

    def _say(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.file = Path(sys.argv[2])
    Path(sys.argv[1]).write_text(str(server.server_port))
    server.serve_forever()
