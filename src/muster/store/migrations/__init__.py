# SPDX-License-Identifier: Apache-2.0
"""The ways from one schema of the store to the next. A revision that was released is never changed."""
