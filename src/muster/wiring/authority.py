# SPDX-License-Identifier: Apache-2.0
"""The authority of a server: its own CA, the certificate by which agents know the server, and the key that signs access tokens.

All of it lies in one folder that only the server's user reads. The CA is made once and pinned by every agent, so that the server's certificate,
which lives for three months, can be renewed again and again without a word to them. Who has a certificate of their own hands it in (`Theirs`).
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from muster.domain.model.errors import InputError, MusterError, NotAllowed, Unavailable
from muster.wiring.keys import Key, load, new, pem_of
from muster.wiring.private import alone, write_new, write_over

DAY = 86_400.0
CA_LIFE = 3650 * DAY
LEAF_LIFE = 90 * DAY
RENEW_AT = 2 / 3
"""Part of a certificate's life after which a new one is made."""
EARLIER = DAY
"""A certificate is good from this long before it was made: clocks of agents may be behind."""
FOLDER = "authority"
_CA_KEY, _CA, _KEY, _CHAIN, _SIGNING = "ca.key", "ca.pem", "server.key", "server.pem", "tokens.key"
_ALGORITHM = "Ed25519"


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """A certificate of the user's own: its chain (PEM, the server's first, then who signed it), its key, and the authority that agents are to pin.

    Without ``ca`` the last certificate of the chain is pinned.
    """

    chain: Path
    key: Path
    ca: Path | None = None


def fingerprint(pem: bytes) -> str:
    """``sha256:`` and the digest of the certificate's DER."""
    return "sha256:" + x509.load_pem_x509_certificate(pem).fingerprint(hashes.SHA256()).hex()


