"""Sealed records: the key opens them beside their image alone, and no change goes unnoticed."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from masquerade.core import sealing
from masquerade.core.errors import SealError
from masquerade.methods.latent.descriptions import LIMIT, STEPS, CodeDescriptions
from masquerade.pipeline import image_texts

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
PICTURE = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)


@settings(max_examples=15, deadline=None)  # each takes two times 0.1 s of scrypt
@given(st.binary(max_size=sealing.LARGEST), st.binary(min_size=16, max_size=32))
def test_the_key_opens_what_it_sealed_and_the_record_is_short(content, key):
    record = sealing.seal(key, content, PICTURE)
    assert len(record) == len(content) + sealing.NONCE + sealing.TAG <= sealing.MOST
    assert sealing.open_sealed(key, record, PICTURE) == content


def test_two_records_of_one_face_differ():
    assert sealing.seal(KEY, b"face", PICTURE) != sealing.seal(KEY, b"face", PICTURE)


def test_more_than_fits_is_refused():
    with pytest.raises(ValueError, match="at most 484 bytes"):
        sealing.seal(KEY, bytes(sealing.LARGEST + 1), PICTURE)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 8 * (4 + sealing.NONCE + sealing.TAG) - 1))
def test_every_flipped_bit_is_noticed(bit):
    record = bytearray(sealing.seal(KEY, b"face", PICTURE))
    record[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SealError, match="does not open"):
        sealing.open_sealed(KEY, bytes(record), PICTURE)


def test_another_key_another_image_and_a_cut_record_are_refused():
    record = sealing.seal(KEY, b"face", PICTURE)
    changed = PICTURE.copy()
    changed[0, 0, 0] ^= 1
    for key, image in ((OTHER, PICTURE), (KEY, changed), (KEY, PICTURE.reshape(4, 16, 3))):
        with pytest.raises(SealError, match="does not open"):
            sealing.open_sealed(key, record, image)
    for part in (b"", record[: sealing.NONCE + sealing.TAG - 1], record + bytes(sealing.MOST)):
        with pytest.raises(SealError, match="cut or damaged"):
            sealing.open_sealed(KEY, part, PICTURE)
    with pytest.raises(SealError, match="damaged"):
        image_texts.open_record("no base64", KEY, PICTURE)


def test_exchanged_records_do_not_open():
    first, second = PICTURE, 255 - PICTURE
    texts = image_texts.seal_records([b"a", b"b"], [KEY, KEY], [first, second])
    assert [image_texts.open_record(text, KEY, image) for text, image in zip(texts, (first, second), strict=True)] == [
        b"a", b"b"
    ]  # fmt: skip
    with pytest.raises(SealError):
        image_texts.open_record(texts[1], KEY, first)


class Generator:
    """Twelve layers, 64 numbers each; random codes have falling deviations."""

    style_width, layers = 64, 12
    latent_avg = torch.full((64,), 0.5)
    deviations = 0.9 ** torch.arange(64)

    def map(self, z):
        return self.latent_avg + z * self.deviations

    def broadcast(self, w):
        return w[:, None].expand(-1, self.layers, -1)


class Space:
    generator, device = Generator(), torch.device("cpu")


def test_a_code_comes_back_up_to_what_is_rounded():
    descriptions = CodeDescriptions(Space())
    draw = torch.Generator().manual_seed(1)
    shared = torch.randn(5, 1, 64, generator=draw)
    own = torch.randn(5, 12, 64, generator=draw) * (torch.arange(64) < 20)
    codes = Generator.latent_avg + (shared + 0.3 * own) * Generator.deviations
    texts = descriptions.write(codes)
    assert {len(text) for text in texts} == {1 + 64 + 12 * 34}
    assert len(texts[0]) <= sealing.LARGEST
    back = descriptions.read(texts)
    assert (back - codes).abs().max() < 3 * LIMIT / STEPS


def test_a_code_far_outside_is_cut_to_the_limit():
    descriptions = CodeDescriptions(Space())
    codes = Generator.latent_avg + 100 * torch.ones(1, 12, 64)
    [text] = descriptions.write(codes)
    assert set(np.abs(np.frombuffer(text, np.int8, count=64, offset=1))) == {STEPS}


def test_a_description_of_another_format_or_length_is_refused():
    descriptions = CodeDescriptions(Space())
    [text] = descriptions.write(Generator.latent_avg + torch.zeros(1, 12, 64))
    for changed in (b"\x02" + text[1:], text[:-1], b""):
        with pytest.raises(SealError, match="another version"):
            descriptions.read([changed])
