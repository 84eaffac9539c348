# SPDX-License-Identifier: Apache-2.0
"""Ingest: what a server pays for 100,000 cards x 40 fields in rounds of 10 s, 1,250 reports a second, beside VictoriaMetrics with the same values and pacing.

    python bench/ingest.py                  our listener alone (its writer only decodes and counts), then VictoriaMetrics
    python bench/ingest.py --server         `muster server`, 12,500 connections over TLS, then 125, then VictoriaMetrics
    python bench/ingest.py --server --postgres           the same with its store in PostgreSQL, whose processes count, too: figures without limits
    python bench/ingest.py --server --connections 125    few connections alone
    python bench/ingest.py --cards 10000    a tenth of the site, at a tenth of the rate

Prints each figure with its limit; results go to bench/results/ingest.json, too. Processor time is of all processes of a server, by /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import members
import peers
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HERE = Path(__file__).resolve().parent
FIELDS, PER_NODE = 40, 8
ALONE = "(no store, no merge: the limits are for the whole server, see --server)"
MANY = 200
"""Reports on their way at the end of a round are not worth a word up to here."""
OPEN = 10_000
"""From so many connections on a core's share may be that of many open ones."""
CPU_LIMIT, CPU_OPEN_LIMIT, ACK_LIMIT_MS, MEMORY_LIMIT_MIB, TIMES, STRETCH = 40.0, 50.0, 150.0, 1024.0, 3.0, 5.0


def measure(peer: peers.Peer, told: argparse.Namespace, connections: int, rounds: int, *, first: int) -> dict[str, Any]:
    """Runs the load against a server and adds what the server paid for each round."""
    words = ["--port", peer.port, "--kind", peer.kind, "--nodes", told.nodes, "--cards", PER_NODE, "--period", told.period]
    words += ["--connections", connections, "--rounds", rounds]
    words += ["--first", first] + (["--tls", peer.tls] if peer.tls else []) + (["--tokens", peer.tokens] if peer.tokens else [])
    words += ["--saturate", told.saturate] if told.saturate else []
    words += ["--silence", told.silence] if told.silence and peer.kind != "prometheus" else []
    load = subprocess.Popen([sys.executable, str(HERE / "load.py"), *map(str, words)], env=peers.environment(), stdout=subprocess.PIPE, text=True)
    marks: list[tuple[str, dict[str, float], float]] = []
    result: dict[str, Any] = {}
    memory: dict[str, tuple[float, float]] = {}
    assert load.stdout is not None
    try:
        for line in load.stdout:
            told_now = json.loads(line)
            marks.append((str(told_now.get("begins", "end")), {name: part.cpu() for name, part in peer.parts().items()}, time.monotonic()))
            memory = max(memory, {name: peers.memory(part.pids()) for name, part in peer.parts().items()}, key=_proportional)
            result = told_now.get("result", result)
        if load.wait() or not result:
            raise SystemExit(f"the load against {peer.name} has failed")
    finally:
        load.terminate()
        load.wait()
    costs = {name: ({part: later[1][part] - spent for part, spent in cpu.items()}, later[2] - at) for (name, cpu, at), later in pairwise(marks)}
    for each in result["rounds"]:
        parts, wall = costs[each["name"]]
        cpu = sum(parts.values())
        answered = sum(count for status, count in each["statuses"].items() if status.startswith("2"))
        samples = answered * PER_NODE * FIELDS
        each |= {
            "load_cpu": each["cpu"],
            "server_cpu": cpu,
            "parts_cpu": parts,
            "server_wall": wall,
            "core_percent": 100 * cpu / wall,
            "samples_per_cpu_s": samples / cpu if cpu else 0,
        }
    held: dict[str, Any] = {"rss_mib": sum(each[0] for each in memory.values()), "pss_mib": _proportional(memory)}
    held |= {"parts_mib": {name: each[1] for name, each in memory.items()}}
    return {"name": peer.name, **held, "opening_cpu": sum(costs["opening"][0].values()), **result}


def _proportional(memory: Mapping[str, tuple[float, float]]) -> float:
    """MiB of all parts of a server."""
    return sum(each[1] for each in memory.values())


def _apart(parts: Mapping[str, float], form: str) -> str:
    """What each part of a server has of a figure, where there are several."""
    return f" ({', '.join(f'{name} {format(value, form)}' for name, value in parts.items())})" if len(parts) > 1 else ""


def verdict(value: float, limit: float, *, most: bool = True) -> str:
    """The limit, and whether it holds."""
    return f"({'<=' if most else '>='} {limit:g}: {'hit' if (value <= limit if most else value >= limit) else 'MISS'})"


