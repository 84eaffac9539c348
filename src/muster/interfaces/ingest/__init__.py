# SPDX-License-Identifier: Apache-2.0
"""The door of reporters: a listener of its own, which takes many reports at little cost and hands them to the writer in batches."""
