# SPDX-License-Identifier: Apache-2.0
"""Whether the store takes what is written: a server that could not write is not ready until a write went through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from muster.domain.model.errors import Unavailable
from muster.spi.store import Batch, FindingRow, Loaded, RegionRows, RollWriter


class Watched:
    """`RollWriter` that remembers how the last write ended. ``probe`` writes a little, to find out whether the store can be written again."""

    def __init__(self, writer: RollWriter, probe: Callable[[], None]) -> None:
        self._writer = writer
        self._probe = probe
        self.trouble = ""
        """Why the last write failed; empty when it went through."""

    def load(self) -> Loaded:
        """All that is known. It is much on a large site, so that a store that cannot be written is asked for little first. Raises Unavailable."""
        self.retry()
        if self.trouble:
            raise Unavailable(self.trouble, hint="nothing is lost: reports wait at their agents until the store can be written again")
        return self._writer.load()

    def region(self, part: str) -> RegionRows:
        """What a part of the site is rebuilt from. Raises NotFound."""
        return self._writer.region(part)

    def regions_of(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The parts that know these names."""
        return self._writer.regions_of(names)

    def lacking(self, digests: Sequence[str]) -> list[str]:
        """Those of these captures that are not kept and would be."""
        return self._writer.lacking(digests)

    def commit(self, batch: Batch) -> None:
        """Writes the batch. Raises Unavailable."""
        with self._writing():
            self._writer.commit(batch)
        self.trouble = ""

    def acknowledge(self, finding: str, by: str, at: float, reason: str) -> FindingRow:
        """Marks an open finding as seen. Raises NotFound, Conflict, Unavailable."""
        with self._writing():
            row = self._writer.acknowledge(finding, by, at, reason)
        self.trouble = ""
        return row

    def trim(self, now: float, keep: Mapping[str, float]) -> int:
        """Drops what is older than ``keep``; where nothing was dropped, nothing is known of writing. Raises Unavailable."""
        with self._writing():
            dropped = self._writer.trim(now, keep)
        if dropped:
            self.trouble = ""
        return dropped

    def retry(self) -> None:
        """Tries a write when the last one failed. Raises nothing: ``trouble`` says how it went."""
        if not self.trouble:
            return
        try:
            self._probe()
        except Unavailable as error:
            self.trouble = error.message
        else:
            self.trouble = ""

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except Unavailable as error:
            self.trouble = error.message
            raise
