# SPDX-License-Identifier: Apache-2.0
"""Finds what adapters of the tree offer for rounds in which only numbers moved: a module ``moving`` in their folder, with ``MOVING`` by format."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from muster.collect.swift import Moving
from muster.wiring.adapters import folders


def short_ways() -> Mapping[str, Moving]:
    """The short way of each format that has one."""
    found: dict[str, Moving] = {}
    for path, package in folders().values():
        if (path / "moving.py").exists():
            found.update(importlib.import_module(f"{package}.moving").MOVING)
    return found
