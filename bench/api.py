# SPDX-License-Identifier: Apache-2.0
"""The API at 100,000 cards: 50 requests a second in open loop (page, filters on facts and gauges, sort, detail), the summary, and an export of everything.

``python bench/api.py [--cards 100000] [--seconds 60] [--rate 50]``. The store is filled through its writer; the server is uvicorn in a process of its own,
and nobody writes meanwhile: what users wait while a site reports is `bench/site.py`'s.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import peers

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))
PER_NODE = 8
MODELS, TOTALS = ("Acme X1 80GB", "Acme X2 141GB", "Beta F 48GB", "Beta G 24GB"), (80, 141, 48, 24)
P99_MS, SUMMARY_MS, EXPORT_MIB = 20.0, 20.0, 64.0
GAUGES = (
    "memory.used", "memory.free", "power.draw", "power.limit", "temperature.core", "temperature.memory", "utilization.core", "utilization.memory_bandwidth",
    "clock.core", "clock.memory", "fan.speed", "pci.link.generation", "pci.link.width", "errors.memory.corrected", "energy.total",
)  # fmt: skip
ORDERS = ("-temperature.core", "power.draw", "-memory.used,node", "model,-utilization.core")
SLIM = "name,presence,memory.total,memory.used,temperature.core,power.draw,driver.version"


def fill(path: Path, cards: int, now: float) -> None:
    """A store with so many cards, through its writer."""
    from muster.spi.store import Batch
    from muster.store import open_store

    store = open_store(path)
    dice = random.Random(7)
    nodes = cards // PER_NODE
    for first in range(0, nodes, 100):
        made = [_node(number, now, dice) for number in range(first, min(first + 100, nodes))]
        store.writer.commit(
            Batch(
                at=now,
                cards=[card for each in made for card in each["cards"]],
                nodes=[each["node"] for each in made],
                sources=[source for each in made for source in each["sources"]],
                layouts=[each["layout"] for each in made],
                heard=[each["heard"] for each in made],
                changes=[change for each in made for change in each["changes"]],
                findings=[finding for each in made for finding in each["findings"]],
            )
        )
    store.close()


def _node(number: int, now: float, dice: random.Random) -> dict[str, Any]:
    import struct

    from muster.domain.model import roll as r
    from muster.domain.model.source import Channel, Outcome, WitnessClass
    from muster.spi.store import Heard, Layout

    name, id_ = f"node-{number:05}", f"n-{number:08x}"
    cards: list[Any] = []
    numbers: list[float] = []
    columns: list[tuple[str, str, str, int]] = []
    for slot in range(PER_NODE):
        cards.append(_card(number, slot, now, dice))
        columns += [(cards[-1].id, cards[-1].id, key, len(numbers) + at) for at, key in enumerate(GAUGES)]
        numbers += _numbers(TOTALS[number % 4] * 2**30, dice)
    place = {"node": id_, "source": "acme.smi", "reporter": f"agent@{name}"}
    slot_number = number + 1
    return {
        "cards": cards,
        "node": r.NodeRecord(id=id_, name=name, machine_id=f"mid-{number}", system=f"sys-{number}", created_at=now, last_at=now),
        "sources": [
            _source(id_, name, source, witness, now, Channel.IN_BAND, Outcome.DEVICES)
            for source, witness in (("acme.smi", WitnessClass.DRIVER), ("pci.sysfs", WitnessClass.PCI))
        ],
        "layout": Layout(
            slot=slot_number, since=now, columns=columns, width=len(numbers), promise=3e8, node_names=(name, f"mid-{number}", f"sys-{number}"), **place
        ),
        "heard": Heard(slot=slot_number, at=now, received_at=now, numbers=struct.pack(f"<{len(numbers)}d", *numbers)),
        "changes": [
            r.Change(id=f"h-{each.id}", subject=each.id, kind=r.Happening.INSTALLED, at=now, learnt_at=now, detail={"node": id_, "slot": each.slot})
            for each in cards
        ],
        "findings": [_missing(each, id_, now) for each in cards if each.presence is r.Presence.MISSING],
    }


def _card(number: int, slot: int, now: float, dice: random.Random) -> Any:
    from muster.domain.model import roll as r
    from muster.domain.model.observation import Role
    from muster.domain.model.source import Channel, WitnessClass

    id_, address = f"n-{number:08x}", f"0000:{16 + slot * 8:02x}:00.0"
    model = MODELS[number % 4]
    facts = _facts(number, slot, model, TOTALS[number % 4] * 2**30, number // 16)
    told = {"product.name": f"{model} [rev a1]", "pci.vendor_id": facts["pci.vendor_id"], "driver.name": "acme"}
    words, seen = ({key: r.Word(value=value, at=now) for key, value in each.items()} for each in (facts, told))
    driver = r.Voice(node=id_, source="acme.smi", channel=Channel.IN_BAND, witness=WitnessClass.DRIVER, promise=3e8, words=words)
    pci = r.Voice(node=id_, source="pci.sysfs", channel=Channel.IN_BAND, witness=WitnessClass.PCI, promise=3e8, words=seen)
    ids = {"serial": (f"16{number:06}{slot}",), "vendor_uuid": (f"GPU-{number:08x}-{slot:04x}-4000-8000-{number:012x}",), "pci_address": (address,)}
    claims = tuple(
        r.Claim(node=id_, source=source, channel=Channel.IN_BAND, ids=ids, addresses=(address,), index=str(slot), first_at=now, at=now, promise=3e8)
        for source in ("acme.smi", "pci.sysfs")
    )
    return r.CardRecord(
        id=f"c-{number:08x}{slot}",
        role=Role.ACCELERATOR,
        created_at=now,
        rung=r.Rung.UUID,
        presence=r.Presence.MISSING if dice.random() < 0.01 else r.Presence.PRESENT,
        presence_at=now,
        node=id_,
        node_name=f"node-{number:05}",
        system=f"sys-{number}",
        slot=f"Slot {slot}",
        address=address,
        index=str(slot),
        ids=ids,
        claims=claims,
        voices=(driver, pci),
    )


def _missing(card: Any, node: str, now: float) -> Any:
    from muster.domain.model.roll import Finding, FindingKind

    about = "It is gone: look at its slot."
    return Finding(id=f"f-{card.id}", kind=FindingKind.CARD_MISSING, subject=card.id, about=about, opened_at=now, cards=(card.id,), node=node)


def _facts(number: int, slot: int, model: str, total: int, rack: int) -> dict[str, Any]:
    return {
        "product.name": model,
        "product.part_number": f"900-{number % 4}",
        "product.architecture": "acme9",
        "product.brand": "Acme",
        "pci.vendor_id": "f1f1",
        "pci.device_id": f"23{number % 4:02}",
        "pci.subsystem_vendor_id": "f1f1",
        "pci.subsystem_device_id": "1626",
        "pci.link.generation.max": 5,
        "pci.link.width.max": 16,
        "numa.node": slot // 4,
        "firmware.version": f"96.00.{number % 7}",
        "driver.version": f"550.{number % 5}",
        "driver.name": "acme",
        "runtime.version.max": "12.4",
        "memory.total": total,
        "memory.kind": "hbm3",
        "memory.unified": False,
        "compute.units": 132,
        "power.limit.default": 700,
        "power.limit.min": 200,
        "power.limit.max": 700,
        "temperature.limit.slowdown": 87,
        "temperature.limit.shutdown": 92,
        "clock.core.max": 1.98e9,
        "clock.memory.max": 2.619e9,
    } | ({"asset.rack": f"rack-{rack:03}"} if "asset.rack" in _known() else {})


def _known() -> Any:
    from muster.domain.model.attributes import ATTRIBUTES

    return ATTRIBUTES


def _numbers(total: int, dice: random.Random) -> list[float]:
    used = float(dice.randrange(total))
    return [used, total - used, dice.uniform(60, 700), 700.0, dice.uniform(28, 90), dice.uniform(30, 95), dice.random(), dice.random(),
            dice.uniform(2e8, 1.98e9), 2.6e9, dice.random(), 5.0, 16.0, float(dice.randrange(100)), dice.uniform(1e6, 1e9)]  # fmt: skip


def _source(node: str, name: str, source: str, witness: Any, now: float, channel: Any, outcome: Any) -> Any:
    from muster.domain.model.roll import SourceRecord

    return SourceRecord(
        node=node, node_name=name, source=source, channel=channel, witness=witness, cadence=1e8, promise=3e8, reporter=f"agent@{name}",
        first_at=now, last_at=now, listed_at=now, outcome=outcome, cards=PER_NODE,
    )  # fmt: skip


def serve(path: str, port: int) -> None:
    """The door of a site, in a process of its own: the store, the API, no writer."""
    import uvicorn

    from muster.domain.model.policy import Policy
    from muster.interfaces.api.app import build
    from muster.store import open_store
    from muster.wiring import apart
    from muster.wiring.adapters import adapters
    from muster.wiring.desk import Desk

    sys.setswitchinterval(apart.SWITCH)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*apart.SWEEP)
    store = open_store(Path(path))
    nobody: Any = None
    desk = Desk(reader=store.reader, keeper=nobody, policy=Policy(), clock=time.time, adapters=tuple(adapters()), version="bench", numbers=store.numbers)
    uvicorn.run(build(desk), host="127.0.0.1", port=port, log_level="warning", access_log=False, lifespan="off", loop="uvloop", http="httptools")


def kinds(cards: int, dice: random.Random) -> Iterator[tuple[str, str]]:
    """Requests of the mix, by kind, in even shares."""
    while True:
        number, slot = dice.randrange(cards // PER_NODE), dice.randrange(PER_NODE)
        yield "page", _path("cards", limit=50, fields=SLIM)
        yield (
            "filter on facts",
            _path(
                "cards",
                limit=50,
                fields=SLIM,
                filter=f'driver.version == "550.{dice.randrange(5)}" && memory.total >= 64Gi && node.startsWith("node-0{dice.randrange(10)}")',
            ),
        )
        yield (
            "filter on gauges",
            _path("cards", limit=50, fields=SLIM, filter=f"temperature.core > {dice.randrange(70, 90)} && power.draw > {dice.randrange(100, 600)}"),
        )
        yield (
            "sort",
            _path("cards", limit=50, fields=SLIM, sort=dice.choice(["-temperature.core", "power.draw", "-memory.used,node", "model,-utilization.core"])),
        )
        yield "detail", f"/api/v1/cards/c-{number:08x}{slot}"
        yield "detail by name", f"/api/v1/cards/node-{number:05}/{slot}"


def _path(what: str, **query: Any) -> str:
    return f"/api/v1/{what}?{urlencode(query)}"


class Client:
    """A few connections that are kept open; one more where all are busy."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def get(self, path: str) -> tuple[int, int]:
        """Status and bytes of an answer."""
        asked = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        try:
            reader, writer = self._free.pop()
            writer.write(asked)
            head = await reader.readuntil(b"\r\n\r\n")
        except (IndexError, ConnectionError, asyncio.IncompleteReadError):  # none is free, or the server closed it while it was
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**22)
            writer.write(asked)
            head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.partition(b":")[2]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        self._free.append((reader, writer))
        return int(head[9:12]), length


