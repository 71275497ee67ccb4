"""Figures: the same inputs give the same bytes, and a missing number or image has its reason."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from PIL import Image

from masquerade.core import canvas
from masquerade.core.errors import ArchiveError, ReferenceFileError
from masquerade.core.images import ArchiveWriter, FaceArchive
from masquerade.papers import (
    face_selection,
    figure_declarations,
    figures,
    reference,
    tables,
    tradeoffs,
)
from masquerade.params.matrix import Cell
from paper_cells import CELLS, CONTEXT, CURVES, SKIPPED, TABLE, cell, number, tar, written

GRID = """
kind: grid
title: Figure 6
caption: Pictures
source: Figure 6, section V
dataset: {name: CelebA-HQ, role: celeba_hq}
faces: 2
choose: closest_to_mean
judge: {name: Azure Face, role: azure}
fact: epsilon
columns:
  - {title: "e = {epsilon:g}", method: ours, variant: eps_*}
  - {title: Other, method: other, variant: default}
"""
SWEEP = [
    cell("ours", f"eps_{e}", number(1 - e / 1000 + 0.01 * s), number(1.0), tar(0.5), s, epsilon=e, sensitivity=30.0)
    for e in (800, 6, 100)
    for s in (0, 1)
]


def archive(folder: Path, name: str, shade: int, refused: str = "", **facts) -> FaceArchive:
    """Six faces of three people, every picture one gray."""
    with ArchiveWriter(folder / f"{name}.zip", facts) as writer:
        for i in range(6):
            row = {"id": f"f{i}", "source_id": f"f{i}", "identity": f"p{i // 2}", "split": "test"}
            if row["id"] == refused:
                writer.add(None, {**row, "status": "refused", "reason": "it has no landmarks"})
            else:
                writer.add(np.full((32, 32, 3), shade, np.uint8), row)
    return FaceArchive(folder / f"{name}.zip")


def measured(path: Path, embeddings: dict) -> Path:
    rows = {"id": list(embeddings), "source_id": list(embeddings), "judge.embedding": list(embeddings.values())}
    pq.write_table(pa.table(rows).replace_schema_metadata({"masquerade": "{}"}), path)
    return path


@pytest.fixture
def pictures(tmp_path):
    source = archive(tmp_path, "source", 255)
    derived = [
        archive(tmp_path, f"{e}-{s}", 10 * e + s, "f2" if e == 6 else "", method="ours", variant=f"eps_{e}", seed=s,
                statement={"epsilon": float(e)})
        for e in (10, 6) for s in (1, 0)
    ]  # fmt: skip
    return source, derived


@pytest.fixture
def table(tmp_path):
    return reference.load(written(tmp_path, TABLE))


@pytest.fixture
def result(table):
    return tables.build(table, CELLS, SKIPPED, CONTEXT)


class TestCurves:
    def draw(self, tmp_path, name, cells=SWEEP):
        outputs = [tmp_path / f"{name}.{ending}" for ending in figure_declarations.Curves.endings]
        figures.curves(reference.load(written(tmp_path, CURVES, "figure4")), cells, {}, CONTEXT, outputs)
        return [path.read_bytes() for path in outputs]

    def test_the_same_inputs_give_the_same_bytes(self, tmp_path):
        first = self.draw(tmp_path, "a")
        assert first == self.draw(tmp_path, "b")
        assert all(len(data) > 5000 for data in first)
        assert first != self.draw(tmp_path, "c", SWEEP[:4])

    def test_points_are_sorted_by_the_stated_fact(self, tmp_path):
        figure = reference.load(written(tmp_path, CURVES, "figure4"))
        places = figures._places(figure, figures.Cells(SWEEP), CONTEXT)
        assert [x for x, _ in places] == [6.0, 100.0, 800.0]

    def test_the_note_counts_the_pictures_of_each_curve_if_they_differ(self, tmp_path):
        figure = reference.load(written(tmp_path, CURVES, "figure4"))
        cells, places = figures.Cells(SWEEP), figures._places(figure, figures.Cells(SWEEP), CONTEXT)
        each = [cells.measure(key, figure.panels[0].curves[0], CONTEXT).of for _, key in places]
        assert figures._count_images(figure, places, cells, CONTEXT) == f"Each point is over {each[0]} faces. "
        tried = [tree | {"attempts": {"wrong": {"psr": {"dlib_face": number(0.5, 48, 48)}}}} for tree in SWEEP]
        text = CURVES.replace("metric: none,", "metric: psr, judge: {name: Azure Face, role: azure}, attempt: wrong,")
        figure = reference.load(written(tmp_path, text, "figure4"))
        assert figures._count_images(figure, places, figures.Cells(tried), CONTEXT) == (
            f"Pictures behind a point: {each[0]} (Azure), 96 (absent). "
        )
        assert figures._count_images(figure, [], cells, CONTEXT) == "Nothing was measured. "

    def test_a_printed_threshold_is_a_line_at_its_height(self, tmp_path):
        text = CURVES.replace("printed: false}", "printed: false, threshold: {printed: 0.6, source: Table 1}}")
        [_, curve] = reference.load(written(tmp_path, text, "figure4")).panels[0].curves
        ax = Figure().add_subplot()
        figures._threshold(ax, curve, curve.threshold, "red", 1)
        [line] = ax.get_lines()
        assert list(line.get_ydata()) == [0.6, 0.6]
        assert line.get_label() == "absent, threshold 0.6, printed (Table 1)"
        with pytest.raises(ReferenceFileError, match="threshold"):
            reference.load(written(tmp_path, text.replace("printed: 0.6", "printed: null"), "figure4"))

    def test_a_figure_without_any_number_is_still_drawn(self, tmp_path):
        assert all(self.draw(tmp_path, "empty", []))

    def test_percentages_are_fractions(self, tmp_path):
        figure = reference.load(written(tmp_path, CURVES, "figure4"))
        assert figure.panels[0].curves[0].markers[0].printed.value == pytest.approx(0.97367)
        assert figure.panels[0].curves[0].markers[0].printed.text == "97.367%"


TRADEOFF = """
kind: tradeoff
title: Trade-off
caption: Privacy against use
source: ours
dataset: {name: CelebA-HQ, role: celeba_hq}
privacy: {title: Rate, metric: attack_rank1_rate, part: strongest, direction: lower, percent: true}
naive: {metric: attack_rank1_rate, part: naive}
utility: {title: Error, metric: twin_landmark_error, direction: lower}
settings:
  - {title: Weak, method: weak, variant: default}
  - {title: Strong, method: strong, variant: default}
  - {title: Useless, method: useless, variant: default}
  - {title: Silent, method: silent, variant: default}
  - {title: Other, method: other, variant: default}
