# SPDX-License-Identifier: Apache-2.0
"""The node itself as a source: who it is and what system it runs, from files that every Linux has. Vendor-neutral, and read like any other source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from muster.domain.model.gather import Gather
from muster.domain.model.names import NameKind, names_nothing
from muster.domain.model.observation import Interpretation
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.source import Capture, Outcome, Read, ReaderKind, Source, SourceId, WitnessClass
from muster.spi.adapter import Manifest
from muster.wire.report import NodeDoc

FORMAT = "node-files"
NODE = SourceId("node.files")

_DMI = "/sys/class/dmi/id/"
_FILES = (
    "/etc/machine-id",
    "/etc/os-release",
    "/proc/meminfo",
    "/proc/sys/kernel/{hostname,osrelease,random/boot_id}",
    "/sys/devices/system/cpu/online",
    _DMI + "{product_uuid,product_serial,product_name,sys_vendor}",
    "/proc/device-tree/serial-number",
)
_TEXTS = {
    "node.name": "/proc/sys/kernel/hostname",
    "node.machine_id": "/etc/machine-id",
    "node.boot_id": "/proc/sys/kernel/random/boot_id",
    "node.kernel": "/proc/sys/kernel/osrelease",
    "server.manufacturer": _DMI + "sys_vendor",
    "server.model": _DMI + "product_name",
    "server.serial": _DMI + "product_serial",
    "server.uuid": _DMI + "product_uuid",
}
_IDS = {"server.serial": NameKind.SERIAL, "server.uuid": NameKind.SYSTEM, "node.machine_id": NameKind.MACHINE}
_MARKS = {"!not_permitted": Why.NOT_PERMITTED, "!error": Why.ERROR}

Files = Mapping[str, Sequence[str]]


def _manifest() -> Manifest:
    return Manifest(name="node", title="the node itself", tier="seen", formats={FORMAT: "files of the system, one line per line of a file"})


def _sources() -> tuple[Source, ...]:
    source = Source(
        id=NODE,
        adapter="node",
        reader=ReaderKind.FILES,
        reads=(Read(locator=_FILES, format=FORMAT),),
        witness=WitnessClass.DRIVER,
        cadence=timedelta(minutes=10),
        deadline=timedelta(seconds=10),
        install="serial and UUID of the chassis are readable for root only",
    )
    return (source,)


@dataclass(frozen=True, slots=True)
class NodeAdapter:
    """The built-in adapter of the node's own files."""

    manifest: Manifest = field(default_factory=_manifest)
    sources: Sequence[Source] = field(default_factory=_sources)

    def recognise(self, head: bytes) -> str | None:
        """Claims only its own files."""
        return FORMAT if any(f"{path}: ".encode() in head for path in (_TEXTS["node.machine_id"], _TEXTS["node.boot_id"])) else None

    def interpret(self, captures: Sequence[Capture]) -> Interpretation:
        """One observation of the node. It lists no cards, so it is never complete."""
        failed = [each for each in captures if each.failure is not None]
        if failed and len(failed) == len(captures):
            return Interpretation(outcome=failed[0].failure or Outcome.UNREADABLE, format=FORMAT, detail=failed[0].detail)
        files = _files(captures)
        gather = Gather()
        for key, reading in readings(files):
            gather.node.put(key, reading)
        doc = node_doc(files)
        gather.node.named(name=doc.name, machine_id=doc.machine_id, system=doc.system)
        return Interpretation(outcome=Outcome.NO_DEVICES, format=FORMAT, observations=gather.observations())


def _files(captures: Sequence[Capture]) -> Files:
    rows: dict[str, list[str]] = defaultdict(list)
    for capture in captures:
        for line in capture.payload.decode("utf-8", "replace").splitlines():
            path, found, text = line.partition(": ")
            if found:
                rows[path].append(text.strip("\0 \t"))
    return rows


def node_of(captures: Sequence[Capture]) -> NodeDoc:
    """What the node calls itself, from the captures of its own source. The name is empty when no file gave one."""
    return node_doc(_files([each for each in captures if each.failure is None]))


def node_doc(files: Files) -> NodeDoc:
    """Host name, machine id, and the chassis' UUID or else its serial; what could not be read, or names nothing, is left out."""

    def named(key: str) -> str:
        found = _text(files, _TEXTS[key])
        return found.value if isinstance(found, Known) and not names_nothing(_IDS[key], found.value) else ""

    name = _text(files, _TEXTS["node.name"])
    board = _text(files, "/proc/device-tree/serial-number")
    system = named("server.uuid") or named("server.serial") or (board.value if isinstance(board, Known) else "")
    return NodeDoc(name=name.value if isinstance(name, Known) else "", machine_id=named("node.machine_id"), system=system)


def readings(files: Files) -> Iterator[tuple[str, Reading | None]]:
    """Readings of the node; a file that was not there gives none."""
    for key, path in _TEXTS.items():
        reading = _text(files, path)
        hollow = isinstance(reading, Known) and key in _IDS and names_nothing(_IDS[key], reading.value)
        yield key, Absent(Why.NOT_REPORTED, str(reading.value)) if hollow and isinstance(reading, Known) else reading
    yield "node.os", _system(files.get("/etc/os-release", ()))
    yield "node.cpu.count", _count(_text(files, "/sys/devices/system/cpu/online"))
    yield "node.memory.total", _memory(files.get("/proc/meminfo", ()))


def _text(files: Files, path: str) -> Reading | None:
    rows = files.get(path)
    if not rows:
        return None
    mark = rows[0].partition(" ")[0]
    if mark in _MARKS:
        return Absent(_MARKS[mark], rows[0])
    return Known(rows[0]) if rows[0] else None


def _system(rows: Sequence[str]) -> Reading | None:
    pairs = dict(row.partition("=")[::2] for row in rows)
    name = pairs.get("PRETTY_NAME") or pairs.get("NAME")
    return Known(name.strip("\"'")) if name else None


def _count(online: Reading | None) -> Reading | None:
    """``0-3,8`` are five."""
    if not isinstance(online, Known):
        return online
    total = 0
    for part in str(online.value).split(","):
        low, _, high = part.partition("-")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return Absent(Why.UNREADABLE, str(online.value)[:80])
        total += int(high or low) - int(low) + 1
    return Known(total)


def _memory(rows: Sequence[str]) -> Reading | None:
    for row in rows:
        words = row.split()
        if words[:1] == ["MemTotal:"]:
            return Known(int(words[1]) * 1024) if len(words) == 3 and words[1].isdecimal() else Absent(Why.UNREADABLE, row[:80])
    return None