def core_limit(found: dict[str, Any]) -> float:
    """Per cent of a core that a server may take."""
    return CPU_OPEN_LIMIT if found["connections"] >= OPEN else CPU_LIMIT


def away(each: dict[str, Any]) -> int:
    """Reports of a round that were not taken when they came."""
    return sum(count for status, count in each["statuses"].items() if not status.startswith("2"))


def misses(found: dict[str, Any], *, bound: bool) -> int:
    """Limits that a server missed. What was not taken, or not answered, is a miss also where no figure has a limit."""
    paced = [each for each in found["rounds"] if each["name"].startswith("round")]
    missed = sum(away(each) > 0 for each in paced) + (found["rounds"][-1].get("unanswered", 0) > 0) + (found["lost"] > 0)
    if bound:
        missed += sum((each["core_percent"] > core_limit(found)) + (each["p99_ms"] > ACK_LIMIT_MS) for each in paced)
        missed += found["pss_mib"] > MEMORY_LIMIT_MIB
    return int(missed)


def _round(each: dict[str, Any], *, limit: float, bound: bool) -> str:
    """A round in one line."""
    held = bound and each["name"].startswith("round")
    core = verdict(each["core_percent"], limit) if held else ""
    ack = verdict(each["p99_ms"], ACK_LIMIT_MS) if held else ""
    others = {status: count for status, count in each["statuses"].items() if not status.startswith("2")}
    waiting = each["waiting"] if each["waiting"] > MANY else 0
    parts = [
        f"{each['name']:10} {each['server_cpu']:7.2f} CPU-s in {each['server_wall']:6.1f} s = {each['core_percent']:5.1f} % of a core {core}"
        + _apart(each["parts_cpu"], ".2f"),
        f"{each['samples_per_cpu_s'] / 1e6:5.2f} M samples/CPU-s",
        f"ack p50 {each['p50_ms']:.0f} p99 {each['p99_ms']:.0f} {ack} max {each['max_ms']:.0f} ms",
        f"{each['answers']} answers" + (f", not taken: {others}" if others else "") + (f", {waiting} waited at its end" if waiting else ""),
        f"(load {each['load_cpu']:.2f} CPU-s)",
    ]
    return "  " + "  ".join(parts)


def show(found: dict[str, Any], *, bound: bool) -> None:
    """One server's rounds, with limits where they are for it."""
    tls = " TLS" if found["tls"] else ""
    print(f"\n{found['name']}, {found['connections']} connections{tls}: opened in {found['opening_s']:.1f} s, {found['opening_cpu']:.2f} CPU-s of the server")
    for each in found["rounds"]:
        print(_round(each, limit=core_limit(found), bound=bound))
    memory = verdict(found["pss_mib"], MEMORY_LIMIT_MIB) if bound else ""
    lost = f"unanswered {found['rounds'][-1].get('unanswered', 0)}, lost connections {found['lost']}"
    print(f"  memory: {found['rss_mib']:.0f} MiB resident, {found['pss_mib']:.0f} MiB PSS{_apart(found['parts_mib'], '.0f')} {memory}; {lost}", flush=True)


def steady(found: dict[str, Any]) -> float:
    """Samples per CPU second over the paced rounds; those after the first, where there are several."""
    rounds = [each for each in found["rounds"] if each["name"].startswith("round")]
    rounds = rounds[1:] or rounds
    cpu = sum(each["server_cpu"] for each in rounds)
    return sum(each["samples_per_cpu_s"] * each["server_cpu"] for each in rounds) / cpu if cpu else 0.0


@contextmanager
def running(peer: peers.Peer) -> Iterator[peers.Peer]:
    """The server for the length of a block."""
    try:
        yield peer
    finally:
        peer.stop()


def certificate(folder: Path) -> tuple[str, str]:
    """A certificate of localhost with its key, and what to trust."""
    key, name, now = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=2))
    signed = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False).sign(key, hashes.SHA256())
    pem = signed.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.pem").write_bytes(pem)
    (folder / "both.pem").write_bytes(pem + private)
    return str(folder / "both.pem"), str(folder / "ca.pem")


