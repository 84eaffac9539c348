# SPDX-License-Identifier: Apache-2.0
"""Bytes to text lines, whatever a tool, terminal or editor did to them."""

from __future__ import annotations

import re

LINE_LIMIT = 64 * 1024
"""Characters of one line that are looked at; the rest of a longer line is dropped."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def decode(payload: bytes) -> str:
    """UTF-8, UTF-16 with a byte order mark, or Latin-1 for what is neither; without escape codes, NULs and other control characters; line ends as ``\\n``."""
    if payload[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = payload.decode("utf-16", errors="replace")
    else:
        try:
            text = payload.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            cut = error.reason == "unexpected end of data"
            text = payload.decode("utf-8-sig" if cut else "latin-1", errors="ignore" if cut else "strict")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", _ESCAPES.sub("", text))


def lines(payload: bytes) -> list[str]:
    """Lines of the text, trailing blanks removed, none longer than `LINE_LIMIT`."""
    return [line[:LINE_LIMIT].rstrip() for line in decode(payload).split("\n")]
