# SPDX-License-Identifier: Apache-2.0
"""Brings a store to the schema of this version when it is opened, and refuses one that a newer version wrote."""

from __future__ import annotations

import threading

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from muster.domain.model.errors import Unavailable
from muster.store.schema import HEAD

_TURN = threading.Lock()
"""Alembic works on one database at a time."""


def migrate(connection: Connection, name: str, found: str | None) -> None:
    """Runs the revisions after ``found`` (None: an empty store) up to HEAD within the caller's transaction.

    Raises Unavailable when ``found`` is no revision that this version knows.
    """
    steps(name, found)
    config = _config()
    config.attributes["connection"] = connection
    with _TURN:
        command.upgrade(config, HEAD)


def steps(name: str, found: str | None) -> list[tuple[str, str]]:
    """The revisions after ``found`` in order, each with what it does. Raises Unavailable when ``found`` is no revision that this version knows."""
    known = list(ScriptDirectory.from_config(_config()).walk_revisions(base="base", head=HEAD))[::-1]
    names = [each.revision for each in known]
    if found is not None and found not in names:
        raise Unavailable(
            f"{name} was written by a newer Muster (schema {found}); this one knows schemas up to {HEAD}",
            hint="upgrade Muster, or name the copy that was kept before the upgrade",
        )
    later = known if found is None else known[names.index(found) + 1 :]
    return [(each.revision, (each.doc or "").strip().splitlines()[0]) for each in later]


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "muster.store:migrations")
    return config
