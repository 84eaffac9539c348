# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document as `make docs` writes it to docs/reference/openapi.json; `python -m muster.interfaces.api.spec` prints it."""

from __future__ import annotations

import json
import sys
from typing import Any, cast

from muster.domain.model.policy import Policy
from muster.interfaces.api.app import build, document
from muster.spi.store import RollReader
from muster.wiring.desk import Desk, Keeper


def text() -> str:
    """The document as it is checked in."""
    nobody: Any = None
    desk = Desk(reader=cast(RollReader, nobody), keeper=cast(Keeper, nobody), policy=Policy(), clock=lambda: 0.0)
    return json.dumps(document(build(desk)), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
