# SPDX-License-Identifier: Apache-2.0
"""The roll on disk: SQL tables behind the ports of `spi.store`. `open_store` is the way in."""

from muster.store.opening import Store, open_store

__all__ = ["Store", "open_store"]
