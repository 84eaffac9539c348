# SPDX-License-Identifier: Apache-2.0
"""What takes minutes runs only when it is asked for: `make fuzz` gives Hypothesis the profile of that name."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def at_length(pytestconfig: pytest.Config) -> None:
    """Skips the test unless the run asked for the long part."""
    if pytestconfig.getoption("--hypothesis-profile") != "fuzz":
        pytest.skip("the long part: make fuzz")
