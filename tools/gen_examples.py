#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the console blocks of the docs and holds them against what the commands print, so that an example is never a thing of the past.

usage: python tools/gen_examples.py [--check | --write] [--all] [--demo FILE]
--check says which lines differ, and fails then; --write puts what was printed into the pages. Times, ages, ids, ports and widths do not count.
--all waits for what takes minutes, too: the silence at the end of the tutorial, in real time.
--demo FILE checks the excerpt of the README against FILE, the output of `muster demo`, and nothing else.
A line `...` stands for any lines that are left out.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL, FINDING = "docs/tutorial/from-nothing-to-a-roll.md", "docs/how-to/answer-a-finding.md"
OFFLINE, VENDOR = "docs/how-to/read-a-capture-offline.md", "docs/how-to/add-a-vendor.md"
SITE, JOIN = "docs/tutorial/a-site-of-three-nodes.md", "docs/how-to/join-a-node.md"
KEEP, UPGRADE = "docs/how-to/back-up-and-restore.md", "docs/how-to/upgrade.md"
PLACE, SITE_PLACE = "/tmp/muster-tutorial", "/tmp/muster-site"
INGEST = "7461"
"""The port of reporters on the pages of a site; a free one is taken in its place."""
MINUTES = "## 7. Silence"
"""The heading of the tutorial from which on nothing happens for minutes."""
LEFT_OUT = "..."
PATIENCE_S, LONG_S = 20.0, 500.0