async def load(port: int, mix: Iterator[tuple[str, str]], rate: float, seconds: float) -> dict[str, list[float]]:
    """Milliseconds from the moment at which each request of the mix was due, by kind."""
    dice = random.Random(3)
    client, told = Client(port), dict[str, list[float]]()
    started = due = time.perf_counter()
    running: set[asyncio.Task[None]] = set()

    async def one(kind: str, path: str, due: float) -> None:
        status, _ = await client.get(path)
        assert status == 200, (status, path)
        told.setdefault(kind, []).append((time.perf_counter() - due) * 1000)

    while due - started < seconds:
        due += dice.expovariate(rate)
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        task = asyncio.ensure_future(one(*next(mix), due))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    return told


def share(values: list[float], part: float) -> float:
    """A quantile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def rss(pid: int, peak: bool = False) -> float:
    """MiB of a process."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    return next(int(line.split()[1]) / 1024 for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(wanted))


def fetch(port: int, path: str) -> tuple[float, int]:
    """Seconds and bytes of one answer, read and thrown away."""
    began, size = time.perf_counter(), 0
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=900) as answer:
        while part := answer.read(1 << 20):
            size += len(part)
    return time.perf_counter() - began, size


def export(port: int, pid: int, form: str, missed: list[str]) -> None:
    """All cards as lines: what it costs, and what the server needs for it beside what it had."""
    stood, began = rss(pid), peers.seconds([pid])
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # its peak is that of the export
    took, size = fetch(port, f"/api/v1/cards?format={form}")
    print(f"export {form:6}  {took:6.1f} s, {peers.seconds([pid]) - began:.1f} s of processor   {size / 2**20:7.0f} MiB")
    _hold(missed, f"memory for an export as {form}, bounded", rss(pid, peak=True) - stood, EXPORT_MIB, "MiB")


