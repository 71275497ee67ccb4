"""Each face gives a result or a refusal with its reason; the original is never written as a result."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from masquerade.core import keys, sealing
from masquerade.core.errors import PictureError, ProtocolError
from masquerade.core.images import ArchiveWriter, FaceArchive, Faces, to_float, to_uint8
from masquerade.methods import Capabilities, Method, Resources
from masquerade.pipeline import anonymization

SIDE = 8


class Scripted(Method):
    """Applies ``script`` (id -> function of the image) to its faces, and inverts all other faces."""

    title, paper = "Scripted", "this test"
    capabilities = Capabilities()

    def __init__(self, script=None, capabilities=None):
        super().__init__(None, None, Resources())
        self.script = script or {}
        self.capabilities = capabilities or Capabilities()
        self.observed: list[str] = []
        self.keys: set[bytes] = set()

    def observe(self, batches):
        self.observed = [name for batch in batches for name in batch.ids]

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        self.keys.update(keys or ())
        return np.stack([
            self.script.get(name, np.negative)(image) for name, image in zip(faces.ids, faces.images, strict=True)
        ])  # fmt: skip

    def recover(self, images: np.ndarray, keys: Sequence[bytes]) -> np.ndarray:
        return np.stack([-image if key == b"right" else image * 0.5 for image, key in zip(images, keys, strict=True)])

    def statement(self):
        return {"epsilon": 6.0}


def pixels(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)


@pytest.fixture
def faces(tmp_path: Path) -> FaceArchive:
    """Faces f0 to f4 of the test split, of which f2 was refused, and t0 of the train split."""
    with ArchiveWriter(tmp_path / "faces.zip", {"dataset": "made up"}) as out:
        for number in range(5):
            row = {"id": f"f{number}", "identity": f"p{number}", "split": "test", "attribute.young": number % 2 == 0}
            row["landmarks"] = None if number == 3 else np.full(136, float(number), np.float32)
            if number == 2:
                out.add(None, {**row, "status": "refused", "reason": "no face was found"})
            else:
                out.add(pixels(number), row)
        out.add(pixels(9), {"id": "t0", "identity": "p9", "split": "train", "attribute.young": True, "landmarks": None})
    return FaceArchive(tmp_path / "faces.zip")


def run(faces: FaceArchive, method: Method, split="test", keys=None, progress=None, **options) -> FaceArchive:
    output = faces.path.with_name("out.zip")
    plan = anonymization.Plan(**{"variant": "v", "seed": 7, "batch": 2, **options})
    anonymization.anonymize(faces, output, method, faces.select(split, status=None), plan, keys, progress)
    return FaceArchive(output)


def reasons(archive: FaceArchive) -> dict[str, str]:
    return dict(zip(archive.index["id"], archive.index["reason"], strict=True))


def test_every_face_of_the_split_is_a_result_or_a_refusal_in_the_same_order(faces):
    result = run(faces, Scripted())
    assert result.index["id"].tolist() == ["f0", "f1", "f2", "f3", "f4"]
    assert reasons(result) == {"f0": "", "f1": "", "f2": "no face was found", "f3": "", "f4": ""}
    for batch in result.batches(1):
        (name,) = batch.ids
        np.testing.assert_array_equal(to_uint8(batch.images[0]), to_uint8(-to_float(pixels(int(name[1])))))


def test_a_row_names_its_source_and_its_method(faces):
    result = run(faces, Scripted())
    row = result.index.iloc[4]
    assert row[["source_id", "method", "variant", "key_id", "seed", "identity", "split"]].tolist() == [
        "f4", "test_anonymization", "v", "", 7, "p4", "test",
    ]  # fmt: skip
    assert row["attribute.young"]
    assert row["source_landmarks"].tolist() == [4.0] * 136
    assert "landmarks" not in result.index, "the result does not have the landmarks of the source"
    assert result.metadata["statement"] == {"epsilon": 6.0}
    assert result.metadata["seed"] == 7
    assert (result.metadata["dataset"], result.metadata["variant"]) == ("made up", "v")


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_the_original_is_never_written_as_a_result(faces, batch):
    nearly = {"f1": lambda image: image, "f4": lambda image: image + np.float32(1e-4)}
    result = run(faces, Scripted(nearly), batch=batch)
    assert reasons(result)["f1"] == reasons(result)["f4"] == "the method returned the original image"
    assert result.select()["id"].tolist() == ["f0", "f3"]


def test_a_control_may_return_the_original(faces):
    same = dict.fromkeys(["f0", "f1", "f3", "f4"], np.copy)
    result = run(faces, Scripted(same, Capabilities(control=True)))
    assert len(result.select()) == 4


def test_values_that_are_not_a_valid_picture_are_refused(faces):
    script = {
        "f0": lambda image: np.where(image == image.max(), np.float32(np.nan), -image),
        "f1": lambda image: np.full_like(image, np.inf),
        "f3": lambda image: np.full_like(image, 1.5),
        "f4": lambda image: np.full_like(image, 1.001),
    }
    reasons_by_id = reasons(run(faces, Scripted(script)))
    assert "not finite" in reasons_by_id["f0"]
    assert "not finite" in reasons_by_id["f1"]
    assert reasons_by_id["f3"] == "the method returned values outside [-1, 1] (1.5 to 1.5)"
    assert reasons_by_id["f4"] == "", "less than half a gray level is rounding"


def test_a_refused_picture_does_not_fail_the_rest_of_its_batch(faces):
    def fails(image):
        raise PictureError("the mouth is hidden")

    result = run(faces, Scripted({"f1": fails}), batch=100)
    assert reasons(result)["f1"] == "the mouth is hidden"
    assert result.select()["id"].tolist() == ["f0", "f3", "f4"]


def test_faces_without_landmarks_are_refused_if_the_method_needs_landmarks(faces):
    method = Scripted(capabilities=Capabilities(landmarks=True))
    reasons_by_id = reasons(run(faces, method))
    assert "landmarks" in reasons_by_id["f3"]
    assert reasons_by_id["f2"] == "no face was found"
    assert method.observed == ["f0", "f1", "f4"]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda faces: faces.images.astype(np.float64), "float64"),
        (lambda faces: faces.images[:1], r"\(1, 3, 8, 8\)"),
        (lambda faces: None, "NoneType"),
    ],
)
def test_a_method_that_breaks_the_protocol_is_named_and_leaves_no_archive(faces, returned, message):
    method = Scripted()
    method.anonymize = lambda batch, seed, keys=None: returned(batch)
    with pytest.raises(ProtocolError, match=f"methods/test_anonymization.py must return .* returned .*{message}"):
        run(faces, method)
    assert not faces.path.with_name("out.zip").exists()


@pytest.mark.parametrize("wrong", [lambda images: images.astype(np.float64), lambda images: images[:1], lambda _: None])
def test_a_recovery_that_breaks_the_protocol_is_named_and_leaves_no_archive(faces, wrong):
    method = Scripted(capabilities=Capabilities(keys=keys.Secret(), invertible=True))
    anonymized, output = run(faces, method), faces.path.with_name("recovered.zip")
    method.recover = lambda images, keys: wrong(images)
    with pytest.raises(ProtocolError, match=r"methods/test_anonymization.py must return"):
        anonymization.recover(anonymized, output, method, lambda faces: [b"key"] * len(faces), batch=4)
    assert not output.exists()


def test_faces_with_and_without_a_record_are_recovered_in_one_batch_each_in_its_way(faces):
    method = Scripted(capabilities=Capabilities(keys=keys.Secret(), invertible=True, describes=True))
    archive = run(faces, method)
    ids, image = archive.select()["id"], to_uint8(archive.load().images)
    record = sealing.seal(b"key", b"\x07", image[1], "maker")
    archive.index[anonymization.RECORD] = np.where(archive.index["id"] == ids.iloc[1], record, "")
    method.recover = lambda images, keys: np.zeros_like(images)
    method.draw_described = lambda descriptions: np.full((1, *archive.load().images.shape[1:]), 0.5, np.float32)
    output = faces.path.with_name("recovered.zip")
    anonymization.recover(archive, output, method, lambda faces: [b"key"] * len(faces), batch=4, maker="maker")
    shown = FaceArchive(output).load().images.mean(axis=(1, 2, 3))
    assert shown.round(1).tolist() == [0.0, 0.5, 0.0, 0.0]


def test_a_keyed_method_gets_the_users_key_or_the_experiment_key_of_the_seed(faces):
    method = Scripted(capabilities=Capabilities(keys=keys.Secret()))
    assert run(faces, method, seed=7).index["key_id"].unique().tolist() == ["experiment 7"]
    assert method.keys == {keys.Secret().experiment(7, name) for name in ("f0", "f1", "f3", "f4")}
    method.keys.clear()
    result = run(faces, method, keys=anonymization.GivenKeys(lambda faces: [b"my secret"] * len(faces)))
    assert method.keys == {b"my secret"}
    assert result.index["key_id"].unique().tolist() == ["secret"]
    for file in (result.path, result.path.with_suffix(".parquet")):
        assert b"my secret" not in file.read_bytes()


def test_a_key_is_derived_with_scrypt():
    # hashlib uses the scrypt of OpenSSL; this is an independent implementation.
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    expected = Scrypt(salt=b"masquerade key", length=32, n=2**15, r=8, p=1).derive(b"correct horse")
    assert keys.Secret().of(b"correct horse") == expected


def test_recovery_restores_the_picture_only_with_the_right_key(faces):
    method = Scripted(capabilities=Capabilities(keys=keys.Secret(), invertible=True))
    anonymized = run(faces, method)
    faces.path.unlink()  # recovery gets only the anonymized archive
    outputs = {key: faces.path.with_name(f"{key.decode()}.zip") for key in (b"right", b"wrong")}
    for key, output in outputs.items():
        anonymization.recover(anonymized, output, method, lambda faces, key=key: [key] * len(faces), batch=2)
    right = FaceArchive(outputs[b"right"])
    assert reasons(right) == reasons(anonymized)
    assert right.index["source_id"].tolist() == anonymized.index["source_id"].tolist()
    assert right.index["method"].tolist() == ["test_anonymization"] * 5
    assert np.abs(right.load().images[0] - to_float(pixels(0))).max() <= 2 / 127.5
    assert np.abs(FaceArchive(outputs[b"wrong"]).load().images[0] - to_float(pixels(0))).max() > 0.5


def batch_of(first: int, count: int = 4) -> Faces:
    images = np.arange(first, first + count, dtype=np.float32).reshape(count, 1, 1, 1)
    return Faces(images, pd.DataFrame({"id": [f"f{number}" for number in range(first, first + count)]}))


def test_only_the_refused_faces_have_no_result_and_the_order_is_kept():
    calls = []

    def work(batch, partners):
        calls.append(batch.ids)
        if (batch.images == 2).any():
            raise PictureError("is the third")
        return (batch.images + partners.images).ravel().tolist()

    parts = list(anonymization.apply_or_refuse(work, batch_of(0), batch_of(10)))
    assert [part.ids for part, _ in parts] == [["f0"], ["f1"], ["f2"], ["f3"]]
    assert [result for _, result in parts] == [[10], [12], anonymization.Refusal("is the third"), [16]]
    assert calls == [["f0", "f1", "f2", "f3"], ["f0"], ["f1"], ["f2"], ["f3"]]
