"""Published datasets: read in their published layout, and refused with a reason in any other."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

import published
from masquerade.core import discovery, face_tables
from masquerade.core.errors import DatasetError, ParameterError
from masquerade.core.images import FaceArchive
from masquerade.faces import build
from masquerade.pipeline import measuring
from published import PARTS_OF, SEED, SHARES, SIZE, WHO, by_split, dataset, edited, face, noise, records, replaced

# --- CelebA


@pytest.fixture(scope="module")
def published_celeba(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("celeba")
    two = np.zeros((300, 640, 3), np.uint8)
    two[25:275, 25:275], two[50:250, 400:600] = face(1), face(2, side=200)
    pictures = [face(0), two, face(1, take=1), noise(5, 64), face(2)]
    middles = [(125, 140), (500, 160), (125, 140), (32, 32), (125, 140)]
    published.celeba(root, pictures, WHO, PARTS_OF, middles=middles)
    return root


@pytest.fixture
def in_the_wild(published_celeba, tmp_path) -> Path:
    shutil.copytree(published_celeba, tmp_path / "celeba")
    return tmp_path / "celeba"


ALL = {"pictures": 5, "splits": ["train", "validation", "test"]}


def test_pictures_of_celeba_are_aligned_and_one_without_a_face_is_refused(in_the_wild):
    faces = records("celeba", in_the_wild, **ALL)
    assert [record.row["id"] for record in faces] == [f"celeba-{n:06d}" for n in range(1, 6)]
    assert [record.row.get("reason", "") for record in faces] == ["", "", "", "no face was found", ""]
    assert [record.row["split"] for record in faces] == ["train", "train", "validation", "test", "test"]
    points = np.array(faces[0].row["landmarks"]).reshape(68, 2)
    left, right = points[36:42].mean(axis=0), points[42:48].mean(axis=0)
    assert abs(left[1] - right[1]) < 0.02 * SIZE
    assert (right - left)[0] == pytest.approx(0.25 * SIZE, abs=0.03 * SIZE)


def test_the_face_with_the_published_landmarks_is_selected_from_several(in_the_wild):
    second = records("celeba", in_the_wild, **ALL)[1]
    alone = records("celeba", in_the_wild, **ALL)[4]
    assert second.row["faces"] == 2
    middle = np.s_[SIZE // 4 : -SIZE // 4, SIZE // 4 : -SIZE // 4]
    assert np.abs(second.picture[middle].astype(int) - alone.picture[middle]).mean() < 15, "person 2, smaller"
    landmarks = in_the_wild / "Anno/list_landmarks_align_celeba.txt"
    replaced(landmarks, "500  160", " 10   10", 5)
    assert records("celeba", in_the_wild, **ALL)[1].row["reason"] == "no face was found where the lists say it is"


def test_only_the_requested_parts_are_read_and_all_of_them_must_exist(in_the_wild):
    assert by_split(records("celeba", in_the_wild, pictures=5, splits=["validation"])) == {
        "validation": ["celeba-000003"]
    }
    (in_the_wild / "Img/img_align_celeba/000001.jpg").unlink()
    with pytest.raises(DatasetError, match=r"000001.jpg"):
        records("celeba", in_the_wild, pictures=5, splits=["validation"])


def test_celeba_is_read_from_its_zip_and_with_its_lists_beside_it(in_the_wild):
    expected = records("celeba", in_the_wild, **ALL)
    published.zipped(in_the_wild / "Img/img_align_celeba", in_the_wild / "img_align_celeba.zip", "img_align_celeba")
    shutil.rmtree(in_the_wild / "Img")
    for path in [*in_the_wild.glob("*/*.txt")]:
        path.rename(in_the_wild / path.name)
    for one, other in zip(records("celeba", in_the_wild, **ALL), expected, strict=True):
        assert one.row == other.row
        np.testing.assert_array_equal(one.picture, other.picture)


def test_a_wrong_column_of_the_landmarks_is_an_error(in_the_wild):
    replaced(in_the_wild / "Anno/list_landmarks_align_celeba.txt", "nose_x", "mouth_x")
    with pytest.raises(DatasetError, match="must have the columns lefteye_x"):
        records("celeba", in_the_wild, **ALL)


# --- LFW

PEOPLE = {f"Ann_{n:02d}": [noise(n, 64)] * (3 if n < 10 else 1) for n in range(20)} | {
    "Zoe_Lee": [face(0), face(0, take=1)]
}


@pytest.fixture
def news(tmp_path) -> Path:
    published.lfw(tmp_path / "lfw", PEOPLE)
    return tmp_path / "lfw"


def test_the_folds_of_lfw_are_validation_and_test_splits_without_overlap(news):
    faces = records("lfw", news, pictures=42)
    assert len(faces) == 42
    splits = {}
    for record in faces:
        splits.setdefault(record.row["identity"], set()).add((record.row["split"], record.row["fold"]))
    assert all(len(one) == 1 for one in splits.values())
    assert {name for name, one in splits.items() if one == {("validation", 10)}} == {"Ann_09", "Ann_19"}
    assert splits["Zoe_Lee"] == {("test", 1)}


def test_the_published_pairs_are_in_the_index_of_lfw(news, tmp_path):
    build(dataset("lfw", news, pictures=42), tmp_path / "lfw.zip", SIZE, SEED, SHARES)
    index = FaceArchive(tmp_path / "lfw.zip").index.set_index("id")
    assert index.loc["lfw-Ann_03-0001", "pairs"].tolist() == ["lfw-Ann_03-0002", "lfw-Ann_13-0001"]
    assert index["pairs"].map(len).sum() == 20
    assert index.loc["lfw-Zoe_Lee-0002", "status"] == "ok"
    assert index.loc["lfw-Ann_03-0001", "status"] == "refused"
    measuring.measure(tmp_path / "lfw.zip", tmp_path / "lfw.parquet", {}, ["validation", "test"])
    measured = face_tables.read(tmp_path / "lfw.parquet").set_index("id")
    assert measured.loc["lfw-Ann_03-0001", "pairs"].tolist() == ["lfw-Ann_03-0002", "lfw-Ann_13-0001"]
    assert measured.loc["lfw-Ann_03-0001", "fold"] == 4


def test_the_number_of_test_pictures_of_lfw_can_be_that_of_a_paper(news):
    splits = by_split(records("lfw", news, pictures=42, test_pictures=10, validation_folds=[1, 2]))
    assert len(splits["test"]) == 10
    assert len(splits["validation"]) == 3 + 1 + 2 + 3 + 1


@pytest.mark.parametrize("folds", [[11], [0], list(range(1, 11))])
def test_folds_that_leave_no_test_face_or_do_not_exist_are_refused(news, folds):
    with pytest.raises(ParameterError, match="has the folds 1 to 10, and at least one must be left to test"):
        records("lfw", news, pictures=42, validation_folds=folds)


@pytest.mark.parametrize(("version", "folder"), [("raw", "lfw"), ("funneled", "lfw_funneled")])
def test_every_version_of_lfw_is_read_from_its_archive(news, version, folder):
    expected = records("lfw", news, pictures=42)
    (news / "lfw/pairs_01.txt").write_text("a list that the funneled archive brings")
    published.tarred(news / "lfw", news / f"{folder.replace('_', '-')}.tgz", folder)
    shutil.rmtree(news / "lfw")
    for one, other in zip(records("lfw", news, pictures=42, version=version), expected, strict=True):
        assert one.row | {"file": ""} == other.row | {"file": ""}
        np.testing.assert_array_equal(one.picture, other.picture)
    (archive,) = news.glob("*.tgz")
    archive.write_bytes(archive.read_bytes()[:-500])
    with pytest.raises(DatasetError, match=r"is not a complete .tgz file"):
        records("lfw", news, pictures=42, version=version)


LFW_DAMAGE = {
    "missing": (lambda a: (a / "lfw/Ann_03/Ann_03_0002.jpg").unlink(), r"missing \(the first: Ann_03/Ann_03_0002.jpg"),
    "extra": (lambda a: published.write(a / "lfw/Ann_03/Thumbs.db", b"x"), r"no list .* Ann_03/Thumbs.db"),
    "fold cut": (edited("people.txt", "Ann_09\t3\nAnn_19\t1\n", "Ann_09\t3\n"), "41 pictures|is cut or altered"),
    "no number": (edited("people.txt", "Ann_13\t1", "Ann_13\tx"), "people.txt is cut or altered"),
    "pairs cut": (edited("pairs.txt", "Ann_09\t1\t2\n", ""), "does not list 10 times 1 pairs"),
}


@pytest.mark.parametrize("damage", LFW_DAMAGE)
def test_the_error_for_a_wrong_list_of_lfw_names_the_place(news, damage):
    change, message = LFW_DAMAGE[damage]
    change(news)
    with pytest.raises(DatasetError, match=message):
        next(dataset("lfw", news, pictures=42).records(SIZE, SEED, 1))


# --- FFHQ


@pytest.mark.parametrize("flat", [False, True])
def test_the_first_pictures_of_ffhq_are_train_and_have_no_identity(tmp_path, flat):
    published.ffhq(tmp_path, [noise(n, 128) for n in range(4)], "thumbnails128x128")
    if flat:
        for path in [*tmp_path.rglob("*.png")]:
            path.rename(tmp_path / "thumbnails128x128" / path.name)
        (tmp_path / "thumbnails128x128/00000").rmdir()
    faces = records("ffhq", tmp_path, pictures=4, train_pictures=3, version="thumbnails128x128")
    assert by_split(faces) == {"train": ["ffhq-00000", "ffhq-00001", "ffhq-00002"], "test": ["ffhq-00003"]}
    assert {record.row["identity"] for record in faces} == {""}
    with pytest.raises(DatasetError, match="1 of 5 pictures"):
        records("ffhq", tmp_path, pictures=5, version="thumbnails128x128")


# --- CASIA-WebFace


def test_folders_of_casia_are_people_who_are_dealt_to_the_splits(tmp_path):
    published.casia_folders(tmp_path, [[face(0), face(0, 1)], [noise(1, 64)]])
    knobs = {"pictures": 3, "validation_pictures": 0, "test_pictures": 1, "splits": ["train", "test"]}
    faces = records("casia_webface", tmp_path, **knobs)
    assert [record.row["id"] for record in faces] == [
        f"casia-{n}" for n in ("0000045-001", "0000045-002", "0000046-001")
    ]
    assert [record.row["identity"] for record in faces] == ["casia-0000045"] * 2 + ["casia-0000046"]
    assert [record.row["split"] for record in faces] == ["train", "train", "test"]
    assert faces[2].row["reason"] == "no face was found"


def test_a_file_that_is_not_a_picture_of_casia_is_an_error(tmp_path):
    published.casia_folders(tmp_path, [[noise(0, 64)]])
    published.write(tmp_path / "CASIA-WebFace/0000045/readme.txt", b"")
    with pytest.raises(DatasetError, match=r"0000045/readme.txt is not named like a picture of the set"):
        records("casia_webface", tmp_path, pictures=1, test_pictures=1)


# --- all datasets

NAMES = ["celeba_hq", "celeba", "lfw", "ffhq", "casia_webface"]


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_dataset_gives_a_reason_and_raises_no_error(name, tmp_path):
    knobs = {"celeba": str(tmp_path)} if name == "celeba_hq" else {}
    available, why = dataset(name, tmp_path / "nowhere", **knobs).available()
    assert not available
    assert "holds no" in why
    assert "docs/datasets.md" in why
    assert f"datasets.{name}" in why


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_shows_the_tree_of_each_set(name, root):
    text = (root / "docs/datasets.md").read_text()
    assert f"`{name}`" in text
    assert f"assets/{name}/" in text


@pytest.mark.parametrize(
    ("name", "knobs", "expected"),
    [
        ("celeba_hq", {}, {"train": 24183, "validation": 2993, "test": 2824}),
        ("celeba_hq", {"split": "enlarged"}, {"train": 24007, "validation": 2993, "test": 3000}),
        ("celeba", {}, {"validation": 19867, "test": 19962}),
        ("lfw", {}, {"validation": 1323, "test": 11910}),
        ("ffhq", {}, {"train": 60000, "test": 10000}),
        ("casia_webface", {}, {"validation": 5000, "test": 5000}),
    ],
)
def test_the_number_of_faces_is_known_before_the_dataset_is_built(root, tmp_path, name, knobs, expected):
    block = yaml.safe_load((root / "params.yaml").read_text())["datasets"][name]
    cls = discovery.load("faces", name)
    assert cls(cls.Params(**block | {"path": str(tmp_path)} | knobs)).count(0) == expected


# --- FFHQ*

GENERATOR = {"channels": [8, 8, 8, 8, 4], "style": 8, "mapping": 2, "mapping_rate": 1.0}  # 64 pixels


@pytest.fixture(scope="module")
def generator(tmp_path_factory) -> Path:
    import torch

    from masquerade.backbones.generator import training

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("ffhq_star") / "generator.safetensors"
    training.save(path, training.build(GENERATOR), GENERATOR)
    return path


def drawn(generator: Path, size: int = SIZE, seed: int = SEED, workers: int = 1, **changes) -> list:
    knobs = {"generator": str(generator), "pictures": 10, "train_pictures": 9, "validation_pictures": 2, "psi": 0.7}
    cls = discovery.load("faces", "ffhq_star")
    return list(cls(cls.Params(**{**knobs, **changes})).records(size, seed, workers))


def test_faces_of_ffhq_star_are_drawn_by_the_generator_and_have_different_identities(generator):
    faces = drawn(generator)
    assert {name: len(ids) for name, ids in by_split(faces).items()} == {"train": 7, "validation": 2, "test": 1}
    assert len({record.row["identity"] for record in faces}) == 10
    assert len({record.picture.tobytes() for record in faces}) == 10
    fewer = drawn(generator, pictures=3)
    for one, other in zip(fewer, faces[:3], strict=True):
        np.testing.assert_array_equal(one.picture, other.picture)
    assert (drawn(generator, seed=1, pictures=1)[0].picture != faces[0].picture).any()


def test_a_generator_of_another_size_is_an_error_and_a_missing_one_gives_a_reason(generator):
    with pytest.raises(ParameterError, match=r"draws 64 pixels, and image.size is 128"):
        drawn(generator, size=128)
    cls = discovery.load("faces", "ffhq_star")
    knobs = {"pictures": 10, "train_pictures": 9, "validation_pictures": 2, "psi": 0.7}
    available, why = cls(cls.Params(generator="", **knobs)).available()
    assert not available
    assert "datasets.ffhq_star.generator" in why
    later = cls(cls.Params(generator="checkpoints/x/backbones/generator.safetensors", **knobs))
    assert later.available() == (True, ""), "the generator is an input of the rule, so the pipeline builds it first"
    assert later.sources() == [Path("checkpoints/x/backbones/generator.safetensors")]
