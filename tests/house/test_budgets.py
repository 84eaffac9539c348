# SPDX-License-Identifier: Apache-2.0
"""Sizes and forms that a program can hold: files, functions, protocols, values, heads of files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.house.tree import CODE, ROOT, SRC, files, functions, median, modules, nothing, shipped, tree, where

FILE, FUNCTION, MEDIAN, MEMBERS = 400, 50, 10, 4
SPDX = "# SPDX-License-Identifier: Apache-2.0"
MARKED = {".toml", ".yaml", ".yml", ".sh", ".c", ".ini", ".cfg"}
NO_ROOM = {"utils", "util", "helpers", "helper", "common", "misc", "base", "shared", "lib", "stuff"}
LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|\b(placeholder|stub)\b", re.IGNORECASE)


def test_no_file_is_longer_than_a_person_reads() -> None:
    lengths = {where(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules(*CODE)}

    nothing(f"{each}: {found}" for each, found in ({path: length for path, length in lengths.items() if length > FILE}).items())


def test_no_function_is_longer_than_a_screen() -> None:
    nothing([f"{each.where} {each.name}: {each.lines}" for path in modules(*CODE) for each in functions(path) if each.lines > FUNCTION])


def test_half_of_the_functions_are_short() -> None:
    assert median([each.lines for path in shipped() for each in functions(path)]) < MEDIAN


def _classes(path: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]


def test_what_an_adapter_must_implement_is_small() -> None:
    sizes = {}
    for path in modules("src/muster/spi"):
        for node in _classes(path):
            if path.name in {"adapter.py", "readers.py"} and any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
                sizes[node.name] = sum(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.AnnAssign) for each in node.body)

    assert "Adapter" in sizes
    nothing(f"{each}: {found}" for each, found in ({name: size for name, size in sizes.items() if size > MEMBERS}).items())


def _dataclass_options(node: ast.ClassDef) -> dict[str, bool] | None:
    """The options of the dataclass decorator; None for a class that is none."""
    for each in node.decorator_list:
        name = each.func if isinstance(each, ast.Call) else each
        if (isinstance(name, ast.Name) and name.id == "dataclass") or (isinstance(name, ast.Attribute) and name.attr == "dataclass"):
            words = each.keywords if isinstance(each, ast.Call) else []
            return {word.arg: bool(word.value.value) for word in words if word.arg and isinstance(word.value, ast.Constant)}
    return None


WORKING_STATE = {f"src/muster/domain/decide/{name}.py" for name in ("merge/state", "merge/groups", "merge/match", "understand")}
"""Where a step keeps what it works on; see docs/decisions/0002. Copied when a step begins, never handed out to be changed."""


def test_values_of_the_domain_are_frozen_and_slotted() -> None:
    loose = []
    for path in modules("src/muster/domain"):
        if where(path) in WORKING_STATE:
            continue
        for node in _classes(path):
            options = _dataclass_options(node)
            if options is not None and not (options.get("frozen") and options.get("slots")):
                loose.append(f"{where(path, node.lineno)} {node.name}")

    nothing(loose)


def test_every_module_says_whose_it_is_and_why_it_is_there() -> None:
    bare = []
    for path in modules(*CODE):
        text = path.read_text(encoding="utf-8")
        if text and (not text.removeprefix("#!/usr/bin/env python3\n").startswith(SPDX) or (path.name != "__init__.py" and not ast.get_docstring(tree(path)))):
            bare.append(where(path))

    nothing(bare)


def test_every_table_and_script_says_whose_it_is() -> None:
    asked = [path for path in files() if path.suffix in MARKED or path.name == "Makefile" or path.parent.name == ".ci"]
    heads = {where(path): path.read_text(encoding="utf-8").splitlines()[:2] for path in asked}

    nothing(name for name, head in heads.items() if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head))


def test_everything_public_has_a_sentence() -> None:
    said = ((path, node) for path in shipped() for node in tree(path).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))

    nothing([f"{where(path, node.lineno)} {node.name}" for path, node in said if not node.name.startswith("_") and not ast.get_docstring(node)])


def test_every_room_has_a_name() -> None:
    nothing([where(path) for path in modules(*CODE) if {path.stem, *path.relative_to(ROOT).parts} & NO_ROOM])


def test_no_room_is_empty() -> None:
    rooms = {path.parent for path in files() if path.name == "__init__.py" and path.is_relative_to(SRC)}

    nothing([where(room) for room in sorted(rooms) if not any(path != room / "__init__.py" and path.is_relative_to(room) for path in files())])


def test_nothing_is_left_for_later_in_a_comment() -> None:
    left = []
    for path in shipped():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            comment = line.partition("#")[2] if "#" in line else ""
            if LEFT_OVER.search(comment):
                left.append(f"{where(path, number)}: {comment.strip()}")

    nothing(left)
