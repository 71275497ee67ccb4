"""The image contract and the archive: exact values, refusal of damaged files, the same bytes for the same faces."""

import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from masquerade.core.errors import ArchiveError
from masquerade.core.images import ArchiveWriter, FaceArchive, index_path, to_float, to_uint8


def write(path: Path, count: int = 6, side: int = 8, seed: int = 0) -> Path:
    random = np.random.default_rng(seed)
    with ArchiveWriter(path, metadata={"dataset": "made up"}) as out:
        for number in range(count):
            picture = random.integers(0, 256, (side, side, 3), dtype=np.uint8)
            points = random.uniform(0, side, 136).astype(np.float32)
            row = {"id": f"face_{number}", "identity": f"person_{number // 2}", "split": "test", "landmarks": points}
            out.add(picture, row, mask=picture[..., 0])
        out.add(None, {"id": "lost", "identity": "", "split": "test", "status": "refused", "reason": "no face"})
    return path


@given(arrays(np.uint8, st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.just(3))))
@settings(max_examples=50, deadline=None)
def test_eight_bit_values_survive_conversion_to_float_and_back(pictures):
    images = to_float(pictures)
    assert images.dtype == np.float32
    assert images.shape == (len(pictures), 3, *pictures.shape[1:3])
    assert images.min() >= -1.0
    assert images.max() <= 1.0
    np.testing.assert_array_equal(to_uint8(images), pictures)


@given(arrays(np.float32, (3, 4, 5), elements=st.floats(-1, 1, width=32)))
@settings(max_examples=50, deadline=None)
def test_rounding_to_eight_bits_moves_no_value_by_more_than_half_a_gray_level(image):
    assert np.abs(to_float(to_uint8(image)) - image).max() <= 1.0 / 255.0 + 1e-6


def test_the_ends_of_the_range_are_black_and_white_and_other_values_are_clipped():
    image = np.array([-9.0, -1.0, 0.0, 1.0, 9.0], dtype=np.float32).reshape(1, 1, 5).repeat(3, axis=0)
    assert to_uint8(image)[0, :, 0].tolist() == [0, 0, 128, 255, 255]


def test_an_archive_returns_the_written_faces(tmp_path):
    archive = FaceArchive(write(tmp_path / "set.zip"))
    random = np.random.default_rng(0)
    for batch in archive.batches(4):
        for image, points in zip(batch.images, batch.landmarks, strict=True):
            expected = random.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            np.testing.assert_array_equal(to_uint8(image), expected)
            np.testing.assert_array_equal(points.ravel(), random.uniform(0, 8, 136).astype(np.float32))
    assert len(archive) == 7
    assert archive.metadata["dataset"] == "made up"
    assert archive.select(status="refused")["reason"].tolist() == ["no face"]
    masks = archive.masks(archive.select().iloc[[2]])
    np.testing.assert_array_equal(masks[0], to_uint8(archive.load().images[2])[..., 0])


def test_the_same_faces_give_the_same_bytes(tmp_path):
    one, two = write(tmp_path / "one.zip"), write(tmp_path / "two.zip")
    assert one.read_bytes() == two.read_bytes()
    assert index_path(one).read_bytes() == index_path(two).read_bytes()


@pytest.mark.parametrize("ending", [".zip", ".parquet"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.98])
def test_a_truncated_file_is_refused_by_name(tmp_path, ending, share):
    damaged = write(tmp_path / "set.zip").with_suffix(ending)
    content = damaged.read_bytes()
    damaged.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ArchiveError, match=f"set{ending}.*damaged"):
        FaceArchive(tmp_path / "set.zip")


@pytest.mark.parametrize("ending", [".zip", ".parquet"])
def test_a_missing_file_is_refused_with_what_to_do(tmp_path, ending):
    write(tmp_path / "set.zip").with_suffix(ending).unlink()
    with pytest.raises(ArchiveError, match=f"set{ending} is missing.*snakemake"):
        FaceArchive(tmp_path / "set.zip")


def test_an_index_of_different_pictures_is_refused(tmp_path):
    one, two = write(tmp_path / "one.zip", seed=1), write(tmp_path / "two.zip", seed=2)
    index_path(one).write_bytes(index_path(two).read_bytes())
    with pytest.raises(ArchiveError, match="does not have the images of its index"):
        FaceArchive(one)


def test_a_flipped_bit_in_a_picture_is_refused(tmp_path):
    archive = write(tmp_path / "set.zip")
    with zipfile.ZipFile(archive) as entries:
        place = entries.getinfo("faces/face_0.png").header_offset + 30 + len("faces/face_0.png") + 60
    content = bytearray(archive.read_bytes())
    content[place] ^= 1
    archive.write_bytes(content)
    with pytest.raises(ArchiveError, match=r"set.zip is damaged.*face_0"):
        FaceArchive(archive).load()


def test_a_flipped_bit_in_any_column_of_the_index_is_refused(tmp_path):
    archive = write(tmp_path / "set.zip", count=40)
    index = index_path(archive)
    whole = index.read_bytes()
    columns = pq.read_metadata(index).row_group(0)
    for number in range(columns.num_columns):
        column = columns.column(number)
        start = column.dictionary_page_offset or column.data_page_offset
        content = bytearray(whole)
        content[start + column.total_compressed_size - 1] ^= 1
        index.write_bytes(content)
        with pytest.raises(ArchiveError, match=r"set.parquet is damaged"):
            FaceArchive(archive)


def test_an_interrupted_writer_leaves_the_earlier_archive_as_it_was(tmp_path):
    archive = write(tmp_path / "set.zip")
    before = archive.read_bytes()
    with pytest.raises(KeyboardInterrupt), ArchiveWriter(archive):
        raise KeyboardInterrupt
    assert archive.read_bytes() == before
    assert len(FaceArchive(archive)) == 7


@pytest.mark.parametrize(
    ("picture", "row"),
    [
        (None, {"id": "a"}),
        (np.zeros((4, 4, 3), np.uint8), {"id": "a", "status": "refused", "reason": "no face"}),
        (None, {"id": "a", "status": "refused"}),
    ],
)
def test_a_row_is_a_picture_or_a_refusal_with_its_reason(tmp_path, picture, row):
    with pytest.raises(ArchiveError, match="a:"), ArchiveWriter(tmp_path / "set.zip") as out:
        out.add(picture, row)


def test_reading_needs_the_memory_of_one_batch_for_any_archive_size(tmp_path):
    archive = FaceArchive(write(tmp_path / "large.zip", count=2000, side=32))
    tracemalloc.start()
    count = sum(len(batch) for batch in archive.batches(32))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    whole = 2000 * 3 * 32 * 32 * 4
    assert count == 2000
    assert peak < whole / 4, f"{peak / 1e6:.1f} MB for batches of {whole / 2000 * 32 / 1e6:.1f} MB"
