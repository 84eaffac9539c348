# SPDX-License-Identifier: Apache-2.0
"""What the tool prints when it cannot list: many different states, none of which is "no cards, all well"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from muster.domain.model.source import Outcome
from muster.formats.text import decode

_TEXTS: tuple[tuple[str, Outcome], ...] = (
    (r"driver/library version mismatch", Outcome.DRIVER_UNUSABLE),
    (r"couldn'?t communicate with the nvidia driver", Outcome.DRIVER_UNUSABLE),
    (r"driver (?:is )?not loaded", Outcome.DRIVER_UNUSABLE),
    (r"couldn'?t find (?:the )?\S*(?:libnvidia-ml|nvml)\S* (?:library|dll)", Outcome.TOOL_MISSING),
    (r"nvidia-smi\S*: (?:command )?not found|nvidia-smi\S*: no such file", Outcome.TOOL_MISSING),
    (r"is not recognized as an internal or external command", Outcome.TOOL_MISSING),
    (r"gpu access blocked by the operating system", Outcome.NOT_PERMITTED),
    (r"failed to initialize nvml: unknown error", Outcome.NOT_PERMITTED),
    (r"failed to initialize nvml: (?:insufficient permissions|no permission)", Outcome.NOT_PERMITTED),
    (r"failed to initialize nvml: (?:library not found|n/a)", Outcome.TOOL_MISSING),
    (r"failed to initialize nvml: (?:gpu is lost)", Outcome.DEVICE_LOST),
    (r"failed to initialize nvml: (?:timeout|timed out)", Outcome.TIMED_OUT),
    (r"failed to initialize nvml", Outcome.DRIVER_UNUSABLE),
    (r"no devices were found|no supported (?:gpus|devices) (?:were )?found", Outcome.NO_DEVICES),
    (r"unable to determine the device handle|gpu is lost", Outcome.DEVICE_LOST),
    (r"insufficient permissions", Outcome.NOT_PERMITTED),
)
_PATTERNS = tuple((re.compile(pattern), outcome) for pattern, outcome in _TEXTS)
_LOST = re.compile(r"Unable to determine the device handle for (?:gpu|GPU)\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*:?\s*([^\n]*)")
LINES, WIDTH = 60, 300
"""A failure text is short: lines and characters of a line that are looked at."""
_CONTAINER = "seen in containers that lost access to the device files; on a host it means that the driver does not answer"


@dataclass(frozen=True, slots=True)
class Failure:
    """The outcome that a text spells, with the line that says so."""

    outcome: Outcome
    line: str


def failure(*texts: bytes) -> Failure | None:
    """The first failure that one of ``texts`` (stdout, stderr) spells, None when there is none."""
    for payload in texts:
        rows = (row for row in decode(payload[:65536]).split("\n") if row.strip())
        for line in islice(rows, LINES):
            lower = line.lower()
            for pattern, outcome in _PATTERNS:
                if len(lower) < WIDTH and pattern.search(lower):
                    more = f" ({_CONTAINER})" if "nvml: unknown error" in lower else ""
                    return Failure(outcome, " ".join(line.split())[:200] + more)
    return None


def lost(*texts: bytes) -> dict[str, str]:
    """Address to the tool's words for every card that it could not reach."""
    return {match.group(1): match.group(2).strip() or "lost" for payload in texts for match in _LOST.finditer(decode(payload))}


def speaks(head: bytes) -> bool:
    """True when the text is a failure text of this vendor's tool (and not any text that has one of the words somewhere)."""
    text = decode(head[:4096]).lower()
    if len(decode(head).split("\n")) > LINES:
        return False
    return bool(text.strip()) and ("nvml" in text or "nvidia" in text or "device handle for gpu" in text or _only(text)) and failure(head) is not None


def _only(text: str) -> bool:
    return text.strip() in {"no devices were found"}
