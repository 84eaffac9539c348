# SPDX-License-Identifier: Apache-2.0
"""The log of the server: whoever writes into it, each line has the form that was asked for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SAYS = """
import logging, structlog
from muster.wiring.logs import configure_logs
from muster.wiring.settings import load_settings
configure_logs(load_settings(log_format={form!r}))
structlog.get_logger("muster.server").info("serving", url="http://x")
logging.getLogger("muster.ingest").warning("only %d files", 5)
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("muster.store").exception("it broke")
logging.getLogger("muster.store").info("too little to tell")
"""


def lines(form: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", SAYS.format(form=form)], capture_output=True, text=True, check=True)
    return ran.stderr.splitlines()


def test_every_line_is_json_where_json_is_asked_for() -> None:
    told = [json.loads(line) for line in lines("json")]

    assert [(each["level"], each["event"]) for each in told] == [("info", "serving"), ("warning", "only 5 files"), ("error", "it broke")]
    assert told[1]["logger"] == "muster.ingest"
    assert {each["timestamp"][-1] for each in told} == {"Z"}
    assert "ZeroDivisionError" in json.dumps(told[2])


@pytest.mark.parametrize(("number", "words"), [(0, ["[info", "serving", "url=http://x"]), (1, ["[warning", "only 5 files", "muster.ingest"])])
def test_people_read_one_form(number: int, words: list[str]) -> None:
    line = lines("console")[number]

    assert line[:2] == "20"
    assert line.split()[0].endswith("Z")
    assert [word for word in words if word not in line] == []
