# SPDX-License-Identifier: Apache-2.0
"""What is not documented does not exist: commands, settings, attributes, findings and errors stand in docs/reference, and examples are of this Muster."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from tests.house.tree import ROOT, files, nothing, shipped, where

from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.errors import MusterError
from muster.domain.model.roll import FindingKind, Happening
from muster.interfaces.api import problems
from muster.interfaces.cli import exits
from muster.interfaces.cli.main import COMMANDS, muster
from muster.wiring.settings import ServerSettings

REFERENCE = ROOT / "docs" / "reference"
FENCED = re.compile(r"^```(?:console|sh|shell|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
VARIABLE = re.compile(r"\bMUSTER_[A-Z]+(?:_[A-Z]+)*\b")


def _kinds(root: type[MusterError]) -> Iterator[type[MusterError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)


def missing(page: str, words: list[str]) -> list[str]:
    """Words that do not stand on the page as code or as a heading."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    return [word for word in words if f"`{word}`" not in text and f"## {word}\n" not in text]


def test_the_reference_is_what_the_code_says() -> None:
    command = [sys.executable, "tools/gen_reference.py", "--check"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={"PYTHONPATH": "src"})

    assert (ran.returncode, ran.stderr) == (0, "")


def test_every_command_is_documented() -> None:
    nothing(missing("commands.md", [f"muster {name}" for name in COMMANDS]))


def test_every_setting_is_documented() -> None:
    nothing(missing("settings.md", list(ServerSettings.model_fields)))
    nothing([name for name, field in ServerSettings.model_fields.items() if not field.description])


def test_every_variable_is_documented() -> None:
    used = {word: where(path) for path in shipped() for word in VARIABLE.findall(path.read_text(encoding="utf-8"))}

    nothing(f"{each}: {found}" for each, found in ({word: used[word] for word in missing("settings.md", sorted(used))}).items())


def test_every_attribute_is_documented() -> None:
    nothing(missing("attributes.md", list(ATTRIBUTES)))


def test_every_finding_and_every_entry_of_history_is_documented() -> None:
    nothing(missing("words.md", [*FindingKind, *Happening]))


def test_every_error_is_documented() -> None:
    codes = {kind.code for kind in _kinds(MusterError)} | set(problems.CODES.values()) | set(problems.OWN)

    nothing(missing("errors.md", sorted(codes)))
    nothing([str(code) for code in exits.EXITS if f"| {code} |" not in (REFERENCE / "commands.md").read_text(encoding="utf-8")])


def test_every_decision_has_its_own_number() -> None:
    numbers = [path.name[:4] for path in files() if path.parent == ROOT / "docs" / "decisions" and path.suffix == ".md"]

    assert sorted(set(numbers)) == sorted(numbers)


def examples() -> list[tuple[str, str]]:
    """Where, and the command line, for each example of ours in prose."""
    found = []
    for path in files():
        if path.suffix == ".md" and "machines" not in path.parts:
            for block in FENCED.findall(path.read_text(encoding="utf-8")):
                lines = re.sub(r"\\\n\s*", " ", block).splitlines()
                found += [(where(path), line.removeprefix("$ ")) for line in lines if line.removeprefix("$ ").startswith("muster ")]
    return found


@pytest.mark.parametrize(("at", "line"), examples() or [("no example yet", "muster version")])
def test_every_example_is_a_command_of_ours(at: str, line: str) -> None:
    words = shlex.split(re.split(r"\s[|>&]", line, maxsplit=1)[0], comments=True)[1:]
    command, context = _find(muster, words)
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | set(context.help_option_names)
    unknown = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known and not _short(word, known)]

    nothing(unknown)


def _short(word: str, known: set[str]) -> bool:
    """A short option with its value written to it (-ojson), or a negative number."""
    return not word.startswith("--") and (word[:2] in known or word[1:2].isdigit())


def _find(group: click.Command, words: list[str]) -> tuple[click.Command, click.Context]:
    context = click.Context(group, info_name="muster", help_option_names=["-h", "--help"])
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        found = group.get_command(context, words[0])
        assert found is not None, f"no command {words[0]}"
        group, words = found, words[1:]
    return group, context
