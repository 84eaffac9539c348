# SPDX-License-Identifier: Apache-2.0
"""A hundred nodes with one name, a hundred cards with one serial, and cloned machines: whoever was first keeps its identity, and the site is told."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tests.faults.site import Server, server, until
from tests.faults.voices import Voice, authority, node_doc

from muster.domain.model.errors import MusterError
from muster.domain.model.policy import Policy
from muster.wire.lanes import part
from muster.wire.report import NodeDoc, pack
from muster.wiring.authority import fingerprint
from muster.wiring.joining import join

HUNDRED = 100
ONE, TWO = "4f0c2d7be1a94b63b1d0c35e8f7a9021", "9be3175c02d84f6aa47d60c1f28e5b3d"
"""Machine ids."""
QUICK = 0.5
"""Seconds for a question while all of that goes on."""


def of(site: Server, name: str, node: NodeDoc, serial: str = "") -> Voice:
    """A reporter of that node."""
    voice = Voice(name, authority(site), site.port, serial=serial)
    voice.node = node
    site.after.append(voice.close)
    return voice


def kinds(site: Server) -> Counter[str]:
    """Open findings, by kind."""
    return Counter(each["kind"] for each in site.all("findings") if each["closed_at"] is None)


def asked(site: Server, path: str = "cards") -> float:
    """Seconds that a question took."""
    began = time.monotonic()
    site.get(path)
    took = time.monotonic() - began
    assert took < QUICK, f"{path} took {took:.2f} s"
    return took


@pytest.mark.slow
def test_a_hundred_nodes_that_join_under_one_name(tmp_path: Path) -> None:
    """The first has the name; each other is turned away, and told what to do."""
    with server(tmp_path) as site:
        token, mark = site.join_token(uses=HUNDRED), fingerprint(authority(site))
        outcomes = Counter[str]()
        for number in range(HUNDRED):
            node = NodeDoc(name="gpu", machine_id=f"{number:032x}", system=f"system-{number}")
            try:
                join(tmp_path / f"n{number}", f"https://127.0.0.1:{site.port}", mark, token, node)
            except MusterError as error:
                outcomes[error.code if error.hint else "without a hint"] += 1
            else:
                outcomes["joined"] += 1
        members = site.all("reporters")
        assert [each["machine_id"] for each in members] == [f"{0:032x}"]
        assert outcomes == {"joined": 1, "conflict": HUNDRED - 1}
        asked(site)
        print(f"{HUNDRED} nodes with one name: {dict(outcomes)}")


def posted(site: Server, name: str, node: NodeDoc, number: int, serial: str, address: str = "0000:3b:00.0") -> float:
    """Posts a report of a node by the API, as an agent on loopback does; seconds that it took."""
    voice = Voice(name, authority_of(site), site.port, serial=serial)
    voice.reporter, voice.node = f"agent@{name}", node
    listing = voice.listing(number, time.time())
    card = listing.observations[0]
    card.ids = [("serial", serial), ("pci_address", address), ("index", "0")]
    body = pack(msgspec.structs.replace(voice.report(number), heard=[part(listing)], events=[]))
    began = time.monotonic()
    status, told = site.post(body)
    assert status == 200, told
    return time.monotonic() - began


_pem: dict[int, bytes] = {}


def authority_of(site: Server) -> bytes:
    """The authority of a site, asked for once."""
    if site.port not in _pem:
        _pem[site.port] = authority(site)
    return _pem[site.port]


@pytest.mark.slow
def test_a_hundred_nodes_that_report_under_one_name(tmp_path: Path) -> None:
    """Agents on loopback join nothing: all of them call themselves the same, on a hundred machines."""
    with server(tmp_path) as site:
        took = []
        for round_ in (1, 2, 3):
            for number in range(HUNDRED):
                node = NodeDoc(name="gpu", machine_id=f"{number:032x}", system=f"SYS{number}")
                took.append(posted(site, f"gpu-{number}", node, round_, f"SN{number}"))
            asked(site)
        until(lambda: kinds(site)["placeholder_id"], "the site is told")
        cards = site.all("cards")
        nodes = site.all("nodes")
        (told,) = [each for each in site.all("findings") if each["kind"] == "placeholder_id" and each["closed_at"] is None]
        assert told["subject"] == "name=gpu"
        said = re.fullmatch(r"host name 'gpu' is told by (\d+) machines: it names none of them; give each its own", told["about"])
        assert said is not None, told["about"]
        assert Policy().placeholder_nodes <= int(said[1]) <= HUNDRED  # so many as there were when it was found out
        assert len(cards) == HUNDRED
        assert len({each["id"] for each in nodes}) == HUNDRED
        assert {card["presence"] for card in cards} == {"present"}
        last = took[-HUNDRED:]
        print(f"one name, {HUNDRED} machines: {1000 * sum(last) / HUNDRED:.0f} ms a report, at most {1000 * max(took):.0f} ms; findings {dict(kinds(site))}")
        assert sum(last) / HUNDRED < QUICK


@pytest.mark.slow
def test_a_hundred_nodes_with_one_serial(tmp_path: Path) -> None:
    """A serial that a hundred cards have names none of them; each is told from the others by its node and place."""
    with server(tmp_path) as site:
        took = list[float]()
        for round_ in (1, 2, 3):
            took += [posted(site, f"gpu-{number}", node_doc(f"gpu-{number}"), round_, "SAMESERIAL1") for number in range(HUNDRED)]
            asked(site)
        until(lambda: kinds(site)["placeholder_id"] + kinds(site)["identity_conflict"], "the site is told")
        cards = site.all("cards")
        last = took[-HUNDRED:]
        spent = sum(last) / HUNDRED
        print(f"one serial, {HUNDRED} nodes: {1000 * spent:.0f} ms a report, at most {1000 * max(took):.0f} ms, {len(cards)} cards; {dict(kinds(site))}")
        assert len(cards) == HUNDRED
        assert Counter(card["node"] for card in cards) == {f"gpu-{number}": 1 for number in range(HUNDRED)}
        assert spent < QUICK


@pytest.mark.slow
def test_cloned_machines(tmp_path: Path) -> None:
    """An image with the agent's state in it: the same machine id and key on others. The first keeps its identity; the others are refused, and it is said."""
    with server(tmp_path) as site:
        token = site.join_token(uses=5)
        first = of(site, "gpu-1", NodeDoc(name="gpu-1", machine_id=ONE, system="S1")).join(token)
        first.say()
        other_key = of(site, "gpu-2", NodeDoc(name="gpu-2", machine_id=ONE, system="S2"))
        with pytest.raises(AssertionError, match="409"):
            other_key.join(token)
        same_key = of(site, "gpu-3", NodeDoc(name="gpu-3", machine_id=TWO, system="S3"))
        same_key.key, same_key.reporter = first.key, first.reporter
        with pytest.raises(AssertionError, match=r": 40[139] "):
            same_key.known()
        same_words = of(site, "gpu-1", first.node)
        same_words.key, same_words.reporter, same_words.headers = first.key, first.reporter, first.headers
        said = same_words.post(pack(msgspec.structs.replace(same_words.report(1), events=[], heard=[part(same_words.listing(7, time.time()))])))
        assert (said.status, "copied state" in said.detail) == (409, True), said
        found = kinds(site)
        assert found["sequence_conflict"] == 1, found
        first.say()
        assert [each["name"] for each in site.all("nodes")] == ["gpu-1"]
        members = site.all("reporters")
        assert [(each["node"], each["state"]) for each in members] == [("gpu-1", "joined")]
        audit = Counter((each["what"], each["detail"].get("result")) for each in site.all("audit"))
        print(f"clones: {dict(audit)}; while the copy spoke: {dict(found)}")
