# SPDX-License-Identifier: Apache-2.0
"""The real readers of one process, sharing one custody: what `muster scan` and the agent hand to collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.domain.model.source import ReaderKind
from muster.readers.files import FilesReader
from muster.readers.http import HttpReader
from muster.readers.library import LibraryReader
from muster.readers.outcomes import Clock
from muster.readers.processes import Custody
from muster.readers.stream import KernelStream
from muster.readers.tool import ToolReader
from muster.readers.workers import Workers
from muster.spi.readers import Reader


@dataclass(frozen=True, slots=True)
class RealReaders:
    """The readers by kind, and what an agent shows of them: workers and processes that would not end."""

    by_kind: Mapping[ReaderKind, Reader]
    files: FilesReader
    workers: Workers
    stream: KernelStream
    custody: Custody

    def hung(self, adapter: str) -> str:
        """What of the adapter outlived being killed; an empty text when nothing did."""
        stuck = self.custody.stuck(adapter)
        return "" if stuck is None else str(stuck)

    def close(self) -> None:
        """Ends all workers and streams."""
        self.stream.close()
        self.files.close()
        self.workers.close()


def real_readers(clock: Clock, root: str = "/") -> RealReaders:
    """Readers of this node; ``root`` is where its file system is seen (``/host`` in a container)."""
    custody = Custody()
    workers = Workers(custody)
    files, stream = FilesReader(clock, custody, root), KernelStream(clock, custody)
    by_kind: dict[ReaderKind, Reader] = {
        ReaderKind.FILES: files,
        ReaderKind.TOOL: ToolReader(clock, custody),
        ReaderKind.LIBRARY: LibraryReader(clock, workers),
        ReaderKind.HTTP: HttpReader(clock),
        ReaderKind.STREAM: stream,
    }
    return RealReaders(by_kind, files, workers, stream, custody)
