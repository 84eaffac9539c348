# SPDX-License-Identifier: Apache-2.0
"""`muster scan`, `record` and `doctor`: on a made-up root, and on what they recorded of it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from muster.interfaces.cli.main import run

ADDRESS = "0000:1b:00.0"
SERIAL = "SN8800731"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with one accelerator that no adapter knows, and a name with control characters."""
    top = tmp_path / "root"
    files = {
        f"sys/bus/pci/devices/{ADDRESS}/class": "0x120000",
        f"sys/bus/pci/devices/{ADDRESS}/vendor": "0x7e57",
        f"sys/bus/pci/devices/{ADDRESS}/device": "0x0a10",
        "proc/sys/kernel/hostname": "testhost-31",
        "proc/sys/kernel/osrelease": "6.1.0-\x1b[31mred",
        "etc/machine-id": "0123aa45bb67cc89dd01ee23ff456789",
        "sys/class/dmi/id/product_serial": SERIAL,
    }
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    monkeypatch.setenv("MUSTER_ROOT", str(top))
    monkeypatch.setenv("COLUMNS", "400")
    return top


def test_a_table_of_cards_and_why_the_others_are_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan"]) == 0
    out = capsys.readouterr().out
    cards, _, why = out.partition("\n\n")

    assert re.search(rf"^testhost-31 · {re.escape(ADDRESS)} · unknown model +present +- ", cards, re.MULTILINE)
    assert f"testhost-31/{ADDRESS}" in cards
    assert re.search(r"^\w+\.\* +not here +0 +no PCI device of vendor [0-9a-f]{4}", why, re.MULTILINE)
    assert "pci.sysfs" not in why


def test_wide_tells_every_source_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", "-o", "wide"]) == 0
    out = capsys.readouterr().out

    assert re.search(r"^pci\.sysfs +ok +1 ", out, re.MULTILINE)
    assert "- (" in out
    assert re.search(r"is not in /usr/local/sbin", out)


def test_data_forms(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", "-o", "name"]) == 0
    assert capsys.readouterr().out == f"testhost-31/{ADDRESS}\n"

    assert run(["scan", "-o", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [card["address"] for card in body["items"]] == [ADDRESS]
    assert body["node"]["name"] == "testhost-31"
    assert {row["source"] for row in body["sources"]} >= {"pci.sysfs", "node.files"}

    assert run(["scan", "-o", "csv", "--no-headers"]) == 0
    (row,) = csv.reader(io.StringIO(capsys.readouterr().out))
    assert ADDRESS in row

    assert run(["scan", "-o", "yaml"]) == 0
    assert "items:" in capsys.readouterr().out


def test_quiet_tells_only_cards(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scan", "-q", "--no-headers"]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_forms_and_machines_that_there_are_not(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["scan", "-o", "poem"]) == 2
    assert run(["scan", "--machine", str(tmp_path / "none")]) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_a_recording_replays_and_names_nobody(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    assert run(["record", str(folder), "--about", "a test"]) == 0
    told = capsys.readouterr().err
    assert "pci.sysfs: devices" in told
    assert "are replaced" in told
    written = b"".join(path.read_bytes() for path in folder.iterdir())
    assert SERIAL.encode() not in written
    assert b"testhost-31" not in written
    assert b"0123aa45bb67cc89dd01ee23ff456789" not in written

    assert run(["scan", "--machine", str(folder), "-o", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [card["address"] for card in body["items"]] == [ADDRESS]
    assert run(["record", str(folder)]) == 5


def test_a_recording_may_keep_names(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"

    assert run(["record", str(folder), "--keep-names", "-q"]) == 0
    assert SERIAL.encode() in b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize(
    ("captures", "why"),
    [
        ('[[captures]]\nsource = "kernel_log.kmsg"\nformat = "kernel-log"\nlocator = ["/dev/kmsg"]\nfile = "kmsg.txt"\n', "a log: it tells what happened"),
        ('[[captures]]\nsource = "node.files"\nformat = "node-files"\nlocator = []\nfile = "kmsg.txt"\n', "none of the sources that were read lists cards"),
    ],
)
def test_a_recording_without_cards_says_why(capsys: pytest.CaptureFixture[str], tmp_path: Path, captures: str, why: str) -> None:
    (tmp_path / "machine.toml").write_text('[node]\nname = "n"\n' + captures)
    (tmp_path / "kmsg.txt").write_text(
        "6,1,5,-;acme 0000:02:00.0: link up\n" if "kmsg" in captures.partition("file")[0] else "/proc/sys/kernel/osrelease: 6.1\n"
    )

    assert run(["scan", "--machine", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "no cards found" in told.err
    assert why in told.out + told.err


def test_doctor_tells_each_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "-o", "json"]) in (0, 1)
    rows = json.loads(capsys.readouterr().out)["items"]
    by = {row["source"]: row for row in rows}

    assert by["pci.sysfs"]["state"] == "ok"
    assert by["node.files"]["state"] == "ok"
    assert all(row["why"] for row in rows if row["state"] not in ("ok",))
    gone = [row for row in rows if row["state"] == "not_here" and row["outcome"] == "tool_missing"]
    assert gone
    assert all(row["help"] for row in gone)


def test_doctor_says_what_a_failing_source_needs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "machine"
    folder.mkdir()
    (folder / "machine.toml").write_text(
        '[node]\nname = "n"\n[[captures]]\nsource = "pci.sysfs"\nformat = "sysfs-tree"\nlocator = []\nfailure = "not_permitted"\ndetail = "no sysfs"\n'
    )

    assert run(["doctor", "--machine", str(folder)]) == 1
    told = capsys.readouterr()
    assert re.search(r"pci\.sysfs +failed +0 +no sysfs +run as root", told.out)
    assert "1 of 1 sources need something" in told.err
