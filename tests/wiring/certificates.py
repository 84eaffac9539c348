# SPDX-License-Identifier: Apache-2.0
"""An authority and a server's certificate for tests, made anew."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Made:
    """Files, and the fingerprint of the authority."""

    ca: Path
    chain: Path
    key: Path
    fingerprint: str


def authority(folder: Path, *names: str, since: datetime.timedelta = -DAY, until: datetime.timedelta = DAY) -> Made:
    """An authority of its own with one server certificate for ``names``."""
    now = datetime.datetime.now(datetime.UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    ca = (
        x509.CertificateBuilder()
        .subject_name(ca_name)
        .issuer_name(ca_name)
        .public_key(ca_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    leaf = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])]))
        .issuer_name(ca_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + since)
        .not_valid_after(now + until)
        .add_extension(x509.SubjectAlternativeName([_name(each) for each in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    folder.mkdir(parents=True, exist_ok=True)
    made = Made(
        folder / "ca.pem", folder / "chain.pem", folder / "key.pem", "sha256:" + hashlib.sha256(ca.public_bytes(serialization.Encoding.DER)).hexdigest()
    )
    made.ca.write_bytes(ca.public_bytes(pem))
    made.chain.write_bytes(leaf.public_bytes(pem) + ca.public_bytes(pem))
    made.key.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    made.key.chmod(0o600)
    return made


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
