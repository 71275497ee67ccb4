"""Figures of clusters, their silhouette scores, and the features that they show."""

import numpy as np
import pandas as pd
import pytest

from masquerade.core import face_tables
from masquerade.core.errors import PictureError, ProtocolError, ReferenceFileError
from masquerade.core.images import ArchiveWriter, FaceArchive
from masquerade.papers import clusters, figure_declarations, reference
from masquerade.papers.context import Context
from masquerade.params.blocks import StandIns
from masquerade.pipeline import measuring

CONTEXT = Context("tiny", (0,), StandIns(datasets={"celeba_hq": "drawn"}, judges={}), "abc1234", "Nothing is meant.")
CLUSTERS = """
kind: clusters
title: Figure 12
caption: Clusters
source: Figure 12, section V
dataset: {name: CelebA-HQ, role: celeba_hq}
method: ours
variant: default
against: {title: codes, features: codes}
panels:
  - {title: identity, features: identity, label: identity, people: 3}
  - {title: gender, features: gender, label: Male, names: [male, female]}
"""


def declared(folder, text=CLUSTERS):
    path = folder / "paper" / "figure12.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return reference.load(path)


def cell(seed=0, people=4, each=6, apart=8.0):
    """Features that separate people, and men from women, by ``apart``; codes that separate no faces."""
    random = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), each)
    male = person % 2 == 0
    rows = pd.DataFrame({
        "id": [f"f{number}" for number in range(len(person))], "identity": [f"p{number}" for number in person],
        "status": "ok", "reason": "", "attribute.Male": male,
    })  # fmt: skip
    noise = random.normal(size=(3, len(person), 5))
    for name, values in {
        "identity": noise[0] + apart * np.eye(5)[person % 5],
        "gender": noise[1] + apart * male[:, None],
        "codes": noise[2],
    }.items():
        rows[f"features.{name}"] = list(values.astype(np.float32))
    return rows, {"method": "ours", "variant": "default", "seed": seed}


class TestSilhouette:
    def test_silhouette_equals_the_value_worked_by_hand(self):
        """On a line at 0, 1 | 4, 6: (b - a) / max for each, a within and b to the others."""
        by_hand = [(5 - 1) / 5, (4 - 1) / 4, (3.5 - 2) / 3.5, (5.5 - 2) / 5.5]
        silhouette = clusters.score_silhouette(np.array([[0.0], [1], [4], [6]]), np.array(["a", "a", "b", "b"]))
        assert silhouette == pytest.approx(np.mean(by_hand))

    @pytest.mark.parametrize("labels", [["a", "a", "a"], ["a", "b", "c"]])
    def test_silhouette_is_none_for_one_label_or_one_label_per_face(self, labels):
        assert clusters.score_silhouette(np.zeros((len(labels), 2)), np.array(labels)) is None

    def test_silhouette_is_computed_from_the_features_and_not_from_the_picture(self, tmp_path):
        """In two dimensions t-SNE separates the faces far better than the features do."""
        figure, cells = declared(tmp_path), [cell(apart=2.0)]
        faces, labels = clusters.select_faces(figure.panels[1], cells[0][0])
        own = clusters._vectors(faces, "gender")
        score = clusters._scores(figure.panels[1], cells, "gender")
        assert score == f"{clusters.score_silhouette(own, labels):.2f}"
        assert clusters.score_silhouette(clusters.project(own), labels) != pytest.approx(float(score), abs=0.01)


