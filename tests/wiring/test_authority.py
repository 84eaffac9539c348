# SPDX-License-Identifier: Apache-2.0
"""The authority of a server: made once, private, renewed under the agents' feet, or handed in by the user."""

from __future__ import annotations

import hashlib
import os
import ssl
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from tests.wiring.gatehouse import gatehouse

from muster.domain.model.errors import InputError, MusterError, NotAllowed, Unavailable
from muster.wiring.authority import CA_LIFE, DAY, LEAF_LIFE, Authority, Theirs, fingerprint, join_line, own_names, state_of
from muster.wiring.gate_calls import ask, authority_of, pinned
from muster.wiring.gate_calls import fingerprint as light_fingerprint

NAMES = ("127.0.0.1", "localhost", "muster.example")


def made(folder: Path, now: float | None = None) -> Authority:
    return Authority.open(folder, NAMES, time.time() if now is None else now)


def test_it_is_made_once_and_only_its_user_reads_the_keys(tmp_path: Path) -> None:
    first, second = made(tmp_path / "a"), made(tmp_path / "a")

    assert first.fingerprint == second.fingerprint == light_fingerprint(first.authority())
    assert first.fingerprint == "sha256:" + hashlib.sha256(ssl.PEM_cert_to_DER_cert(first.authority().decode())).hexdigest()
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert {each.name: each.stat().st_mode & 0o777 for each in (tmp_path / "a").iterdir()} == {
        "ca.key": 0o600, "ca.pem": 0o644, "server.key": 0o600, "server.pem": 0o644, "tokens.key": 0o600, "lock": 0o600,
    }  # fmt: skip
    token = first.signer.sign({"sub": "x"})
    assert second.signer.read(token) == {"sub": "x"}
    assert made(tmp_path / "b").fingerprint != first.fingerprint


def test_two_that_start_at_once_end_up_with_one(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(made(tmp_path / "a").fingerprint)) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_its_certificates_are_as_strict_readers_want_them(tmp_path: Path) -> None:
    now = time.time()
    found = made(tmp_path)
    leaf, ca = x509.load_pem_x509_certificates(found.chain.read_bytes())
    leaf.verify_directly_issued_by(ca)
    assert leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName) == ["localhost", "muster.example"]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
    assert abs(found.until - now - LEAF_LIFE) < 60
    roots = x509.verification.Store([ca])
    checked = x509.verification.PolicyBuilder().store(roots).time(datetime.now(UTC)).build_server_verifier(x509.DNSName("muster.example"))
    assert checked.verify(leaf, []) == [leaf, ca]


def test_a_certificate_is_renewed_before_it_ends_and_agents_that_pinned_the_authority_go_on(tmp_path: Path) -> None:
    now = time.time()
    authority = made(state_of(tmp_path), now - 70 * DAY)
    with gatehouse(tmp_path, authority=authority) as house:
        context = pinned(authority.authority())
        before = authority.until
        assert ask(house.url, context, "GET", "/v1/authority").status == 200
        assert not authority.refresh(now - 69 * DAY)
        assert authority.refresh(now)
        assert authority.until > before + 60 * DAY
        assert ask(house.url, context, "GET", "/v1/authority").status == 200


def test_a_new_name_makes_a_new_certificate_of_the_same_authority(tmp_path: Path) -> None:
    first = made(tmp_path)
    second = Authority.open(tmp_path, (*NAMES, "10.1.2.3"), time.time())
    assert first.fingerprint == second.fingerprint
    assert "10.1.2.3" in [str(each) for each in _addresses(second.chain)]


def _addresses(chain: Path) -> list[object]:
    names = x509.load_pem_x509_certificates(chain.read_bytes())[0].extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return [*names.value.get_values_for_type(x509.IPAddress)]


def test_an_authority_that_ends_or_lost_its_key_says_so(tmp_path: Path) -> None:
    now = time.time()
    made(tmp_path / "old", now - CA_LIFE)
    with pytest.raises(Unavailable, match="ends on"):
        made(tmp_path / "old", now)
    for name, what in (("ca.key", b"nothing"), ("ca.pem", b"nothing")):
        made(tmp_path / name)
        (tmp_path / name / name).write_bytes(what)
        with pytest.raises(Unavailable):
            made(tmp_path / name)
    made(tmp_path / "mixed")
    made(tmp_path / "other")
    (tmp_path / "mixed" / "ca.pem").write_bytes((tmp_path / "other" / "ca.pem").read_bytes())
    with pytest.raises(Unavailable, match="do not belong together"):
        made(tmp_path / "mixed")


@pytest.mark.parametrize("name", ["ca.key", "tokens.key", "server.key"])
def test_a_key_that_others_may_read_is_not_used(tmp_path: Path, name: str) -> None:
    made(tmp_path)
    (tmp_path / name).chmod(0o644)
    with pytest.raises(Unavailable, match="read by others"):
        made(tmp_path)


