# SPDX-License-Identifier: Apache-2.0
"""The agent's own door: ``python -m muster.interfaces.agent``, for a service unit. It loads nothing but what the agent needs."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from muster.collect.words import LINE, log_to_stderr, plain
from muster.domain.model.errors import MusterError
from muster.wiring.agent import Settings, run_agent


def main(arguments: list[str] | None = None) -> int:
    """Runs the agent and returns its exit code: 0, 1 for reports refused, 5 and 6 for a state folder or server that cannot be used."""
    told = _parser().parse_args(arguments)
    log_to_stderr(verbose=told.verbose)
    try:
        return run_agent(Settings.of(os.environ, told.server, told.machine, told.state), os.environ, once=told.once)
    except MusterError as error:
        sys.stderr.write(f"muster: {plain(error.message, LINE)}\n" + (f"  {plain(error.hint, LINE)}\n" if error.hint else ""))
        return {"invalid_input": 2, "not_found": 3, "not_allowed": 4, "conflict": 5, "unavailable": 6}.get(error.code, 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="muster agent", description="Reports this machine to a server.")
    parser.add_argument("--server", metavar="URL", help="the server, or the path of its socket; left out: MUSTER_SERVER, else the one on this machine")
    parser.add_argument("--machine", metavar="DIR", type=Path, help="report a recorded machine instead of this one")
    parser.add_argument("--state", metavar="DIR", type=Path, help="where reports wait and cursors are kept")
    parser.add_argument("--once", action="store_true", help="read every source once, deliver, and end")
    parser.add_argument("-v", "--verbose", action="store_true", help="say more on stderr")
    return parser


def run() -> None:
    """The command `muster-agent`."""
    sys.exit(main())


if __name__ == "__main__":
    run()
