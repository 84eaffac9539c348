# SPDX-License-Identifier: Apache-2.0
"""Captures by the digest of their content, packed, within bounds of bytes and age; the oldest go first. On disk where there is a folder, else in memory.

One file per capture: ``<order>-<digest>-<source>.capture``. What gets here has lost names and secrets before.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from muster.wire.report import CaptureDoc

_log = logging.getLogger("muster.ring")

_SUFFIX = ".capture"
_STRANGE = re.compile(r"[^A-Za-z0-9_.]")
_LONGEST_NAME = 80
_MOST = 64 * 1024 * 1024

_pack = msgspec.msgpack.Encoder()
_unpack = msgspec.msgpack.Decoder(CaptureDoc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Bytes of all captures, of those of one source, and seconds that one is kept."""

    size: int = 64 * 1024 * 1024
    per_source: int = 16 * 1024 * 1024
    age: float = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class _Entry:
    order: int
    source: str
    size: int
    at: float
    body: bytes = b""


class Ring:
    """The captures kept. For one thread."""

    def __init__(self, folder: Path | None = None, room: Room | None = None) -> None:
        self._folder = folder
        self._room = room or Room()
        self._kept: OrderedDict[str, _Entry] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._said = ""
        self._next = 1
        self.size = 0
        """Bytes kept, packed."""
        if folder is not None:
            self._find(folder)

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, digest: str) -> bool:
        return digest in self._kept

    def keep(self, doc: CaptureDoc, now: float) -> bool:
        """Keeps a capture; ``now`` is wall time. False where it cannot be written, which is said once, or is larger than the room."""
        self._drop(doc.digest)
        source = _STRANGE.sub("_", doc.source)[:_LONGEST_NAME]
        body = _pack.encode(msgspec.structs.replace(doc, payload=zlib.compress(doc.payload, 1)))
        entry = _Entry(self._next, source, len(body), now, b"" if self._folder else body)
        if self._folder is not None and not self._written(self._path(entry, doc.digest), body):
            return False
        self._next += 1
        self._enter(doc.digest, entry)
        self._fit(source, now)
        return doc.digest in self._kept

    def get(self, digest: str) -> CaptureDoc | None:
        """The capture with this digest, while it is kept and whole."""
        entry = self._kept.get(digest)
        if entry is None:
            return None
        try:
            doc = _unpack.decode(entry.body if self._folder is None else self._path(entry, digest).read_bytes())
            unpacked = zlib.decompressobj()
            payload = unpacked.decompress(doc.payload, _MOST)
        except (OSError, msgspec.DecodeError, zlib.error, ValueError) as error:
            _log.warning("a capture of %s cannot be read and is dropped: %s", entry.source, error)
            self._drop(digest)
            return None
        return msgspec.structs.replace(doc, payload=payload)

    def _fit(self, source: str, now: float) -> None:
        while self._sizes.get(source, 0) > self._room.per_source:
            self._drop(next(digest for digest, each in self._kept.items() if each.source == source))
        while self._kept:
            digest, oldest = next(iter(self._kept.items()))
            if self.size <= self._room.size and now - oldest.at <= self._room.age:
                break
            self._drop(digest)

    def _enter(self, digest: str, entry: _Entry) -> None:
        self._kept[digest] = entry
        self.size += entry.size
        self._sizes[entry.source] = self._sizes.get(entry.source, 0) + entry.size

    def _drop(self, digest: str) -> None:
        entry = self._kept.pop(digest, None)
        if entry is None:
            return
        self.size -= entry.size
        self._sizes[entry.source] -= entry.size
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._path(entry, digest).unlink(missing_ok=True)

    def _path(self, entry: _Entry, digest: str) -> Path:
        return (self._folder or Path()) / f"{entry.order:016d}-{digest}-{entry.source}{_SUFFIX}"

    def _written(self, path: Path, body: bytes) -> bool:
        part = path.with_name(f"{path.name}.part")
        try:
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(body)
            part.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            if self._said != str(error.strerror):
                _log.warning("captures are not kept: %s: %s", path.parent, error.strerror)
            self._said = str(error.strerror)
            return False
        self._said = ""
        return True

    def _find(self, folder: Path) -> None:
        """What an earlier process kept; files that it did not write whole are removed."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for digest, entry in _left(folder):
                self._enter(digest, entry)
                self._next = entry.order + 1
        except OSError as error:
            _log.warning("captures of before are not found: %s: %s", folder, error.strerror)


def _left(folder: Path) -> Iterator[tuple[str, _Entry]]:
    for path in sorted(folder.iterdir()):
        if path.name.endswith(".part"):
            with contextlib.suppress(OSError):
                path.unlink()
            continue
        order, _, rest = path.name.removesuffix(_SUFFIX).partition("-")
        digest, _, source = rest.partition("-")
        if path.name.endswith(_SUFFIX) and order.isdecimal() and digest and source:
            found = path.lstat()
            yield digest, _Entry(int(order), source, found.st_size, found.st_mtime)
