# SPDX-License-Identifier: Apache-2.0
"""Hands what changes something from a door in a process of its own to the writer: calls over a pair of sockets that no third process can reach.

What crosses is pickled. Both ends are one program under one user, parent and child, and the pair is made before they part.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping
from multiprocessing.connection import Connection
from typing import Any

from muster.domain.model.errors import MusterError, Unavailable

LOST = Unavailable("the writer does not answer", hint="the server is stopping, or its writer has ended; its log says more")


class Handing:
    """The writer's end: answers calls of the methods that are listed, one after the other."""

    def __init__(self, line: Connection, objects: Mapping[str, tuple[Any, Iterable[str]]]) -> None:
        self._line = line
        self._objects = {name: (made, frozenset(methods)) for name, (made, methods) in objects.items()}
        self._thread = threading.Thread(target=self._serve, name="muster-handing", daemon=True)

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def close(self) -> None:
        """Hangs up."""
        with contextlib.suppress(OSError):
            self._line.close()

    def _serve(self) -> None:
        while True:
            try:
                name, method, args, kwargs = self._line.recv()
            except (EOFError, OSError):
                return
            answer = self._answer(name, method, args, kwargs)
            try:
                self._line.send(answer)
            except (OSError, ValueError):
                return

    def _answer(self, name: str, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
        made, methods = self._objects.get(name, (None, frozenset()))
        if method not in methods:
            return False, Unavailable(f"{name}.{method} is not handed to the writer")
        try:
            return True, getattr(made, method)(*args, **kwargs)
        except MusterError as error:
            return False, error
        except Exception as error:  # noqa: BLE001 - whatever the writer raises must reach the door, or it waits for ever
            return False, Unavailable(f"the writer failed: {type(error).__name__}: {error}")


class Handed:
    """The door's end of one line. Safe for several threads, which wait for each other."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._lock = threading.Lock()

    def call(self, name: str, method: str, *args: Any, **kwargs: Any) -> Any:
        """What the writer's object answers. Raises what it raises; Unavailable when the writer is gone."""
        with self._lock:
            try:
                self._line.send((name, method, args, kwargs))
                done, answer = self._line.recv()
            except (EOFError, OSError) as error:
                raise LOST from error
        if not done:
            raise answer
        return answer

    def object(self, name: str) -> Any:
        """An object whose methods are the writer's."""
        return Remote(self, name)


class Remote:
    """Stands in a door for one of the writer's objects."""

    def __init__(self, handed: Handed, name: str) -> None:
        self._handed = handed
        self._name = name

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda *args, **kwargs: self._handed.call(self._name, method, *args, **kwargs)
