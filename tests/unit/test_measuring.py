"""Measurements: each face has one row, each judge returns its declared quantities, damaged files are refused."""

import hashlib
import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from masquerade.core import face_tables
from masquerade.core.errors import ArchiveError, ProtocolError
from masquerade.core.face_tables import stack
from masquerade.core.images import ArchiveWriter, to_float
from masquerade.judges import Judge
from masquerade.metrics import Metric
from masquerade.metrics._values import mean
from masquerade.pipeline import evaluation, measuring
from masquerade.pipeline.evaluation import CellFiles

RNG = np.random.default_rng(0)
PICTURES = RNG.integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)
REFUSED = {"status": "refused", "reason": "no face found"}


def known(number):
    """The annotations of a face in the index."""
    return {"attribute.age": 30.0, "attribute.Young": number % 2 == 0}


class Means(Judge):
    """Mean colors, and the mean difference to the reference."""

    title = source = "test"
    packages = ("numpy",)
    quantities = {"color": (3,), "bright": (), "level": (), "difference": ()}

    def measure(self, images, reference=None):
        level = images.mean(axis=(1, 2, 3))
        quantities_of_pictures = {"color": images.mean(axis=(2, 3)), "bright": level > 0, "level": level}
        if reference is not None:
            quantities_of_pictures["difference"] = np.abs(images - reference).mean(axis=(1, 2, 3))
        return quantities_of_pictures


def means() -> dict[str, Judge]:
    return {"means": Means(Means.Params(), {})}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.zip"
    with ArchiveWriter(path) as out:
        for number, picture in enumerate(PICTURES):
            split = "train" if number == 4 else "test"
            out.add(picture, {"id": f"s{number}", "identity": f"p{number}", "split": split, **known(number)})
    return path


@pytest.fixture
def derived(tmp_path):
    """Inverted images in reverse order; the one of s2 was refused."""
    path = tmp_path / "derived.zip"
    with ArchiveWriter(path) as out:
        for number in (3, 2, 1, 0):
            row = {"id": f"d{number}", "identity": f"p{number}", "split": "test", "source_id": f"s{number}"}
            row |= known(number)
            out.add(*((None, row | REFUSED) if number == 2 else (255 - PICTURES[number], row | {"key_id": "k"})))
    return path


def test_rows_keep_the_order_of_the_archive_and_refused_rows_stay(source, derived, tmp_path):
    measuring.measure(derived, tmp_path / "m.parquet", means(), batch=2, source=source)
    table = face_tables.read(tmp_path / "m.parquet")
    assert table["id"].tolist() == ["d3", "d2", "d1", "d0"]
    assert table["source_id"].tolist() == ["s3", "s2", "s1", "s0"]
    assert table["status"].tolist() == ["ok", "refused", "ok", "ok"]
    assert table["reason"][1] == "no face found"
    for column in ("means.color", "means.bright", "means.level", "means.difference"):
        missing = np.isnan(stack(table[column])).reshape(4, -1)
        assert missing.all(axis=1).tolist() == [False, True, False, False], column
        assert not missing[[0, 2, 3]].any(), column
    assert pq.read_table(tmp_path / "m.parquet")["means.bright"].null_count == 1, "refused is neither True nor False"


def test_values_and_references_belong_to_their_faces(source, derived, tmp_path):
    measuring.measure(derived, tmp_path / "m.parquet", means(), batch=2, source=source)
    table = face_tables.read(tmp_path / "m.parquet").set_index("id")
    for number in (3, 1, 0):
        original, inverted = to_float(PICTURES[number]), to_float(255 - PICTURES[number])
        row = table.loc[f"d{number}"]
        assert row["means.level"] == pytest.approx(inverted.mean(), abs=1e-6)
        assert row["means.bright"] == float(inverted.mean() > 0)
        assert row["means.difference"] == pytest.approx(np.abs(inverted - original).mean(), abs=1e-6)
        np.testing.assert_allclose(row["means.color"], inverted.mean(axis=(1, 2)), atol=1e-6)


