# SPDX-License-Identifier: Apache-2.0
"""What a site says: the requests of all its nodes as one block of bytes, in which the moving parts have fixed places.

The same cards and the same numbers in two forms: reports of ours, and text of Prometheus as a time-series store imports it.
"""

from __future__ import annotations

import argparse
import struct
import time

import msgspec
import numpy as np

from muster.wire.lanes import part
from muster.wire.report import EventDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc, pack

GAUGES = {
    "clock.core": (1.2e9, 4e8, 1e6),
    "clock.memory": (1.6e9, 1e8, 1e6),
    "energy.total": (5e7, 3e7, 1000.0),
    "fan.speed": (0.5, 0.3, 0.01),
    "memory.free": (4e10, 2e10, 2.0**20),
    "memory.used": (4e10, 2e10, 2.0**20),
    "pci.bandwidth.receive": (5e9, 4e9, 1e5),
    "pci.bandwidth.transmit": (5e9, 4e9, 1e5),
    "pci.replays": (100.0, 50.0, 1.0),
    "power.draw": (350.0, 200.0, 0.1),
    "power.limit": (650.0, 50.0, 0.1),
    "temperature.core": (60.0, 20.0, 0.1),
    "temperature.hotspot": (70.0, 20.0, 0.1),
    "temperature.memory": (65.0, 20.0, 0.1),
    "utilization.core": (0.5, 0.45, 0.001),
    "utilization.memory_bandwidth": (0.5, 0.45, 0.001),
}
"""Sixteen numbers of a card that move: middle, how far they stray, and step."""
COUNTERS = frozenset({"energy.total", "pci.replays"})
FACTS: dict[str, object] = {
    "product.name": "Model X 80G",
    "product.part_number": "900-0001-0000-000",
    "product.architecture": "arch-nine",
    "product.brand": "center",
    "pci.vendor_id": "abcd",
    "pci.device_id": "2330",
    "pci.subsystem_vendor_id": "abcd",
    "pci.subsystem_device_id": "16c1",
    "pci.link.generation.max": 5,
    "pci.link.width.max": 16,
    "numa.node": 1,
    "firmware.version": "96.00.74.00.01",
    "driver.version": "550.54.15",
    "driver.name": "accel",
    "runtime.name": "compute",
    "runtime.version.max": "12.4",
    "memory.total": 85_520_809_984,
    "memory.kind": "hbm3",
    "power.limit.default": 700,
    "power.limit.min": 200,
    "power.limit.max": 700,
    "temperature.limit.slowdown": 87,
    "temperature.limit.shutdown": 92,
    "clock.core.max": 1_980_000_000,
}
"""Twenty-four facts of a card, the same in each round."""
MARK = b"@@@@@"
"""Where the number of the node goes; five digits."""
SEQUENCE = 0x5A5A5A5A
SENT, MONO, SEEN, SEEN_MONO = 1.23456789e9, 1.2345e5, 1.23456790e9, 1.2346e5
GROWTH = 10
"""Steps a second by which counters of a load that is started later stand higher: none of them falls."""
EVENTS = 500
"""One report of so many tells an event of its first card."""
DIGITS = 16
"""Characters of a number in text."""


class Fleet:
    """All requests: one row of ``block`` for each node."""

    def __init__(self, told: argparse.Namespace, template: bytes, numbers: int) -> None:
        self.nodes = told.nodes
        self.length = len(template)
        self._dice = np.random.default_rng(told.seed)
        self._numbers = numbers
        names = [b"%05d" % node for node in range(told.nodes)]
        self.block = np.frombuffer(b"".join(template.replace(MARK, name) for name in names), np.uint8).reshape(told.nodes, self.length).copy()
        middle, stray, self._step = (np.tile(np.array(column), told.cards) for column in zip(*GAUGES.values(), strict=True))
        self._middle, self._stray = middle, stray
        self._grows = np.tile(np.array([key in COUNTERS for key in GAUGES]), told.cards)
        self.values = np.round((middle + stray * self._dice.uniform(-1, 1, (told.nodes, numbers))) / self._step) * self._step
        self.values += self._grows * self._step * GROWTH * (int(time.time()) % 1_000_000)

    def _next(self, start: int, end: int) -> np.ndarray:
        """The next numbers of some nodes: gauges wander about their middle, counters grow, and each moves by at least one step."""
        values, step, middle, stray = self.values[start:end], self._step, self._middle, self._stray
        drift = (middle - values) * 0.05 + stray * 0.1 * self._dice.standard_normal(values.shape)
        moved = np.round(np.clip(values + drift, middle - stray, middle + stray) / step) * step
        moved = np.where(moved == values, values + np.where(values < middle, step, -step), moved)
        self.values[start:end] = np.where(self._grows, values + step * self._dice.integers(1, 5, values.shape), moved)
        return self.values[start:end]

    def move(self, start: int, end: int) -> None:
        """Patches the moving parts of these nodes for their next request."""
        raise NotImplementedError

    def request(self, node: int) -> bytes:
        """The request of one node, as it stands."""
        return self.block[node].tobytes()


