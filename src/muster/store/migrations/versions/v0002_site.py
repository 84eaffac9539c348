# SPDX-License-Identifier: Apache-2.0
"""The site: parts that are loaded one by one, reporters, the writer's lease, what is fresh, and an audit log that is chained."""

from __future__ import annotations

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
SAID = "the audit log is only added to"


def upgrade() -> None:
    """Adds what a site needs; cards that were there count as written by the first commit."""
    _parts()
    _reporters()
    _fresh()
    _findings()
    _answers()
    _audit()
    _guard()


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _parts() -> None:
    for table in ("journal", "cards", "nodes"):
        op.add_column(table, sa.Column("region", sa.Text(), server_default=sa.text("''"), nullable=False))
    op.create_index(op.f("ix_journal_region_number"), "journal", ["region", "number"])
    op.create_index(op.f("ix_cards_region"), "cards", ["region"])
    op.create_index(op.f("ix_nodes_region"), "nodes", ["region"])
    op.add_column("base", sa.Column("due", sa.Double(), nullable=True))
    op.create_table("names", _text("kind"), _text("value"), _text("region"), sa.PrimaryKeyConstraint("kind", "value"), sqlite_with_rowid=False)
    op.create_index(op.f("ix_names_region"), "names", ["region"])


def _reporters() -> None:
    op.create_table(
        "reporters",
        _text("reporter"),
        _text("incarnation"),
        _count("high"),
        sa.Column("recent", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.Column("skew", sa.Double(), nullable=False),
        _text("agent_version"),
        _text("boot_id"),
        _text("node"),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("reporter"),
    )
    op.create_index("ix_reporters_node", "reporters", ["node"])
    op.create_table("lease", _text("name"), _text("holder"), _count("token"), sa.Column("until", sa.Double(), nullable=False), sa.PrimaryKeyConstraint("name"))
    op.execute("INSERT INTO lease (name, holder, token, until) VALUES ('writer', '', 0, 0)")  # two that come at once wait for each other on it


def _fresh() -> None:
    op.add_column("cards", sa.Column("written", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.create_index(op.f("ix_cards_written"), "cards", ["written"])
    op.create_table("cards_gone", _text("id"), _count("written"), sa.Column("at", sa.Double(), nullable=False), sa.PrimaryKeyConstraint("id"))
    op.create_index(op.f("ix_cards_gone_written"), "cards_gone", ["written"])
    op.create_index(op.f("ix_cards_gone_at"), "cards_gone", ["at"])
    op.execute("UPDATE cards SET written = 1")
    op.execute("INSERT INTO counters (name, value) SELECT 'commit', 1 WHERE EXISTS (SELECT 1 FROM cards)")
    op.execute("INSERT INTO counters (name, value) SELECT 'version', 1 WHERE EXISTS (SELECT 1 FROM cards)")


def _findings() -> None:
    """What a finding is about, beside its record, so that it is found by it."""
    for name in ("kind", "node"):
        op.add_column("findings", sa.Column(name, sa.Text(), server_default=sa.text("''"), nullable=False))
    op.create_index(op.f("ix_findings_opened_at_id"), "findings", ["opened_at", "id"])
    op.create_index(op.f("ix_changes_kind_number"), "changes", ["kind", "number"])
    about = op.create_table(
        "finding_cards",
        _text("card"),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("card", "number"),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_finding_cards_number"), "finding_cards", ["number"])
    _fill(about)
    _news()


def _fill(about: sa.Table) -> None:
    """Tells what the findings that are there are about; a record that cannot be read is left as it is."""
    db = op.get_bind()
    for number, record in db.execute(sa.text("SELECT number, CAST(record AS TEXT) FROM findings")).all():
        try:
            told = json.loads(record)
            kind, node, cards = str(told["kind"]), str(told.get("node", "")), {str(card) for card in (told["subject"], *told.get("cards", ()))}
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        db.execute(sa.text("UPDATE findings SET kind = :kind, node = :node WHERE number = :number"), {"kind": kind, "node": node, "number": number})
        db.execute(sa.insert(about), [{"card": card, "number": number} for card in sorted(cards)])


def _news() -> None:
    op.create_table(
        "news",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        _text("what"),
        _count("finding"),
        sa.PrimaryKeyConstraint("number"),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_news_at"), "news", ["at"])


def _answers() -> None:
    op.create_table(
        "answered",
        _text("key"),
        _text("digest"),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index(op.f("ix_answered_at"), "answered", ["at"])


def _audit() -> None:
    """Moves the log over, in order, with the chain laid over it."""
    db = op.get_bind()
    rows = db.execute(sa.text("SELECT at, entry FROM audit ORDER BY number")).all()
    op.drop_table("audit")
    made = op.create_table(
        "audit",
        sa.Column("number", NUMBER, autoincrement=False, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        _text("entry"),
        _text("digest"),
        sa.PrimaryKeyConstraint("number"),
    )
    head = op.create_table("audit_head", _text("name"), _count("number"), _text("digest"), sa.PrimaryKeyConstraint("name"))
    last = "0" * 64
    for number, (at, entry) in enumerate(rows, 1):
        last = hashlib.sha256("\n".join((last, str(number), repr(float(at)), entry)).encode("utf-8", "backslashreplace")).hexdigest()
        db.execute(sa.insert(made).values(number=number, at=at, entry=entry, digest=last))
    if rows:
        db.execute(sa.insert(head).values(name="audit", number=len(rows), digest=last))


def _guard() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(f"CREATE TRIGGER audit_no_{verb.lower()} BEFORE {verb} ON audit BEGIN SELECT RAISE(ABORT, '{SAID}'); END")
        return
    op.execute(f"CREATE FUNCTION audit_is_added_to() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '{SAID}'; END $$")
    op.execute("CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_added_to()")
    op.execute("CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_is_added_to()")
