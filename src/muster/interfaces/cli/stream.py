# SPDX-License-Identifier: Apache-2.0
"""What happens on the roll, as the server tells it: read in the background, taken up where it stopped when the server was away."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.domain.model.errors import MusterError, Unavailable
from muster.interfaces.cli.cells import safe
from muster.interfaces.cli.client import Client
from muster.interfaces.cli.output import note

PATH = "/changes/stream"
QUIET = 60.0
"""Seconds without a sign of life after which the server is asked again: it gives one every 15."""
LONGEST = 15.0
"""Seconds between two tries at most."""
TOGETHER = 0.2
"""Seconds in which what comes is taken as one."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One thing that happened: ``kind`` is change or finding."""

    kind: str
    document: Mapping[str, Any]


class News:
    """What happens from now on. The first contact is made when it is begun; errors of it are raised, later ones are told once and tried again."""

    def __init__(self, client: Client, **query: Any) -> None:
        self._client = client
        self._query = query
        self._last = ""
        self._told: queue.SimpleQueue[Happened | MusterError] = queue.SimpleQueue()
        self._begun: queue.SimpleQueue[MusterError | None] = queue.SimpleQueue()

    def begin(self) -> None:
        """Starts to read. Raises what stands in the way."""
        threading.Thread(target=self._run, name="muster-stream", daemon=True).start()
        trouble = self._begun.get()
        if trouble is not None:
            raise trouble

    def within(self, seconds: float | None) -> list[Happened]:
        """What happened, waiting for it no longer than ``seconds`` (None: as long as it takes)."""
        found: list[Happened] = []
        while True:
            try:
                each = self._told.get(timeout=TOGETHER if found else seconds)
            except queue.Empty:
                return found
            if not isinstance(each, Happened):
                raise each
            found.append(each)

    def _run(self) -> None:
        trouble, wait, begun = "", 0.5, False
        while True:
            try:
                for happened in self._read():
                    if not begun:
                        self._begun.put(None)
                    begun, trouble, wait = True, "", 0.5
                    if happened is not None:
                        self._told.put(happened)
            except MusterError as error:
                if not begun:
                    self._begun.put(error)
                    return
                if not isinstance(error, Unavailable):
                    self._told.put(error)
                    return
                if error.message != trouble:
                    note(f"muster: {safe(error.message)}; it is asked again")
                trouble = error.message
            time.sleep(wait)
            wait = min(LONGEST, wait * 2)

    def _read(self) -> Iterator[Happened | None]:
        """Entries of one stream; None for a sign of life."""
        said: dict[str, str] = {}
        for line in self._client.lines(PATH, self._last, QUIET, self._query):
            text = line.decode("utf-8", errors="replace").rstrip("\r\n")
            if text and not text.startswith(":"):
                name, _, value = text.partition(":")
                said[name] = value.removeprefix(" ")
                continue
            self._last = said.get("id", self._last)
            yield Happened(said["event"], _document(said)) if said.get("event") in ("change", "finding") else None
            said = {}


def _document(said: Mapping[str, str]) -> Mapping[str, Any]:
    told = json.loads(said.get("data", "{}"))
    return told if isinstance(told, dict) else {}