controls:
  - {title: Original, method: original, variant: control}
"""


def attacked(method, strongest, naive, error, variant="default"):
    """A cell with the rates of two attackers and a landmark error."""
    key = {"dataset": "synthetic_hq", "method": method, "variant": variant, "seed": 0}
    rates = {"strongest": number(strongest), "naive": number(naive)}
    metrics = {"attack_rank1_rate": rates, "twin_landmark_error": {"": number(error)}}
    return {"cell": key, "statement": {"faces": 10}, "metrics": metrics}


ATTACKED = [
    attacked("weak", 0.9, 0.1, 0.04), attacked("strong", 0.2, 0.1, 0.06), attacked("useless", 0.5, None, 0.2),
    attacked("silent", 0.5, 0.1, None), attacked("original", 1.0, 1.0, 0.03, "control"),
]  # fmt: skip


class TestTradeoffs:
    def figure(self, tmp_path, text=TRADEOFF):
        return reference.load(written(tmp_path, text, "tradeoff"))

    def points(self, tmp_path):
        return tradeoffs._points(self.figure(tmp_path), figures.Cells(ATTACKED), SKIPPED, CONTEXT)

    def drawn(self, tmp_path, monkeypatch, cells):
        drawings = []
        monkeypatch.setattr(tradeoffs.canvas, "save_drawing", lambda drawing, *_, **__: drawings.append(drawing))
        tradeoffs.tradeoff(self.figure(tmp_path), cells, SKIPPED, CONTEXT, [])
        return drawings[0]

    def test_the_same_inputs_give_the_same_bytes(self, tmp_path):
        files = [[tmp_path / f"{name}.{ending}" for ending in figure_declarations.Tradeoff.endings] for name in "ab"]
        for outputs in files:
            tradeoffs.tradeoff(self.figure(tmp_path), ATTACKED, SKIPPED, CONTEXT, outputs)
        assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]

    def test_methods_and_controls_are_needed(self, tmp_path):
        needed = reference.needs(self.figure(tmp_path))
        assert [method for _, method, _ in needed] == ["weak", "strong", "useless", "silent", "other", "original"]
        assert reference.list_attempts(self.figure(tmp_path)) == []

    def test_a_point_has_one_variant(self, tmp_path):
        text = TRADEOFF.replace("method: weak, variant: default", "method: weak, variant: eps_*")
        with pytest.raises(ReferenceFileError, match="'Weak' is one point: its 'variant' is a name and no pattern"):
            self.figure(tmp_path, text)

    def test_a_method_without_both_numbers_is_left_out_with_its_reason(self, tmp_path, monkeypatch):
        points, reasons, over = self.points(tmp_path)
        assert [(point.title, point.control) for point in points] == [
            ("Weak", False), ("Strong", False), ("Useless", False), ("Original", True),
        ]  # fmt: skip
        assert reasons == {"Silent": "not a number", "Other": "other is not built yet"}
        notes = self.drawn(tmp_path, monkeypatch, ATTACKED).axes[-1].texts[0].get_text().replace("\n", " ")
        assert "2 of 6 are left out, without both numbers: Silent (not a number); Other (other is not" in notes
        assert over == (10,)

    def test_the_front_has_every_method_that_no_other_beats_in_both(self, tmp_path):
        points, _, _ = self.points(tmp_path)
        assert [point.title for point in tradeoffs.front(self.figure(tmp_path), points)] == ["Weak", "Strong"]

    def test_better_is_up_and_right_and_a_hollow_point_is_joined_to_its_filled_one(self, tmp_path, monkeypatch):
        ax = self.drawn(tmp_path, monkeypatch, ATTACKED).axes[0]
        assert ax.xaxis_inverted()
        assert ax.yaxis_inverted()
        hollow = [line.get_xydata()[0].tolist() for line in ax.lines if line.get_markerfacecolor() == "white"]
        assert hollow == [[0.04, 0.1], [0.06, 0.1], [0.03, 1.0]]
        joined = [line.get_xydata().tolist() for line in ax.lines]
        assert [[0.04, 0.9], [0.04, 0.1]] in joined

    def test_a_figure_without_any_number_is_still_drawn(self, tmp_path, monkeypatch):
        notes = self.drawn(tmp_path, monkeypatch, []).axes[-1].texts[0].get_text()
        assert notes.startswith("Nothing was measured.")

    def test_labels_stand_apart_beside_the_plot_in_the_order_of_their_points(self):
        ax = Figure(figsize=(8, 5)).add_subplot()
        numbers = np.random.default_rng(0).normal(size=(22, 2)).round(1)
        points = [tradeoffs.Point(str(y), False, x, y, (x, x), (y, y), None, 1) for x, y in numbers]
        ax.plot(*numbers.T)
        tradeoffs._labels(ax, points, ["black"] * 22)
        labels = sorted((text.xyann[1], float(text.get_text())) for text in ax.texts)
        assert [height for _, height in labels] == sorted(numbers[:, 1])
        assert min(np.diff([place for place, _ in labels])) >= tradeoffs.ROW - 1e-9
        assert all(text.xyann[0] > 1 for text in ax.texts)
        assert labels[-1][0] <= 1


class TestGrids:
    def test_grid_is_repeatable_and_has_whole_pixels(self, tmp_path, pictures):
        figure = reference.load(written(tmp_path, GRID, "figure6"))
        files = [[tmp_path / f"{name}.{ending}" for ending in figure.endings] for name in "ab"]
        for outputs in files:
            figures.grid(figure, figures.GridArchives(*pictures), SKIPPED, CONTEXT, outputs)
        assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]
        pixels = np.asarray(Image.open(files[0][0]).convert("L"))
        tile, gap, head = 192, 6, 42  # 6 screen pixels for each of the 32 pixels of a picture
        for row, column, shade in [(0, 0, 255), (0, 1, 60), (0, 2, 100), (1, 2, 100)]:
            top, left = head + row * (tile + gap), gap + column * (tile + gap)
            assert (pixels[top : top + tile, left : left + tile] == shade).all()
        refused = pixels[head + tile + gap :, gap + tile + gap :][:tile, :tile]
        assert np.median(refused) == 228
        assert refused.min() < 100

    def test_no_image_of_a_private_dataset_is_drawn_and_the_notes_say_why(self, tmp_path, pictures, monkeypatch):
        drawn = []
        monkeypatch.setattr(figures.canvas, "save_drawing", lambda drawing, *_, **__: drawn.append(drawing))
        figure = reference.load(written(tmp_path, GRID, "figure6"))
        for private in (False, True):
            figures.grid(figure, figures.GridArchives(*pictures, private=private), SKIPPED, CONTEXT, [])
        assert [sum(len(ax.images) for ax in drawing.axes) > 0 for drawing in drawn] == [True, False]
        assert "No image of" in " ".join(text.get_text() for text in drawn[1].texts)

    def test_a_column_without_any_picture_is_named_in_the_notes_with_its_reason(self, tmp_path, pictures, monkeypatch):
        drawn = []
        monkeypatch.setattr(figures.canvas, "save_drawing", lambda drawing, *_, **__: drawn.append(drawing))
        figures.grid(
            reference.load(written(tmp_path, GRID, "figure6")), figures.GridArchives(*pictures), SKIPPED, CONTEXT, []
        )
        titles = [ax.get_title() for ax in drawn[0].axes if ax.get_title()]
        assert titles == ["original", "e = 6", "e = 10"]
        notes = " ".join(" ".join(text.get_text().split()) for text in drawn[0].texts)
        assert "Left out: Other (other is not built yet)." in notes

    def test_columns_are_ordered_by_their_fact_and_a_missing_one_has_its_reason(self, tmp_path, pictures):
        figure = reference.load(written(tmp_path, GRID, "figure6"))
        columns = figures._columns(figure, face_selection.by_variant(pictures[1]), SKIPPED, CONTEXT, {})
        assert [(title, key, reason) for title, key, _, reason in columns] == [
            ("e = 6", ("ours", "eps_6"), ""), ("e = 10", ("ours", "eps_10"), ""),
            ("Other", ("other", "default"), "other is not built yet"),
        ]  # fmt: skip

    def test_without_distances_the_first_face_of_each_person_is_shown(self, tmp_path, pictures):
        figure = reference.load(written(tmp_path, GRID.replace("closest_to_mean", "first"), "figure7"))
        assert face_selection.faces(figure, pictures[0], None) == ["f0", "f2"]

    def test_faces_closest_to_the_mean_are_shown_one_a_person(self, tmp_path, pictures):
        figure = reference.load(written(tmp_path, GRID, "figure6"))
        apart = self.distances({"f0": 1.0, "f1": 2.1, "f2": 2.0, "f3": 3.0, "f4": 1.8, "f5": np.nan})  # mean 1.98
        assert face_selection.faces(figure, pictures[0], apart) == ["f2", "f1"]

    def test_distances_are_euclidean_between_each_original_and_its_draw(self, tmp_path):
        source = measured(tmp_path / "source.parquet", {"a": [0.0, 0.0], "b": [1.0, 0.0]})
        derived = measured(tmp_path / "derived.parquet", {"b": [1.0, 2.0], "a": [3.0, 4.0], "c": None})
        with pytest.raises(ArchiveError, match="does not measure every source"):
            face_selection.distances(source, {Cell("faces", "ours", "eps_6", 0): derived}, "judge")
        source = measured(tmp_path / "source.parquet", {"a": [0.0, 0.0], "b": [1.0, 0.0], "c": [1.0, 1.0]})
        apart = face_selection.distances(source, {Cell("faces", "ours", "eps_6", 0): derived}, "judge")
        assert apart["source_id"].tolist() == ["b", "a", "c"]
        assert apart["distance"].tolist() == pytest.approx([2.0, 5.0, np.nan], nan_ok=True)
        with pytest.raises(ArchiveError, match=r"holds no other.embedding: is 'other' among measure.judges"):
            face_selection.distances(source, {}, "other")

    def test_the_draw_closest_to_the_mean_of_its_face_is_shown(self, pictures):
        archives = face_selection.by_variant(pictures[1])[("ours", "eps_10")]
        apart = pd.DataFrame(
            [("ours", "eps_10", seed, "f0", distance) for seed, distance in [(0, 1.0), (1, 1.9), (2, 2.6)]],
            columns=["method", "variant", "seed", "source_id", "distance"],
        )
        assert face_selection.draw("f0", archives, ("ours", "eps_10"), apart[apart["seed"] < 2])[
            0, 0, 0
        ] == pytest.approx(100 / 127.5 - 1)  # a tie: the first seed
        nearer = apart.assign(distance=[0.0, 1.9, 2.6])
        three = [*archives, self.third(archives[0])]
        assert face_selection.draw("f0", three, ("ours", "eps_10"), nearer)[0, 0, 0] == pytest.approx(101 / 127.5 - 1)

    def test_a_refused_face_gives_its_reason_and_never_the_original(self, pictures):
        archives = face_selection.by_variant(pictures[1])[("ours", "eps_6")]
        assert face_selection.draw("f2", archives, ("ours", "eps_6"), None) == "it has no landmarks"

    def test_no_face_left_is_an_error(self, tmp_path, pictures):
        figure = reference.load(written(tmp_path, GRID, "figure6"))
        nothing = self.distances(dict.fromkeys(["f0", "f1"], np.nan))
        with pytest.raises(ArchiveError, match="holds no test face for paper/figure6"):
            face_selection.faces(figure, pictures[0], nothing)

    @staticmethod
    def distances(apart: dict[str, float]) -> pd.DataFrame:
        rows = [("ours", "eps_6", 0, name, value) for name, value in apart.items()]
        return pd.DataFrame(rows, columns=["method", "variant", "seed", "source_id", "distance"])

    @staticmethod
    def third(first: FaceArchive) -> FaceArchive:
        """The same pictures under another seed."""
        copy = FaceArchive(first.path)
        copy.metadata["seed"] = 2
        return copy


RECOVERY = """
kind: table
title: Table 3
caption: What comes back
source: Table 3, section 4
dataset: {name: CelebA-HQ, role: celeba_hq}
columns:
  - {title: PSR, metric: psr, judge: {name: Azure Face, role: azure}, direction: none, digits: 2}
  - {title: Recovered, metric: psr, judge: {name: Azure Face, role: azure}, attempt: recovered, direction: none,
     digits: 2}