class Reports(Fleet):
    """Reports of ours, schema 2."""

    def __init__(self, told: argparse.Namespace) -> None:
        head, body = _report(told)
        super().__init__(told, head + body, told.cards * len(GAUGES))
        row = self.block[0].tobytes()
        self._at_sequence = _only(row, b"\xce" + struct.pack(">I", SEQUENCE)) + 1
        self._at_times = [_only(row, b"\xcb" + struct.pack(">d", each)) + 1 for each in (SENT, MONO, SEEN, SEEN_MONO)]
        self._at_numbers = _only(row, np.arange(1.0, self._numbers + 1).tobytes())
        self._sequence = np.full(told.nodes, 100_000, np.uint32)
        self._moved = np.zeros(told.nodes)
        if told.tokens:
            self._name(told)

    def _name(self, told: argparse.Namespace) -> None:
        """Puts real reporters, tokens and names where the made-up ones are; all must have one length."""
        rows = [line.split("\t") for line in told.tokens.read_text(encoding="utf-8").splitlines()][: told.nodes]
        if len(rows) < told.nodes:
            raise SystemExit(f"{told.tokens} names {len(rows)} reporters, {told.nodes} are needed")
        row = self.block[0].tobytes()
        for column, made_up in enumerate((b"reporter-", b"Bearer ")):
            at = _only(row, made_up + b"0") if column == 0 else row.index(made_up) + len(made_up)
            width = len(rows[0][column])
            self.block[:, at : at + width] = np.frombuffer("".join(each[column] for each in rows).encode(), np.uint8).reshape(told.nodes, width)

    def move(self, start: int, end: int) -> None:
        """New numbers, the next sequence, the time of now."""
        numbers = np.ascontiguousarray(self._next(start, end))
        rows = self.block[start:end]
        rows[:, self._at_numbers : self._at_numbers + numbers.shape[1] * 8] = numbers.view(np.uint8)
        self._sequence[start:end] += 1
        rows[:, self._at_sequence : self._at_sequence + 4] = self._sequence[start:end].astype(">u4").view(np.uint8).reshape(end - start, 4)
        now, mono = time.time(), time.monotonic()
        self._moved[start:end] = now
        for at, moment in zip(self._at_times, (now, mono, now - 0.2, mono - 0.2), strict=True):
            rows[:, at : at + 8] = np.frombuffer(struct.pack(">d", moment), np.uint8)

    def request(self, node: int) -> bytes:
        """The request of one node; now and then something has happened, which makes it longer."""
        row, sequence = self.block[node].tobytes(), int(self._sequence[node])
        if (node + sequence) % EVENTS:
            return row
        head, _, body = row.partition(b"\r\n\r\n")
        whose, now = [("vendor_uuid", f"GPU-{0:08x}-0000-4000-8000-0000000{node:05d}")], float(self._moved[node])
        told = EventDoc(id=f"{node:05d}-{now:.3f}", source="bench.log", adapter="bench", text="link 3 was trained anew", ids=whose, first_at=now, last_at=now)
        more = bytes([body[0] + 1]) + body[1:] + msgspec.msgpack.encode("events") + msgspec.msgpack.encode([told])
        return head.replace(b"Content-Length: %d" % len(body), b"Content-Length: %d" % len(more)) + b"\r\n\r\n" + more


def _only(row: bytes, what: bytes) -> int:
    at = row.index(what)
    if row.find(what, at + 1) >= 0:
        raise ValueError(f"{what!r} is there twice")
    return at


