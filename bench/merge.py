# SPDX-License-Identifier: Apache-2.0
"""What it costs to make one roll of three views: of the cards' nodes, of their management controllers, of the cluster. Processor time of one thread.

``python bench/merge.py [--cards N] [--duckdb PYTHON]``. The views are ours and seeded: eight cards a node, 24 attributes, two rows of a hundred missing
in each view, one of ten without UUID, four cards of a hundred of which two views differ. The peer is DuckDB on one thread, which joins the same three
tables (by UUID, then by serial), takes each attribute from the best view that tells it, marks where views differ, and writes a table. Ours goes the way of
the server from decoded facts to records: every word of every node through the journal, identity, precedence, dissent, history, findings. The collector of
cycles is set as the server sets it. Of each changed word the part that is merge alone is told too.
``--duckdb`` is the interpreter of a virtual environment with ``duckdb``; it is made under the system's folder for temporary files when left out.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import msgspec
from bodies import FACTS

from muster.domain.decide.merge import Merged, merge, names_of
from muster.domain.model.policy import Policy
from muster.services.journal import listing
from muster.services.regions import Regions
from muster.spi.store import RollWriter
from muster.wire.lanes import facts, part, whole
from muster.wire.report import FactsDoc, HeardDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc

RESULTS = Path(__file__).parent / "results"
CARDS, T0 = 8, 1_800_000_000.0
VIEWS = {"driver": ("in_band", "driver"), "bmc": ("out_of_band", "bmc"), "cluster": ("cluster", "cluster")}
KEYS = sorted(FACTS)
MISSING, NO_UUID, DISSENT = 0.02, 0.10, 0.04
FULL_LIMIT, MANY_LIMIT, ONE_LIMIT = 3.0, 100.0, 200.0
CHANGED = 10_000
COLLECTOR = (50_000, 20, 50)
"""As `wiring.server` sets it."""
POLICY = Policy()

_PEER = """
import json, sys, time, duckdb
db = duckdb.connect()
db.execute("SET threads TO 1")
db.execute("SET enable_progress_bar = false")
views, keys = json.loads(sys.argv[1])
for view, path in views.items():
    db.execute(f"CREATE TABLE {view} AS SELECT row_number() OVER () AS id, * FROM read_csv('{path}', header=true, all_varchar=true, nullstr='')")
took = []
for turn in range(3):
    db.execute("DROP TABLE IF EXISTS roll")
    begin = time.process_time()
    db.execute('''
    CREATE TEMP TABLE two AS
      WITH named AS (
        SELECT b.id AS b, coalesce(u.id, s.id) AS d FROM bmc b
        LEFT JOIN driver u ON b.uuid = u.uuid LEFT JOIN driver s ON u.id IS NULL AND b.serial = s.serial)
      SELECT row_number() OVER () AS id, d.id AS d, n.b AS b, coalesce(d.uuid, b.uuid) AS uuid, coalesce(d.serial, b.serial) AS serial
      FROM driver d FULL JOIN named n ON n.d = d.id LEFT JOIN bmc b ON b.id = n.b''')
    db.execute('''
    CREATE TEMP TABLE three AS
      WITH named AS (
        SELECT c.id AS c, coalesce(u.id, s.id) AS two FROM cluster c
        LEFT JOIN two u ON c.uuid = u.uuid LEFT JOIN two s ON u.id IS NULL AND c.serial = s.serial)
      SELECT t.d, t.b, n.c FROM two t FULL JOIN named n ON n.two = t.id''')
    told = ", ".join(f'coalesce(d."{k}", b."{k}", c."{k}") AS "{k}", coalesce(d."{k}" <> b."{k}", false) OR coalesce(d."{k}" <> c."{k}", false)'
                     f' OR coalesce(b."{k}" <> c."{k}", false) AS "{k} differs"' for k in keys)
    db.execute(f'''
    CREATE TABLE roll AS SELECT coalesce(d.uuid, b.uuid, c.uuid) AS uuid, coalesce(d.serial, b.serial, c.serial) AS serial, {told}
    FROM three t LEFT JOIN driver d ON d.id = t.d LEFT JOIN bmc b ON b.id = t.b LEFT JOIN cluster c ON c.id = t.c''')
    took.append(time.process_time() - begin)
    db.execute("DROP TABLE two"); db.execute("DROP TABLE three")
