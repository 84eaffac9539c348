# SPDX-License-Identifier: Apache-2.0
"""Every code that the source can answer stands in the reference, wherever it is spelt."""

from __future__ import annotations

import re
from importlib import import_module

from tests.house.tree import ROOT, nothing

finder = import_module("tools.reference_errors")
PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| ([\d, ]*) \|", re.MULTILINE)


def test_codes_that_are_spelt_out_are_seen() -> None:
    text = """
raise WebError(422, "it was used", code="key_used", hint="another")
raise WebError(406, "not made so")
answers.problem(417, "bad_request", "cannot be met", path=path)
answers.problem(CODES["busy"], "busy", why)
problems.answer(503, error.code, error.message)
"""
    assert finder.spoken([text]) == {"key_used": {422}, "bad_request": {417}, "busy": set()}


def test_every_code_that_is_spelt_out_is_described() -> None:
    told = {code: {int(each) for each in statuses.replace(" ", "").split(",") if each} for code, statuses in ROW.findall(PAGE)}
    found = finder.spoken(finder.sources())

    assert {"key_used", "too_slow", "length_required", "wrong_host", "too_large"} <= set(found)
    nothing(f"{code} {statuses}" for code, statuses in found.items() if not statuses <= told.get(code, set()) or code not in told)
