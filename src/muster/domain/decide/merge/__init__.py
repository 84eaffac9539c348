# SPDX-License-Identifier: Apache-2.0
"""Merge: what several witnesses say becomes one roll of cards. Pure; see docs/explanation/identity.md for the rules."""

from __future__ import annotations

from muster.domain.decide.merge.naming import known_names, names_of
from muster.domain.decide.merge.region import Entry, Merged, Region, Roll
from muster.domain.decide.merge.rest import at_rest, next_due
from muster.domain.decide.merge.roll import merge, restore, tick

__all__ = ["Entry", "Merged", "Region", "Roll", "at_rest", "known_names", "merge", "names_of", "next_due", "restore", "tick"]
