# SPDX-License-Identifier: Apache-2.0
"""`muster demo` from end to end: as a user runs it, in a process of its own; and the parts of its small world one by one."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from muster.domain.model.attributes import Level
from muster.domain.model.names import Name, NameKind, names
from muster.domain.model.observation import Event, Interpretation, Observation, Subject
from muster.domain.model.reading import Known
from muster.domain.model.source import Outcome, SourceId
from muster.wiring.demo_cast import cast
from muster.wiring.demo_fleet import Machine, load, machine_folders
from muster.wiring.demo_stage import Stage, free_address, free_index, same_card, with_card, without

ROOT = Path(__file__).resolve().parents[2]
RECORDED_BYTES = 5 * 1000 * 1000
SOURCE = SourceId("acme.tool")


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A temporary folder whose path is short enough for a socket."""
    return tmp_path_factory.mktemp("d")


def environment(place: Path) -> Mapping[str, str]:
    """That of a user with folders of their own; nothing of a real server is in reach."""
    for each in ("tmp", "home", "run"):
        (place / each).mkdir(exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MUSTER_", "XDG_"))}
    return {**kept, "TMPDIR": str(place / "tmp"), "HOME": str(place / "home"), "XDG_RUNTIME_DIR": str(place / "run"), "PYTHONUNBUFFERED": "1"}


def start(place: Path, *options: str) -> subprocess.Popen[str]:
    """The demo, its output in a pipe."""
    command = [sys.executable, "-m", "muster", "demo", *options]
    return subprocess.Popen(command, env=environment(place), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def left(place: Path) -> list[str]:
    """Files in the demo's reach."""
    return [str(found) for each in ("tmp", "home", "run") for found in (place / each).rglob("*")]


def answers(url: str) -> bool:
    """True while something listens there."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def sections(told: str) -> list[str]:
    """The text of each step; the first is what comes before."""
    return re.split(r"^\d\. ", told, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, float, Path]:
    """One whole run: its output, its seconds, and where it ran."""
    place = tmp_path_factory.mktemp("d")
    began = time.monotonic()
    child = start(place)
    out, err = child.communicate(timeout=120)
    assert (child.returncode, err) == (0, "")
    return out, time.monotonic() - began, place


@pytest.mark.slow
def test_it_ends_well_within_half_a_minute_and_leaves_nothing(ran: tuple[str, float, Path]) -> None:
    out, seconds, place = ran

    assert seconds < 30
    assert left(place) == []
    assert not answers(re.findall(r"http://\S+", out)[0])
    assert not [each for each in Path("/proc").glob("[0-9]*/environ") if _speaks_of(each, str(place))]


def _speaks_of(file: Path, text: str) -> bool:
    try:
        return text.encode() in file.read_bytes()
    except OSError:
        return False


@pytest.mark.slow
def test_every_step_shows_what_it_says(ran: tuple[str, float, Path]) -> None:
    before, roll, card, moved, silent, dissent, event, missing, belief = sections(ran[0])

    assert "every source is read each 1 s" in before
    assert "export MUSTER_SERVER=http://127.0.0.1:" in before
    assert roll.count(" present ") > 40
    assert "driver unusable" in roll
    assert "READINGS" in card
    assert "not supported" in card
    assert re.search(r"^\S+ +moved +node=\S+, was=\S+", moved, re.MULTILINE)
    assert silent.count("stale") > 5
    assert silent.count(" unknown ") > 1
    assert "source silent" in silent
    assert re.search(r"memory\.total .*operator says", dissent)
    assert "values disagree" in dissent
    assert re.search(r"c-[0-9a-f]{16} +xid +79 ", event)
    assert missing.index(" unknown ") < missing.index(" missing ")
    assert "card missing" in missing
    assert belief.count("present") == 3
    assert belief.count("missing ") >= 1
    assert re.search(r"--at \d{4}-\d\d-\d\dT", belief)


@pytest.mark.slow
def test_the_last_line_sums_up(ran: tuple[str, float, Path]) -> None:
    assert re.fullmatch(r"8 steps: \d+ cards on \d+ nodes, \d+ changes kept, \d+ findings open in \d+ s\.", ran[0].splitlines()[-1])


@pytest.mark.slow
def test_the_readme_shows_what_it_prints(ran: tuple[str, float, Path], tmp_path: Path) -> None:
    printed = tmp_path / "demo.txt"
    printed.write_text(ran[0], encoding="utf-8")
    compared = subprocess.run([sys.executable, "tools/gen_examples.py", "--demo", str(printed)], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (compared.returncode, compared.stderr) == (0, "")


@pytest.mark.slow
def test_the_moved_card_stood_elsewhere_before(ran: tuple[str, float, Path]) -> None:
    then, now = sections(ran[0])[-1].split("And now:")
    moved = re.search(r"was=(\S+)", sections(ran[0])[3])

    assert moved is not None
    assert moved.group(1) in then
    assert moved.group(1) not in now


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_nothing_is_left(place: Path, number: int) -> None:
    child = start(place)
    assert child.stdout is not None
    told = ""
    while "muster get cards" not in told and select.select([child.stdout], [], [], 30)[0]:
        told += child.stdout.readline()
    child.send_signal(number)
    rest, err = child.communicate(timeout=20)

    assert (child.returncode, err) == (130, "")
    assert "Traceback" not in rest
    assert left(place) == []


@pytest.mark.slow
def test_at_a_terminal_it_serves_until_ctrl_c(place: Path) -> None:
    own = dict(environment(place))
    pid, handle = pty.fork()
    if pid == 0:
        os.environ.update(own)
        os.execv(sys.executable, [sys.executable, "-m", "muster", "demo", "--pause", "0"])
    told, asked = b"", False
    with contextlib.suppress(OSError):
        while select.select([handle], [], [], 5 if asked else 60)[0] and (part := os.read(handle, 65536)):
            told += part
            if b"muster describe node NAME" in told and not asked:
                asked = True
                os.write(handle, b"\x03")
    status = _ended(pid, handle)

    assert os.waitstatus_to_exitcode(status) == 0
    assert b"nothing is left behind" in told
    assert left(place) == []


def _ended(pid: int, handle: int) -> int:
    """The wait status of the demo; Ctrl-C that came too early is said again, and what does not end in a minute is killed."""
    for _ in range(20):
        for _ in range(30):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status
            time.sleep(0.1)
        with contextlib.suppress(OSError):
            os.write(handle, b"\x03")
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


@pytest.mark.slow
def test_a_reader_who_leaves_ends_it(place: Path) -> None:
    child = start(place)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.readline()
    child.stdout.close()

    assert child.wait(timeout=30) == 0
    assert "Traceback" not in child.stderr.read()
    child.stderr.close()
    assert left(place) == []


def test_a_port_in_use_is_said(place: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        child = start(place, "--port", str(taken.getsockname()[1]))
        _, err = child.communicate(timeout=30)

    assert child.returncode == 5
    assert "is in use" in err
    assert "--port" in err
    assert left(place) == []


def test_a_path_too_long_for_a_socket_is_said(place: Path) -> None:
    long = place / ("x" * 90)
    long.mkdir()
    child = subprocess.run(
        [sys.executable, "-m", "muster", "demo"], env={**environment(place), "TMPDIR": str(long)}, capture_output=True, text=True, timeout=30, check=False
    )

    assert child.returncode == 6
    assert "TMPDIR" in child.stderr
    assert list(long.iterdir()) == []


def test_the_recorded_machines_are_many_and_small() -> None:
    files = [file for folder in machine_folders() for file in folder.rglob("*") if file.is_file()]

    assert len(machine_folders()) >= 14
    assert sum(file.stat().st_size for file in files) < RECORDED_BYTES


def test_a_machine_that_cannot_be_loaded_is_told_and_the_others_play(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "machine.toml").write_text("captures = 7\n")
    loaded = load([broken, machine_folders()[0]], timedelta(seconds=1))

    assert len(loaded.machines) == 1
    assert [each.partition(":")[0] for each in loaded.failed] == ["broken is left out"]


@pytest.fixture(scope="module")
def machines() -> tuple[Machine, ...]:
    loaded = load(machine_folders(), timedelta(seconds=1))
    assert loaded.failed == ()
    return tuple(loaded.machines)


def test_every_part_has_a_player_of_its_own(machines: tuple[Machine, ...]) -> None:
    parts = cast(machines)
    players = [each.machine.folder for each in (parts.sliced, parts.mover, parts.silent, parts.doubted, parts.logged, parts.missing) if each is not None]

    assert len(players) == len(set(players)) == 6
    assert parts.broken is not None
    assert parts.mover is not None
    assert parts.mover.to.folder not in players


def test_without_machines_there_are_no_parts() -> None:
    parts = cast([])

    assert [parts.sliced, parts.mover, parts.silent, parts.doubted, parts.logged, parts.missing, parts.broken] == [None] * 7


def card(level: Level = Level.CARD, parent: frozenset[Name] = frozenset(), **ids: str | int) -> Observation:
    return Observation(subject=Subject(level=level, names=names(**ids), parent=parent), readings={"memory.total": Known(1)})


ONE = card(serial="S1", pci_address="0000:01:00.0", index=0)
TWO = card(serial="S2", pci_address="0000:02:00.0", index=1)
SLICE = card(Level.PARTITION, ONE.subject.names, gpu_instance_id=7)
DEEP = card(Level.PARTITION, SLICE.subject.names, compute_instance_id=1)


def told(*these: Observation, **more: object) -> Interpretation:
    counts = {Level.CARD: sum(each.subject.level is Level.CARD for each in these)}
    return Interpretation(outcome=Outcome.DEVICES, complete=True, counts=counts, observations=these, **more)  # type: ignore[arg-type]  # of a test


def test_a_pulled_card_goes_with_its_parts() -> None:
    found = without(told(ONE, SLICE, DEEP, TWO), ONE.subject.names)

    assert found.observations == (TWO,)
    assert found.counts == {Level.CARD: 1}
    assert without(found, ONE.subject.names) is found


def test_two_cards_of_one_board_are_told_apart_by_the_strongest_name() -> None:
    assert not same_card(names(serial="B", vendor_uuid="u-1"), names(serial="B", vendor_uuid="u-2"))
    assert same_card(names(serial="B", vendor_uuid="u-1"), names(serial="B"))
    assert same_card(names(pci_address="01:00.0"), names(pci_address="0000:01:00.0", serial="X"))
    assert not same_card(names(index=0), names(index=0))


def test_a_card_that_is_put_in_stands_in_a_place_of_its_own() -> None:
    found = with_card(told(TWO), ONE)
    put = found.observations[-1].subject

    assert found.counts == {Level.CARD: 2}
    assert {each.value for each in put.names if each.kind is NameKind.SERIAL} == {"S1"}
    assert not same_card(put.names, TWO.subject.names)
    assert {each.value for each in put.names if each.kind is NameKind.INDEX} == {"2"}


def test_free_places_are_free() -> None:
    assert free_address(names(pci_address="0000:41:00.0")) == "0000:51:00.0"
    assert free_index(names(serial="S")) == 0


def test_events_come_once_when_they_are_let_go_and_now() -> None:
    stage = Stage(lambda: 1_000.0)
    change = stage.change("alpha")
    then = datetime(2026, 1, 1, tzinfo=UTC)
    line = Event(subject=ONE.subject, code="7", text="x", at=then)
    bare = Event(subject=ONE.subject, code="8", text="y")
    stage.hold_events("alpha")

    assert change(SOURCE, "acme", told(events=(line, bare))).events == ()
    stage.release_events("alpha")
    assert [each.at for each in change(SOURCE, "acme", told(events=(line, bare))).events] == [datetime.fromtimestamp(1_000, UTC), None]
    assert change(SOURCE, "acme", told(events=(line, bare))).events == ()


def test_the_stage_changes_only_its_node_and_source() -> None:
    stage = Stage(lambda: 0.0)
    stage.pull("alpha", ONE.subject.names)
    stage.put("beta", SOURCE, ONE)

    assert stage.change("alpha")(SOURCE, "acme", told(ONE, TWO)).observations == (TWO,)
    assert stage.change("beta")(SourceId("other"), "acme", told(TWO)).observations == (TWO,)
    assert len(stage.change("beta")(SOURCE, "acme", told(TWO)).observations) == 2
    assert stage.change("gamma")(SOURCE, "acme", told(ONE)).observations == (ONE,)
