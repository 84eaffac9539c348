# SPDX-License-Identifier: Apache-2.0
"""A server that is told to end while it starts gives back the right to write that it has just taken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from tests.wiring.kept import postgres, postgres_store_url, postgres_template

from muster.store import open_store

__all__ = ["postgres", "postgres_store_url", "postgres_template"]


@pytest.mark.parametrize("door", ["inside", "apart"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_is_told_to_end_while_it_starts_gives_the_lease_back(tmp_path: Path, postgres_store_url: str, number: int, door: str) -> None:
    words = ["--port", "0", "--state", str(tmp_path / "s"), "--runtime", str(tmp_path / "r"), "--door", door]
    environment = {**os.environ, "PYTHONPATH": "src", "MUSTER_DATABASE": postgres_store_url}
    store = open_store(postgres_store_url)
    with psycopg.connect(postgres_store_url) as other:
        other.execute("LOCK TABLE journal")  # it has the lease, and cannot read the roll yet
        with subprocess.Popen([sys.executable, "-m", "muster", "server", *words], stderr=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stderr is not None
            until = time.monotonic() + 20
            while store.lease.holder() is None and process.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            holder = store.lease.holder()
            assert holder is not None, process.stderr.read()
            process.send_signal(number)
            time.sleep(0.2)
            other.rollback()
            said = process.stderr.read()
            assert (process.wait(20), "Traceback" in said) == (0, False), said

    assert store.lease.holder() is None
    assert store.lease.acquire("the next one", 0.0)
    store.close()


def test_a_start_that_fails_does_not_wait_for_its_door(tmp_path: Path) -> None:
    words = ["--port", "0", "--state", str(tmp_path / "s"), "--runtime", str(tmp_path / "r"), "--door", "apart"]
    environment = {**os.environ, "PYTHONPATH": "src", "MUSTER_DATABASE": "postgresql://nobody@127.0.0.1:1/none"}
    done = subprocess.run([sys.executable, "-m", "muster", "server", *words], capture_output=True, text=True, env=environment, timeout=15, check=False)
    assert (done.returncode, "does not answer" in done.stderr) == (6, True), done.stderr
