# SPDX-License-Identifier: Apache-2.0
"""Huawei Ascend: what its tools, its library and its exporter say, read into observations."""

from __future__ import annotations

from muster.adapters.huawei.interpret import interpret
from muster.adapters.huawei.recognise import recognise

__all__ = ["interpret", "recognise"]