@pytest.mark.parametrize("batch", [1, 3, 4])
def test_the_batch_size_changes_no_byte(batch, source, derived, tmp_path):
    for size, name in ((4, "one"), (batch, "other")):
        measuring.measure(derived, tmp_path / f"{name}.parquet", means(), batch=size, source=source)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()


def test_only_the_named_splits_are_measured_and_without_a_source_nothing_is_compared(source, tmp_path):
    for parts, ids in ((["test"], ["s0", "s1", "s2", "s3"]), (["train", "validation"], ["s4"])):
        measuring.measure(source, tmp_path / "m.parquet", means(), parts=parts)
        table = face_tables.read(tmp_path / "m.parquet")
        assert table["id"].tolist() == ids
        assert "means.difference" not in table


def test_originals_keep_their_annotations_and_derived_faces_have_none(source, derived, tmp_path):
    measuring.measure(source, tmp_path / "m_source.parquet", means())
    measuring.measure(derived, tmp_path / "m_derived.parquet", means(), source=source)
    originals, others = (face_tables.read(tmp_path / f"m_{name}.parquet") for name in ("source", "derived"))
    assert originals["attribute.Young"].tolist() == [1.0, 0.0, 1.0, 0.0, 1.0]
    assert "attribute.age" not in originals, "an annotation is true or false"
    assert not [name for name in others if name.startswith("attribute.")], "derived faces have no annotations"
    evidence = evaluation.collect_evidence(
        CellFiles(tmp_path / "m_source.parquet", tmp_path / "m_derived.parquet"), "train"
    )
    assert evidence.original["attribute.Young"].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert evidence.judges == ("means",)


def test_set_with_refused_faces_only_can_be_measured(tmp_path):
    with ArchiveWriter(tmp_path / "none.zip") as out:
        out.add(None, {"id": "a", "identity": "", "split": "test"} | REFUSED)
    measuring.measure(tmp_path / "none.zip", tmp_path / "m.parquet", means())
    table = face_tables.read(tmp_path / "m.parquet")
    assert {f"means.{name}" for name in Means.quantities} <= set(table)
    assert np.isnan(stack(table["means.color"])).tolist() == [[True, True, True]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"color": np.zeros((5, 3))}, "did not measure"),
        ({"tint": np.zeros(5)}, "does not declare"),
        ({"level": np.zeros(4)}, r"shape \(5,\), not \(4,\)"),
        ({"level": np.zeros(5, dtype=int)}, "bool or float"),
    ],
)
def test_judge_that_returns_other_quantities_is_refused_by_name(answer, message, source, tmp_path):
    class Wrong(Means):
        def measure(self, images, reference=None):
            return super().measure(images, reference) | answer if "color" not in answer else answer

    with pytest.raises(ProtocolError, match=message) as caught:
        measuring.measure(source, tmp_path / "m.parquet", {"wrong": Wrong(Wrong.Params(), {})}, source=source)
    assert "'wrong'" in str(caught.value)
    assert not list(tmp_path.glob("*m.parquet*")), "no partial file remains"


@pytest.mark.parametrize(("side", "reference", "message"), [(16, "s99", "'s99'"), (8, "s0", "image.size")])
def test_a_reference_that_is_missing_or_of_another_size_is_refused(source, tmp_path, side, reference, message):
    with ArchiveWriter(tmp_path / "derived.zip") as out:
        out.add(PICTURES[0, :side, :side], {"id": "d", "identity": "", "split": "test", "source_id": reference})
    with pytest.raises(ArchiveError, match=message):
        measuring.measure(tmp_path / "derived.zip", tmp_path / "m.parquet", means(), source=source)


def test_a_damaged_file_is_refused_by_name(source, tmp_path):
    path = tmp_path / "m.parquet"
    measuring.measure(source, path, means())
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ArchiveError, match=re.escape(str(path))):
        face_tables.read(path)


def test_size_of_the_pictures_is_stored(source, derived, tmp_path):
    measuring.measure(derived, tmp_path / "m.parquet", means(), source=source)
    assert face_tables.read_size(tmp_path / "m.parquet") == 16
    with ArchiveWriter(tmp_path / "none.zip") as out:
        out.add(None, {"id": "d", "identity": "p", "split": "test", "source_id": "s0"} | REFUSED)
    measuring.measure(tmp_path / "none.zip", tmp_path / "none.parquet", means(), source=source)
    assert face_tables.read_size(tmp_path / "none.parquet") is None


