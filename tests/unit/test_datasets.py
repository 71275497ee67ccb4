"""Published datasets: read in their published layout, and refused with a reason in any other."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

import published
from masquerade.core import discovery, face_tables
from masquerade.core.annotations import CLASSES
from masquerade.core.errors import DatasetError, ParameterError
from masquerade.core.images import FaceArchive
from masquerade.faces import build, celeba
from masquerade.faces.celeba_hq import PARTS
from masquerade.faces.photographs import alignment
from masquerade.pipeline import measuring
from published import (
    PARTS_OF,
    SEED,
    SHARES,
    SIZE,
    WHO,
    by_split,
    dataset,
    edited,
    face,
    noise,
    records,
    replaced,
)


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


@pytest.mark.parametrize("folds", [[11], list(range(1, 11))])
def test_folds_that_leave_no_test_face_or_do_not_exist_are_refused(news, folds):
    with pytest.raises(ParameterError, match="has the folds 1 to 10, and at least one must be left to test"):
        records("lfw", news, pictures=42, validation_folds=folds)


LFW_DAMAGE = {
    "missing": (lambda a: (a / "lfw/Ann_03/Ann_03_0002.jpg").unlink(), r"missing \(the first: Ann_03/Ann_03_0002.jpg"),
    "fold cut": (edited("people.txt", "Ann_09\t3\nAnn_19\t1\n", "Ann_09\t3\n"), "people.txt is cut or altered"),
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
    with pytest.raises(DatasetError, match="1 of 5 images"):
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


@pytest.fixture(scope="module")
def published_hq(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("celeba_hq")
    pictures = [face(0, side=1024), *(noise(n) for n in range(4))]
    published.celeba_hq(root / "celeba_hq", root / "celeba", pictures, WHO, PARTS_OF)
    return root


@pytest.fixture
def hq(published_hq, tmp_path, monkeypatch) -> Path:
    """A copy that a test may damage. It skips landmarks, which take the most time and which few tests check."""
    monkeypatch.setattr(alignment, "detect_landmarks", lambda picture: (np.zeros((68, 2)), True))
    shutil.copytree(published_hq, tmp_path / "assets")
    return tmp_path / "assets"


def hq_set(root: Path, **changes):
    return dataset("celeba_hq", root / "celeba_hq", celeba=str(root / "celeba"), pictures=5, **changes)


def hq_records(root: Path, **changes) -> list:
    return records("celeba_hq", root / "celeba_hq", **{"celeba": str(root / "celeba"), "pictures": 5, **changes})


def test_a_picture_of_celeba_hq_has_the_identity_split_and_attributes_of_its_original(hq):
    faces = hq_records(hq)
    assert [record.row["id"] for record in faces] == [f"celeba_hq-{n:05d}" for n in range(5)]
    # image n comes from CelebA's image 5 - n
    assert [record.row["identity"] for record in faces] == [f"celeba-{who}" for who in reversed(WHO)]
    assert [record.row["split"] for record in faces] == ["test", "test", "validation", "train", "train"]
    assert [record.row["original"] for record in faces] == [f"{n:06d}.jpg" for n in (5, 4, 3, 2, 1)]
    for number, record in enumerate(faces):
        known = {key: value for key, value in record.row.items() if key.startswith("attribute.")}
        assert len(known) == 40
        assert all(type(value) is bool for value in known.values())
        assert known["attribute.Young"] == (published.sign(number, 39) == 1)


@pytest.mark.parametrize(
    ("true", "caption"),
    [
        (
            [
                "Young",
                "No_Beard",
                "Wavy_Hair",
                "Brown_Hair",
                "Bangs",
                "Wearing_Lipstick",
                "Wearing_Earrings",
                "Smiling",
            ],
            "A young woman with wavy brown hair and bangs, wearing lipstick and earrings, smiling.",
        ),
        (
            ["Male", "Bald", "Gray_Hair", "Pale_Skin", "Eyeglasses", "Mouth_Slightly_Open"],
            "An old man with very light skin, a bald head and a beard, wearing eyeglasses, with a neutral expression, "
            "mouth slightly open.",
        ),
    ],
)
def test_a_caption_names_only_the_attributes(true, caption):
    assert celeba.write_caption({f"attribute.{name}": name in true for name in celeba.ATTRIBUTES}) == caption


def test_masks_hold_the_classes_of_the_parser_in_the_same_order(hq):
    assert CLASSES[1:] == PARTS
    mask = hq_records(hq)[0].mask
    skin, nose = CLASSES.index("skin"), CLASSES.index("nose")
    assert set(np.unique(mask)) == {0, skin, nose}
    assert mask[SIZE * 250 // 512, SIZE * 250 // 512] == nose, "the later class covers the earlier one"
    assert mask[SIZE * 150 // 512, SIZE * 200 // 512] == skin
    assert hq_records(hq, masks=False)[0].mask is None
    (hq / "celeba_hq/CelebAMask-HQ/CelebAMask-HQ-mask-anno/0/00001_skin.png").unlink()
    with pytest.raises(DatasetError, match=r"no 0/00001_skin.png"):
        hq_records(hq)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xd8\xff no image", published.jpeg(noise(0))[:3000], published.jpeg(noise(0, 512))]
)
def test_a_damaged_picture_is_a_refusal_and_the_others_are_read(hq, tmp_path, content):
    (hq / "celeba_hq/CelebAMask-HQ/CelebA-HQ-img/2.jpg").write_bytes(content)
    made = hq_set(hq)
    build(made, tmp_path / "a.zip", SIZE, SEED, SHARES)
    index = FaceArchive(tmp_path / "a.zip").index
    assert index["status"].tolist() == ["ok", "ok", "refused", "ok", "ok"]
    assert index["reason"][2]
    assert index["attribute.Male"].dtype == bool, "a refused image keeps its known columns"


TOP = "celeba_hq/CelebAMask-HQ"
KNOWN, MAPPING = f"{TOP}/CelebAMask-HQ-attribute-anno.txt", f"{TOP}/CelebA-HQ-to-CelebA-mapping.txt"
IDENTITIES, SPLITS = "celeba/Anno/identity_CelebA.txt", "celeba/Eval/list_eval_partition.txt"


HQ_DAMAGE = {
    "extra image": (lambda a: shutil.copy(a / TOP / "CelebA-HQ-img/3.jpg", a / TOP / "CelebA-HQ-img/5.jpg"),
                      r"1 files are in no list of the set \(the first: 5.jpg\). Move them away"),
    "doubled name": (edited(KNOWN, "\n4.jpg", "\n3.jpg"), "names a file twice"),
    "lost attribute": (edited(KNOWN, "Young", "Old"), "must have the columns"),
    "mapping that is short": (edited(MAPPING, "4         0           000001.jpg  \n", ""),
                              "the lists name 4 images, and the published set has 5"),
    "lists of two versions": (edited(IDENTITIES, "000005.jpg", "000006.jpg"),
                              r"do not name the same files: 2 are in one list only \(the first: 000005.jpg"),
    "person in two parts": (edited(IDENTITIES, "000005.jpg 33", "000005.jpg 11"), "celeba-11 is in several splits"),
    "list that is no text": (lambda a: (a / SPLITS).write_bytes(b"\xff\xfe\x00"), "is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("damage", HQ_DAMAGE)
def test_a_tree_that_differs_from_the_published_one_stops_with_a_clear_error(hq, damage):
    change, message = HQ_DAMAGE[damage]
    change(hq)
    with pytest.raises(DatasetError, match=message):
        next(hq_set(hq).records(SIZE, SEED, 1))


def test_official_splits_are_enlarged_by_people_of_the_train_part_alone(hq):
    official = {record.row["id"]: record.row["split"] for record in hq_records(hq)}
    faces = hq_records(hq, split="enlarged", test_pictures=4, validation_pictures=1)
    splits = by_split(faces)
    assert {name: len(ids) for name, ids in splits.items()} == {"validation": 1, "test": 4}
    moved = {record.row["id"] for record in faces if record.row["split"] != official[record.row["id"]]}
    assert {official[name] for name in moved} == {"train"}
    people = {(record.row["identity"], record.row["split"]) for record in faces}
    assert len(people) == len({person for person, _ in people}) == 3
    with pytest.raises(ParameterError, match="need 4 images, and the set has 2"):
        hq_records(hq, split="enlarged", test_pictures=5, validation_pictures=2)
    with pytest.raises(ParameterError, match="the published test split has 2 images, and test_pictures is 1"):
        hq_records(hq, split="enlarged", test_pictures=1, validation_pictures=1)


def test_a_change_in_a_folder_of_pictures_is_detected_by_names_and_sizes(hq, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    made = hq_set(hq)
    (manifest,) = made.sources()
    first, time = manifest.read_text(), manifest.stat().st_mtime_ns
    assert len(first.splitlines()) == 4 + 5 + 10
    os.utime(hq / TOP / "CelebA-HQ-img/0.jpg")
    assert made.sources()[-1].stat().st_mtime_ns == time, "a new file time is not a change"
    (hq / TOP / "CelebA-HQ-img/0.jpg").write_bytes(b"shorter")
    assert made.sources()[-1].read_text() != first


@pytest.mark.parametrize("name", [MAPPING, IDENTITIES])
def test_a_change_in_a_list_is_detected_by_its_content(hq, monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    made = hq_set(hq)
    first = made.sources()[0].read_text()
    content = (hq / name).read_bytes()
    (hq / name).write_bytes(content.replace(b"1", b"2", 1))
    assert made.sources()[0].read_text() != first


def test_a_build_with_the_manifest_alone_is_up_to_date_without_pictures(hq, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    made = hq_set(hq)
    sources = made.sources()
    (hq / "celeba_hq").rename(tmp_path / "taken_away")
    assert made.available() == (True, "")
    assert made.sources() == sources
    with pytest.raises(DatasetError, match="holds no"):
        next(made.records(32, 0, 1))


def test_an_aligned_picture_is_only_reduced_by_area(hq):
    whole = noise(2)
    (hq / "celeba_hq/CelebAMask-HQ/CelebA-HQ-img/3.jpg").write_bytes(published.png(whole))
    record = hq_records(hq)[3]
    expected = whole.reshape(SIZE, 16, SIZE, 16, 3).mean(axis=(1, 3))
    assert np.abs(record.picture - expected).max() <= 0.5


def test_several_processes_give_the_same_archive(tmp_path):
    published.ffhq(tmp_path, [noise(n, 128) for n in range(4)], "thumbnails128x128")
    few = dataset("ffhq", tmp_path, pictures=4, train_pictures=3, version="thumbnails128x128")
    for workers in (1, 2):
        build(few, tmp_path / f"{workers}.zip", SIZE, SEED, SHARES, workers)
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()


PUBLISHED = {
    "celeba": ("Img/img_align_celeba", "img_align_celeba.zip", ALL),
    "celeba_hq": ("CelebAMask-HQ", "CelebAMask-HQ.zip", {"pictures": 5}),
    "lfw": ("lfw", "lfw.tgz", {"pictures": 42}),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_archive_as_published_gives_the_faces_of_the_folder(name, in_the_wild, hq, news, tmp_path, monkeypatch):
    folder, archive, changes = PUBLISHED[name]
    root = {"celeba": in_the_wild, "celeba_hq": hq / "celeba_hq", "lfw": news}[name]
    changes = changes | ({"celeba": str(hq / "celeba")} if name == "celeba_hq" else {})
    expected = records(name, root, **changes)
    pack = published.tarred if name == "lfw" else published.zipped
    pack(root / folder, root / archive, Path(folder).name)
    shutil.rmtree(root / folder)
    for one, other in zip(records(name, root, **changes), expected, strict=True):
        assert one.row == other.row
        np.testing.assert_array_equal(one.picture, other.picture)
        np.testing.assert_array_equal(one.mask, other.mask)
    monkeypatch.chdir(tmp_path)
    (manifest,) = dataset(name, root, **changes).sources()
    assert f"{archive}\t{(root / archive).stat().st_size}\n" in manifest.read_text()
    (root / archive).write_bytes((root / archive).read_bytes()[:-500])
    with pytest.raises(DatasetError, match="is not a complete archive"):
        records(name, root, **changes)
