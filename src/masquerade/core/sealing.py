"""Seals a short record under the key of an image, so that the key opens it, no other key does, and no change goes
unnoticed.

The cipher is ChaCha20-Poly1305 (RFC 8439). Its key follows from that of the image and from the nonce by scrypt, so that
a guess of the key takes as long as with `keys.compute_check`, and anew for each record. The record belongs to the
pixels of one image: beside another image it does not open. A sealed record says nothing of what it holds but its
length. Whoever has the image and the key opens it.
"""

import hashlib
import secrets

import numpy as np

from masquerade.core.errors import SealError

NONCE, TAG = 12, 16  # bytes
MOST = 512
"""The most bytes of a sealed record."""
LARGEST = MOST - NONCE - TAG
"""The most bytes that a record holds."""
INSTEAD = "with the right key, --from-image (Python: from_image=True) recovers from the image alone"


def seal(key: bytes, content: bytes, picture: np.ndarray) -> bytes:
    """The sealed record: a random nonce, cipher text and tag, at most `MOST` bytes.

    ``key``: of the image ``picture``, uint8 (H, W, 3). Raises ValueError for a content of more than `LARGEST` bytes.
    """
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    if len(content) > LARGEST:
        raise ValueError(f"a record holds at most {LARGEST} bytes, and this one has {len(content)}")
    nonce = secrets.token_bytes(NONCE)
    return nonce + ChaCha20Poly1305(_derive(key, nonce)).encrypt(nonce, content, _identify(picture))


def open_sealed(key: bytes, record: bytes, picture: np.ndarray) -> bytes:
    """The content of a sealed record. Raises SealError for another key, another image, or a changed record."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    if not NONCE + TAG <= len(record) <= MOST:
        raise SealError(f"the record in its file is cut or damaged; {INSTEAD}")
    nonce = record[:NONCE]
    try:
        return ChaCha20Poly1305(_derive(key, nonce)).decrypt(nonce, record[NONCE:], _identify(picture))
    except InvalidTag:
        raise SealError(
            f"the record in its file does not open: the key is wrong, or the image or the record was changed; {INSTEAD}"
        ) from None


def _derive(key: bytes, nonce: bytes) -> bytes:
    return hashlib.scrypt(key, salt=b"masquerade record" + nonce, n=2**15, r=8, p=1, maxmem=2**26, dklen=32)


def _identify(picture: np.ndarray) -> bytes:
    """What ties a record to an image: the hash of its pixels and their shape."""
    return hashlib.sha256(f"{picture.shape}".encode() + np.ascontiguousarray(picture).tobytes()).digest()
