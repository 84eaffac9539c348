# SPDX-License-Identifier: Apache-2.0
"""What leaves Muster for the stores of metrics that a site already runs. It reads the API like any other program."""
