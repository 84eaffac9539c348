# SPDX-License-Identifier: Apache-2.0
"""`muster demo`: a small site on this machine, and its story told with the commands that anyone can run on it."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from muster.domain.model.errors import Unavailable
from muster.interfaces.cli.exits import OK
from muster.wiring.demo import Demo
from muster.wiring.demo_story import Await, Beat, Chapter, Say, Show, Story, preface

PATIENCE_S = 30.0
"""Seconds in which something that was begun must be seen."""
LATE_S = 0.5
"""Seconds after which a wait is told."""
_LOOK_S = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="PORT", help="Port of its server; left out: any free one.")
@click.option("--pause", type=click.FloatRange(0, 60), default=None, metavar="SECONDS", help="Time to read after each step; 1 at a terminal, else none.")
@click.option("--no-serve", is_flag=True, help="End after the story; it always ends where the output is no terminal.")
@click.pass_context
def demo(context: click.Context, port: int, pause: float | None, no_serve: bool) -> int:
    """A small site on this machine: a server, an agent for each recorded machine, and a story of eight steps in half a minute.

    It lives in a temporary folder and touches no other server. At a terminal it then serves until Ctrl-C.
    """
    person = sys.stdout.isatty()
    ending = threading.Event()
    with _signals(ending), Demo(context.obj["door"], _progress, port=port) as site, _environment(site.server.url):
        for each in site.loaded.failed:
            click.echo(f"muster: {each}", err=True)
        teller = Teller(site, ending, (1.0 if person else 0.0) if pause is None else pause)
        teller.tell()
        if person and not no_serve:
            teller.serve()
    return OK


def _progress(text: str) -> None:
    click.echo(f"... {text}")


@contextlib.contextmanager
def _signals(ending: threading.Event) -> Iterator[None]:
    """Ctrl-C, SIGTERM and the end of the terminal set ``ending``, so that everything is stopped in order."""
    before = {each: signal.signal(each, lambda *_: ending.set()) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def _environment(url: str) -> Iterator[None]:
    """Commands of this process speak to the demo's server, and print tables."""
    mine: Mapping[str, str] = {"MUSTER_SERVER": url, "MUSTER_OUTPUT": "table", "MUSTER_TIMEOUT": "30"}
    before = {key: os.environ.get(key) for key in mine}
    os.environ.update(mine)
    try:
        yield
    finally:
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})


class Teller:
    """Prints the story, runs its commands, and waits for what it says will come."""

    def __init__(self, site: Demo, ending: threading.Event, pause: float) -> None:
        self._site = site
        self._ending = ending
        self._pause = pause
        self._step = 0
        self._began = time.monotonic()

    def tell(self) -> None:
        """All of it. Raises KeyboardInterrupt on a signal, Unavailable when something does not come."""
        story = Story(self._site)
        for line in (*preface(self._site), f"In another terminal: export MUSTER_SERVER={self._site.server.url}"):
            click.echo(line)
        self._site.fleet.start()
        for beat in story.beats():
            self._beat(beat)
            if self._ending.is_set():
                raise KeyboardInterrupt
        self._rest()
        click.secho(f"\n{story.summary(self._step)} in {time.monotonic() - self._began:.0f} s.", bold=True)

    def serve(self) -> None:
        """Lives on until a signal comes, or a part of the site ends."""
        click.echo(f"\nServing until Ctrl-C. In another terminal:\n\n  export MUSTER_SERVER={self._site.server.url}")
        for line in ("muster status", "muster get findings", "muster get sources", "muster top", "muster describe node NAME"):
            click.echo(f"  {line}")
        while not self._ending.wait(1.0):
            if self._site.server.broken or self._site.fleet.broken:
                raise Unavailable(self._site.trouble, hint="run `muster demo` again")
        click.echo("\nStopped; nothing is left behind.")

    def _beat(self, beat: Beat) -> None:
        match beat:
            case Chapter(title):
                self._rest()
                self._step += 1
                click.secho(f"\n{self._step}. {title}", bold=True)
            case Say(text):
                click.echo(text)
            case Show():
                self._show(beat)
            case Await(what, done):
                self._await(what, done)
        sys.stdout.flush()

    def _rest(self) -> None:
        if self._step and self._ending.wait(self._pause):
            raise KeyboardInterrupt

    def _await(self, what: str, done: Any) -> None:
        began, said = time.monotonic(), False
        while not done():
            waited = time.monotonic() - began
            if waited > LATE_S and not said:
                said = True
                click.echo(f"... waiting until {what}")
                sys.stdout.flush()
            if waited > PATIENCE_S:
                why = self._site.trouble or "this machine is busy"
                raise Unavailable(f"the demo waited {PATIENCE_S:g} s in vain until {what}: {why}", hint="run `muster demo` again when there is less to do")
            if self._ending.wait(_LOOK_S):
                raise KeyboardInterrupt

    def _show(self, beat: Show) -> None:
        pipe = f" | head -{beat.head}" if beat.head else f" | grep {shlex.quote(beat.grep)}" if beat.grep else ""
        click.secho(f"\n$ muster {shlex.join(beat.command)}{pipe}", fg="cyan")
        sys.stdout.flush()
        if not pipe:
            _run(beat.command)
            return
        with contextlib.redirect_stdout(io.StringIO()) as caught:
            _run(beat.command)
        lines = [line for line in caught.getvalue().splitlines() if beat.grep in line]
        click.echo("\n".join(lines[: beat.head or None]).rstrip())


def _run(command: tuple[str, ...]) -> None:
    """The command as the command line runs it; what it says beside its output goes with it."""
    from muster.interfaces.cli.main import muster

    with contextlib.redirect_stderr(sys.stdout), muster.make_context("muster", list(command)) as context:
        muster.invoke(context)
