"""The classical methods: they change the face region by the stated amount, and nothing else."""

import numpy as np
import pandas as pd
import pytest

from masquerade.core import discovery
from masquerade.core.errors import ArchiveError, ParameterError
from masquerade.core.images import ArchiveWriter, FaceArchive, Faces, to_float, to_uint8
from masquerade.faces import build
from masquerade.methods import Resources, _region
from masquerade.methods.gaussian_blur import resample_blocks
from masquerade.methods.pixelation import average_labels, label_squares, label_superpixels

SIZE = 64


def faces(count=2, value=None, seed=0):
    draw = np.random.default_rng(seed)
    images = draw.uniform(-0.8, 0.8, (count, 3, SIZE, SIZE)).astype(np.float32)
    if value is not None:
        images[:] = value
    points = np.stack([draw.uniform(20, 44, 68), draw.uniform(28, 52, 68)], -1)
    points[0], points[1] = (20, 28), (44, 52)  # the box is 24 x 24, with a forehead of 12 above
    named = {"id": [f"f{row}" for row in range(count)], "identity": [f"p{row}" for row in range(count)]}
    rows = {**named, "landmarks": [points.ravel().tolist()] * count}
    return Faces(images, pd.DataFrame(rows))


def method(name, params=None, resources=None, **variant):
    cls = discovery.load("methods", name)
    region = {"where": "face"} if "where" in cls.Variant.model_fields else {}
    return cls(cls.Params(**(params or {})), cls.Variant(**region | variant), resources or Resources())


def test_region_is_the_landmarks_and_a_forehead():
    assert _region.find_boxes(faces(1)).tolist() == [[20, 16, 45, 53]]


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("gaussian_blur", {"kind": "resample", "size": 19.0}),
        ("gaussian_blur", {"kind": "gaussian", "size": 12.0}),
        ("pixelation", {"clusters": "slic", "size": 16.0}),
        ("pixelation", {"clusters": "grid", "size": 16.0}),
        ("gaussian_noise", {"sigma": 20.0}),
        ("blackout", {}),
    ],
)
def test_only_the_region_changes(name, variant):
    given = faces()
    changed = (method(name, **variant).anonymize(given, seed=1) != given.images).any(axis=(0, 1))
    assert changed[16:53, 20:45].mean() > 0.9
    changed[16:53, 20:45] = False
    assert not changed.any()


def test_noise_has_the_given_standard_deviation():
    result = method("gaussian_noise", sigma=20.0).anonymize(faces(8, value=0.0), seed=3)
    noise = result[:, :, 16:53, 20:45] * 127.5
    assert noise.std() == pytest.approx(20.0, rel=0.02)
    assert noise.mean() == pytest.approx(0.0, abs=0.5)


def test_grid_gives_each_square_its_mean():
    region = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
    assert average_labels(region, label_squares(region, 2.0)).tolist() == [
        [[2.5, 2.5, 4.5, 4.5], [2.5, 2.5, 4.5, 4.5], [10.5, 10.5, 12.5, 12.5], [10.5, 10.5, 12.5, 12.5]]
    ]


def test_superpixels_keep_an_edge_that_squares_blur():
    region = np.full((3, 24, 24), -1.0, np.float32)
    region[:, :, 10:] = 1.0  # an edge that no square of 8 pixels respects
    slic = np.abs(average_labels(region, label_superpixels(region, 8.0)) - region).mean()
    squares = np.abs(average_labels(region, label_squares(region, 8.0)) - region).mean()
    assert slic < 0.25 * squares


def test_resampling_keeps_the_mean_and_removes_the_detail():
    region = np.random.default_rng(0).uniform(-1, 1, (3, 32, 32)).astype(np.float32)
    blurred = resample_blocks(region, 8.0)
    assert blurred.mean() == pytest.approx(region.mean(), abs=0.02)
    assert blurred.std() < 0.2 * region.std()


def test_too_small_size_is_refused():
    with pytest.raises(ParameterError, match=r"would hide nothing\. Take at least 8"):
        method("pixelation", clusters="grid", size=4.0).anonymize(faces(), 0)


@pytest.fixture
def gallery(tmp_path):
    """Four people of two images, each of one brightness: 0.1, 0.2, 0.3, 0.8 (and 0.01 more)."""
    with ArchiveWriter(tmp_path / "gallery.zip") as out:
        for person, value in enumerate((0.1, 0.2, 0.3, 0.8)):
            for number in range(2):
                picture = np.full((SIZE, SIZE, 3), round(255 * (value + 0.01 * number)), np.uint8)
                row = {"id": f"g{person}-{number}", "identity": f"g{person}", "split": "train", "group": "methods"}
                out.add(picture, row)
    return Resources(gallery=FaceArchive(tmp_path / "gallery.zip"))


def test_k_same_averages_the_nearest_people_once_each(gallery):
    probe = faces(1, value=2 * 0.2 - 1)
    result = method("k_same", {"distance_size": 16}, gallery, k=3).anonymize(probe, 0)
    # nearest image of each of the three nearest people: 0.2, 0.11 and 0.3
    expected = 2 * np.mean([round(255 * value) / 255 for value in (0.2, 0.11, 0.3)]) - 1
    assert result == pytest.approx(np.full_like(result, expected), abs=1e-5)


def test_more_people_than_the_gallery_holds_are_refused(gallery):
    with pytest.raises(ParameterError, match="k = 5, but the gallery shows 4 people"):
        method("k_same", {"distance_size": 16}, gallery, k=5)


@pytest.mark.parametrize("name", ["k_same", "random_identity"])
def test_method_without_its_gallery_is_refused(name):
    params, variant = ({"distance_size": 16}, {"k": 2}) if name == "k_same" else ({}, {})
    with pytest.raises(ArchiveError, match="has no gallery"):
        method(name, params, **variant).anonymize(faces(), 0)


def test_random_identity_is_a_picture_of_another_person_of_the_gallery(gallery):
    rows = gallery.gallery.select("train")
    members = gallery.gallery.load("train")
    for seed in range(4):
        result = method("random_identity", resources=gallery).anonymize(members, seed=seed)
        for picture, own in zip(result, rows["identity"], strict=True):
            same = (picture == members.images).all(axis=(1, 2, 3))
            assert same.any()
            assert own not in set(rows["identity"][same])


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("gaussian_blur", {"kind": "gaussian", "size": 8.0}),
        ("pixelation", {"clusters": "grid", "size": 8.0}),
        ("gaussian_noise", {"sigma": 15.0}),
    ],
)
def test_classical_restoration_lowers_the_error(tiny, tmp_path, name, variant):
    drawn_faces = discovery.load("faces", "synthetic_hq")(tiny.datasets["synthetic_hq"])
    build(drawn_faces, tmp_path / "faces.zip", 64, 0, tiny.people.model_dump())
    drawn = FaceArchive(tmp_path / "faces.zip").load("test")
    hiding = method(name, where="picture", **variant)
    hidden = to_float(to_uint8(hiding.anonymize(drawn, seed=0)))
    restored = hiding.recover(hidden, None)
    errors = [np.square(pictures - drawn.images).mean() for pictures in (restored, hidden)]
    assert errors[0] < errors[1]


def test_whole_picture_changes_if_requested():
    given = faces(8, value=0.0)
    changed = method("gaussian_noise", sigma=20.0, where="picture").anonymize(given, seed=3) != given.images
    assert changed.all(axis=1).mean() > 0.9
