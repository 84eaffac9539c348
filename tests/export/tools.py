# SPDX-License-Identifier: Apache-2.0
"""Programs of others that exports are tried against. Without them such a test is skipped with its reason; where CI runs, it fails."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import needs


def needed(program: str) -> str:
    """The path of a program."""
    return needs.program(program)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], ready: str, log: Path) -> Iterator[None]:
    """The program, once it answers at ``ready``, until the end of the block."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            for _ in range(300):
                assert process.poll() is None, log.read_text(errors="replace")[-2000:]
                if answers(ready):
                    break
                time.sleep(0.1)
            else:
                pytest.fail(f"{command[0]} does not answer: {log.read_text(errors='replace')[-2000:]}")
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def answers(url: str) -> bool:
    """True when the URL answers with success."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return int(answer.status) == 200
    except (OSError, urllib.error.URLError):
        return False
