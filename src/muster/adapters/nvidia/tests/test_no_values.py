# SPDX-License-Identifier: Apache-2.0
"""Numbers that stand for no value, and numbers that are none: in no layout do they become a reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from muster.adapters.nvidia.tests.conftest import Answer
from muster.wire.documents import interpretation_document

UUID = "GPU-5a0e7d10-1111-4a2b-9c3d-0123456789a{}"
NONE = ("4294967295", "18446744073709551615", "9223372036854775807", "-1")
Ask = Callable[..., Answer]


@pytest.mark.parametrize("none", NONE)
def test_counters_of_a_query(ask: Ask, none: str) -> None:
    columns = "ecc.errors.corrected.volatile.total, remapped_rows.correctable, retired_pages.single_bit_ecc.count, retired_pages.double_bit.count"
    told = ask(f"index, uuid, {columns}, clocks_throttle_reasons.active\n0, {UUID.format(0)}, {none}, {none}, {none}, 5, 0xFFFFFFFFFFFFFFFF\n")

    for key in ("errors.memory.corrected", "memory.rows_remapped.corrected", "memory.pages_retired", "throttle.reasons"):
        assert told.values(key)[0].startswith("!"), key