differ = " OR ".join(f'"{k} differs"' for k in keys)
cards = db.execute("SELECT count(*) FROM roll").fetchone()[0]
dissent = db.execute(f"SELECT count(*) FROM roll WHERE {differ}").fetchone()[0]
print(json.dumps({"cpu_s": sorted(took)[1], "cards": cards, "dissent": dissent, "version": duckdb.__version__}))
"""


@dataclass(frozen=True)
class Row:
    """One card in one view."""

    card: int
    names: tuple[tuple[str, str], ...]
    told: Mapping[str, Any]


def rows(node: int, cards: int, seed: int) -> dict[str, list[Row]]:
    """The views of one node."""
    dice = random.Random(seed * 1_000_003 + node)
    found: dict[str, list[Row]] = {view: [] for view in VIEWS}
    for place in range(min(CARDS, cards - node * CARDS)):
        card = node * CARDS + place
        uuid, serial = f"{dice.getrandbits(128):032x}", f"165{card:010d}"
        other = dice.choice(list(VIEWS)) if dice.random() < DISSENT else ""
        for view in VIEWS:
            names = [("serial", serial)]
            if dice.random() >= NO_UUID:
                names.append(("vendor_uuid", "GPU-" + uuid))
            names.append(("chassis_slot", str(place + 1)) if view == "bmc" else ("pci_address", f"0000:{place + 1:02x}:00.0"))
            told = {**FACTS, "firmware.version": "96.00.9F.00.02"} if view == other else FACTS
            if dice.random() >= MISSING:
                found[view].append(Row(card, tuple(sorted(names)), told))
    return found


def heard(view: str, told: Sequence[Row], at: float) -> HeardDoc:
    """A round as its reporter sends it."""
    channel, witness = VIEWS[view]
    made = [
        ObservationDoc(level="card", ids=list(row.names), ordinal=i, readings={key: {"v": value} for key, value in row.told.items()})
        for i, row in enumerate(told)
    ]
    return part(ListingDoc(source=view, channel=channel, witness=witness, cadence=60.0, outcome="devices", complete=True, observed_at=at, observations=made))


@dataclass(frozen=True)
class Round:
    """A round that arrived, its facts decoded."""

    report: ReportDoc
    heard: HeardDoc
    facts: FactsDoc


def arrived(node: int, view: str, told: Sequence[Row], at: float, sequence: int) -> Round:
    """What the server has when a round of a view arrived."""
    doc = heard(view, told, at)
    names = NodeDoc(name=f"n{node:05d}", machine_id=f"{node:032x}")
    report = ReportDoc(reporter=f"{view}@n{node:05d}", incarnation="i", sequence=sequence, node=names, sent_at=at)
    return Round(report, doc, facts(doc))


class _Names:
    """A store that knows the names of all parts of the site, and nothing else of them."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], str] = {}

    def regions_of(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The parts that are found by these names."""
        return {name: self.known[name] for name in names if name in self.known}


class Ours:
    """The way of a word from decoded facts to records, as `Folding` goes it."""

    def __init__(self, room: int) -> None:
        self._names = _Names()
        self._regions = Regions(cast(RollWriter, self._names), POLICY, room)
        self._order = 0
        self.alone: list[float] = []
        """Seconds that merge itself took, word by word."""

    def take(self, told: Round) -> Merged:
        """One round, in full."""
        at = told.report.sent_at
        word, _ = listing(told.report, whole(told.heard, told.facts), 0.0, at)
        names = names_of(word, POLICY)
        roll = self._regions.roll(names)
        begin = time.thread_time()
        merged = merge(roll, word, self._order, POLICY, at)
        self.alone.append(time.thread_time() - begin)
        self._order += 1
        self._names.known |= self._regions.take(merged, names)
        return merged

    def put_away(self) -> None:
        """Lets go of parts that there is no room for."""
        self._regions.committed()


def full(cards: int, seed: int, keep: int) -> tuple[dict[str, float], Ours]:
    """All nodes told by all views, one word after another; the last ``keep`` nodes stay at hand."""
    ours = Ours(room=keep * 24)
    took, found, dissent, words = 0.0, 0, 0, 0
    for node in range(-(-cards // CARDS)):
        told = [arrived(node, view, each, T0 + i, 1) for i, (view, each) in enumerate(rows(node, cards, seed).items())]
        begin = time.process_time()
        last = [ours.take(each) for each in told][-1]
        took += time.process_time() - begin
        words += len(told)
        site = next(iter(last.roll.regions.values())).site
        found += len(site.cards)
        dissent += sum(bool(card.dissent) for card in site.cards.values())
        ours.put_away()
    return {"cpu_s": took, "cards": found, "dissent": dissent, "us_per_card": took / cards * 1e6, "us_per_word": took / words * 1e6}, ours


def later(cards: int, seed: int, keep: int, at: float, changes: int, version: str) -> Iterator[Round]:
    """The driver's next round on the last ``keep`` nodes, ``changes`` cards of each with another firmware."""
    nodes = -(-cards // CARDS)
    for node in range(max(0, nodes - keep), nodes):
        told = rows(node, cards, seed)["driver"]
        other = [replace(row, told={**row.told, "firmware.version": version}) for row in told[:changes]]
        yield arrived(node, "driver", [*other, *told[changes:]], at, 2)


def step(ours: Ours, rounds: Iterable[Round]) -> dict[str, float]:
    """Processor time of some words; making them is not counted."""
    each: list[float] = []
    gc.collect()
    ours.alone.clear()
    changed = 0
    for told in rounds:
        start = time.thread_time()
        changed += len(ours.take(told).changes)
        each.append(time.thread_time() - start)
    found = {"cpu_ms": sum(each) * 1e3, "words": len(each), "changed": changed, "merge_ms": sum(ours.alone) * 1e3}
    for name, took in (("word", sorted(each)), ("merge", sorted(ours.alone))):
        found |= {f"{name}_p50_us": took[len(took) // 2] * 1e6, f"{name}_p99_us": took[int(len(took) * 0.99)] * 1e6}
    return found


def peer(python: Path, cards: int, seed: int, folder: Path) -> dict[str, Any]:
    """The same three views by DuckDB."""
    paths = {view: folder / f"{view}.csv" for view in VIEWS}
    files = {view: path.open("w", encoding="utf-8", newline="") for view, path in paths.items()}
    writers = {view: csv.writer(file) for view, file in files.items()}
    for writer in writers.values():
        writer.writerow(["uuid", "serial", *KEYS])
    for node in range(-(-cards // CARDS)):
        for view, told in rows(node, cards, seed).items():
            for row in told:
                names = dict(row.names)
                writers[view].writerow([names.get("vendor_uuid", ""), names["serial"], *(row.told[key] for key in KEYS)])
    for file in files.values():
        file.close()
    said = json.dumps([{view: str(path) for view, path in paths.items()}, KEYS])
    done = subprocess.run([python, "-c", _PEER, said], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def duckdb_python(told: Path | None) -> Path:
    """An interpreter that has DuckDB."""
    if told is not None:
        return told
    folder = Path(tempfile.gettempdir()) / "muster-bench-duckdb"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "duckdb>=1.4"], check=True)
    return python


def say(name: str, figure: float, limit: float, unit: str, more: str = "") -> bool:
    """One line; True when the limit is kept."""
    hit = figure <= limit
    print(f"{name:<34} {figure:>12,.1f} {unit:<6} limit {limit:>10,.1f}  {'hit' if hit else 'MISS'}  {more}")
    return hit


def main() -> int:
    """Runs all and says what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cards", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--duckdb", type=Path, default=None, help="interpreter that has duckdb")
    parser.add_argument("--no-peer", action="store_true", help="leave DuckDB out")
    told = parser.parse_args()
    keep = max(1, min(CHANGED, told.cards) // CARDS)
    with tempfile.TemporaryDirectory() as folder:
        other = None if told.no_peer else peer(duckdb_python(told.duckdb), told.cards, told.seed, Path(folder))
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)
    rebuilt, ours = full(told.cards, told.seed, keep)
    steps = {
        "same": step(ours, later(told.cards, told.seed, keep, T0 + 30, 0, "")),
        "one": step(ours, later(told.cards, told.seed, keep, T0 + 40, 1, "97.00")),
        "all": step(ours, later(told.cards, told.seed, keep, T0 + 50, CARDS, "98.00")),
    }
    hits = [
        say("10,000 changed cards", steps["all"]["cpu_ms"] * CHANGED / (keep * CARDS), MANY_LIMIT, "ms", f"{steps['all']['changed']} changed"),
        say("one changed card of a node, p99", steps["one"]["word_p99_us"], ONE_LIMIT, "us", f"p50 {steps['one']['word_p50_us']:,.0f} us"),
    ]
    if other is not None:
        about = f"ours {rebuilt['cpu_s']:.2f} s, duckdb {other['version']} {other['cpu_s']:.3f} s, cards {rebuilt['cards']} and {other['cards']}"
        hits.append(say("full rebuild, times DuckDB", rebuilt["cpu_s"] / other["cpu_s"], FULL_LIMIT, "x", about))
    print(f"full: {rebuilt['us_per_card']:,.0f} us a card of three views, {rebuilt['us_per_word']:,.0f} us a word of eight cards")
    for name, took in steps.items():
        parts = (f"{took[f'{of}_p50_us']:,.0f} us (p99 {took[f'{of}_p99_us']:,.0f})" for of in ("word", "merge"))
        print(f"{name}: a word {' of it merge '.join(parts)}")
    RESULTS.mkdir(exist_ok=True)
    found = {"cards": told.cards, "seed": told.seed, "full": rebuilt, "peer": other, "steps": steps, "hit": all(hits)}
    (RESULTS / "merge.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2))
    return 0 if all(hits) else 1


if __name__ == "__main__":
    sys.exit(main())
