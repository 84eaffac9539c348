# SPDX-License-Identifier: Apache-2.0
"""Names of things: what kind, how far each holds, and the one form in which two spellings of a name are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class NameKind(StrEnum):
    """Kinds of names, strongest first for cards; the last three are a node's."""

    VENDOR_UUID = "vendor_uuid"
    SERIAL = "serial"
    CHASSIS_SLOT = "chassis_slot"
    PCI_ADDRESS = "pci_address"
    K8S_DEVICE = "k8s_device"
    INDEX = "index"
    GPU_INSTANCE = "gpu_instance_id"
    COMPUTE_INSTANCE = "compute_instance_id"
    SYSTEM = "system"
    MACHINE = "machine_id"
    HOSTNAME = "name"


class Reach(StrEnum):
    """How far a name holds before it may mean another thing."""

    WORLD = "world"
    SITE = "site"
    SERVER = "server"
    NODE = "node"
    CLUSTER = "cluster"
    BOOT = "boot"


REACH: dict[NameKind, Reach] = {
    NameKind.VENDOR_UUID: Reach.WORLD,
    NameKind.SERIAL: Reach.WORLD,
    NameKind.CHASSIS_SLOT: Reach.SERVER,
    NameKind.PCI_ADDRESS: Reach.BOOT,
    NameKind.K8S_DEVICE: Reach.CLUSTER,
    NameKind.INDEX: Reach.BOOT,
    NameKind.GPU_INSTANCE: Reach.BOOT,
    NameKind.COMPUTE_INSTANCE: Reach.BOOT,
    NameKind.SYSTEM: Reach.WORLD,
    NameKind.MACHINE: Reach.SITE,
    NameKind.HOSTNAME: Reach.SITE,
}


@dataclass(frozen=True, slots=True)
class Name:
    """One name as it was printed. ``within`` says which server, node or cluster it holds in, where the kind needs that."""

    kind: NameKind
    value: str
    reach: Reach
    within: str = ""

    @property
    def canonical(self) -> str:
        """The form in which it is compared with another name of its kind."""
        return canonical(self.kind, self.value)


def name(kind: NameKind, value: str, within: str = "") -> Name:
    """A name of ``kind`` with the reach that kind has."""
    return Name(kind, value, REACH[kind], within)


def names(**values: str | int | None) -> frozenset[Name]:
    """Names by kind (``names(serial="1650", index=0)``); a value that names nothing anywhere (blank, N/A, zeros) is left out."""
    found = ((NameKind(kind), str(value).strip()) for kind, value in values.items() if value is not None)
    return frozenset(name(kind, value) for kind, value in found if not names_nothing(kind, value))


PLACEHOLDERS = frozenset(
    {
        "",
        "-",
        "n/a",
        "[n/a]",
        "na",
        "none",
        "null",
        "nil",
        "unknown",
        "not specified",
        "not available",
        "not supported",
        "[not supported]",
        "unknown error",
        "[unknown error]",
        "err!",
        "[redacted]",
        "redacted",
        "to be filled by o.e.m.",
        "default string",
        "0123456789",
        "system serial number",
        "03000200-0400-0500-0006-000700080009",
    }
)

_PCI = re.compile(r"^(?:pci:)?(?:([0-9a-f]+):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?$")
_NOT_ALNUM = re.compile(r"[^0-9a-z]")
_ORDINALS = frozenset({NameKind.INDEX, NameKind.GPU_INSTANCE, NameKind.COMPUTE_INSTANCE, NameKind.K8S_DEVICE})


def names_nothing(kind: NameKind, value: str, placeholders: Iterable[str] = PLACEHOLDERS) -> bool:
    """True when ``value`` is a known placeholder, or one character repeated where the kind has no one-digit values."""
    text = value.strip().lower()
    if text in placeholders:
        return True
    if kind in _ORDINALS or kind is NameKind.CHASSIS_SLOT or kind is NameKind.HOSTNAME:
        return False
    if kind is NameKind.PCI_ADDRESS:
        return _PCI.match(text) is None
    bare = _NOT_ALNUM.sub("", text.removeprefix("gpu-").removeprefix("0x"))
    return not bare or (len(set(bare)) == 1 and (len(bare) > 2 or bare == "0" * len(bare)))


def canonical(kind: NameKind, value: str) -> str:
    """One form per name: PCI ``dddd:bb:dd.f``; UUID without prefix, dashes, case; serial without case, ``0x``, leading zeros; else case-folded."""
    text = " ".join(value.split()).lower()
    if kind is NameKind.PCI_ADDRESS:
        return pci_address(text) or text
    if kind is NameKind.VENDOR_UUID:
        return _uuid(text)
    if kind is NameKind.SERIAL:
        return text.removeprefix("0x").lstrip("0") or "0"
    if kind is NameKind.SYSTEM or kind is NameKind.MACHINE:
        return text.replace("-", "") if text.count("-") == 4 else text
    return text


def _uuid(text: str) -> str:
    for prefix in ("gpu-", "0x"):
        text = text.removeprefix(prefix)
    return text.replace("-", "").replace(" ", "")


def pci_address(text: str) -> str | None:
    """``dddd:bb:dd.f`` in lower case for any spelling of a PCI address (domain of four digits at least, function 0 where left out), or None."""
    match = _PCI.match(text.strip().lower())
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    domain = (domain or "0").lstrip("0")
    return f"{domain:0>4}:{bus:0>2}:{device:0>2}.{function or 0}"


def pci_device(address: str) -> str:
    """The PCI device of a canonical address: all functions of one device share it."""
    return address.rpartition(".")[0]