def listeners(told: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Our listener alone, with few and many connections, plain and TLS."""
    both, ca = certificate(folder)
    found = []
    for connections, tls in [(each, False) for each in told.connections] + [(told.connections[-1], True)]:
        with running(peers.counting(both, ca) if tls else peers.counting()) as peer:
            found.append(measure(peer, told, min(connections, told.nodes), told.rounds, first=0))
            show(found[-1], bound=False)
    return found


def server(told: argparse.Namespace, folder: Path, held: ExitStack) -> list[dict[str, Any]]:
    """`muster server` as a user starts it, with enrolled reporters over TLS."""
    port = peers.free_port()
    settings = {"MUSTER_INGEST_PORT": str(port), **dict(each.split("=", 1) for each in told.setting)}
    database = None
    if told.postgres:
        database, settings["MUSTER_DATABASE"] = peers.postgresql(folder)
        held.enter_context(running(database))
    peer = held.enter_context(running(peers.muster(folder, told.option, settings, port)))
    peer.name += " on PostgreSQL" if database else ""
    peer.beside = [database] if database else []
    join, mark = peers.join_token(folder, told.nodes)
    peer.tls, peer.tokens = str(folder / "ca.pem"), str(folder / "tokens")
    Path(peer.tls).write_bytes(members.authority(port))
    before = peer.cpu()
    took = members.join_all(port, peer.tls, mark, join, told.nodes, folder / "tokens")
    print(f"{told.nodes} nodes joined in {took:.0f} s, {peer.cpu() - before:.1f} CPU-s of the server", flush=True)
    many, few = min(told.connections[-1], told.nodes), min(told.connections[0], told.nodes)
    found = []
    for connections, rounds, first in [(many, told.rounds + 4, 2), *([(few, told.rounds, 1)] if few < many else [])]:
        found.append(measure(peer, told, connections, rounds, first=first))
        show(found[-1], bound=not told.postgres)
    return found


def peer_of(told: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """VictoriaMetrics at the same pacing with the same values; few connections, which is cheaper for it."""
    with running(peers.victoria_metrics(folder)) as peer:
        found = measure(peer, told, min(told.peer_connections, told.nodes), told.rounds, first=1)
    show(found, bound=False)
    return found


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--cards", type=int, default=100_000, help="cards of the site; 100,000 are 12,500 nodes and 4 M series")
    found.add_argument("--period", type=float, default=10.0, help="seconds of a round")
    found.add_argument("--rounds", type=int, default=3, help="paced rounds of each server")
    found.add_argument("--connections", type=int, nargs="+", default=[125, 1250, 12_500], help="of the listener alone; the server has the last, then the first")
    found.add_argument("--peer-connections", type=int, default=125)
    found.add_argument("--saturate", type=float, default=0.0, metavar="SECONDS", help="before the paced rounds, as fast as it is taken")
    found.add_argument("--silence", type=float, default=0.0, metavar="SECONDS", help="after the paced rounds nobody speaks for so long, then all at once")
    found.add_argument("--server", action="store_true", help="`muster server` instead of the listener alone")
    found.add_argument("--option", action="append", default=[], help="a further word of `muster server`")
    found.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="environment of `muster server`")
    found.add_argument("--postgres", action="store_true", help="the server's store in PostgreSQL, whose processes count, too")
    found.add_argument("--no-ours", action="store_true", help="leave ours out")
    found.add_argument("--no-peer", action="store_true", help="leave VictoriaMetrics out")
    found.add_argument("--results", type=Path, default=HERE / "results" / "ingest.json")
    return found


def main() -> int:
    """Runs it, prints the figures and writes them; 1 when a limit is missed."""
    told = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended, too
    told.nodes = told.cards // PER_NODE
    rate = f"a round each {told.period:g} s = {told.nodes / told.period:g} reports/s"
    print(f"{told.nodes} nodes x {PER_NODE} cards x {FIELDS} fields, {rate}, on {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as place, ExitStack() as held:
        folder = Path(place)
        ours = [] if told.no_ours else server(told, folder, held) if told.server else listeners(told, folder)
        held.close()
        theirs = None if told.no_peer else peer_of(told, folder)
    missed, bound = 0, told.server and not told.postgres
    if theirs is not None:
        print()
        for each in ours:
            times = steady(each) / steady(theirs) if steady(theirs) else float("inf")
            each["times_peer"] = times
            tls = " TLS" if each["tls"] else ""
            limits = f"{verdict(times, TIMES, most=False)} stretch {verdict(times, STRETCH, most=False)}" if bound else "" if told.server else ALONE
            print(f"{each['name']}, {each['connections']} connections{tls}: {times:.1f} times the samples per CPU-s of {theirs['name']}, steady {limits}")
            missed += bound and times < TIMES
    missed += sum(misses(each, bound=bound) for each in ours if told.server)
    told.results.parent.mkdir(exist_ok=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "at": datetime.now(UTC).isoformat(timespec="seconds")}
    asked = {name: str(value) if isinstance(value, Path) else value for name, value in vars(told).items()}
    told.results.write_text(json.dumps({"machine": machine, "asked": asked, "ours": ours, "peer": theirs}, indent=1) + "\n", encoding="utf-8")
    print(f"\n{missed} limits missed; figures in {told.results}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