BLOCK = re.compile(r"^```(?P<kind>console|sh)\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
EXCERPT = re.compile(r"^```text\n(?P<body>\$ muster.*?)^```", re.MULTILINE | re.DOTALL)
ID = re.compile(r"\b[cf]-[0-9a-f]{16}\b|\bsha256:[0-9a-f]{64}\b|^[a-z2-7]{10}(?= )")
MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|\b\d{8}T\d{6}Z"), "TIME"),
    (re.compile(r"\d+(\.\d+)? [KM]iB(?=, schema)"), "SIZE"),
    (ID, "ID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"(?<![\w.])\d+(\.\d+)?(ms|s|m|h|d)(?![\w/])"), "AGE"),
    (re.compile(r"^(AGE .*) \d+$"), r"\1 NUMBER"),
    (re.compile(r"\(process \d+\)"), "(process NUMBER)"),
    (re.compile(r"\d+ changes kept, \d+ findings open in \d+ s"), "CHANGES, FINDINGS, SECONDS"),
)


def masked(line: str) -> str:
    """A line without what differs from run to run: times, ages, ids, addresses, running numbers, widths of columns."""
    line = " ".join(line.split())
    for pattern, word in MASKS:
        line = pattern.sub(word, line)
    return line


def same(said: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether what was printed is what the page says. Rows may stand in another order, for ids decide that; around `...` the order counts."""
    said, printed = [masked(line) for line in said if line.strip()], [masked(line) for line in printed if line.strip()]
    if LEFT_OUT not in said:
        return sorted(said) == sorted(printed)
    left = iter(printed)
    return all(line == LEFT_OUT or line in left for line in said)


@dataclass(slots=True)
class Step:
    """One command of a page, and the lines that follow it there."""

    command: str
    said: list[str] = field(default_factory=list)


def steps(body: str) -> list[Step]:
    """The commands of a console block."""
    found: list[Step] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append(Step(line.removeprefix("$ ")))
        elif found:
            found[-1].said.append(line)
    return found


def renewed(said: Sequence[str], printed: Sequence[str]) -> list[str]:
    """What the page shall say: all that was printed; where lines were left out, those that it had, as they are now."""
    tail = [""] if said and not said[-1].strip() else []
    if LEFT_OUT not in said:
        return [line.rstrip() for line in printed] + tail
    told, place = [], 0
    for line in said:
        head = line.split()[:1]
        at = next((n for n in range(place, len(printed)) if printed[n].split()[:1] == head), None) if line != LEFT_OUT else None
        told.append(line if at is None else printed[at].rstrip())
        place = place if at is None else at + 1
    return told


class Session:
    """A shell's world: a folder of its own, and perhaps a server in it."""

    def __init__(self, place: Path, cwd: Path, told: str = PLACE, **variables: str) -> None:
        self.place, self.cwd, self.told, self.ids = place, cwd, told, {told: str(place)}
        self.server: subprocess.Popen[str] | None = None
        self.agents: list[subprocess.Popen[bytes]] = []
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("MUSTER_", "XDG_"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
        own = {"PATH": path, "HOME": str(place), "TMPDIR": str(place), "COLUMNS": "200", "PYTHONPATH": str(ROOT / "src")}
        self.environment = {**kept, **own, "MUSTER_RUNTIME": str(place / "run"), "MUSTER_STATE": str(place / "state"), **variables}

    def run(self, command: str) -> list[str]:
        """What the command prints, line by line."""
        command = self._real(command)
        if re.match(r"muster server(?: --|$)", command):
            return self._serve(command)
        ran = subprocess.run(
            ["bash", "-c", command], cwd=self.cwd, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
        )
        return self._shown(ran.stdout).splitlines()

    def _real(self, command: str) -> str:
        for said, real in self.ids.items():
            command = command.replace(said, real)
        return command

    def _shown(self, text: str) -> str:
        for said in (self.told, INGEST):
            text = text.replace(self.ids.get(said, said), said)
        return text

    def begin(self, line: str) -> None:
        """What a shell block of a site's page leaves running: its server, and agents in the background."""
        if line.startswith("muster server"):
            self._serve(self._real(f"{line} --port 0"))
        elif line.startswith("muster agent --machine") and line.endswith("&"):
            words = [sys.executable, "-m", *self._real(line).removesuffix("&").split()]
            self.agents.append(subprocess.Popen(words, cwd=self.cwd, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def _serve(self, command: str) -> list[str]:
        words = [sys.executable, "-m", *command.split()]
        self.server = subprocess.Popen(words, cwd=self.cwd, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        told: list[str] = []
        for line in self.server.stdout or ():
            told.append(self._shown(line.rstrip("\n")))
            if told[-1].startswith("muster: reporters" if "--ingest-port" in command else "muster: "):
                break
        return told

    def until(self, step: Step, patience: float) -> list[str]:
        """What the command prints once it is what the page says, or at last."""
        end = time.monotonic() + patience
        printed = self.run(step.command)
        while not same(step.said, printed) and time.monotonic() < end and self.server is not None and not step.command.startswith("muster server"):
            time.sleep(patience / 40)
            printed = self.run(step.command)
        self._learn(step.said, printed)
        return printed

    def _learn(self, said: Sequence[str], printed: Sequence[str]) -> None:
        """Which real id an id of the page stands for."""
        for line in said:
            real = next((each for each in printed if masked(each) == masked(line)), "")
            self.ids.update(zip(ID.findall(line), ID.findall(real), strict=False))

    def end(self) -> None:
        """Stops the agents and the server."""
        running: list[subprocess.Popen[Any]] = [*self.agents, *([self.server] if self.server is not None else [])]
        for each in running:
            each.terminate()
            each.communicate(timeout=20)
        self.agents, self.server = [], None


@dataclass(slots=True)
class Page:
    """A page of the docs, what differs in it, and its new text."""

    name: str
    faults: list[str] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        self.text = (ROOT / self.name).read_text(encoding="utf-8")

    def play(self, session: Session, patience: float = 0.0, *, begin: str = "", end: str = "", agents: bool = False) -> None:
        """Runs the console blocks between two headings, and the one-round agents of its shell blocks."""
        first = self.text.index(begin) if begin else 0
        last = self.text.index(end) if end else len(self.text)
        parts, place = [self.text[:first]], first
        for block in BLOCK.finditer(self.text, first, last):
            parts.append(self.text[place : block.start("body")])
            body, place = block["body"], block.end("body")
            parts.append(self._console(body, session, patience) if block["kind"] == "console" else body)
            if block["kind"] == "sh" and agents:
                for line in body.splitlines():
                    if line.startswith("muster agent --once"):
                        session.run(line)
                    session.begin(line)
        self.text = "".join([*parts, self.text[place:]])

    def _console(self, body: str, session: Session, patience: float) -> str:
        lines: list[str] = []
        for step in steps(body):
            printed = session.until(step, patience)
            lines.append(f"$ {step.command}")
            if same(step.said, printed):
                lines += step.said
                continue
            self.faults += [f"{self.name}: $ {step.command}", *_difference(step.said, printed)]
            lines += renewed(step.said, printed)
        return "".join(f"{line}\n" for line in lines)


def _difference(said: Sequence[str], printed: Sequence[str]) -> Iterator[str]:
    one, other = ([masked(line) for line in lines if line.strip()] for lines in (said, printed))
    yield from list(unified_diff(one, other, "the page", "printed", lineterm="", n=0))[:20]


def with_server(place: Path, *, everything: bool) -> list[Page]:
    """The tutorial, and the page on findings, which goes on where the tutorial's sixth step ends."""
    quick = {} if everything else {"MUSTER_SETTLE": "1", "MUSTER_STALE_FLOOR": "5"}
    session, tutorial, finding = Session(place, ROOT, **quick), Page(TUTORIAL), Page(FINDING)
    patience = LONG_S if everything else PATIENCE_S
    try:
        tutorial.play(session, patience, end=MINUTES, agents=True)
        finding.play(session, patience)
        if everything:
            tutorial.play(session, patience, begin=MINUTES, agents=True)
    finally:
        session.end()
    return [tutorial, finding]


def with_site(place: Path) -> list[Page]:
    """The tutorial on a site, and the pages on looking after one, which go on where it ends."""
    place.mkdir()
    session, pages = Session(place, ROOT, SITE_PLACE), [Page(name) for name in (SITE, JOIN, KEEP, UPGRADE)]
    site, join, keep, upgrade = pages
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        session.ids[INGEST] = str(free.getsockname()[1])
    try:
        site.play(session, PATIENCE_S, agents=True)
        join.play(session, PATIENCE_S)
        keep.play(session, PATIENCE_S, end="## Restore")
        session.end()
        keep.play(session, PATIENCE_S, begin="## Restore")
        upgrade.play(session)
    finally:
        session.end()
    return pages


def without_server(place: Path) -> list[Page]:
    """The pages whose commands stand alone."""
    offline, vendor = Page(OFFLINE), Page(VENDOR)
    offline.play(Session(place, ROOT))
    beginning, use = "## 1. Begin", "## 5. Use it"
    vendor.play(Session(place, place), begin=beginning, end=use)
    site = place / "site"
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", *words, str(place / "acme")], check=True, capture_output=True)
    vendor.play(Session(place, place, MUSTER_ADAPTERS="acme", PYTHONPATH=f"{ROOT / 'src'}{os.pathsep}{site}"), begin=use)
    return [offline, vendor]


def demo(output: Path) -> list[str]:
    """What the excerpt in the README has and the demo did not print."""
    found = EXCERPT.search((ROOT / "README.md").read_text(encoding="utf-8"))
    if found is None:
        return ["README.md: no excerpt of the demo"]
    said, printed = found["body"].splitlines(), output.read_text(encoding="utf-8").splitlines()
    return [] if same(said, printed) else ["README.md: the excerpt of the demo", *_missing(said, printed)]


def _missing(said: Sequence[str], printed: Sequence[str]) -> Iterator[str]:
    there = {masked(line) for line in printed}
    lost = [f"not printed: {line}" for line in said if line not in ("", LEFT_OUT) and masked(line) not in there]
    yield from lost or ["every line is printed, but not in this order"]


def main(arguments: Sequence[str]) -> int:
    """Plays the pages; returns the exit code."""
    if "--demo" in arguments:
        faults = demo(Path(arguments[arguments.index("--demo") + 1]))
        print("".join(f"{line}\n" for line in faults), end="", file=sys.stderr)
        return 1 if faults else 0
    place = Path(tempfile.mkdtemp(prefix="ex-"))
    try:
        pages = [*without_server(place), *with_server(place, everything="--all" in arguments), *with_site(place / "three")]
    finally:
        shutil.rmtree(place)
    for page in pages:
        print("".join(f"{line}\n" for line in page.faults), end="", file=sys.stderr)
        if page.faults and "--write" in arguments:
            (ROOT / page.name).write_text(page.text, encoding="utf-8")
            print(f"wrote {page.name}")
    return 1 if any(page.faults for page in pages) and "--write" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
