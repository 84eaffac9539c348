# SPDX-License-Identifier: Apache-2.0
"""A backup as one file: a tar of copies with a manifest at its end that says what they are and how many bytes of which digest each must have."""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from muster.domain.model.errors import Conflict, InputError, NotFound, Unavailable

MANIFEST = "manifest.json"
FORM = 1
"""Of the archive itself; a newer one is refused."""
_MEMBER = re.compile(r"(roll\.sqlite|roll\.pgdump|minutes/[0-9]+\.segment|authority/[A-Za-z0-9_][A-Za-z0-9._-]*)")
_PIECE = 1024 * 1024


class Member(msgspec.Struct, frozen=True):
    """One file of a backup."""

    name: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What a backup is."""

    muster: str
    """Version that made it."""
    schema: str
    made_at: float
    members: list[Member]
    form: int = FORM


class Archive:
    """A backup that is being written: members are added, then `finish` makes it whole under its name."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._part = file.with_name(f".{file.name}.part")
        self._part.unlink(missing_ok=True)
        handle = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._out = os.fdopen(handle, "wb")
        self._tar = tarfile.TarFile(fileobj=self._out, mode="w", format=tarfile.PAX_FORMAT)
        self._members: list[Member] = []

    def add(self, name: str, file: Path) -> None:
        """Adds a file under a name, with its digest."""
        with file.open("rb") as source:
            counted = _Counted(source)
            size = file.stat().st_size
            self._tar.addfile(_header(name, size), counted)
        self._members.append(Member(name, size, counted.digest.hexdigest()))

    def finish(self, muster: str, schema: str, made_at: float) -> Manifest:
        """Writes the manifest; the file is whole and durable under its name then. Raises Conflict when there is one of that name by now."""
        manifest = Manifest(muster, schema, made_at, self._members)
        body = msgspec.json.format(msgspec.json.encode(manifest))
        self._tar.addfile(_header(MANIFEST, len(body)), io.BytesIO(body))
        self._tar.close()
        self._out.flush()
        os.fsync(self._out.fileno())
        self._out.close()
        try:
            os.link(self._part, self._file)
        except FileExistsError:
            raise Conflict(f"{self._file} is there already", hint="name another file") from None
        self._part.unlink()
        return manifest

    def abandon(self) -> None:
        """Leaves nothing behind of one that was not finished."""
        self._out.close()
        self._part.unlink(missing_ok=True)


@contextmanager
def writing(file: Path) -> Iterator[Archive]:
    """A new backup. Raises Conflict for a name that is taken, Unavailable when it cannot be written; nothing is left behind then."""
    if file.exists():
        raise Conflict(f"{file} is there already", hint="name another file")
    try:
        archive = Archive(file)
    except OSError as error:
        raise _unwritten(file, error) from error
    try:
        yield archive
    except OSError as error:
        raise _unwritten(file, error) from error
    finally:
        archive.abandon()


def unpack(file: Path, opened: IO[bytes], folder: Path) -> Manifest:
    """Puts the members of the opened file into ``folder``. Raises InputError for one that is no backup or not whole, Unavailable when there is no room."""
    found: dict[str, Member] = {}
    manifest: Any = None
    try:
        with tarfile.open(fileobj=opened, mode="r:") as tar:
            for entry in tar:
                source = tar.extractfile(entry) if entry.isreg() else None
                if source is None or not (entry.name == MANIFEST or _MEMBER.fullmatch(entry.name)):
                    raise InputError(f"{file} is no backup of Muster: it holds {entry.name!r}", hint="name a file that `muster server backup` wrote")
                if entry.name == MANIFEST:
                    manifest = msgspec.json.decode(source.read(_PIECE * 16), type=Manifest)
                else:
                    found[entry.name] = _placed(source, entry.name, folder)
    except (tarfile.TarError, msgspec.MsgspecError, EOFError) as error:
        raise InputError(f"{file} is no whole backup: {error}", hint="name a file that `muster server backup` wrote") from error
    except OSError as error:
        raise Unavailable(f"{file} cannot be unpacked: {error.strerror or error}", hint=f"make room in {folder.parent}") from error
    _whole(file, manifest, found)
    told: Manifest = manifest
    return told


def told(file: Path) -> Manifest:
    """What a backup says that it is; its members are passed over. Raises NotFound, Unavailable, InputError for one that is no backup or is cut."""
    manifest: Manifest | None = None
    try:
        with reading(file) as opened, tarfile.open(fileobj=opened, mode="r:") as tar:
            source = tar.extractfile(MANIFEST) if MANIFEST in tar.getnames() else None
            manifest = msgspec.json.decode(source.read(_PIECE * 16), type=Manifest) if source is not None else None
    except (tarfile.TarError, msgspec.MsgspecError, EOFError) as error:
        raise InputError(f"{file} is no whole backup: {error}", hint="name a file that `muster server backup` wrote") from error
    if manifest is None:
        raise InputError(f"{file} is no backup of Muster, or its end is missing", hint="name a file that `muster server backup` wrote")
    return manifest


def reading(file: Path) -> IO[bytes]:
    """A backup that is there. Raises NotFound, Unavailable."""
    try:
        return file.open("rb")
    except FileNotFoundError as error:
        raise NotFound(f"no file {file}", hint="name a file that `muster server backup` wrote") from error
    except OSError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}", hint="let this user read it") from error


def _whole(file: Path, manifest: Manifest | None, found: dict[str, Member]) -> None:
    if manifest is None:
        raise InputError(f"{file} is cut: its end is missing", hint="take another backup")
    if manifest.form > FORM:
        raise InputError(f"{file} was made by a newer Muster ({manifest.muster})", hint="upgrade Muster first")
    told = {each.name: each for each in manifest.members}
    bad = sorted(name for name in told.keys() | found.keys() if told.get(name) != found.get(name))
    if bad:
        raise InputError(f"{file} is damaged: {bad[0]} is not as it was written", hint="take another backup")


def _placed(source: Any, name: str, folder: Path) -> Member:
    target = folder / name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    counted = _Counted(source)
    size = 0
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        while piece := counted.read(_PIECE):
            out.write(piece)
            size += len(piece)
    return Member(name, size, counted.digest.hexdigest())


class _Counted:
    """A file whose bytes are digested as they are read."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        piece: bytes = self._source.read(size)
        self.digest.update(piece)
        return piece


def _header(name: str, size: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mode = size, 0o600
    return header


def _unwritten(file: Path, error: OSError) -> Unavailable:
    return Unavailable(f"{file} cannot be written: {error.strerror or error}", hint="name a file in a folder that has room and that you may write")
