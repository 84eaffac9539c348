# SPDX-License-Identifier: Apache-2.0
"""One text of the vendor's tools: a single answer, or a shell session with several commands and their answers.

Every text is read the same way: it is parted at its command lines, and each part is given to the parsers of the shapes that it shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.adapters.huawei import parse_hccn, parse_mapping, parse_table, parse_topo, parse_versions, parse_view
from muster.adapters.huawei.said import Said

_PROMPT = re.compile(r"^(?:[^|]{0,120}?[#$>]\s+)?(?:(?:kubectl|docker|nerdctl|crictl|podman|ssh|sudo)\b.*?\s)?(\S+)(?:\s+(.*))?$")
_TOOLS = {"npu-smi", "hccn_tool", "cat", "lspci", "pip", "pip3", "lsmod", "uname", "ls"}
_ARGS = re.compile(r"^(?:info|set|upgrade|clear|-)")
_FAILURES = re.compile(
    r"ret (?:is|=|:)\s*(-\d{4,5})|dcmi (?:module|model) init|DrvMngGetConsoleLogLevel failed|error while loading shared libraries|"
    r"npu-smi: (?:command )?not found|can(?:not|'t) open .*davinci|davinci_manager.*(?:denied|failed)",
    re.IGNORECASE,
)
_LIMITER = re.compile(r"limiter::|Memory limit:\s*\d+|\[vCANN", re.IGNORECASE)
_OPTION = re.compile(r"(?:^|\s)-([a-z])\s+(\d{1,6})\b")
_TOPIC = re.compile(r"(?:^|\s)-(?!i\b|g\b|s\b)([a-z]\w*)")


@dataclass(frozen=True, slots=True)
class Part:
    """One command with its answer. ``tool`` is "" where no command line stands above."""

    tool: str
    args: str
    lines: tuple[str, ...]


def command(line: str) -> tuple[str, str] | None:
    """Tool and arguments when ``line`` is a command line (with or without a prompt, a path, `kubectl exec ... --`), else None."""
    if len(line) > 400 or line.lstrip()[:1] in ("|", "+"):
        return None
    found = _PROMPT.match(line.strip())
    if found is None:
        return None
    tool, args = found.group(1).rpartition("/")[2], found.group(2) or ""
    if tool not in _TOOLS or (tool in ("npu-smi", "hccn_tool") and not _ARGS.match(args)):
        return None
    if tool not in ("npu-smi", "hccn_tool") and ":" in line.partition(" ")[0]:
        return None
    return tool, args


def parts(lines: Sequence[str], locator: Sequence[str] = ()) -> Iterator[Part]:
    """The text parted at its command lines; what stands before the first one answers ``locator``, when that is a command."""
    tool, args = command(" ".join(locator)) or ("", "")
    held: list[str] = []
    for line in lines:
        found = command(line)
        if found:
            yield Part(tool, args, tuple(held))
            (tool, args), held = found, []
        else:
            held.append(line)
    yield Part(tool, args, tuple(held))


def read(lines: Sequence[str], said: Said, locator: Sequence[str] = (), *, open_end: bool = False) -> None:
    """Adds everything that a text says. ``open_end`` says that its last line has no line end."""
    said.failures.extend(line.strip() for line in lines if line[:1] != "#" and _FAILURES.search(line[:400]))
    said.soft_sliced = said.soft_sliced or any(_LIMITER.search(line[:400]) for line in lines)
    whole = list(parts(lines, locator))
    for place, part in enumerate(whole):
        _part(part, said, open_end=open_end and place == len(whole) - 1)


def _part(part: Part, said: Said, *, open_end: bool) -> None:
    options = dict(_OPTION.findall(part.args))
    if part.tool == "hccn_tool":
        topic = _TOPIC.search(part.args)
        parse_hccn.read(part.lines, said, options.get("i"), topic.group(1) if topic else "", open_end=open_end)
    elif part.tool == "cat":
        parse_versions.read(part.lines, said, part.args, open_end=open_end)
    elif part.tool in ("npu-smi", "") and not part.args.startswith("set"):
        _answer(part, said, options, open_end=open_end)


def _answer(part: Part, said: Said, options: dict[str, str], *, open_end: bool) -> None:
    filtered = "|" in part.args or "-i " in part.args
    before = said.whole, said.ended
    parse_table.read(part.lines, said, options.get("i"))
    mapped = parse_mapping.read(part.lines, said, open_end=open_end)
    matrix = parse_topo.read(part.lines, said, open_end=open_end)
    if not mapped and not matrix:
        parse_view.read(part.lines, said, options.get("i"), options.get("c"), open_end=open_end)
    if filtered:
        said.whole, said.ended = before
