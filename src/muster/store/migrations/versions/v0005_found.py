# SPDX-License-Identifier: Apache-2.0
"""Findings and events are found by what people ask for: what is open, kinds, nodes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds indexes in the order in which lists are given; that of what is open takes the place of one that left the order to be made."""
    op.drop_index("ix_findings_closed_at", "findings")
    op.create_index("ix_findings_kind_opened_at_id", "findings", ["kind", "opened_at", "id"])
    op.create_index("ix_findings_node_opened_at_id", "findings", ["node", "opened_at", "id"])
    still = sa.text("closed_at IS NULL")
    op.create_index("ix_findings_still_open", "findings", ["opened_at", "id"], sqlite_where=still, postgresql_where=still)
    op.create_index("ix_events_kind_last_at", "events", ["kind", "last_at"])
