# SPDX-License-Identifier: Apache-2.0
"""The ring of captures: bounds of bytes, source and age; what a restart finds; a disk that fails; and no canary in what is kept."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from muster.collect.evidence import Evidence, to_capture_doc
from muster.collect.privacy import redacted, unsecret
from muster.collect.ring import Ring, Room
from muster.domain.model.source import Capture, SourceId
from muster.wire.report import CaptureDoc


def doc(content: bytes, source: str = "a") -> CaptureDoc:
    return to_capture_doc(Capture(source=SourceId(source), locator=("tool",), format="list", payload=content), 0)


def noise(size: int) -> bytes:
    return os.urandom(size)


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "ring" if request.param == "disk" else None


def test_the_oldest_go_when_it_is_full(folder: Path | None) -> None:
    ring = Ring(folder, Room(size=6000, per_source=6000))
    docs = [doc(noise(1000)) for _ in range(9)]
    for each in docs:
        assert ring.keep(each, 0)

    assert ring.size <= 6000
    assert [ring.get(each.digest) == each for each in docs] == [False] * 4 + [True] * 5
    ring.keep(docs[-1], 0)
    assert len(ring) == 5
    if folder is not None:
        assert sum(path.stat().st_size for path in folder.iterdir()) == ring.size


def test_one_source_does_not_push_out_the_others(folder: Path | None) -> None:
    ring = Ring(folder, Room(size=100_000, per_source=3000))
    quiet = doc(noise(1000), "quiet")
    ring.keep(quiet, 0)
    loud = [doc(noise(1000), "loud") for _ in range(9)]
    for each in loud:
        ring.keep(each, 1)

    assert ring.get(quiet.digest) == quiet
    assert sum(ring.get(each.digest) is not None for each in loud) == 2


def test_what_is_too_old_goes(folder: Path | None) -> None:
    ring = Ring(folder, Room(age=100))
    old, new = doc(b"old"), doc(b"new")
    ring.keep(old, 0)
    ring.keep(new, 101)

    assert ring.get(old.digest) is None
    assert ring.get(new.digest) == new


def test_a_restart_finds_what_was_kept_and_no_halves(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    docs = [doc(noise(100), "strange/na-me") for _ in range(3)]
    for each in docs:
        ring.keep(each, 0)
    (tmp_path / "0000000000000009-dd-a.capture.part").write_bytes(b"half")
    (tmp_path / "stray").write_text("")
    again = Ring(tmp_path)

    assert [again.get(each.digest) for each in docs] == docs
    assert again.size == ring.size
    assert not list(tmp_path.glob("*.part"))
    later = doc(b"later")
    again.keep(later, 0)
    assert Ring(tmp_path).get(later.digest) == later


def test_a_damaged_file_is_dropped_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ring = Ring(tmp_path)
    one = doc(noise(500))
    ring.keep(one, 0)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-40])
    with caplog.at_level(logging.WARNING):
        assert ring.get(one.digest) is None

    assert "cannot be read" in caplog.text
    assert not list(tmp_path.iterdir())
    assert ring.size == 0


def test_a_place_that_cannot_be_written_is_said_once_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        evidence = Evidence(Ring(tmp_path / "file" / "ring"))
        for _ in range(3):
            assert not evidence.ring.keep(doc(noise(10)), 0)

    assert caplog.text.count("captures are not kept") == 1


def test_the_server_gets_what_it_wants_while_it_is_here(tmp_path: Path) -> None:
    evidence = Evidence(Ring(tmp_path), per_hour=250)
    docs = [doc(noise(100)) for _ in range(3)]
    for each in docs:
        evidence.ring.keep(each, 0)
    digests = ["gone", docs[1].digest, docs[1].digest, docs[0].digest, docs[2].digest]

    assert evidence.wanted(digests, 0) == [docs[1], docs[0]]
    assert evidence.wanted([docs[2].digest], 3600) == [docs[2]]


CANARIES = (
    (b"run --password CANARY47110815 --gpus 8\n", b"--gpus 8"),
    (b"run --api-key=CANARY47110815\n", b"run"),
    (b'{"token": "CANARY47110815", "power": 61}', b'"power": 61'),
    (b"Authorization: Bearer CANARY47110815.abcdef.xyz\n", b"Authorization"),
    (b"proxy https://ops:CANARY47110815@proxy.example:3128/ used", b"@proxy.example:3128/"),
    (b"-----BEGIN EC PRIVATE KEY-----\nCANARY47110815\nCANARY47110815==\n-----END EC PRIVATE KEY-----\n", b"-----END"),
    (b"env SECRET_KEY=x AWS_SECRET_ACCESS_KEY: CANARY47110815/abc", b"env"),
)


@pytest.mark.parametrize(("text", "stays"), CANARIES)
def test_no_canary_reaches_the_disk(tmp_path: Path, text: bytes, stays: bytes) -> None:
    capture = Capture(source=SourceId("a"), locator=("tool", text.decode()), format="list", payload=text, stderr=text)
    kept = to_capture_doc(redacted(capture, ()), 0)
    Ring(tmp_path).keep(kept, 0)
    found = Ring(tmp_path).get(kept.digest)

    assert found is not None
    for each in (found.payload, found.stderr, " ".join(found.locator).encode()):
        assert b"CANARY" not in each
        assert stays in each
    assert len(found.payload) == len(text)


@pytest.mark.parametrize(
    "text",
    [
        b"Auth : Enabled",
        b"Basic features supported",
        b"pass 1 of 3, bypass enabled",
        b"| 0  Board  X1 | Off | 00000000:1A:00.0 |",
        b"<product_name>Keyed Card</product_name>",
        b"authentication failed for mailbox 3",
    ],
)
def test_words_that_are_no_secrets_stay(text: bytes) -> None:
    assert unsecret(text) == text
