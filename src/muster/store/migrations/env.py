# SPDX-License-Identifier: Apache-2.0
"""Run by Alembic: the revisions go over the connection and in the transaction that the opening store hands over."""

from alembic import context

from muster.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=False, render_as_batch=True)
context.run_migrations()
