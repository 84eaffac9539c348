# SPDX-License-Identifier: Apache-2.0
"""The command `muster`. Knows the doors, imports what the command asked for and no more."""

from __future__ import annotations

import sys
from typing import Any


def main() -> None:
    """Runs the command line."""
    from muster.interfaces.cli.main import run

    sys.exit(run(door=_api, ingest=_reporters))


def _api(desk: Any) -> Any:
    """The door that `muster server` opens: the API on a desk."""
    from muster.interfaces.api.app import build

    return build(desk)


def _reporters(*parts: Any) -> Any:
    """The door of reporters that `muster server` opens, on a gate, an intake, a clock, a TLS context and the settings."""
    from muster.interfaces.ingest.opened import reporters

    return reporters(*parts)


if __name__ == "__main__":
    main()
