# SPDX-License-Identifier: Apache-2.0
"""An act whose answer was lost on the way: with a key it is not done again, and answered as it was."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any
from unittest import mock

from tests.faults.clocks import Site, site
from tests.faults.voices import Voice

from muster.wire.report import pack


def act(there: Site, voice: Voice, owner: str, key: str) -> tuple[int, Any, str]:
    """Says who owns the card, under a key."""
    connection = http.client.HTTPConnection("muster", timeout=20)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.connect(there.server.socket)
        body = json.dumps({"what": "set", "card": voice.serial, "values": {"asset.owner": owner}})
        connection.request("POST", "/api/v1/acts", body, {"content-type": "application/json", "idempotency-key": key})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers.get("idempotency-replayed", "")
    finally:
        connection.close()


def test_an_act_is_kept_with_its_answer(tmp_path: Path) -> None:
    """As when the server is killed between the two: the answer is not kept a second time after the commit, and is there all the same."""
    with site(tmp_path) as there:
        (voice,) = there.voices(1)
        assert voice.post(pack(voice.report(1, there.now))).status == 200
        with mock.patch("muster.interfaces.api.kept.Answers._keep"):
            status, first, replayed = act(there, voice, "ada", "key-1")
            assert (status, len(first["cards"]), replayed) == (200, 1, "")
            assert act(there, voice, "ada", "key-1") == (200, first, "true")
        said = [row for row in there.all("acts") if row["what"] == "set"]
        assert [row["detail"]["values"] for row in said] == [{"asset.owner": "ada"}]
