# SPDX-License-Identifier: Apache-2.0
"""Drawn tables: rows, rulers, cut lines."""

from __future__ import annotations

from muster.formats.boxes import Row, is_ruler, pair, rows, words

TEXT = """\
boot: some log line | with a bar inside
+-----------------------------------+
| tool 1.0        Driver: 2.0       |
+------------+----------------------+
| No  Name   | Watt   Memory(MB)    |
| Part       | Bus    Load          |
+============+======================+
| 0   left   | 71.5   12  / 64      |
| 1          | a:b    5             |
+============+======================+
| 1   right  | 70.0   3411/ 64      |
| 0          | a:c                  |
+------------+----------------------+

+-----+------+
| Pid | Name |
+=====+======+
| 7   |      |
+-----+------+
"""
TABLE = TEXT.split("\n")


def test_tables_and_bands_are_told_apart() -> None:
    found = list(rows(TABLE))

    assert [(row.table, row.band) for row in found] == [(0, 0), (0, 1), (0, 1), (0, 2), (0, 2), (0, 3), (0, 3), (1, 0), (1, 1)]
    assert found[0].cell(0) == "tool 1.0        Driver: 2.0"
    assert found[0].cell(9) == ""


def test_columns_of_one_cell_get_their_words() -> None:
    found = list(rows(TABLE))
    top, bottom = found[1], found[2]

    assert pair(top, found[3]) == {"No": "0", "Name": "left", "Watt": "71.5", "Memory(MB)": "12/64"}
    assert pair(top, found[5])["Memory(MB)"] == "3411/64"
    assert pair(bottom, found[6]) == {"Part": "0", "Bus": "a:c", "Load": ""}


def test_missing_words_go_by_place() -> None:
    header = Row(0, 0, 0, (" A     B     C     ",))

    assert pair(header, Row(1, 0, 0, (" 1           3     ",))) == {"A": "1", "B": "", "C": "3"}
    assert pair(header, Row(1, 0, 0, (" 1     2 two 3     ",))) == {"A": "1", "B": "2 two", "C": "3"}


def test_the_last_word_of_an_unfinished_line_is_left_out() -> None:
    header, cut = list(rows(["| A   B |", "| 12  345"]))

    assert not cut.closed
    assert pair(header, cut) == {"A": "12", "B": ""}
    assert pair(Row(0, 0, 0, (" Name ",)), Row(1, 0, 0, (" left ri",), closed=False)) == {"Name": "left"}


def test_rulers_of_all_kinds() -> None:
    assert all(is_ruler(line) for line in ("+---+", "|===+===|", "├────┼────┤", "╞═════╡", "-----", "| :---: | ----: |"))
    assert not any(is_ruler(line) for line in ("", "+", "| - | - |", "a --- b", "--"))


def test_line_drawing_characters() -> None:
    found = list(rows(["╭───┬───╮", "│ a │ b │", "╰───┴───╯"]))

    assert [row.cells for row in found] == [(" a ", " b ")]


def test_words_keep_what_belongs_together() -> None:
    assert [word for _, word in words("0    / 0          61609/ 65536")] == ["0/0", "61609/65536"]
    assert [word for _, word in words("Process id    Process name", gap=2)] == ["Process id", "Process name"]
    assert [place for place, _ in words("  a  b")] == [2, 5]


def test_text_around_and_between_is_no_row() -> None:
    assert list(rows(["", "prompt$ tool", "a | b", "+---+"])) == []
    assert [row.table for row in rows(["| a |", "noise", "| b |"])] == [0, 1]


def test_doubled_and_long_lines() -> None:
    doubled = [line for line in TABLE for _ in range(2)]

    assert len(list(rows(doubled))) == 2 * len(list(rows(TABLE)))
    assert len(next(iter(rows(["|" + " x |" * 20000]))).cells) == 20000
