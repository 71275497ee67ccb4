"""The judge of the command line: where its threshold comes from, and what it sees."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from skimage.data import astronaut

from masquerade.params.blocks import InspectionSettings
from masquerade.pipeline import inspection
from masquerade.pipeline.inspection import Inspector, Threshold

SETTINGS = InspectionSettings(far=0.001, smallest_face=20, face_probability=0.95)


@pytest.fixture
def measured(tmp_path):
    """A function that writes measurements: 30 validation people, two pictures each, ``spread`` apart."""

    def write(spread: float, people: int = 30, column: str = "dlib_face.embedding"):
        draw = np.random.default_rng(0)
        names = np.repeat([f"p{number}" for number in range(people)], 2)
        embeddings = spread * draw.normal(size=(len(names), 128)).astype(np.float32)
        frame = pd.DataFrame({"identity": names, "split": "validation", "status": "ok", column: list(embeddings)})
        table = pa.Table.from_pandas(frame).replace_schema_metadata({"masquerade": '{"size": 64}'})
        pq.write_table(table, tmp_path / "source.parquet")
        return tmp_path / "source.parquet"

    return write


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (None, "is not measured here"),
        ({"column": "other.embedding"}, "did not measure faces"),
        ({"people": 5}, "needs more than 40 impostor pairs"),  # 10 * 8 / 2
    ],
)
def test_the_published_threshold_stands_alone_without_a_calibration(tmp_path, measured, changes, reason):
    path = tmp_path / "source.parquet" if changes is None else measured(0.1, **changes)
    limit = inspection.threshold(path, "faces", "validation", 0.001)
    assert limit.distance == 0.6
    assert reason in limit.origin
    assert "King 2017" in limit.origin


def test_the_stricter_of_both_thresholds_counts(measured):
    near = inspection.threshold(measured(0.01), "faces", "validation", 0.001)
    assert near.distance == 0.6
    assert "0.1% of 1,740 impostor pairs of faces (validation)" in near.origin  # 60 * 58 / 2
    stranger = inspection.threshold(measured(0.5), "faces", "validation", 0.1)
    far = inspection.threshold(measured(0.5), "faces", "validation", 0.001)
    assert 5 < far.distance < 8, "strangers are 0.5 * sqrt(2 * 128) = 8 apart"
    assert far.origin.startswith("FAR 0.1% of 1,740 impostor pairs")
    assert stranger.distance > far.distance, "more strangers may pass"
    assert stranger.origin.startswith("FAR 10.0% of 1,740 impostor pairs")


def test_a_distance_that_is_unknown_counts_as_recognised():
    limit = Threshold(0.6, "")
    assert [limit.recognises(distance) for distance in (0.2, 0.6, 0.61, float("nan"))] == [True, True, False, True]


def test_the_judge_sees_the_same_with_and_without_pytorch(monkeypatch):
    pictures = [np.ascontiguousarray(astronaut()[40:200, 140:300]), np.zeros((64, 64, 3), np.uint8)]
    quick = Inspector(SETTINGS).look(pictures)
    monkeypatch.delitem(inspection.sys.modules, "torch", raising=False)
    alone = Inspector(SETTINGS).look(pictures)
    np.testing.assert_allclose(alone.embeddings, quick.embeddings, atol=2e-6)
    assert quick.found.tolist() == alone.found.tolist() == [True, False]
    assert Inspector(SETTINGS).look([]).embeddings.shape == (0, 128)


def test_the_second_detector_gives_places_in_the_photograph_that_it_reduced():
    photograph = np.zeros((900, 1400, 3), np.uint8)
    photograph[300:600, 700:1000] = astronaut()[0:300, 80:380]
    (box,) = Inspector(SETTINGS).faces(photograph, 700)
    centre = box.reshape(2, 2).mean(axis=0)
    assert np.abs(centre - (845, 415)).max() < 30
    large = SETTINGS.model_copy(update={"smallest_face": 200})
    assert len(Inspector(large).faces(photograph, 700)) == 0
    assert len(Inspector(SETTINGS.model_copy(update={"face_probability": 1.0})).faces(photograph, 700)) == 0


def test_psnr_by_hand():
    black, grey = np.zeros((4, 4, 3), np.uint8), np.full((4, 4, 3), 51, np.uint8)
    assert inspection.psnr(grey, black) == pytest.approx(20 * np.log10(5))
    assert inspection.psnr(grey, grey) == np.inf
