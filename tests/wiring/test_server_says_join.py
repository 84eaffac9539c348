# SPDX-License-Identifier: Apache-2.0
"""What a server says of joining when it starts: a token for the first node, and for no other."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from muster.domain.model.errors import Conflict, Unavailable
from muster.interfaces.api.app import build
from muster.interfaces.ingest.opened import reporters
from muster.wire.report import NodeDoc
from muster.wiring import holds
from muster.wiring.joining import join
from muster.wiring.server import Server, _say_join
from muster.wiring.settings import ServerSettings, load_settings


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return load_settings(port=0, ingest_port=0, state=tmp_path / "state", runtime=tmp_path / "run")


def said(server: Server, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    with monkeypatch.context() as patched:
        patched.setattr("sys.stderr", stream)
        _say_join(server)
    return stream.getvalue()


def tokens(server: Server) -> int:
    assert server.writing.enrolment is not None
    return len(server.writing.enrolment.tokens(server.writing.clock()))


def test_a_token_is_made_for_the_first_node_alone(settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(settings, build, reporters) as server:
        assert "muster agent token create" in said(server, monkeypatch, io.StringIO())
        assert tokens(server) == 0, "no secret goes into a journal"
        words = said(server, monkeypatch, Screen()).split()
        assert tokens(server) == 1
        join(tmp_path / "agent", words[words.index("join") + 1], words[words.index("--ca") + 1], words[words.index("--token") + 1], NodeDoc(name="n1"))
    with Server(settings, build, reporters) as server:
        told = said(server, monkeypatch, Screen())
        assert "muster agent token create" in told
        assert "--token" not in told
        assert tokens(server) == 0


def test_the_lock_is_the_servers_alone(tmp_path: Path) -> None:
    (tmp_path / holds.LOCK).touch(0o644)
    with holds.hold(tmp_path):
        assert (tmp_path / holds.LOCK).stat().st_mode & 0o777 == 0o600, "one of an earlier version"
        with pytest.raises(Conflict, match="another server"):
            holds.hold(tmp_path)
    (tmp_path / holds.LOCK).unlink()
    with holds.hold(tmp_path):
        assert (tmp_path / holds.LOCK).stat().st_mode & 0o777 == 0o600
    (tmp_path / holds.LOCK).unlink()
    (tmp_path / holds.LOCK).mkdir()
    with pytest.raises(Unavailable, match="cannot be used") as told:
        holds.hold(tmp_path)
    assert told.value.hint
