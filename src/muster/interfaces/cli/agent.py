# SPDX-License-Identifier: Apache-2.0
"""`muster agent`: reports this machine, or a recorded one, to a server; joins one, and says who joined."""

from __future__ import annotations

import os
from pathlib import Path

import click

from muster.interfaces.cli.agent_node import join, leave, release, renew, status
from muster.interfaces.cli.agent_site import list_, reenrol, revoke, token


@click.group(invoke_without_command=True)
@click.option("--server", metavar="URL", help="The server, or the path of its socket; left out: MUSTER_SERVER, the one joined, or the one on this machine.")
@click.option("--machine", metavar="DIR", type=click.Path(path_type=Path), help="Report a recorded machine instead of this one.")
@click.option("--state", metavar="DIR", type=click.Path(path_type=Path), help="Where reports wait and cursors are kept.")
@click.option("--once", is_flag=True, help="Read every source once, deliver, and end.")
@click.option("-v", "--verbose", is_flag=True, help="Say more on stderr.")
@click.pass_context
def agent(context: click.Context, /, server: str | None, machine: Path | None, state: Path | None, once: bool, verbose: bool) -> int:
    """Reports this machine to a server.

    Sources are read at their own pace, hung drivers are waited for without harm, and reports wait on disk while the server is away.
    Without a command the agent runs; the commands join a server and look after that on the node, or rule on the server who may join.
    """
    if context.invoked_subcommand is not None:
        return 0
    from muster.collect.words import log_to_stderr
    from muster.wiring.agent import Settings, run_agent

    log_to_stderr(verbose=verbose)
    return run_agent(Settings.of(os.environ, server, machine, state), os.environ, once=once)


for _each in (join, status, renew, leave, release, token, list_, revoke, reenrol):
    agent.add_command(_each)