@pytest.fixture
def attempts(tmp_path):
    """Recovered images of s0 and s1: the original with the right key, a gray one with each of two wrong keys."""
    path = tmp_path / "attempts.zip"
    with ArchiveWriter(path) as out:
        for name in (1, 0):
            for attempt, count in (("recovered", 1), ("wrong", 2)):
                for number in range(count):
                    row = {"id": f"{name}{attempt}{number}", "source_id": f"s{name}", "identity": f"p{name}",
                           "split": "test", "attempt": attempt, "number": number}  # fmt: skip
                    out.add(PICTURES[name] if attempt == "recovered" else np.full((16, 16, 3), 128, np.uint8), row)
    return path


class Recovered(Metric):
    """The mean difference between images and their sources."""

    title, direction, unit = "recovered", "lower", "levels"

    def compute(self, evidence):
        assert (evidence.original["id"] == evidence.derived["source_id"]).all()
        return {"means": mean(stack(evidence.derived["means.difference"]), evidence.weights)}


def test_attempts_are_measured_and_evaluated_beside_the_anonymized_set(source, derived, attempts, tmp_path):
    files = {"source": source, "derived": derived, "recoveries": attempts}
    for name, archive in files.items():
        other = source if name != "source" else None
        measuring.measure(archive, tmp_path / f"m_{name}.parquet", means(), parts=["test"], source=other)
    paths = {name: tmp_path / f"m_{name}.parquet" for name in files}
    evidence = evaluation.collect_evidence(CellFiles(**paths), "test")
    assert evidence.size == 16
    assert evidence.recoveries["number"].tolist() == [0, 0, 1, 0, 0, 1]
    metrics = {"recovered": Recovered(None)}
    values = evaluation.evaluate_attempts(metrics, evidence)
    assert values["recovered"]["recovered"]["means"]["value"] == 0.0
    assert values["wrong"]["recovered"]["means"]["of"] == 4
    assert values["wrong"]["recovered"]["means"]["value"] > 0
    row = evaluation.make_row({"seed": 0}, {}, evaluation.evaluate(metrics, evidence), values, [paths["derived"]])
    assert list(row["measurements"]) == [str(paths["derived"])]
    assert row["measurements"][str(paths["derived"])] == hashlib.md5(paths["derived"].read_bytes()).hexdigest()
    assert json.loads(json.dumps(row))["attempts"] == values
    assert "attempts" not in evaluation.make_row({"seed": 0}, {}, {})
    without = evaluation.collect_evidence(CellFiles(paths["source"], paths["derived"]), "test")
    assert evaluation.evaluate_attempts(metrics, without) == {}


def test_attempts_at_other_faces_and_of_other_sizes_are_refused(source, derived, attempts, tmp_path):
    small = tmp_path / "small.zip"
    with ArchiveWriter(small) as out:
        row = {"id": "d", "identity": "p", "split": "test", "source_id": "s0"}
        out.add(PICTURES[0][:8, :8], row)
        out.add(None, row | REFUSED | {"id": "e", "source_id": "s1"})
    measuring.measure(source, tmp_path / "m_source.parquet", means(), parts=["test"])
    measuring.measure(small, tmp_path / "m_small.parquet", means())
    with pytest.raises(ArchiveError, match="different sizes"):
        evaluation.collect_evidence(CellFiles(tmp_path / "m_source.parquet", tmp_path / "m_small.parquet"), "test")
    measuring.measure(attempts, tmp_path / "m_attempts.parquet", means(), source=source)
    with ArchiveWriter(tmp_path / "one.zip") as out:
        out.add(PICTURES[0], row)
    measuring.measure(tmp_path / "one.zip", tmp_path / "m_one.parquet", means(), source=source)
    files = {name: tmp_path / f"m_{file}.parquet" for name, file in (("source", "source"), ("derived", "one"))}
    with pytest.raises(ArchiveError, match="attempts at faces that are not in"):
        evaluation.collect_evidence(CellFiles(**files, recoveries=tmp_path / "m_attempts.parquet"), "test")
