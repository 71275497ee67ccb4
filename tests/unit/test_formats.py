"""Files that 0.9.0 wrote are read, or refused by their name (docs/releases.md).

``recorded/formats_0.9`` holds files that the code of 0.9.0 wrote.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from masquerade.core import face_tables
from masquerade.core.errors import ArchiveError, CheckpointError
from masquerade.core.images import FaceArchive
from masquerade.pipeline.outputs import REPORT, read_report
from masquerade.training import checkpoints

WRITTEN = Path(__file__).parent / "recorded/formats_0.9"


def test_an_archive_of_0_9_is_read():
    archive = FaceArchive(WRITTEN / "faces.zip")
    faces = archive.load("test")
    assert faces.ids == ["p0_0", "p1_0"]
    assert archive.pictures(archive.select())[:, 0, 0, 0].tolist() == [20, 60]
    assert archive.masks(archive.select())[:, 0, 0].tolist() == [0, 1]
    assert faces.landmarks[0, 1].tolist() == pytest.approx([0.2, 0.3])
    assert archive.select(status="refused")["reason"].tolist() == ["no face was found"]


def test_a_group_of_people_that_0_9_did_not_state_is_refused_with_the_name_of_the_archive():
    with pytest.raises(ArchiveError, match=r"faces\.zip does not say which people are in the group 'judges'"):
        FaceArchive(WRITTEN / "faces.zip").select("judges")


def test_measurements_of_0_9_are_read():
    table = face_tables.read(WRITTEN / "measurements.parquet")
    assert table["id"].tolist() == ["p0_0", "p1_0", "p2_0"]
    assert face_tables.stack(table["dlib_face.embedding"])[:2].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert table["mtcnn.found"].tolist()[:2] == [1, 0]
    assert face_tables.read_size(WRITTEN / "measurements.parquet") == 16


def test_what_measurements_of_0_9_do_not_state_is_refused_with_their_name():
    with pytest.raises(ArchiveError, match=r"measurements\.parquet does not give the statement of its method"):
        face_tables.read_statement(WRITTEN / "measurements.parquet")


def test_a_checkpoint_of_0_9_is_read():
    saved = checkpoints.Saved(WRITTEN / "checkpoint.safetensors")
    layer = saved.frozen("encoder", torch.nn.Linear(2, 3))
    assert np.array_equal(layer.weight.numpy(), [[0, 1], [2, 3], [4, 5]])
    assert saved.metadata["width"] == 3


def test_a_checkpoint_of_0_9_that_does_not_fit_is_refused_by_name():
    path = WRITTEN / "checkpoint.safetensors"
    for refused in (
        lambda: checkpoints.list_buffers(path),
        lambda: checkpoints.Saved(path).metadata["layers"],
        lambda: checkpoints.Saved(path).frozen("encoder", torch.nn.Linear(3, 3)),
    ):
        with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors"):
            refused()


def test_a_report_of_0_9_is_read(tmp_path):
    """It had four columns; keys of that version had no salt."""
    report = tmp_path / REPORT
    report.write_text("file,output,status,reason\na.jpg,a.png,ok,\nb.jpg,,refused,no face was found\n")
    assert [row["file"] for row in read_report(report)] == ["a.jpg", "b.jpg"]
