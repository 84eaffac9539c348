# SPDX-License-Identifier: Apache-2.0
"""The command `muster`. Knows the doors, imports what the command asked for and no more."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line."""
    from muster.interfaces.cli.main import run

    sys.exit(run())


if __name__ == "__main__":
    main()
