# SPDX-License-Identifier: Apache-2.0
"""The worker: a process of its own in which functions run that may hang, crash or print. ``python -m muster.readers.worker``.

One request is one JSON line on standard input: ``{"call": "module:function", "arguments": [...], "search": [folders]}``.
One answer is one JSON line on standard output: ``{"value": ...}``, or ``{"error": KIND, "type": CLASS, "detail": TEXT}``,
with ``"outcome"`` where the error names one.
KIND is ``import`` (the module, or what it needs, is not installed), ``function`` (it has no such function), ``raised``, or ``not_json``.
The worker ends when its input ends. What the functions print goes to standard error.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

_ADAPTERS = "muster.adapters"
_DETAIL_LIMIT = 2000
_GARBAGE = 20_000
"""New objects that lie around before circles among them are looked for: an answer makes thousands, and leaves none."""

_found: dict[str, Callable[..., Any]] = {}
"""Functions that were called, by their locator."""


def main() -> int:
    """Answers requests until the input ends."""
    answers = os.dup(1)
    os.dup2(2, 1)
    gc.set_threshold(_GARBAGE)
    for line in sys.stdin.buffer:
        _write(answers, told(json.loads(line)))
    return 0


def told(request: dict[str, Any]) -> bytes:
    """The answer as a line of JSON."""
    found = answer(request)
    try:
        return (json.dumps(found) + "\n").encode()
    except (TypeError, ValueError, RecursionError) as error:
        return (json.dumps(_error("not_json", error)) + "\n").encode()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request; an error in the function that is called is an answer too."""
    sys.path.extend(folder for folder in request.get("search", ()) if folder not in sys.path)
    try:
        function = _function(request["call"])
    except (ImportError, OSError) as error:
        return _error("import", error)
    except AttributeError as error:
        return _error("function", error)
    return _called(function, request.get("arguments", ()))


def _function(locator: str) -> Callable[..., Any]:
    known = _found.get(locator)
    if known is not None:
        return known
    module, _, name = locator.partition(":")
    importlib.invalidate_caches()
    _bare_package(module.rpartition(".")[0])
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    _found[locator] = found
    return found


def _bare_package(name: str) -> None:
    """Makes an adapter's package known by its folder alone: what interprets is not loaded here, where only its library is called."""
    outer, _, last = name.rpartition(".")
    if outer != _ADAPTERS or name in sys.modules:
        return
    folders = [f"{folder}/{last}" for folder in importlib.import_module(outer).__path__]
    package = ModuleType(name)
    package.__path__ = [folder for folder in folders if os.path.isdir(folder)]
    sys.modules[name] = package


def _called(function: Callable[..., Any], arguments: Sequence[Any]) -> dict[str, Any]:
    try:
        value = function(*arguments)
    except Exception as error:  # noqa: BLE001  # the edge of the process: whatever a vendor's module raises becomes an answer
        return _error("import" if _not_installed(error) else "raised", error)
    return {"value": value}


def _not_installed(error: Exception) -> bool:
    return isinstance(error, ImportError) or (isinstance(error, OSError) and "cannot open shared object file" in str(error))


def _error(kind: str, error: Exception) -> dict[str, Any]:
    told = {"error": kind, "type": type(error).__name__, "detail": str(error)[:_DETAIL_LIMIT]}
    outcome = getattr(error, "outcome", None)
    return {**told, "outcome": str(outcome)} if outcome is not None else told


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


if __name__ == "__main__":
    sys.exit(main())
