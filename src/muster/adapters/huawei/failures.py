# SPDX-License-Identifier: Apache-2.0
"""What became of a read, from the tools' failure lines: they come on standard output, and the exit status says little."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muster.adapters.huawei.said import Said
from muster.domain.model.reading import Why
from muster.domain.model.source import Capture, Outcome

# return codes of the management library; the ones below -90000 are ours: no such function, no library
CODES: dict[int, tuple[Why, str]] = {
    -8001: (Why.ERROR, "invalid parameter"),
    -8002: (Why.NOT_PERMITTED, "operation not permitted"),
    -8003: (Why.ERROR, "memory operation failed"),
    -8004: (Why.ERROR, "secure function failed"),
    -8005: (Why.ERROR, "inner error"),
    -8006: (Why.TIMED_OUT, "time out"),
    -8007: (Why.ERROR, "invalid device id"),
    -8008: (Why.DEVICE_LOST, "device does not exist"),
    -8009: (Why.ERROR, "ioctl failed"),
    -8010: (Why.ERROR, "sending to the device failed"),
    -8011: (Why.ERROR, "receiving from the device failed"),
    -8012: (Why.NOT_SAMPLED, "device not ready"),
    -8013: (Why.NOT_SUPPORTED, "not supported in a container"),
    -8015: (Why.ERROR, "reset failed"),
    -8016: (Why.ERROR, "aborted"),
    -8017: (Why.NOT_SAMPLED, "upgrade in progress"),
    -8020: (Why.ERROR, "resource occupied"),
    -8023: (Why.NOT_SUPPORTED, "configuration missing"),
    -8255: (Why.NOT_SUPPORTED, "not supported"),
    -99998: (Why.NOT_SUPPORTED, "the library has no such function"),
}
_CODE = re.compile(r"(-8\d{3})\b")
_MISSING = re.compile(r"npu-smi: (?:command )?not found|No such file or directory.*npu-smi|npu-smi: No such file", re.IGNORECASE)
_DENIED = re.compile(r"permission denied|operation not permitted", re.IGNORECASE)


def outcome_of(captures: Sequence[Capture], said: Said, cards: int) -> tuple[Outcome, str]:
    """Outcome and detail of a round of texts that gave ``cards`` cards."""
    detail = "; ".join(dict.fromkeys(said.failures))[:400]
    if cards:
        short = (said.cut and not said.soft_sliced) or (said.total is not None and cards < said.total)
        return (Outcome.PARTIAL if short else Outcome.DEVICES), detail
    if said.failures:
        return failure(detail), detail
    if any(_DENIED.search(c.payload[:4096].decode("latin-1")) or _DENIED.search(c.stderr[:4096].decode("latin-1")) for c in captures):
        return Outcome.NOT_PERMITTED, "permission denied"
    if said.total == 0:
        return Outcome.NO_DEVICES, "the tool counts no NPU"
    return Outcome.UNREADABLE, "no NPU and no failure message was read" if any(c.payload.strip() for c in captures) else "the answer is empty"


def failure(text: str) -> Outcome:
    """The outcome that a failure line stands for. A library that will not start is never "no devices"."""
    if _MISSING.search(text):
        return Outcome.TOOL_MISSING
    codes = {int(code) for code in _CODE.findall(text)}
    if -8002 in codes or (_DENIED.search(text) and not codes):
        return Outcome.NOT_PERMITTED
    return Outcome.TIMED_OUT if codes == {-8006} else Outcome.DRIVER_UNUSABLE
