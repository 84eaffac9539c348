# SPDX-License-Identifier: Apache-2.0
"""Settings of the server: where they come from, who wins, and what is said of one that does not fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from muster.domain.model.errors import InputError
from muster.domain.model.policy import Policy
from muster.wiring.settings import exposed, load_settings, runtime_folder, setting_files, state_folder


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("MUSTER_PORT", "MUSTER_CONFIG", "MUSTER_STATE"):
        monkeypatch.delenv(name, raising=False)


def test_flags_win_over_environment_over_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text("port = 1111\nsettle = 5\nstale_floor = 7.5\n")
    monkeypatch.setenv("MUSTER_PORT", "2222")
    monkeypatch.setenv("MUSTER_SETTLE", "6")
    told = load_settings(file, port=3333, host=None)

    assert (told.port, told.settle, told.stale_floor, told.host) == (3333, 6.0, 7.5, "127.0.0.1")
    assert load_settings(file).port == 2222
    policy = told.policy(frozenset({"f1f1"}), frozenset({"acme"}))
    assert (policy.settle, policy.stale_floor, policy.known_vendors) == (6.0, 7.5, frozenset({"f1f1"}))


def test_defaults_are_those_of_the_policy() -> None:
    assert load_settings().policy(frozenset(), frozenset()) == Policy()


def test_the_file_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config" / "muster").mkdir(parents=True)
    (tmp_path / "config" / "muster" / "server.toml").write_text("port = 4444\n")
    assert load_settings().port == 4444
    named = tmp_path / "named.toml"
    named.write_text("port = 5555\n")
    monkeypatch.setenv("MUSTER_CONFIG", str(named))
    assert load_settings().port == 5555
    assert setting_files({"HOME": "/home/a"})[0] == Path("/home/a/.config/muster/server.toml")


def test_what_does_not_fit_is_named_with_its_origin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text("prot = 1\n")
    with pytest.raises(InputError, match=rf"prot \({file}\)") as refused:
        load_settings(file)
    assert "port" in refused.value.hint
    with pytest.raises(InputError, match=r"port \(--port\)"):
        load_settings(port=70_000)
    monkeypatch.setenv("MUSTER_SETTLE", "soon")
    with pytest.raises(InputError, match=r"settle \(MUSTER_SETTLE\)"):
        load_settings()
    file.write_text("port: 5")
    with pytest.raises(InputError, match=str(file)):
        load_settings(file)
    with pytest.raises(InputError, match="No such file"):
        load_settings(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("prot = 1", "no setting prot ({file})", "near it: port"),
        ("zzzz = 1", "no setting zzzz ({file})", "`muster config -o wide` lists the settings there are"),
        ('port = "x"', "setting port ({file}): a whole number is wanted, not 'x'", "port: Port to listen on"),
        ("port = 1.5", "setting port ({file}): a whole number is wanted, not 1.5", "port: "),
        ("port = 70000", "setting port ({file}): 65535 or less is wanted, not 70000", "port: "),
        ("port = -1", "setting port ({file}): 0 or more is wanted, not -1", "port: "),
        ("keep_minutes = 0", "setting keep_minutes ({file}): more than 0 is wanted, not 0", "keep_minutes: "),
        ('settle = "soon"', "setting settle ({file}): a number is wanted, not 'soon'", "settle: "),
        ('in_memory = "maybe"', "setting in_memory ({file}): true or false is wanted, not 'maybe'", "in_memory: "),
        ('door = "aprt"', "setting door ({file}): one of 'inside', 'apart' is wanted, not 'aprt'", "door: "),
        ("names = 3", 'setting names ({file}): a list is wanted, like ["one", "two"], not 3', "names: "),
        ("tls_key = 5", "setting tls_key ({file}): a path is wanted, not 5", "tls_key: "),
        ("oidc_roles = 3", "setting oidc_roles ({file}): a table is wanted, with a line for each name, not 3", "oidc_roles: "),
        ("[oidc_roles]\na = 1", "setting oidc_roles ({file}), at a: a text is wanted, not 1", "oidc_roles: "),
        ('oidc_name_claim = ""', "setting oidc_name_claim ({file}): a text of one letter or more is wanted, not ''", "oidc_name_claim: "),
        ("database = 3", "setting database ({file}): a text is wanted", "database: "),
    ],
)
def test_what_is_wanted_is_said_in_our_words(tmp_path: Path, line: str, message: str, hint: str) -> None:
    file = tmp_path / "server.toml"
    file.write_text(f"{line}\n")
    with pytest.raises(InputError) as refused:
        load_settings(file)
    assert refused.value.message == message.format(file=file)
    assert refused.value.hint.startswith(hint)


def test_a_table_in_the_environment_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_OIDC_ROLES", "admins")
    with pytest.raises(InputError, match=r"^setting oidc_roles \(MUSTER_OIDC_ROLES\): a table is wanted, as JSON$"):
        load_settings()


def test_folders() -> None:
    user = {"HOME": "/home/a"}
    assert state_folder(user, root=False) == Path("/home/a/.local/share/muster")
    assert state_folder({**user, "XDG_DATA_HOME": "/data"}, root=False) == Path("/data/muster")
    assert state_folder(user, root=True) == Path("/var/lib/muster")
    assert runtime_folder(user, root=False) == Path("/home/a/.local/state/muster")
    assert runtime_folder(user, root=True) == Path("/run/muster")
    assert runtime_folder({**user, "XDG_RUNTIME_DIR": "/run/user/7"}, root=False) == Path("/run/user/7/muster")


@pytest.mark.parametrize(
    ("database", "secret"),
    [
        ("postgresql://muster:geheim@db/roll", True),
        ("postgresql://muster@db/roll?password=geheim", True),
        ("postgresql://muster@db/roll", False),
        ("postgresql://muster@db:5432/roll?sslmode=require", False),
    ],
)
def test_a_password_that_others_can_read(tmp_path: Path, database: str, *, secret: bool) -> None:
    file = tmp_path / "server.toml"
    file.write_text(f'database = "{database}"\n')
    file.chmod(0o644)
    assert exposed(file) == (file if secret else None)
    file.chmod(0o640)
    assert exposed(file) is None
    assert exposed(tmp_path / "none.toml") is None


def test_the_server_says_that_its_password_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text('database = "postgresql://muster:geheim@127.0.0.1:1/roll"\n')
    file.chmod(0o644)
    words = ["server", "--config", str(file), "--port", "0", "--state", str(tmp_path / "s"), "--runtime", str(tmp_path / "r")]
    done = subprocess.run([sys.executable, "-m", "muster", *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0, "there is no such database"
    assert f"{file} has the password of the database, and every user of this machine can read it" in done.stderr
    assert "geheim" not in done.stderr
