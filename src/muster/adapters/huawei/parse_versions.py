# SPDX-License-Identifier: Apache-2.0
"""The version files of driver, firmware and toolkit, as `cat` shows them: ``key=value`` lines; the path says whose they are."""

from __future__ import annotations

from collections.abc import Sequence

from muster.adapters.huawei.said import Said


def read(lines: Sequence[str], said: Said, path: str, *, open_end: bool = False) -> bool:
    """Adds versions and the compatibility lists beside them; True when ``path`` is such a file."""
    body = lines[:-1] if open_end else lines
    fields = {key.strip().lower(): text.strip() for key, sign, text in (line.partition("=") for line in body) if sign and " " not in key.strip()}
    version = fields.get("version", "")
    if "/driver/" in path:
        _keep(said, "driver", version, fields)
    elif "/firmware/" in path:
        _keep(said, "firmware", version, fields)
    elif "_install.info" in path or "toolkit" in path or "nnae" in path:
        said.runtimes.append(version)
        said.node[f"{fields.get('package_name', 'runtime')} version"] = version
    else:
        return False
    return True


def _keep(said: Said, part: str, version: str, fields: dict[str, str]) -> None:
    if version:
        said.node[part] = version
    for key, text in fields.items():
        if key.startswith("compatible_version") or key == "package_version":
            said.node[f"{part} {key}"] = text
