# SPDX-License-Identifier: Apache-2.0
"""The tree of indented pairs: paths, repeated keys, lists, and texts that are cut or garbled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muster.formats.tree import Node, items, looks_like, parse

PADDED = b"""
Driver Version            : 571.10
Attached GPUs             : 2
GPU 00000000:3A:00.0
    Product Name          : Board A
    MIG Mode
        Current           : Enabled
        Pending           : Disabled
    Part
        Index             : 0
        Memory
            Total         : 10 MiB
    Part
        Index             : 1
        Memory
            Total         : 20 MiB
    Path                  : C:\\Tools : new\\a.exe
GPU 00000000:3B:00.0
    Product Name          :
"""


def test_values_are_found_by_path() -> None:
    root = parse(PADDED)
    first, second = root.starting("GPU ")
    assert first.key == "GPU 00000000:3A:00.0"
    assert first.text("mig mode", "CURRENT") == "Enabled"
    assert [part.text("Memory", "Total") for part in first.all("Part")] == ["10 MiB", "20 MiB"]
    assert first.text("Path") == "C:\\Tools : new\\a.exe"
    assert second.text("Product Name") == ""
    assert second.text("Serial") is None
    assert root.text("Driver_Version") == "571.10"


def test_colon_at_the_end_opens_a_section_and_tabs_indent() -> None:
    root = parse("$ tool list\nGPU: 0\n\tASIC:\n\t\tNAME: X1\nGPU: 1\n\tASIC:\n\t\tNAME: X2\n")
    assert [gpu.value for gpu in root.all("GPU")] == ["0", "1"]
    assert [gpu.text("ASIC", "NAME") for gpu in root.all("GPU")] == ["X1", "X2"]


def test_a_line_printed_twice_hides_nothing() -> None:
    root = parse("A\nA\n  B : 1\n  B : 1\n  C\n  C\n    D : 2\n    D : 2\n")
    node = root.at("A")
    assert node is not None
    assert node.text("B") == "1"
    assert root.text("A", "C", "D") == "2"


def test_flat_records_and_list_items() -> None:
    root = parse("POLICIES:\n  ID: 0\n  NAME: a\n  ID: 1\n  NAME: b\n- key: 1\n  more: 2\n- key: 3\n")
    policies = root.at("policies")
    assert policies is not None
    assert [(r.text("id"), r.text("name")) for r in policies.records()] == [("0", "a"), ("1", "b")]
    assert [(r.text("id"), r.text("name")) for r in policies.records("ID")] == [("0", "a"), ("1", "b")]
    assert [item.text("key") for item in root.all("-")] == ["1", "3"]
    assert root.all("-")[0].text("more") == "2"
    assert policies.records("OTHER") == []


def test_bracketed_values_go_on_below() -> None:
    root = parse("U:\n    J: [0 %, 1 %,\n        N/A,\n        [2, 3]]\n    K: [0 %\n    L: 4\n")
    assert items(root.text("U", "J") or "") == ["0 %", "1 %", "N/A", "[2, 3]"]
    assert root.text("U", "K") == "[0 %"
    assert root.text("U", "L") == "4"
    assert items("") == []
    assert items("7") == ["7"]


def test_walk_and_dict() -> None:
    root = parse("A : 1\nB\n  C : 2\n  C : 3\n  C : 4\n")
    assert [(path, node.value) for path, node in root.walk()] == [(("A",), "1"), (("B",), None), (("B", "C"), "2"), (("B", "C"), "3"), (("B", "C"), "4")]
    assert root.as_dict() == {"A": "1", "B": {"C": ["2", "3", "4"]}}


def test_deep_nesting_is_kept_flat_beyond_the_limit() -> None:
    root = parse("\n".join(" " * i + f"k{i} : {i}" for i in range(1200)))
    deepest = [path for path, _ in root.walk()]
    assert len(deepest) == 1200
    assert max(map(len, deepest)) <= 33
    assert root.as_dict()


def test_recognition() -> None:
    assert looks_like(PADDED)
    assert not looks_like(b"")
    assert not looks_like(b"<a>\n  <b>x</b>\n</a>")
    assert not looks_like(b"one : 1")


@given(st.binary(max_size=400))
def test_any_bytes_read(payload: bytes) -> None:
    root = parse(payload)
    assert isinstance(root, Node)
    list(root.walk())


@given(st.integers(min_value=0, max_value=len(PADDED)))
def test_cut_anywhere(at: int) -> None:
    parse(PADDED[:at]).as_dict()
