# SPDX-License-Identifier: Apache-2.0
"""The triggers by which the database refuses to change or drop a row of the audit log: whether they stand, and how they are put back."""

from __future__ import annotations

import logging

from sqlalchemy import Connection

from muster.store.statements import SQLITE

SAID = "the audit log is only added to"
"""What the database says when it refuses."""
_FUNCTION = f"CREATE OR REPLACE FUNCTION audit_is_added_to() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '{SAID}'; END $$"
_IN_FILE = {
    f"audit_no_{verb.lower()}": f"CREATE TRIGGER audit_no_{verb.lower()} BEFORE {verb} ON audit BEGIN SELECT RAISE(ABORT, '{SAID}'); END"
    for verb in ("UPDATE", "DELETE")
}
_IN_DATABASE = {
    "audit_no_change": "CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_added_to()",
    "audit_no_truncate": "CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_is_added_to()",
}
_ASKED = """SELECT t.tgname, t.tgenabled::text, p.prosrc FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
WHERE t.tgrelid = 'audit'::regclass AND NOT t.tgisinternal"""
_log = logging.getLogger("muster.store")


def missing(connection: Connection) -> list[str]:
    """Triggers that are not there, are put out of use, or are others than ours."""
    if connection.dialect.name == SQLITE:
        asked = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit'")
        found = {row[0]: row[1] for row in asked}
        return [name for name, made in _IN_FILE.items() if found.get(name) != made]
    works = {name for name, enabled, source in connection.exec_driver_sql(_ASKED) if enabled in ("O", "A") and SAID in source}
    return [name for name in _IN_DATABASE if name not in works]


def put_back(connection: Connection, name: str) -> None:
    """Puts back what is missing in the store ``name``, and says so in the log."""
    lost = missing(connection)
    if not lost:
        return
    in_file = connection.dialect.name == SQLITE
    if not in_file:
        connection.exec_driver_sql(_FUNCTION)
    for each in lost:
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {each}{'' if in_file else ' ON audit'}")
        connection.exec_driver_sql((_IN_FILE if in_file else _IN_DATABASE)[each])
    _log.warning(
        "%s: what guards the audit log against changes was gone (%s) and is put back; compare the log with a copy kept elsewhere (muster audit verify)",
        name,
        ", ".join(lost),
    )
