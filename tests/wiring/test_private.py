# SPDX-License-Identifier: Apache-2.0
"""Private files: whole or not there, for their user alone, and made as the user whose folder it is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.needs import lacks

from muster.domain.model.errors import NotFound, Unavailable
from muster.wiring.private import alone, as_owner, secret, write_new, write_over

OTHER = 65534


def test_a_new_file_never_takes_the_place_of_one(tmp_path: Path) -> None:
    file = tmp_path / "key"
    assert write_new(file, b"one")
    assert not write_new(file, b"two")
    assert (secret(file), file.stat().st_mode & 0o777) == (b"one", 0o600)
    write_over(file, b"three")
    assert (secret(file), file.stat().st_mode & 0o777) == (b"three", 0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["key"]


def test_what_cannot_be_written_or_read_says_so(tmp_path: Path) -> None:
    for write in (write_new, write_over):
        with pytest.raises(Unavailable, match="cannot be written"):
            write(tmp_path / "none" / "key", b"")
    with pytest.raises(Unavailable, match="cannot be written"), alone(tmp_path / "none" / "lock"):
        pass
    with pytest.raises(NotFound):
        secret(tmp_path / "none")
    with pytest.raises(Unavailable, match="cannot be read"):
        secret(tmp_path)
    write_over(tmp_path / "open", b"", 0o640)
    with pytest.raises(Unavailable, match=r"chmod 600|may be read by others"):
        secret(tmp_path / "open")


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A folder of another user."""
    if os.geteuid() != 0:
        lacks("only root can act as another user")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chown(folder, OTHER, OTHER)
        yield folder


def test_root_leaves_files_that_the_owner_of_the_folder_can_read_and_follows_none_of_its_links(theirs: Path, tmp_path: Path) -> None:
    (theirs / "trap").symlink_to(tmp_path)
    with as_owner(theirs / "agent" / "membership"):
        (theirs / "agent").mkdir()
        write_new(theirs / "agent" / "key", b"x")
        with pytest.raises(Unavailable):
            write_new(theirs / "trap" / "key", b"x")
    assert os.geteuid() == os.getegid() == 0
    assert ((theirs / "agent" / "key").stat().st_uid, (theirs / "agent" / "key").stat().st_gid) == (OTHER, OTHER)
    with as_owner(tmp_path):
        assert os.geteuid() == 0
