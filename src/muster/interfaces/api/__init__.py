# SPDX-License-Identifier: Apache-2.0
"""The door for programs: the HTTP API of the server."""
