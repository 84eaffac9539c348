# SPDX-License-Identifier: Apache-2.0
"""The examples in the docs are what the commands print today: tools/gen_examples.py plays them, one server, then a site of three nodes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_examples_are_what_is_printed() -> None:
    ran = subprocess.run([sys.executable, "tools/gen_examples.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", ""), f"`{sys.executable} tools/gen_examples.py --write` puts it right\n{ran.stderr}"
