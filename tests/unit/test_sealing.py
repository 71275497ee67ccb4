"""Sealed records: the key opens them beside their image alone, and no change goes unnoticed."""

import base64
from statistics import NormalDist

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from masquerade.core import sealing
from masquerade.core.errors import SealError
from masquerade.methods.latent.descriptions import LIMIT, STEPS, CodeDescriptions, _draw_normals

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
MAKER = "riddle/default photo 0f3a1c0f3a1c0f3a"
RECORDED = "u+UWm5AIiEKaqGOiiLGMM5UDz1MkBfj/cK4ajK1u7rMq"
PICTURE = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)


def seal(content: bytes, key: bytes = KEY) -> str:
    return sealing.seal(key, content, PICTURE, MAKER)


@settings(max_examples=15, deadline=None)  # each takes two times 0.1 s of scrypt
@given(st.binary(max_size=sealing.LONGEST_CONTENT), st.binary(min_size=16, max_size=32))
def test_the_key_opens_what_it_sealed_and_the_record_is_short(content, key):
    record = seal(content, key)
    length = len(base64.b64decode(record))
    assert length == len(content) + sealing.NONCE + sealing.TAG <= sealing.LONGEST_RECORD
    assert sealing.open_sealed(key, record, PICTURE, MAKER) == content


def test_a_record_of_this_version_opens_in_later_ones():
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert sealing.open_sealed(KEY, RECORDED, image, MAKER) == b"\x01face"


def test_two_records_of_one_face_differ():
    assert seal(b"face") != seal(b"face")


def test_more_than_fits_is_refused():
    with pytest.raises(ValueError, match="at most 484 bytes"):
        seal(bytes(sealing.LONGEST_CONTENT + 1))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 8 * (4 + sealing.NONCE + sealing.TAG) - 1))
def test_every_flipped_bit_is_noticed(bit):
    record = bytearray(base64.b64decode(seal(b"face")))
    record[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SealError, match="does not open"):
        sealing.open_sealed(KEY, base64.b64encode(record).decode(), PICTURE, MAKER)


def test_another_key_image_or_maker_and_a_cut_record_are_refused():
    record = seal(b"face")
    changed = PICTURE.copy()
    changed[0, 0, 0] ^= 1
    others = ((OTHER, PICTURE, MAKER), (KEY, changed, MAKER), (KEY, PICTURE.reshape(4, 16, 3), MAKER))
    for key, image, maker in (*others, (KEY, PICTURE, MAKER.replace("0f", "1f"))):
        with pytest.raises(SealError, match="does not open"):
            sealing.open_sealed(key, record, image, maker)
    content = base64.b64decode(record)
    parts = (b"", content[: sealing.NONCE + sealing.TAG - 1], content + bytes(sealing.LONGEST_RECORD))
    for text in (*(base64.b64encode(part).decode() for part in parts), "no base64"):
        with pytest.raises(SealError, match="cut or damaged"):
            sealing.open_sealed(KEY, text, PICTURE, MAKER)


def test_exchanged_records_do_not_open():
    second = 255 - PICTURE
    record = sealing.seal(KEY, b"b", second, MAKER)
    assert sealing.open_sealed(KEY, record, second, MAKER) == b"b"
    with pytest.raises(SealError):
        sealing.open_sealed(KEY, record, PICTURE, MAKER)


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


def test_the_axes_of_a_description_are_those_of_fixed_codes():
    """Old records are read with the same axes: the normal quantiles of the first words of PCG64(0)."""
    words = (0xA30FEBCFD9C2825F, 0x4510BDF882D9D721, 0x0A7D3DA94ECDE8B8)
    expected = [NormalDist().inv_cdf(word / 2**64) for word in words]
    assert _draw_normals(64)[0, :3].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_code_comes_back_up_to_what_is_rounded():
    descriptions = CodeDescriptions(Space())
    draw = torch.Generator().manual_seed(1)
    shared = torch.randn(5, 1, 64, generator=draw)
    own = torch.randn(5, 12, 64, generator=draw) * (torch.arange(64) < 20)
    codes = Generator.latent_avg + (shared + 0.3 * own) * Generator.deviations
    texts = descriptions.write(codes)
    assert {len(text) for text in texts} == {1 + 64 + 12 * 34}
    assert len(texts[0]) <= sealing.LONGEST_CONTENT
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