def _wait(port: int) -> float:
    began = time.perf_counter()
    while time.perf_counter() - began < 600:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/summary", timeout=600):
                return time.perf_counter() - began
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the server does not answer")


def measure(path: Path, cards: int, rate: float, seconds: float) -> int:
    """Serves and measures; the exit status says whether the limits were kept."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, __file__, "--serve", str(path), "--port", str(port)])
    missed: list[str] = []
    try:
        print(f"first answer, {cards:,} cards read into columns: {_wait(port):.1f} s, server {rss(server.pid):.0f} MiB (peak {rss(server.pid, peak=True):.0f})")
        mix = kinds(cards, random.Random(3))
        asyncio.run(load(port, mix, rate, 5))
        before = peers.seconds([server.pid])
        told = asyncio.run(load(port, mix, rate, seconds))
        used = (peers.seconds([server.pid]) - before) / seconds
        together = [each for values in told.values() for each in values]
        for kind, values in [*told.items(), ("all", together)]:
            print(f"{kind:18} {len(values):6} requests   p50 {share(values, 0.5):7.1f} ms   p99 {share(values, 0.99):7.1f} ms")
        _hold(missed, f"p99 of all at {rate:g} requests/s", share(together, 0.99), P99_MS, "ms")
        print(f"processor of the server: {used * 100:.0f} % of a core")
        summaries = [fetch(port, "/api/v1/summary")[0] * 1000 for _ in range(50)]
        print(f"summary            p50 {share(summaries, 0.5):.1f} ms   p99 {share(summaries, 0.99):.1f} ms")
        _hold(missed, "summary, median", share(summaries, 0.5), SUMMARY_MS, "ms")
        for form in ("ndjson", "csv"):
            export(port, server.pid, form, missed)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    print("missed: " + "; ".join(missed) if missed else "all limits kept")
    return 1 if missed else 0


def _hold(missed: list[str], what: str, figure: float, limit: float, unit: str) -> None:
    print(f"{what}: {figure:.1f} {unit}, limit {limit:g} {unit}" + ("" if figure <= limit else "  MISSED"))
    if figure > limit:
        missed.append(what)


def main() -> int:
    """The command."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--cards", type=int, default=100_000)
    asked.add_argument("--seconds", type=float, default=60.0)
    asked.add_argument("--rate", type=float, default=50.0)
    asked.add_argument("--store", type=Path, help="a store that was filled before, or is kept for later")
    asked.add_argument("--serve", help=argparse.SUPPRESS)
    asked.add_argument("--port", type=int, help=argparse.SUPPRESS)
    told = asked.parse_args()
    if told.serve:
        serve(told.serve, told.port)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = told.store or Path(folder) / "roll.sqlite"
        if not path.exists():
            began = time.perf_counter()
            fill(path, told.cards, time.time())
            print(f"filled in {time.perf_counter() - began:.0f} s, {path.stat().st_size / 2**20:.0f} MiB")
        print(json.dumps({"cards": told.cards, "cores": os.cpu_count(), "python": sys.version.split()[0]}))
        return measure(path, told.cards, told.rate, told.seconds)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    raise SystemExit(main())
