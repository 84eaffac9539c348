# SPDX-License-Identifier: Apache-2.0
"""Keys on disk. ``python -m muster.wiring.keys`` makes a key and signs with it in a process that ends at once: the agent itself loads no cryptography.

new FILE            makes an Ed25519 key that only its user reads; prints the public key in hex; a key that is there is kept
public FILE         prints the public key in hex
sign FILE           signs what comes on stdin; the signature goes to stdout, 64 bytes
"""

from __future__ import annotations

import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from muster.domain.model.errors import InputError, NotFound, Unavailable
from muster.wiring.private import secret, write_new

Key = Ed25519PrivateKey | EllipticCurvePrivateKey


def load(path: Path) -> Key:
    """The private key in a file. Raises NotFound, or Unavailable for one that cannot be used."""
    return parsed(secret(path), path)


def parsed(pem: bytes, path: Path) -> Key:
    """The private key of a PEM. Raises Unavailable for one that cannot be used."""
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError) as error:
        raise Unavailable(f"{path} holds no key that can be used: {error}", hint="put back a copy, or move it away: a new one is then made") from error
    if not isinstance(key, Ed25519PrivateKey | EllipticCurvePrivateKey):
        raise Unavailable(f"{path} holds a key of another kind", hint="Ed25519 or P-256 is wanted")
    return key


def pem_of(key: Key) -> bytes:
    """A private key as PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def new(path: Path) -> Ed25519PrivateKey:
    """The Ed25519 key in the file, made when there is none. Raises Unavailable."""
    write_new(path, pem_of(Ed25519PrivateKey.generate()))
    return signing(path)


def signing(path: Path) -> Ed25519PrivateKey:
    """The Ed25519 key in the file. Raises NotFound or Unavailable."""
    key = load(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise Unavailable(f"{path} holds a key of another kind", hint="Ed25519 is wanted")
    return key


def main(arguments: list[str]) -> int:
    """Carries one order out. 0 when done, 2 for an order that is none, 3 without a key, 6 when it cannot be used; the reason goes to stderr."""
    try:
        what, path = arguments
        return _done(what, Path(path))
    except ValueError:
        sys.stderr.write("new FILE, public FILE or sign FILE\n")
        return 2
    except (InputError, NotFound, Unavailable) as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return {InputError: 2, NotFound: 3}.get(type(error), 6)


def _done(what: str, path: Path) -> int:
    if what == "sign":
        key = signing(path)
        sys.stdout.buffer.write(key.sign(sys.stdin.buffer.read(1 << 20)))
    elif what in ("new", "public"):
        key = new(path) if what == "new" else signing(path)
        sys.stdout.write(key.public_key().public_bytes_raw().hex() + "\n")
    else:
        raise InputError(f"{what!r} is no order", hint="new FILE, public FILE or sign FILE")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
