# SPDX-License-Identifier: Apache-2.0
"""Brings a store to the schema of this version when it is opened, and refuses one that a newer version wrote."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from muster.domain.model.errors import Unavailable
from muster.store.schema import HEAD


def migrate(connection: Connection, name: str, found: str | None) -> None:
    """Runs the revisions after ``found`` (None: an empty store) up to HEAD within the caller's transaction.

    Raises Unavailable when ``found`` is no revision that this version knows.
    """
    config = Config()
    config.set_main_option("script_location", "muster.store:migrations")
    config.attributes["connection"] = connection
    known = [each.revision for each in ScriptDirectory.from_config(config).walk_revisions()]
    if found is not None and found not in known:
        raise Unavailable(
            f"{name} was written by a newer Muster (schema {found}); this one knows schemas up to {HEAD}",
            hint="upgrade Muster, or name the copy that was kept before the upgrade",
        )
    command.upgrade(config, HEAD)
