# SPDX-License-Identifier: Apache-2.0
"""How hard properties are tried, in all tests, those beside the adapters too: the same examples each time, or many new ones by `make fuzz`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", deadline=None, max_examples=3000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
