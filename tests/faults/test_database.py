# SPDX-License-Identifier: Apache-2.0
"""The database is restarted, stopped, slow, frozen, read-only, or replaced by its copy: writes are refused with a time to come back, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from tests.faults.site import Server, few, server, until
from tests.faults.test_server_killed import Operator, at_work, heard, settled
from tests.faults.voices import Said, Voice, replayed, voices, whole
from tests.postgres import Postgres, new_folder

from muster.wire.report import pack

Answers = Callable[[Said], bool]


def later(voice: Voice, *, patience: float = 40.0, words: str = "") -> Said:
    """Posts the next report until it is answered 503, which asks to come back. It is under way from then on."""
    body = voice.pending = voice.pending or pack(voice.report(voice.sequence + 1))

    def tried() -> Said | None:
        said = voice.post(body)
        assert said.status == 503, said
        return said if words in said.detail else None

    said: Said = until(tried, f"a 503 that says {words!r}", patience)
    assert said.retry > 0
    return said


def named(url: str) -> str:
    """The name of the database."""
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


def backends(database: Postgres, name: str) -> list[int]:
    """The processes that serve Muster in it."""
    asked = f"SELECT pid FROM pg_stat_activity WHERE application_name = 'muster' AND datname = '{name}' ORDER BY backend_start"
    return [int(pid) for pid in database.psql(asked).split()]


@pytest.mark.slow
def test_a_database_that_is_restarted_under_load(tmp_path: Path, database: Postgres) -> None:
    runs = few(5)
    with server(tmp_path, database=database.url(database.database())) as site:
        these = voices(site, 4)
        for voice in these:
            voice.say()
        operator = Operator(site, these[0].serial)
        with at_work(these, operator) as wrong:
            for _ in range(runs):
                time.sleep(0.4)
                database.stop("immediate")
                database.start()
                heard(these, wrong)
        settled(site, these, operator)
        assert site.ready() == ""
        print(f"restarted {runs} times: {sum(each.sequence for each in these)} reports and {operator.said} acts acknowledged, none lost, none doubled")


@pytest.mark.slow
def test_a_database_that_is_away_for_a_while(tmp_path: Path, database: Postgres) -> None:
    with server(tmp_path, database=database.url(database.database())) as site:
        (voice,) = voices(site, 1)
        for _ in range(5):
            voice.say()
        database.stop("immediate")
        later(voice, words="does not answer")
        until(lambda: "does not answer" in site.ready(), "/readyz says so")
        assert site.ask("/healthz")[0] == 200
        status, found = site.ask("/api/v1/cards")
        assert (status, "does not answer" in found["detail"]) == (503, True), found
        time.sleep(4)
        database.start()
        began = time.monotonic()
        voice.say()
        until(lambda: not site.ready(), "/readyz is well again")
        print(f"taken and ready {time.monotonic() - began:.1f} s after the database was back")
        until(lambda: "time passes again" in site.log, "the log says that it is back")
        assert (site.log.count("time does not pass"), site.log.count("time passes again")) == (1, 1), site.log
        replayed(voice)
        whole(site, voice)


@pytest.mark.slow
def test_a_database_that_is_slow_and_one_that_is_frozen(tmp_path: Path, database: Postgres) -> None:
    url = database.url(database.database())
    with server(tmp_path, database=url) as site:
        (voice,) = voices(site, 1)
        for _ in range(4):
            voice.say()
        database.psql(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN NEW; END $$;"
            "CREATE TRIGGER slow BEFORE INSERT ON journal FOR EACH STATEMENT EXECUTE FUNCTION slow()",
            named(url),
        )
        took = []
        for _ in range(3):
            began = time.monotonic()
            voice.say()
            took.append(time.monotonic() - began)
            began = time.monotonic()
            site.get("cards")
            assert time.monotonic() - began < 1.5, "who reads does not wait for who writes"
        assert max(took) >= 2
        database.psql("DROP TRIGGER slow ON journal", named(url))
        pids = backends(database, named(url))
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            said = later(voice)
            waited = time.monotonic() - began
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        voice.say()
        until(lambda: not site.ready(), "/readyz is well again", 60)
        replayed(voice)
        whole(site, voice)
        print(f"slow: acknowledged after {max(took):.1f} s; frozen: refused after {waited:.1f} s: {said.detail[:200]}")


@pytest.mark.slow
def test_a_database_that_only_reads(tmp_path: Path, database: Postgres) -> None:
    url = database.url(database.database())
    with server(tmp_path, database=url) as site:
        (voice,) = voices(site, 1)
        for _ in range(5):
            voice.say()
        for word in ("on", "off"):
            database.psql(f"ALTER DATABASE {named(url)} SET default_transaction_read_only = {word}")
            database.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'muster'")
            if word == "on":
                later(voice, words="only reads")
                assert site.get(f"cards/{voice.serial}")["readings"]["temperature.core"]["value"] == voice.sequence
                until(lambda: "only reads" in site.ready(), "/readyz says so")
        voice.say()
        until(lambda: not site.ready(), "/readyz is well again")
        whole(site, voice)


@pytest.mark.slow
def test_a_copy_that_takes_over(tmp_path: Path, postgres: Postgres) -> None:
    """The copy confirms each commit before it is acknowledged, as a site sets it that must lose nothing."""
    plain = ("shared_buffers=32MB", "max_connections=60", "listen_addresses=''")
    first = Postgres(new_folder(), postgres.bin, (*plain, "wal_level=replica", "max_wal_senders=4"))
    copy = Postgres(new_folder(), postgres.bin, plain)
    site: Server | None = None
    try:
        first.make()
        first.start()
        name = first.database()
        copy.own()
        copy.run("pg_basebackup", "-h", str(first.folder), "-U", "muster", "-D", str(copy.data), "-R", "-X", "stream", "--checkpoint=fast")
        copy.start()
        first.psql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        first.psql("SELECT pg_reload_conf()")
        site = Server(tmp_path, {"database": f"postgresql:///{name}?host={first.folder},{copy.folder}&user=muster"}).start()
        these = voices(site, 4)
        operator = Operator(site, these[0].serial)
        for voice in these:
            voice.say()
        with at_work(these, operator) as wrong:
            heard(these, wrong)
            first.stop("immediate")
            began = time.monotonic()
            copy.run("pg_ctl", "-D", str(copy.data), "-w", "promote")
            heard(these, wrong)
            took = time.monotonic() - began
        settled(site, these, operator)
        print(f"all reporters were taken again {took:.1f} s after the first database was gone; {sum(each.sequence for each in these)} reports, none lost")
    finally:
        if site is not None:
            site.end()
        for each in (first, copy):
            with suppress(RuntimeError):
                each.stop()
            shutil.rmtree(each.folder, ignore_errors=True)