class Authority:
    """The authority in a folder. `open` makes what is not there."""

    def __init__(self, folder: Path, names: Sequence[str], theirs: Theirs | None, signing: Ed25519PrivateKey) -> None:
        self._folder = folder
        self._signing = signing
        self._names = tuple(names)
        self._theirs = theirs
        self._stamp: Any = None
        self.ca = b""
        """The certificate that agents pin, PEM."""
        self.until = 0.0
        """When the server's certificate ends."""
        self.trouble = ""
        """Why the certificate could not be renewed; empty when all is well."""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_RENEGOTIATION
        self._context.num_tickets = 1

    @classmethod
    def open(cls, folder: Path, names: Iterable[str], now: float, theirs: Theirs | None = None) -> Authority:
        """The authority in ``folder``, whose certificate is for ``names`` (host names and addresses). Raises Unavailable or InputError."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        except OSError as error:
            raise Unavailable(f"{folder} cannot be used: {error.strerror}", hint="let this user write it, or name another state folder") from error
        made = cls(folder, list(dict.fromkeys(names)), theirs, new(folder / _SIGNING))
        made._load(now)
        return made

    @property
    def fingerprint(self) -> str:
        """By what agents know it when they join."""
        return fingerprint(self.ca)

    @property
    def signer(self) -> TokenSigner:
        """What signs access tokens."""
        return TokenSigner(OKPKey.import_key(self._signing))

    def authority(self) -> bytes:
        """The certificate that agents pin, PEM."""
        return self.ca

    def context(self) -> ssl.SSLContext:
        """For listeners: TLS 1.2 at least. It stays the same object; what is renewed later is used by connections from then on."""
        return self._context

    @property
    def chain(self) -> Path:
        """The file of the server's certificate and of those who signed it."""
        return self._theirs.chain if self._theirs else self._folder / _CHAIN

    @property
    def key(self) -> Path:
        """The file of the server's key."""
        return self._theirs.key if self._theirs else self._folder / _KEY

    def refresh(self, now: float) -> bool:
        """Renews the server's certificate when it is time, or takes the user's new one. True when it did. Trouble is kept in ``trouble``."""
        try:
            renewed = self._load(now)
        except MusterError as error:
            self.trouble = error.message
            return False
        self.trouble = ""
        return renewed

    def _load(self, now: float) -> bool:
        if self._theirs:
            return self._load_theirs(self._theirs, now)
        with alone(self._folder / "lock"):
            return self._load_ours(now)

    def _load_ours(self, now: float) -> bool:
        ca_key, ca = self._root(now)
        path, key_path = self._folder / _CHAIN, self._folder / _KEY
        found = _certificate(path)
        if found is None or not self._fits(found, ca, now) or not key_path.is_file():
            key = ec.generate_private_key(ec.SECP256R1())
            leaf = _signed_leaf(key, ca_key, ca, self._names, now)
            write_over(key_path, pem_of(key))
            write_over(path, _pem(leaf) + _pem(ca), 0o644)
            found = leaf
        elif self._stamp == found.serial_number:
            return False
        self._use(path, key_path, found, ca, found.serial_number)
        return True

    def _root(self, now: float) -> tuple[Key, x509.Certificate]:
        """The CA, made when there is none. Two that start at once end up with one."""
        key_path, path = self._folder / _CA_KEY, self._folder / _CA
        if not path.exists():
            write_new(key_path, pem_of(ec.generate_private_key(ec.SECP256R1())))
            write_new(path, _pem(_self_signed(load(key_path), now)), 0o644)
        ca, key = _certificate(path), load(key_path)
        if ca is None:
            raise Unavailable(f"{path} is no certificate", hint="put back a copy; if none is left move the folder away, and let every node join anew")
        if ca.public_key() != key.public_key():
            raise Unavailable(f"{path} and {key_path} do not belong together", hint="put back both from one copy")
        if _ends(ca) <= now + DAY:
            raise Unavailable(f"the authority in {self._folder} ends on {ca.not_valid_after_utc:%Y-%m-%d}", hint="move it away, and let every node join anew")
        return key, ca

    def _fits(self, found: x509.Certificate, ca: x509.Certificate, now: float) -> bool:
        """True for a certificate of this CA with all our names that has life left."""
        begins, ends = found.not_valid_before_utc.timestamp(), _ends(found)
        if not begins <= now < begins + (ends - begins) * RENEW_AT:
            return False
        with suppress(x509.ExtensionNotFound, ValueError):
            names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            found.verify_directly_issued_by(ca)
            return set(_alternatives(self._names)) <= set(names)
        return False

    def _load_theirs(self, theirs: Theirs, now: float) -> bool:
        files = [theirs.chain, theirs.key, *([theirs.ca] if theirs.ca else [])]
        try:
            stamp = tuple((each.stat().st_mtime_ns, each.stat().st_size) for each in files)
            if stamp == self._stamp:
                return False
            chain = x509.load_pem_x509_certificates(theirs.chain.read_bytes())
            cas = x509.load_pem_x509_certificates(theirs.ca.read_bytes()) if theirs.ca else chain
        except (OSError, ValueError) as error:
            raise InputError(f"the certificate {theirs.chain} cannot be used: {error}", hint="a PEM with the server's certificate first") from error
        if _ends(chain[0]) <= now:
            raise InputError(f"the certificate {theirs.chain} ended on {chain[0].not_valid_after_utc:%Y-%m-%d}", hint="put a new one in its place")
        if not _authorises(cas[-1]):
            whose = f"its last certificate ({cas[-1].subject.rfc4514_string()[:200]}) is that of no authority: what stands last is what nodes and people pin"
            hint = f"append the certificate of who signed it ({cas[-1].issuer.rfc4514_string()[:200]}), so that a renewal changes nothing for them"
            raise InputError(f"the chain {theirs.ca or theirs.chain} lacks its authority: {whose}", hint=hint)
        if self.ca and _pem(cas[-1]) != self.ca:
            raise InputError(
                f"{theirs.chain} now comes from another authority than agents have pinned",
                hint="take one of the same authority, or restart the server and let every node join anew",
            )
        self._use(theirs.chain, theirs.key, chain[0], cas[-1], stamp)
        return True

    def _use(self, chain: Path, key: Path, leaf: x509.Certificate, ca: x509.Certificate, stamp: Any) -> None:
        if key.exists() and key.stat().st_mode & 0o007:
            raise Unavailable(f"the key {key} may be read by others", hint=f"chmod 600 {key}")
        try:
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self._context):  # tried first, so that a pair that does not fit spoils nothing
                context.load_cert_chain(chain, key, password=_no_password)
        except (OSError, ValueError) as error:
            raise InputError(f"{chain} and {key} cannot be used: {error}", hint="the key must be that of the certificate, without a password") from error
        self.ca, self.until, self._stamp = _pem(ca), _ends(leaf), stamp


