# SPDX-License-Identifier: Apache-2.0
"""The redactor: what it finds, what it leaves, and that what it puts in its place has the same form."""

from __future__ import annotations

import time

import pytest

from muster.readers.redact import Redactor, invented

UUID = "GPU-7f3c2a10-9b4e-4d21-8c55-0a1b2c3d4e5f"


def redacted(text: str, *hosts: str) -> str:
    redactor = Redactor(b"salt", hosts)
    redactor.learn(text.encode())
    return redactor.apply(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("    Serial Number                         : 1650922001234\n", "1650922001234"),
        ("<serial>1650922001234</serial>", "1650922001234"),
        ('{"serial": "AB-1650X922", "n": 1}', "AB-1650X922"),
        ('acme_power{serial="PW9A0012",card="0"} 61.2', "PW9A0012"),
        ("| Board Serial | 0324416220017 |", "0324416220017"),
        ("SN: 102199X0022", "102199X0022"),
        ("/sys/x/serial_number: PW9A0012", "PW9A0012"),
        ("Unique ID: 0x8f3c2a109b4e4d21", "8f3c2a109b4e4d21"),
        (f"GPU 0: Acme X100 (UUID: {UUID})", UUID[4:]),
        ("index, serial, name\n0, 1650922001234, Acme\n", "1650922001234"),
        ("Oct 12 18:38:44 blue-node17 kernel: x", "blue-node17"),
        ('up{hostname="rack4-gpu2.example.org"} 1', "rack4-gpu2"),
        ("inet 1 link/ether 3c:ec:ef:12:34:56 brd", "3c:ec:ef:12:34:56"),
        ("machine-id: 5f0c6b1e2d7a49c3b8e4a1907d3f6c25", "5f0c6b1e2d7a49c3b8e4a1907d3f6c25"),
    ],
)
def test_what_identifies_is_replaced_in_form(text: str, secret: str) -> None:
    told = redacted(text)

    assert secret not in told
    assert len(told) == len(text)
    assert [sign for sign in told if not sign.isalnum()] == [sign for sign in text if not sign.isalnum()]


@pytest.mark.parametrize(
    "text",
    [
        "Serial Number : N/A\n",
        "Serial Number : 0\nUUID : 00000000-0000-0000-0000-000000000000\n",
        "Serial Number :\nProduct Name : Acme X100 80GB\n",
        "Driver Version : 550.54.15\nFirmware : 7.1.0.3\nTemperature : 41 C\n",
        "0000:3b:00.0 3D controller [0302]: Acme Corp. AX100 [7e59:ac01] (rev a1)\n",
        "Bus Id : 00000000:3B:00.0\n",
        "hostname: localhost\n",
        "a serial console is used",
    ],
)
def test_what_does_not_identify_stays(text: str) -> None:
    assert redacted(text) == text


def test_one_value_has_one_stand_in_wherever_it_stands() -> None:
    text = f"serial: 1650922001234\nrow 1650922001234|x\n0x1650922001234\nUUID {UUID} {UUID.upper()} {UUID[4:].replace('-', '')}\n"

    one, two, three, uuid = redacted(text).splitlines()
    dashed, upper, plain = uuid.split()[1:]

    assert one.split()[1] == two.split()[1].split("|")[0] == three.removeprefix("0x")
    assert (dashed.upper(), dashed[4:].replace("-", "")) == (upper, plain)
    assert dashed.startswith("GPU-")


def test_stand_ins() -> None:
    assert invented("0001234", b"a") == invented("0001234", b"a") != invented("0001234", b"b")
    assert invented("0001234", b"a").startswith("000")
    assert set(invented("a1b2c3d4", b"a")) <= set("0123456789abcdef")


def test_names_given_by_the_caller() -> None:
    assert "blue-node17" not in redacted("run on blue-node17 and blue-node17.example.org\n", "blue-node17.example.org")


@pytest.mark.parametrize("host", ["n1", "gpu", "a", "7", "0", "2024", "N1.example.org"])
def test_a_short_name_of_the_node_is_replaced_where_a_name_stands(host: str) -> None:
    text = f"/proc/sys/kernel/hostname: {host}\n/etc/hostname: {host}\n<hostname>{host}</hostname>\nOct 12 18:38:44 {host} kernel: up\n"
    redactor = Redactor(b"salt", [host])
    redactor.learn(text.encode())
    told = redactor.apply(text.encode()).decode()
    places = [part.strip() for part in (*(line.partition(": ")[2] for line in told.splitlines()[:2]), told.splitlines()[3].split()[3])]

    assert len(set(places)) == 1
    assert host not in places
    assert redactor.name(host) == places[0]
    assert len(told) == len(text)


def test_a_short_name_stays_in_free_text() -> None:
    assert redacted("gpu 0 of gpu\n", "gpu") == "gpu 0 of gpu\n"


def test_utf16_is_not_a_way_round() -> None:
    redactor = Redactor(b"salt")
    payload = "Serial Number : 1650922001234\n".encode("utf-16")
    redactor.learn(payload)

    assert "1650922001234" not in redactor.apply(payload).decode()


def test_long_texts_take_no_long_time() -> None:
    started = time.monotonic()
    for text in ("a-" * 100_000, "serial " * 50_000, "aaaa_" * 100_000, "a" * 300_000, "0x" * 100_000):
        redacted(text)

    assert time.monotonic() - started < 8
