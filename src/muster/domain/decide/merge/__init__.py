# SPDX-License-Identifier: Apache-2.0
"""Merge: what several witnesses say becomes one roll of cards. Pure; see docs/explanation/identity.md for the rules."""

from __future__ import annotations

from muster.domain.decide.merge.roll import Entry, Merged, Region, Roll, merge, tick

__all__ = ["Entry", "Merged", "Region", "Roll", "merge", "tick"]
