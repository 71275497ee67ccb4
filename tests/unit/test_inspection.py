"""The judge of the command line: where its threshold comes from, and what it sees."""

import cv2
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from skimage.data import astronaut

from masquerade.pipeline import inspection
from masquerade.pipeline.inspection import Inspector, Threshold


@pytest.fixture
def measured(tmp_path):
    """A function that writes measurements: 30 validation people, two images each, ``spread`` apart."""

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
    limit = inspection.choose_threshold(path, "faces", "validation", 0.001)
    assert limit.distance == 0.6
    assert reason in limit.origin
    assert "King 2017" in limit.origin


def test_the_stricter_of_both_thresholds_counts(measured):
    near = inspection.choose_threshold(measured(0.01), "faces", "validation", 0.001)
    assert near.distance == 0.6
    assert "0.1% of 1,740 impostor pairs of faces (validation)" in near.origin  # 60 * 58 / 2
    stranger = inspection.choose_threshold(measured(0.5), "faces", "validation", 0.1)
    far = inspection.choose_threshold(measured(0.5), "faces", "validation", 0.001)
    assert 5 < far.distance < 8, "strangers are 0.5 * sqrt(2 * 128) = 8 apart"
    assert far.origin.startswith("FAR 0.1% of 1,740 impostor pairs")
    assert stranger.distance > far.distance, "more strangers may pass"
    assert stranger.origin.startswith("FAR 10.0% of 1,740 impostor pairs")


def test_a_distance_that_is_unknown_counts_as_recognized():
    limit = Threshold(0.6, "")
    assert [limit.recognizes(distance) for distance in (0.2, 0.6, 0.61, float("nan"))] == [True, True, False, True]


def test_the_judge_sees_the_same_with_and_without_pytorch(monkeypatch):
    pictures = [np.ascontiguousarray(astronaut()[40:200, 140:300]), np.zeros((64, 64, 3), np.uint8)]
    quick = Inspector().embed(pictures)
    monkeypatch.delitem(inspection.sys.modules, "torch", raising=False)
    alone = Inspector().embed(pictures)
    np.testing.assert_allclose(alone.embeddings, quick.embeddings, atol=2e-6)
    assert quick.found.tolist() == alone.found.tolist() == [True, False]
    assert Inspector().embed([]).embeddings.shape == (0, 128)


class TestTheLookOfAnAttacker:
    """A result that is the original itself, as somebody might hand it out."""

    @pytest.fixture(scope="class")
    def judge(self) -> Inspector:
        return Inspector()

    @pytest.fixture(scope="class")
    def original(self) -> np.ndarray:
        return np.ascontiguousarray(astronaut()[20:220, 130:330])

    def nearest(self, judge: Inspector, result: np.ndarray, original: np.ndarray) -> tuple[float, float]:
        """The distance of one look at the result as it is, and the least of all looks."""
        known = judge.embed([original]).embeddings
        (seen,) = judge.search([result])
        plain = inspection.find_least_distance(judge.embed([result]).embeddings, known)
        return plain, inspection.find_least_distance(seen.embeddings, known)

    def test_a_mirrored_face_is_mirrored_back(self, judge, original):
        plain, least = self.nearest(judge, np.ascontiguousarray(original[:, ::-1]), original)
        assert least < 1e-3 < 0.1 < plain

    def test_a_face_that_leans_or_is_small_is_aligned_anew(self, judge, original):
        turn = cv2.getRotationMatrix2D((100, 100), 25, 0.6)
        moved = cv2.warpAffine(original, turn, (200, 200), borderMode=cv2.BORDER_REPLICATE)
        plain, least = self.nearest(judge, moved, original)
        assert least < 0.3
        assert least < plain

    def test_a_small_result_is_enlarged(self, judge, original):
        small = cv2.resize(original, (64, 64), interpolation=cv2.INTER_AREA)
        (seen,) = judge.search([small])
        assert len(seen.embeddings) == 6, "as it is, at 256 pixels, aligned anew, and each mirrored"
        assert seen.found
        assert not seen.another

    def test_a_result_without_a_face_is_looked_at_all_the_same(self, judge):
        (seen,) = judge.search([np.zeros((64, 64, 3), np.uint8)])
        assert (seen.embeddings.shape, seen.found, seen.another) == ((4, 128), False, False)

    def test_a_second_face_beside_the_middle_is_found(self, judge, original):
        poster = original.copy()
        poster[:60, 140:] = cv2.resize(original[20:190, 20:190], (60, 60), interpolation=cv2.INTER_AREA)
        (seen,) = judge.search([poster])
        assert seen.another


def test_the_second_detector_gives_places_in_the_photograph_that_it_reduced(monkeypatch):
    photograph = np.zeros((900, 1400, 3), np.uint8)
    photograph[300:600, 700:1000] = astronaut()[0:300, 80:380]
    (box,) = Inspector().find_faces(photograph, 700)
    center = box.reshape(2, 2).mean(axis=0)
    assert np.abs(center - (845, 415)).max() < 30
    monkeypatch.setattr(inspection, "SMALLEST_FACE", 200)
    assert len(Inspector().find_faces(photograph, 700)) == 0


def test_psnr_by_hand():
    black, gray = np.zeros((4, 4, 3), np.uint8), np.full((4, 4, 3), 51, np.uint8)
    assert inspection.compute_psnr(gray, black) == pytest.approx(20 * np.log10(5))
    assert inspection.compute_psnr(gray, gray) == np.inf
