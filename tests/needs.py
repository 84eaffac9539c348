# SPDX-License-Identifier: Apache-2.0
"""What a test needs of the machine that it runs on: where it is lacking the test is skipped with the reason, but fails when CI=true."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def lacks(what: str) -> NoReturn:
    """The test cannot be made here."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}: CI has all that tests need")
    pytest.skip(what)


def program(name: str) -> str:
    """The path of a program, which must be there."""
    return shutil.which(name) or lacks(f"no {name} on this machine")
