# SPDX-License-Identifier: Apache-2.0
"""The specification of the roll, case by case, against the real store path; and again with the service started anew before every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.cases.runner import Case


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_case(case: tuple[Mapping[str, Any], Mapping[str, Any]], restart: bool) -> None:
    defaults, told = case

    faults = Case(told, defaults).run(restart)

    assert faults == []
