"""Seals a short record under the key of an image, so that the key opens it, no other key does, and no change goes
unnoticed.

The cipher is ChaCha20-Poly1305 (RFC 8439). Its key follows from that of the image and from the nonce by scrypt, so that
a guess of the key takes as long as with `keys.compute_check`, and anew for each record. The record belongs to the
pixels of one image and to the networks that made it: beside others it does not open. A sealed record says nothing of
what it holds but its length. Whoever has the image and the key opens it. In a file it stands as base64.
"""

import base64
import hashlib
import secrets

import numpy as np

from masquerade.core.errors import SealError

NONCE, TAG = 12, 16  # bytes
LONGEST_RECORD = 512
"""The most bytes of a sealed record."""
LONGEST_CONTENT = LONGEST_RECORD - NONCE - TAG
"""The most bytes that a record holds."""
OTHER_WAY = "with the right key, --from-image (Python: from_image=True) recovers from the image alone"
DAMAGED = f"the record in its file is cut or damaged; {OTHER_WAY}"


def seal(key: bytes, content: bytes, picture: np.ndarray, maker: str) -> str:
    """The sealed record in base64: a random nonce, cipher text and tag, at most `LONGEST_RECORD` bytes.

    ``key``: of the image ``picture``, uint8 (H, W, 3). ``maker``: what made the image. Raises ValueError for a content
    of more than `LONGEST_CONTENT` bytes.
    """
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    if len(content) > LONGEST_CONTENT:
        raise ValueError(f"a record holds at most {LONGEST_CONTENT} bytes, and this one has {len(content)}")
    nonce = secrets.token_bytes(NONCE)
    sealed = ChaCha20Poly1305(_derive(key, nonce)).encrypt(nonce, content, _identify(picture, maker))
    return base64.b64encode(nonce + sealed).decode()


def open_sealed(key: bytes, record: str, picture: np.ndarray, maker: str) -> bytes:
    """The content of a sealed record. Raises SealError for another key, image or maker, or a changed record."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        sealed = base64.b64decode(record, validate=True)
    except ValueError as error:
        raise SealError(DAMAGED) from error
    if not NONCE + TAG <= len(sealed) <= LONGEST_RECORD:
        raise SealError(DAMAGED)
    nonce = sealed[:NONCE]
    try:
        return ChaCha20Poly1305(_derive(key, nonce)).decrypt(nonce, sealed[NONCE:], _identify(picture, maker))
    except InvalidTag:
        raise SealError(
            f"the record in its file does not open: the key is wrong, or the image or the record was changed; "
            f"{OTHER_WAY}"
        ) from None


def _derive(key: bytes, nonce: bytes) -> bytes:
    return hashlib.scrypt(key, salt=b"masquerade record" + nonce, n=2**15, r=8, p=1, maxmem=2**26, dklen=32)


def _identify(picture: np.ndarray, maker: str) -> bytes:
    """What ties a record to an image and to the networks that read it: a hash of the pixels, their shape and maker."""
    return hashlib.sha256(f"{maker} {picture.shape}".encode() + np.ascontiguousarray(picture).tobytes()).digest()
