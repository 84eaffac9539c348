# SPDX-License-Identifier: Apache-2.0
"""Time to the first byte of commands, whole processes with compiled bytecode, beside a bare interpreter. `python bench/cli.py`."""

from __future__ import annotations

import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
RUNS = 15
LIMITS = {"version": 0.120, "get cards": 0.250, "get cards -o json": 0.250}


def first_byte(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds until the first byte of output, and of processor time for the whole process."""
    before = os.times()
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=HERE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        took = time.perf_counter() - began
        process.stdout.read()
    after = os.times()
    return took, after.children_user + after.children_system - before.children_user - before.children_system


def measured(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Medians of RUNS runs."""
    runs = [first_byte(command, environment) for _ in range(RUNS)]
    return statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)


def main() -> int:
    """Prints each figure beside its limit; 1 when one is missed."""
    compileall.compile_dir(str(HERE / "src"), quiet=1)
    muster = [sys.executable, "-m", "muster"]
    missed = 0
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        environment = {**os.environ, "MUSTER_RUNTIME": str(place / "run"), "PYTHONDONTWRITEBYTECODE": "", "XDG_CONFIG_HOME": folder}
        (place / "run").mkdir(mode=0o700)
        server = subprocess.Popen(
            [*muster, "server", "--in-memory", "--port", "0", "--runtime", str(place / "run"), "--state", str(place / "state")],
            env=environment, cwd=HERE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 30
            while not (place / "run" / "server.json").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            bare = measured([sys.executable, "-c", "print(1)"], environment)
            print(f"{'bare interpreter (peer)':26} {bare[0] * 1000:6.0f} ms  {bare[1] * 1000:5.0f} ms CPU")
            for words, limit in LIMITS.items():
                took, cpu = measured([*muster, *words.split()], environment)
                verdict = "hit" if took <= limit else "MISS"
                missed += took > limit
                figures[words] = {"first_byte_s": took, "cpu_s": cpu, "limit_s": limit}
                print(f"muster {words:19} {took * 1000:6.0f} ms  {cpu * 1000:5.0f} ms CPU  limit {limit * 1000:.0f} ms  {verdict}")
        finally:
            server.terminate()
            server.wait(20)
    results = HERE / "bench" / "results"
    results.mkdir(exist_ok=True)
    (results / "cli.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
