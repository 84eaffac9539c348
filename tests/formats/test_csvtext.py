# SPDX-License-Identifier: Apache-2.0
"""CSV of tools: separators, units in headers, decimal signs, rows that are cut or too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.model.reading import Absent, Known, Reading
from muster.formats.csvtext import Column, Sign, column, read, sign_of, sniff, split

UNITS = b"uuid, power.draw [W], memory.used [MiB], note\nA-1, 61.20 W, 2048 MiB, one\nA-2, [N/A], 0 MiB, two\n"
COMMA = b"uuid;power;memory\nA-1;312,41 W;2048 MiB\nA-2;1.412,50 W;4096 MiB\nA-3;88.25 W;2,048 MiB\n"


def value(reading: Reading | None) -> object:
    return reading.value if isinstance(reading, Known) else reading.why.value if isinstance(reading, Absent) else None


def test_units_stand_in_the_header_and_in_the_cell() -> None:
    table = read(UNITS)
    assert table is not None
    assert table.names == ("uuid", "power.draw", "memory.used", "note")
    assert table.units["memory.used"] == "MiB"
    assert table.separator == ", "
    assert value(table.rows[0].quantity("power.draw", "power.draw")) == 61.2
    assert value(table.rows[1].quantity("power.draw", "power.draw")) == "not_supported"
    assert value(table.rows[1].quantity("memory.used", "memory.used")) == 0
    assert table.rows[0].quantity("power.draw", "absent column") is None


def test_the_decimal_sign_is_found_per_cell_then_row_then_document() -> None:
    table = read(COMMA)
    assert table is not None
    assert [value(row.quantity("power.draw", "power")) for row in table.rows] == [312.41, 1412.5, 88.25]
    assert [value(row.quantity("memory.used", "memory")) for row in table.rows] == [2048 * 2**20, 4096 * 2**20, 2048 * 2**20]
    assert [row.sign for row in table.rows] == [Sign.COMMA, Sign.COMMA, Sign.POINT]


def test_a_number_that_could_be_two_is_no_number() -> None:
    table = read(b"id;memory\nA-1;1,024 MiB\n")
    assert table is not None
    reading = table.rows[0].quantity("memory.used", "memory")
    assert isinstance(reading, Absent)
    assert "ambiguous" in reading.detail
    whole = read(b"id;memory;power\nA-1;1,024 MiB;5\nA-2;1 MiB;7,5 W\n")
    assert whole is not None
    assert whole.sign is Sign.COMMA
    assert value(whole.rows[0].quantity("memory.used", "memory")) == round(1.024 * 2**20, 9)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("228,82 W", Sign.COMMA),
        ("1.028,50 W", Sign.COMMA),
        ("96.5", Sign.POINT),
        ("1,028.50 W", Sign.POINT),
        ("0.125", Sign.POINT),
        ("1,024 MiB", Sign.UNKNOWN),
        ("1.024", Sign.UNKNOWN),
        ("580.95.05", Sign.UNKNOWN),
        ("7", Sign.UNKNOWN),
        ("word", Sign.UNKNOWN),
        ("", Sign.UNKNOWN),
    ],
)
def test_sign_of_a_cell(text: str, sign: Sign) -> None:
    assert sign_of(text) is sign


def test_separators() -> None:
    assert sniff("a, b, c") == ", "
    assert sniff("a,b,c") == ","
    assert sniff("a;b;c") == ";"
    assert sniff("a\tb") == "\t"
    assert sniff("alone") == ","
    assert split("1,2,3", ", ", 3) == ["1", "2", "3"]
    assert split('1, "x, y", 3', ", ", 3) == ["1", "x, y", "3"]
    assert split('1, "x, 3', ", ", 3) == ["1", '"x', "3"]


def test_header_cells() -> None:
    assert column("memory.total [MiB]") == Column("memory.total", "MiB")
    assert column("Temperature (Sensor edge) (C)") == Column("Temperature (Sensor edge)", "C")
    assert column("[alone]") == Column("[alone]")


def test_rows_that_do_not_fit() -> None:
    table = read(b"$ tool --csv\na, b, c\n1, 2, 3\n\na, b, c\n1, 2, 3, 4\n1, 2, 3, \n1, 2")
    assert table is not None
    assert [row.ragged for row in table.rows] == [False, True, False, True]
    assert table.rows[1].cells == {}
    assert table.rows[1].raw == ("1", "2", "3", "4")
    assert table.rows[3].cells == {"a": "1"}
    assert table.cut


def test_documents_without_header_or_lines() -> None:
    table = read(b"7, 55.10\n", columns=["index", "power.draw [W]"])
    assert table is not None
    assert table.rows[0].cells == {"index": "7", "power.draw": "55.10"}
    assert read(b"") is None
    assert read(b"\n \n") is None


@given(st.binary(max_size=300))
def test_any_bytes_read(payload: bytes) -> None:
    table = read(payload)
    for row in table.rows if table is not None else ():
        for name in row.cells:
            row.quantity("power.draw", name, unit="W")