def _report(told: argparse.Namespace) -> tuple[bytes, bytes]:
    """Head and body of a node's report, with marks where its number goes."""
    mark = MARK.decode()
    listing = ListingDoc(
        source="bench.status",
        channel="in_band",
        witness="driver",
        cadence=told.period,
        outcome="devices",
        complete=True,
        observed_at=SEEN,
        observed_mono=SEEN_MONO,
        boot_id=f"00000000-0000-4000-8000-0000000{mark}",
        adapter="bench",
        counts={"card": told.cards},
        observations=[_card(mark, number) for number in range(told.cards)],
    )
    heard = part(listing)
    heard.numbers = np.arange(1.0, told.cards * len(GAUGES) + 1).tobytes()
    reporter = "reporter-" + mark
    token = "token-" + mark
    if told.tokens:
        first = told.tokens.read_text(encoding="utf-8").split("\n", 1)[0].split("\t")
        reporter, token = "reporter-0" + "-" * (len(first[0]) - 10), "-" * len(first[1])
    report = ReportDoc(
        reporter=reporter,
        incarnation=f"bench-{time.time_ns():x}",
        sequence=SEQUENCE,
        node=NodeDoc(name=f"node-{mark}", machine_id=f"{mark}".rjust(32, "0"), system=f"00000000-0000-4000-9000-0000000{mark}"),
        sent_at=SENT,
        sent_mono=MONO,
        boot_id=listing.boot_id,
        agent_version="bench",
        adapters={"bench": "1"},
        heard=[heard],
    )
    body = pack(report)
    head = (
        "POST /v1/reports HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: identity\r\n"
        f"Content-Type: application/msgpack\r\nAccept: application/msgpack, application/json\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode(), body


def _card(mark: str, number: int) -> ObservationDoc:
    readings = {key: {"v": value} for key, value in FACTS.items()} | {key: {"v": 1.5} for key in GAUGES}
    return ObservationDoc(
        level="device",
        ids=[
            ("vendor_uuid", f"GPU-{number:08x}-0000-4000-8000-0000000{mark}"),
            ("pci_address", f"0000:{0x10 + 8 * number:02x}:00.0"),
            ("serial", f"1320{number}000{mark}"),
            ("index", str(number)),
        ],
        ordinal=number,
        readings=readings,
    )


class Text(Fleet):
    """The same values as text of Prometheus, forty lines a card: each has the same name and labels in each round."""

    def __init__(self, told: argparse.Namespace) -> None:
        body = b"".join(_lines(number) for number in range(told.cards))
        head = f"POST /api/v1/import/prometheus HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
        super().__init__(told, head.encode() + body, told.cards * len(GAUGES))
        row = self.block[0].tobytes()
        places, at = [], row.find(b"#" * DIGITS)
        while at >= 0:
            places.append(at)
            at = row.find(b"#" * DIGITS, at + DIGITS)
        self._places = (np.array(places)[:, None] + np.arange(DIGITS)).ravel()

    def move(self, start: int, end: int) -> None:
        """New numbers, as digits."""
        numbers = self._next(start, end)
        digits = np.empty((*numbers.shape, DIGITS), np.uint8)
        rest = np.round(numbers * 1000).astype(np.int64)
        for place in range(DIGITS - 1, -1, -1):
            if place == DIGITS - 4:
                digits[..., place] = ord(".")
            else:
                rest, digit = np.divmod(rest, 10)
                digits[..., place] = digit + ord("0")
        self.block[start:end][:, self._places] = digits.reshape(end - start, -1)


def _lines(number: int) -> bytes:
    mark = MARK.decode()
    labels = f'{{node="node-{mark}",uuid="GPU-{number:08x}-0000-4000-8000-0000000{mark}",index="{number}"}}'
    facts = [f"bench_{key.replace('.', '_')}{labels} {place + 1}\n" for place, key in enumerate(FACTS)]
    moving = [f"bench_{key.replace('.', '_')}{labels} {'#' * DIGITS}\n" for key in GAUGES]
    return "".join(facts + moving).encode()


def fleet(told: argparse.Namespace) -> Fleet:
    """The fleet that was asked for."""
    return Reports(told) if told.kind == "reports" else Text(told)