def theirs(folder: Path, names: tuple[str, ...] = NAMES, now: float | None = None) -> Theirs:
    """A certificate of the user's own."""
    Authority.open(folder, names, time.time() if now is None else now)
    return Theirs(chain=folder / "server.pem", key=folder / "server.key", ca=folder / "ca.pem")


def test_a_users_own_certificate_is_used_and_taken_anew_when_it_changes(tmp_path: Path) -> None:
    own = theirs(tmp_path / "theirs")
    authority = Authority.open(state_of(tmp_path), NAMES, time.time(), own)
    assert authority.fingerprint == fingerprint((tmp_path / "theirs" / "ca.pem").read_bytes())
    assert not (state_of(tmp_path) / "ca.key").exists()
    with gatehouse(tmp_path, authority=authority) as house:
        context = pinned(authority.authority())
        assert ask(house.url, context, "GET", "/v1/authority").status == 200
        assert not authority.refresh(time.time())
        Authority.open(tmp_path / "theirs", (*NAMES, "more.example"), time.time())
        assert authority.refresh(time.time())
        assert ask(house.url, context, "GET", "/v1/authority").status == 200


def test_a_users_certificate_that_does_not_fit_spoils_nothing(tmp_path: Path) -> None:
    own, other = theirs(tmp_path / "theirs"), theirs(tmp_path / "other")
    authority = Authority.open(state_of(tmp_path), NAMES, time.time(), own)
    with gatehouse(tmp_path, authority=authority) as house:
        own.key.write_bytes(other.key.read_bytes())
        assert not authority.refresh(time.time())
        assert "cannot be used" in authority.trouble
        assert ask(house.url, pinned(authority.authority()), "GET", "/v1/authority").status == 200
        own.chain.write_bytes(other.chain.read_bytes())
        own.ca.write_bytes(other.ca.read_bytes()) if own.ca and other.ca else None
        assert not authority.refresh(time.time())
        assert "another authority" in authority.trouble
    with pytest.raises(InputError, match="ended on"):
        Authority.open(tmp_path / "x", NAMES, time.time() + 200 * DAY, theirs(tmp_path / "third"))
    with pytest.raises(InputError, match="cannot be used"):
        Authority.open(tmp_path / "x", NAMES, time.time(), Theirs(chain=tmp_path / "none", key=tmp_path / "none"))


def test_the_wrong_authority_an_ended_certificate_and_another_name_are_refused(tmp_path: Path) -> None:
    now = time.time()
    with gatehouse(tmp_path / "a") as house, pytest.raises(NotAllowed, match="is not the server whose authority is pinned"):
        authority_of(house.url, pinned(made(tmp_path / "other").authority()))
    with gatehouse(tmp_path / "b", authority=made(tmp_path / "old", now - LEAF_LIFE - DAY)) as house:
        with pytest.raises(NotAllowed, match="has ended, by this node's clock") as told:
            authority_of(house.url, pinned(house.authority.authority()))
        assert "clock" in told.value.hint
    with gatehouse(tmp_path / "c", authority=made(tmp_path / "new", now + 3 * DAY)) as house, pytest.raises(NotAllowed, match="not valid yet"):
        authority_of(house.url, pinned(house.authority.authority()))
    with gatehouse(tmp_path / "d", names=("muster.example",)) as house, pytest.raises(NotAllowed, match=r"is not for 127\.0\.0\.1"):
        authority_of(house.url, pinned(house.authority.authority()))


def test_old_tls_is_not_spoken(tmp_path: Path) -> None:
    with gatehouse(tmp_path) as house:
        context = pinned(house.authority.authority())
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        with pytest.warns(DeprecationWarning, match="TLS"):
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(MusterError):
            ask(house.url, context, "GET", "/v1/authority")


def test_its_own_names_are_those_by_which_it_can_be_meant() -> None:
    found = own_names(["0.0.0.0", "muster.example", "::"])
    assert found[0] == "muster.example"
    assert {"localhost", "127.0.0.1", "::1", os.uname().nodename} <= set(found)
    assert not {"0.0.0.0", "::", ""} & set(found)


def test_the_line_that_joins_is_one_that_can_be_typed() -> None:
    assert join_line("https://h:7461", "sha256:ab", "T") == "muster agent join https://h:7461 --ca sha256:ab --token T"


@pytest.mark.parametrize(("words", "rc"), [([], 2), (["sing", "x"], 2), (["public", "/nowhere/key"], 3), (["new", "/nowhere/key"], 6)])
def test_the_child_that_signs_says_what_is_wrong(words: list[str], rc: int) -> None:
    ran = subprocess.run([sys.executable, "-m", "muster.wiring.keys", *words], capture_output=True, text=True, check=False, input="")
    assert ran.returncode == rc
    assert ran.stderr.strip()
    assert "Traceback" not in ran.stderr
