# SPDX-License-Identifier: Apache-2.0
"""Lets the nodes of a load join a server, each with a key of its own, and gets their access tokens: a file of reporter and token, one line a node."""

from __future__ import annotations

import http.client
import os
import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from muster.wire.enrol import Asking, AuthorityDoc, Enrolled, EnrolRequest, Signed, Token, TokenRequest, packed, to_prove
from muster.wire.report import NodeDoc

HANDS = 4
"""Connections at a time."""


def node_doc(number: int) -> NodeDoc:
    """What a node of the load calls itself."""
    return NodeDoc(name=f"node-{number:05d}", machine_id=f"{number:05d}".rjust(32, "0"), system=f"00000000-0000-4000-9000-0000000{number:05d}")


def _connection(port: int, context: ssl.SSLContext | None) -> http.client.HTTPConnection:
    if context is None:
        return http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    return http.client.HTTPSConnection("localhost", port, timeout=60, context=context)


def authority(port: int) -> bytes:
    """The certificate of the server's authority, PEM, as it shows it; on loopback it is believed."""
    connection = _connection(port, ssl._create_unverified_context())
    connection.request("GET", "/v1/authority")
    found = msgspec.msgpack.decode(connection.getresponse().read(), type=AuthorityDoc)
    connection.close()
    return found.authority


def _asked(connection: http.client.HTTPConnection, path: str, asking: Asking, key: Ed25519PrivateKey) -> bytes:
    body = packed(asking)
    request = msgspec.msgpack.encode(Signed(body=body, proof=key.sign(to_prove(type(asking), body))))
    for _ in range(100):
        connection.request("POST", path, body=request, headers={"Content-Type": "application/msgpack"})
        answer = connection.getresponse()
        told = answer.read()
        if answer.status == 200:
            return told
        if answer.status not in (429, 503):
            raise SystemExit(f"{path}: {answer.status} {told[:300]!r}")
        time.sleep(0.5)
    raise SystemExit(f"{path}: busy for too long")


def _some(port: int, ca: str, mark: str, join: str, numbers: range) -> list[str]:
    connection = _connection(port, ssl.create_default_context(cafile=ca) if ca else None)
    found = []
    for number in numbers:
        key, node, boot = Ed25519PrivateKey.generate(), node_doc(number), f"00000000-0000-4000-8000-0000000{number:05d}"
        asking = EnrolRequest(token=join, node=node, public_key=key.public_key().public_bytes_raw(), server=mark, at=time.time(), agent_version="bench")
        reporter = msgspec.msgpack.decode(_asked(connection, "/v1/enrol", asking, key), type=Enrolled).reporter
        request = TokenRequest(reporter=reporter, server=mark, at=time.time(), nonce=os.urandom(16), node=node, boot_id=boot, instance="bench")
        found.append(f"{reporter}\t{msgspec.msgpack.decode(_asked(connection, '/v1/token', request, key), type=Token).token}")
    connection.close()
    return found


def join_all(port: int, ca: str, mark: str, join: str, nodes: int, file: Path) -> float:
    """All nodes join; their names and tokens go to the file. Returns the seconds that took."""
    began = time.monotonic()
    step = -(-nodes // HANDS)
    with ThreadPoolExecutor(HANDS) as hands:
        parts = hands.map(lambda start: _some(port, ca, mark, join, range(start, min(start + step, nodes))), range(0, nodes, step))
        rows = [row for part in parts for row in part]
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit("used by ingest.py")