class TestFigure:
    def draw(self, folder, name, cells, skipped=()):
        outputs = [folder / f"{name}.{ending}" for ending in figure_declarations.Clusters.endings]
        clusters.draw(declared(folder), cells, dict(skipped), CONTEXT, outputs)
        return [path.read_bytes() for path in outputs]

    def test_the_same_features_give_the_same_bytes(self, tmp_path):
        first = self.draw(tmp_path, "a", [cell()])
        assert first == self.draw(tmp_path, "b", [cell()])
        assert all(len(data) > 5000 for data in first)
        assert first != self.draw(tmp_path, "c", [cell(apart=0.0)])

    def test_panel_shows_the_number_of_faces_and_the_silhouettes(self, tmp_path, monkeypatch):
        drawn = []
        monkeypatch.setattr(clusters.canvas, "save_drawing", lambda drawing, *_, **__: drawn.append(drawing))
        clusters.draw(declared(tmp_path), [cell()], {}, CONTEXT, [])
        identity, gender = (ax.get_xlabel() for ax in drawn[0].axes[:2])
        assert "of 18 faces" in identity
        assert "of 24 faces" in gender
        assert "codes: " in identity
        assert "silhouette 0." in gender

    def test_features_that_are_all_equal_have_no_picture_and_do_not_crash(self, tmp_path, monkeypatch):
        """scikit-learn's t-SNE ends in a segmentation fault if all points are equal."""
        assert clusters.project(np.zeros((8, 3))) == "all faces have the same feature"
        assert clusters.project(np.eye(2)) == "fewer than three faces"
        rows, metadata = cell()
        rows["features.gender"] = [np.zeros(5, np.float32)] * len(rows)
        drawn = []
        monkeypatch.setattr(clusters.canvas, "save_drawing", lambda drawing, *_, **__: drawn.append(drawing))
        clusters.draw(declared(tmp_path), [(rows, metadata)], {}, CONTEXT, [])
        panel = drawn[0].axes[1]
        assert panel.texts[0].get_text() == "all faces have the same feature"
        assert panel.get_xlabel().startswith("silhouette 0.00 of 24 faces")

    def test_refused_faces_are_left_out(self, tmp_path):
        rows, _ = cell()
        rows.loc[:5, "status"] = "refused"
        faces, labels = clusters.select_faces(declared(tmp_path).panels[0], rows)
        assert sorted(set(labels)) == ["p1", "p2", "p3"]
        assert len(faces) == 18

    def test_a_panel_without_its_labels_is_refused(self, tmp_path):
        with pytest.raises(ReferenceFileError, match="two 'names', with it and without; identity has 'people'"):
            declared(tmp_path, CLUSTERS.replace(", people: 3", ""))


class Halves:
    """A method with the upper and the lower half of an image as features. It refuses a black image."""

    def features(self, faces):
        if (faces.images.max(axis=(1, 2, 3)) < -0.99).any():
            raise PictureError("it is black")
        flat = faces.images.mean(axis=1).reshape(len(faces), 2, -1)
        return {"upper": flat[:, 0], "lower": flat[:, 1], "codes": flat.reshape(len(faces), -1)}


class TestFeatures:
    @pytest.fixture
    def archive(self, tmp_path):
        with ArchiveWriter(tmp_path / "faces.zip") as writer:
            for number in range(5):
                row = {"id": f"f{number}", "identity": "p", "split": "test", "attribute.Male": number > 2}
                if number == 4:
                    writer.add(None, row | {"status": "refused", "reason": "no face was found"})
                else:
                    writer.add(np.full((4, 4, 3), 60 * number, np.uint8), row)
        return FaceArchive(tmp_path / "faces.zip")

    def test_every_face_has_a_row_and_a_refused_face_has_a_reason(self, archive, tmp_path):
        measuring.write_features(archive, tmp_path / "out.parquet", Halves(), "test", 2, {"seed": 3})
        rows, metadata = face_tables.read_features(tmp_path / "out.parquet")
        assert metadata == {"seed": 3}
        assert rows["id"].tolist() == archive.index["id"].tolist()
        assert rows["status"].tolist() == ["refused", "ok", "ok", "ok", "refused"]
        assert rows["reason"].tolist() == ["it is black", "", "", "", "no face was found"]
        assert rows["attribute.Male"].tolist() == [False, False, False, True, True]
        assert rows["features.upper"][2] == pytest.approx(np.full(8, 120 / 127.5 - 1))
        assert np.isnan(rows["features.codes"][0]).all()
        assert len(rows["features.codes"][4]) == 16

    def test_a_method_without_features_is_an_error(self, archive, tmp_path):
        class Nothing(Halves):
            def features(self, faces):
                return {}

        with pytest.raises(ProtocolError, match="gives no features"):
            measuring.write_features(archive, tmp_path / "out.parquet", Nothing(), "test", 2, {})
        assert not (tmp_path / "out.parquet").exists()

    def test_features_of_another_shape_are_an_error(self, archive, tmp_path):
        class Cubes(Halves):
            def features(self, faces):
                return {"cube": faces.images}

        with pytest.raises(ProtocolError, match=r"'cube' as float32 \(\d, D\); it gave float32 \(\d, 3, 4, 4\)"):
            measuring.write_features(archive, tmp_path / "out.parquet", Cubes(), "test", 2, {})
