# SPDX-License-Identifier: Apache-2.0
"""Makes the folder of a new adapter from the template that ships with muster: a package of its own, or a folder in the source tree."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from muster.domain.model.errors import Conflict, InputError
from muster.readers.recorded import EXPECTED, load_machine
from muster.wiring.adapters import TREE, folders, load_folder
from muster.wiring.conformance import load_from
from muster.wiring.offline import document

TEMPLATE = TREE / "template"
MACHINE = "two-cards"
_NAME = re.compile(r"^[a-z][a-z0-9_]{1,39}$")
_PACKAGE_FILES = {
    "init.py.txt": "__init__.py",
    "manifest.toml.txt": "manifest.toml",
    "sources.toml.txt": "sources.toml",
    "models.toml.txt": "models.toml",
    "recognise.py.txt": "recognise.py",
    "parse_status.py.txt": "parse_status.py",
    "observe.py.txt": "observe.py",
    "machine/machine.toml.txt": f"machines/{MACHINE}/machine.toml",
    "machine/status.txt.txt": f"machines/{MACHINE}/status.txt",
    "test_adapter.py.txt": "tests/test_@name@.py",
}
_INSTALL = """6. `pip install .`, then name it: `MUSTER_ADAPTERS=@name@`. Only adapters that are named are loaded from outside.
"""


@dataclass(frozen=True, slots=True)
class Made:
    """The files that were made, and one sentence on what to do next."""

    files: tuple[Path, ...]
    about: str


def create(name: str, into: Path, *, tree: bool) -> Made:
    """Makes the adapter ``name``. Raises InputError for a name that cannot be one, Conflict when there is something of that name."""
    if not _NAME.match(name) or keyword.iskeyword(name):
        raise InputError(f"{name!r} cannot be the name of an adapter", hint="lower-case letters, digits and underscores, a letter first: acme, acme_npu")
    if name in folders() or name in ("template", "muster"):
        raise Conflict(f"there is an adapter {name!r} already", hint="`muster adapter list` shows them")
    project = TREE if tree else into / name
    package = f"muster.adapters.{name}" if tree else f"muster_{name}"
    folder = TREE / name if tree else project / package
    if folder.exists() or (not tree and project.exists() and any(project.iterdir())):
        raise Conflict(f"{folder if tree else project} exists and is not empty", hint="choose another name, or another folder with --in")
    words = _words(name, package, tree=tree)
    try:
        files = [*_written(folder, _PACKAGE_FILES, words), *_written(folder if tree else project, _project_files(tree=tree), words)]
        files.append(_expected(folder, package, tree=tree))
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}", hint="choose a folder you may write, with --in") from error
    listed = "; `make docs` puts it into the support table and the reference" if tree else ""
    return Made(tuple(files), f"`muster adapter check {name}` checks it{listed}; README.md says where to begin")


def _words(name: str, package: str, *, tree: bool) -> dict[str, str]:
    dash = name.replace("_", "-")
    title = " ".join(part.capitalize() for part in name.split("_"))
    words = {"name": name, "dash": dash, "word": dash, "Title": title, "package": package, "check": name}
    words["folder"] = "" if tree else f"{package}/"
    words["install"] = "" if tree else _filled(_INSTALL, words).rstrip("\n")
    return words


def _project_files(*, tree: bool) -> dict[str, str]:
    return {"README.md.txt": "README.md"} | ({} if tree else {"pyproject.toml.txt": "pyproject.toml"})


def _written(folder: Path, files: Mapping[str, str], words: Mapping[str, str]) -> Iterator[Path]:
    for source, target in files.items():
        text = _filled((TEMPLATE / source).read_text(encoding="utf-8"), words)
        path = folder / _filled(target, words)
        path.parent.mkdir(parents=True, exist_ok=True)
        head = "# SPDX-License-Identifier: Apache-2.0\n" if path.suffix in (".py", ".toml") else ""
        path.write_text(head + text.rstrip("\n") + "\n", encoding="utf-8")
        yield path


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"@(\w+)@", lambda match: words[match[1]], text)


def _expected(folder: Path, package: str, *, tree: bool) -> Path:
    """What the new adapter says of its recorded machine, kept beside it."""
    made = load_folder(folder, package) if tree else load_from(folder)
    machine = load_machine(folder / "machines" / MACHINE)
    told = made.interpret(machine.captures)
    file = machine.path / EXPECTED
    file.write_text(json.dumps([document(made.manifest.name, told, told.format)], ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return file
