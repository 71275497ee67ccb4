"""Seals a short record under the key of an image, so that the key opens it, no other key does, and no change goes
unnoticed.

The cipher is ChaCha20-Poly1305 (RFC 8439), its key is derived from that of the image by HKDF, and the record belongs to
the pixels of one image: beside another image it does not open. A sealed record says nothing of what it holds but its
length. Whoever has the image and the key opens it.
"""

import hashlib
import secrets

import numpy as np

from masquerade.core import keys
from masquerade.core.errors import SealError

NONCE, TAG = 12, 16  # bytes
MOST = 512
"""The most bytes of a sealed record."""
LARGEST = MOST - NONCE - TAG
"""The most bytes that a record holds."""
PURPOSE = "sealed record"


def seal(key: bytes, content: bytes, picture: np.ndarray, nonce: bytes | None = None) -> bytes:
    """The sealed record: nonce, cipher text and tag, at most `MOST` bytes.

    ``key``: of the image ``picture``, uint8 (H, W, 3). ``nonce``: 12 bytes, for experiments alone; None draws them.
    Raises ValueError for a content of more than `LARGEST` bytes.
    """
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    if len(content) > LARGEST:
        raise ValueError(f"a record holds at most {LARGEST} bytes, and this one has {len(content)}")
    nonce = secrets.token_bytes(NONCE) if nonce is None else nonce
    return nonce + ChaCha20Poly1305(_derive(key)).encrypt(nonce, content, _identify(picture))


def open_sealed(key: bytes, record: bytes, picture: np.ndarray) -> bytes:
    """The content of a sealed record. Raises SealError for another key, another image, or a changed record."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    if not NONCE + TAG < len(record) <= MOST:
        raise SealError("the record in its file is cut or damaged")
    try:
        return ChaCha20Poly1305(_derive(key)).decrypt(record[:NONCE], record[NONCE:], _identify(picture))
    except InvalidTag:
        raise SealError(
            "the record in its file does not open: the key is wrong, or the image or the record was changed"
        ) from None


def _derive(key: bytes) -> bytes:
    return keys.expand(key, 32, PURPOSE)


def _identify(picture: np.ndarray) -> bytes:
    """What ties a record to an image: the hash of its pixels and their shape."""
    return hashlib.sha256(f"{picture.shape}".encode() + np.ascontiguousarray(picture).tobytes()).digest()
