# SPDX-License-Identifier: Apache-2.0
"""What the tests of faults have in common: databases, and a disk that is small."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.needs import lacks
from tests.postgres import Postgres, new_folder, postgres, postgres_store_url, postgres_template, postgres_url

__all__ = ["database", "postgres", "postgres_store_url", "postgres_template", "postgres_url", "small_disk"]


@pytest.fixture
def database(postgres: Postgres) -> Iterator[Postgres]:
    """A database server of this test's own, which it may stop, and which keeps what it said it wrote."""
    made = Postgres(new_folder(), postgres.bin, ("shared_buffers=32MB", "max_connections=60", "listen_addresses=''", "wal_level=replica", "max_wal_senders=4"))
    try:
        made.make()
        made.start()
        yield made
    finally:
        with suppress(RuntimeError):
            made.stop()
        shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str, int], Path]]:
    """Makes file systems of so many MiB; only root may."""
    made: list[Path] = []

    def make(name: str, size: int) -> Path:
        place = tmp_path / name
        place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", str(place)], capture_output=True, check=False)
        if done.returncode:
            lacks(f"no small disk can be made here: {done.stderr.decode().strip()}")
        made.append(place)
        return place

    yield make
    for place in made:
        subprocess.run(["umount", "-l", str(place)], check=True)