rows:
  - {title: Ours, method: ours, variant: eps_6, printed: [3.9e-4, 28.08]}
  - {title: Wrong key, method: ours, variant: eps_6, attempt: wrong, note: another key}
  - {title: Saved, method: ours, variant: eps_6, attempt: saved, note: from what was saved}
  - {title: Original, method: original, variant: control, control: true, note: "control: the picture itself"}
"""


def tried(seed, recovered, wrong):
    attempts = {"recovered": {"psr": {"dlib_face": recovered}}, "wrong": {"psr": {"dlib_face": wrong}}}
    ours = cell("ours", "eps_6", number(0.9), number(1.0), tar(0.1), seed, epsilon=6.0)
    return ours | {"attempts": attempts}


class TestAttempts:
    """Rows, columns, curves and grids of recovered pictures."""

    @pytest.fixture
    def recovery(self, tmp_path):
        cells = [tried(0, number(0.1), number(0.7)), tried(1, number(0.2), number(0.8)), CELLS[-1]]
        return tables.build(reference.load(written(tmp_path, RECOVERY)), cells, {}, CONTEXT)

    def test_attempt_of_a_column_overrides_that_of_a_row(self, recovery):
        values = [[entry.measured.value for entry in line.entries] for line in recovery.lines]
        assert values[0] == pytest.approx([0.9, 0.15])
        assert values[1] == pytest.approx([0.75, 0.15])

    def test_control_without_attempts_is_measured_in_every_column(self, recovery):
        assert [entry.measured.value for entry in recovery.lines[3].entries] == [1.0, 1.0]

    def test_attempt_that_was_not_made_has_a_reason(self, recovery):
        assert recovery.lines[2].entries[0].measured.reason == "ours has no attempt 'saved'"

    def test_csv_has_an_attempt_column_only_if_the_table_has_attempts(self, recovery, result):
        records = list(csv.DictReader(io.StringIO(recovery.csv())))
        assert [record["attempt"] for record in records] == ["", "recovered", "wrong", "recovered", "saved",
                                                             "recovered", "", ""]  # fmt: skip
        assert "attempt" not in result.csv().splitlines()[0]

    def test_needed_attempts_are_listed(self, recovery, table, tmp_path):
        assert reference.list_attempts(recovery.table) == [("celeba_hq", "ours", "eps_6")]
        assert reference.list_attempts(table) == []
        grid = GRID.replace("variant: default}", "variant: default, attempt: wrong, number: 1}")
        assert reference.list_attempts(reference.load(written(tmp_path, grid))) == [("celeba_hq", "other", "default")]
        curves = CURVES.replace("metric: psr\n", "metric: psr\n        attempt: recovered\n")
        offered = [("ours", "eps_6"), ("ours", "plain")]
        attempts = reference.list_attempts(reference.load(written(tmp_path, curves)), offered)
        assert attempts == [("celeba_hq", "ours", "eps_6")]

    @pytest.mark.parametrize("axis", ["axis: Privacy budget", "fact: epsilon\nx: {metric: psr}\naxis: Privacy budget"])
    def test_curves_have_one_x_axis(self, tmp_path, axis):
        with pytest.raises(ReferenceFileError, match="either a 'fact' of the statement or a metric"):
            reference.load(written(tmp_path, CURVES.replace("fact: epsilon\naxis: Privacy budget", axis)))

    def test_curves_are_placed_by_a_metric(self, tmp_path):
        x = "x: {metric: psr, judge: {name: Azure Face, role: azure}}\nscale: linear"
        figure = reference.load(written(tmp_path, CURVES.replace("fact: epsilon", x)))
        places = figures._places(figure, figures.Cells(SWEEP), CONTEXT)
        assert [key[2] for _, key in places] == ["eps_800", "eps_100", "eps_6"]
        assert [x for x, _ in places] == pytest.approx([0.205, 0.905, 0.999])
        assert figures._axis(figure, places, figures.Cells(SWEEP), CONTEXT) == "Privacy budget (here by dlib_face)"
        outputs = [tmp_path / "x.png"]
        figures.curves(figure, SWEEP, {}, CONTEXT, outputs)
        assert outputs[0].stat().st_size > 5000

    def test_grid_shows_the_difference_to_the_original_times_its_factor(self, tmp_path, pictures):
        columns = "  - {title: right, method: ours, variant: eps_10, attempt: recovered, difference: %s}"
        text = GRID.replace("closest_to_mean", "first").split("columns:")[0] + "columns:\n"
        attempts, shown = self.archive(tmp_path), {}
        for factor in (0.5, 2):
            figure = reference.load(written(tmp_path, text + columns % factor))
            outputs = [tmp_path / "difference.png"]
            figures.grid(figure, figures.GridArchives(*pictures, attempts=[attempts]), SKIPPED, CONTEXT, outputs)
            shown[factor] = np.asarray(Image.open(outputs[0]).convert("L"))[42 + 96, 6 + 192 + 6 + 96]
        assert shown == {0.5: pytest.approx(0.5 * (255 - 50), abs=1), 2: 255}  # of f2: 50 in the place of 255

    def test_grid_shows_the_named_attempt_and_number(self, tmp_path, pictures):
        attempts = self.archive(tmp_path)
        columns = "\n".join([
            "  - {title: right, method: ours, variant: eps_10, attempt: recovered}",
            "  - {title: second wrong, method: ours, variant: eps_10, attempt: wrong, number: 1}",
            "  - {title: pasted, method: ours, variant: eps_10, attempt: pasted}",
            "  - {title: Other, method: other, variant: default, attempt: wrong}",
        ])  # fmt: skip
        text = GRID.replace("closest_to_mean", "first").split("columns:")[0] + "columns:\n" + columns
        figure = reference.load(written(tmp_path, text))
        outputs = [tmp_path / "attempts.png"]
        figures.grid(figure, figures.GridArchives(*pictures, attempts=[attempts]), SKIPPED, CONTEXT, outputs)
        pixels = np.asarray(Image.open(outputs[0]).convert("L"))
        tile, gap, head = 192, 6, 42
        for column, shade in enumerate((255, 50, 81)):  # pictures of f2: f0 has no attempt
            left = gap + column * (tile + gap)
            assert (pixels[head : head + tile, left : left + tile] == shade).all()
        ids = face_selection.faces(figure, pictures[0], None, [attempts])
        assert ids == ["f2", "f4"]
        columns = figures._columns(figure, face_selection.by_variant(pictures[1]), SKIPPED, CONTEXT, {})
        assert [reason for *_, reason in columns] == ["nothing was tried here"] * 3 + ["other is not built yet"]
        assert face_selection.attempt("f2", [attempts], figure.columns[2]) == "no attempt 'pasted' of this face"
        assert face_selection.attempt("f4", [attempts], figure.columns[0]) == "no face was found"

    @staticmethod
    def archive(folder):
        facts = {"method": "ours", "variant": "eps_10", "seed": 0}
        with ArchiveWriter(folder / "attempts.zip", facts) as writer:
            for name in ("f2", "f4"):
                for shade, (attempt, count) in zip((50, 80), (("recovered", 1), ("wrong", 2)), strict=True):
                    for which in range(count):
                        row = {"id": f"{name}.{attempt}.{which}", "source_id": name, "identity": "p", "split": "test",
                               "attempt": attempt, "number": which}  # fmt: skip
                        refused = {"status": "refused", "reason": "no face was found"} if name == "f4" else {}
                        picture = None if refused else np.full((32, 32, 3), shade + which, np.uint8)
                        writer.add(picture, row | refused)
        return FaceArchive(folder / "attempts.zip")


NOTE = "Generated people at 256 x 256 pixels, commit fced57be73c2cf751f0aa7b7be15df26388b3219, whose rows compare. " * 4


def test_notes_stay_on_the_sheet_and_leave_the_axes_their_place_beside_wide_labels():
    with canvas.use_style():
        lefts = []
        for notes in ([], [NOTE]):
            drawing, [[ax]] = canvas.make_sheet(4.0, (2.0,), 1, notes)
            ax.set_ylabel("one\ntwo\nthree\nfour\nfive")
            drawing.draw_without_rendering()
            lefts.append(ax.get_window_extent().x0)
        (text,) = drawing.axes[-1].texts
        box = text.get_window_extent()
        assert box.x0 > 0
        assert box.x1 < drawing.bbox.x1
        assert lefts[0] == lefts[1]