def _authorises(certificate: x509.Certificate) -> bool:
    """True for a certificate that may sign others, or that signed itself."""
    with suppress(x509.ExtensionNotFound, ValueError):
        if certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return True
    try:
        certificate.verify_directly_issued_by(certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def problems(folder: Path, theirs: Theirs | None, *, joined: bool) -> list[str]:
    """What is wrong with the keys in a server's folder, without making or changing any. ``joined``: nodes trust them, so that none may be missing."""
    if not folder.is_dir():
        return [f"{folder} is missing: nodes that joined trust the authority in it, and must join anew unless a backup has it"] if joined else []
    wanted = [_SIGNING] if theirs else [_CA_KEY, _SIGNING]
    found = [said for name in wanted if (joined or (folder / name).exists() or (folder / _CA).exists()) and (said := _unusable(folder / name))]
    if theirs or not (joined or (folder / _CA_KEY).exists() or (folder / _CA).exists()):
        return found
    ca = _certificate(folder / _CA)
    if ca is None:
        return [*found, f"{folder / _CA} is {'no certificate' if (folder / _CA).exists() else 'missing'}: put back a copy"]
    if not found and load(folder / _CA_KEY).public_key() != ca.public_key():
        found.append(f"{folder / _CA} and {folder / _CA_KEY} do not belong together: put back both from one copy")
    return found


def _unusable(path: Path) -> str:
    try:
        load(path)
    except MusterError as error:
        return f"{error.message}: {error.hint or 'put back a copy'}"
    return ""


def _no_password() -> str:
    raise ValueError("the key has a password")


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _certificate(path: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        return None


def _ends(certificate: x509.Certificate) -> float:
    return certificate.not_valid_after_utc.timestamp()


def _builder(subject: x509.Name, issuer: x509.Name, key: Any, now: float, life: float) -> x509.CertificateBuilder:
    begins, ends = (datetime.fromtimestamp(int(at), UTC) for at in (now - EARLIER, now + life))
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key).serial_number(x509.random_serial_number())
    return made.not_valid_before(begins).not_valid_after(ends).add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _self_signed(key: Key, now: float) -> x509.Certificate:
    public = key.public_key()
    word = x509.SubjectKeyIdentifier.from_public_key(public).digest.hex()[:8]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Muster authority {word}")])
    made = _builder(name, name, public, now, CA_LIFE).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return made.add_extension(_usage(signs_certificates=True), critical=True).sign(key, hashes.SHA256())


def _signed_leaf(key: ec.EllipticCurvePrivateKey, ca_key: Key, ca: x509.Certificate, names: Sequence[str], now: float) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Muster server")])
    life = min(LEAF_LIFE, _ends(ca) - now)
    made = _builder(subject, ca.subject, key.public_key(), now, life).add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value)
    made = made.add_extension(issuer, critical=False).add_extension(_usage(signs_certificates=False), critical=True)
    made = made.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return made.add_extension(x509.SubjectAlternativeName(_alternatives(names)), critical=False).sign(ca_key, hashes.SHA256())


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives(names: Sequence[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name.strip("[]"))))
        except ValueError:
            with suppress(ValueError):
                found.append(x509.DNSName(name.encode("idna").decode()))
    return found


def own_names(hosts: Iterable[str] = ()) -> list[str]:
    """The names and addresses by which this machine can be meant: ``hosts`` (those told by settings), its host names, loopback, and where it has addresses."""
    here = socket.gethostname()
    names = [*hosts, here, socket.getfqdn(), "localhost", "127.0.0.1", "::1"]
    with suppress(OSError):
        names += [str(told[4][0]).partition("%")[0] for told in socket.getaddrinfo(here, None)]
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; tells from which address this machine would speak to others
        names.append(str(probe.getsockname()[0]))
    return list(dict.fromkeys(each for each in names if each and not _every(each)))


def _every(host: str) -> bool:
    """True for an address to listen on that means all of them, and names none."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


class TokenSigner:
    """Access tokens as signed claims (JWT by Ed25519)."""

    def __init__(self, key: OKPKey) -> None:
        self._key = key
        self._public = OKPKey.import_key(key.as_dict(private=False))

    def sign(self, claims: Mapping[str, Any]) -> str:
        """The claims as a token."""
        body = json.dumps(claims, separators=(",", ":")).encode()
        return jws.serialize_compact({"alg": _ALGORITHM, "typ": "JWT"}, body, self._key, algorithms=[_ALGORITHM])

    def read(self, token: str) -> Mapping[str, Any]:
        """The claims of a token that we signed. Raises NotAllowed."""
        try:
            told = json.loads(jws.deserialize_compact(token, self._public, algorithms=[_ALGORITHM]).payload)
        except (JoseError, ValueError, RecursionError) as error:
            raise NotAllowed("the access token was not made by this server", hint="the agent asks for another by itself") from error
        if not isinstance(told, dict):
            raise NotAllowed("the access token was not made by this server")
        return told


def join_line(address: str, mark: str, token: str) -> str:
    """The line that joins a node."""
    return f"muster agent join {address} --ca {mark} --token {token}"


def state_of(folder: Path) -> Path:
    """Where the authority of a server with this state folder lies."""
    return folder / FOLDER


def dice(count: int) -> bytes:
    """Random bytes that nobody can guess."""
    return os.urandom(count)
