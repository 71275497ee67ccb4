"""Figures: the same inputs give the same bytes, and a missing number or image has its reason."""

from dataclasses import replace
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
from masquerade.core.files import parse_csv
from masquerade.core.images import ArchiveWriter, FaceArchive
from masquerade.papers import curves, grids, reference, tables, tradeoffs
from masquerade.params.matrix import Cell
from paper_cells import CELLS, CONTEXT, CURVES, SKIPPED, TABLE, cell, number, results, tar, written

GRID = """
kind: grid
title: Figure 6
caption: Images
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


def archive(folder: Path, name: str, shade: int, refused: str = "", **metadata) -> FaceArchive:
    """Six faces of three people, every image one gray."""
    with ArchiveWriter(folder / f"{name}.zip", metadata) as writer:
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
def images(tmp_path):
    source = archive(tmp_path, "source", 255)
    derived = [
        archive(tmp_path, f"{e}-{s}", 10 * e + s, "f2" if e == 6 else "", method="ours", variant=f"eps_{e}", seed=s,
                statement={"epsilon": float(e)})
        for e in (10, 6) for s in (1, 0)
    ]  # fmt: skip
    return source, derived


class TestCurves:
    def load(self, tmp_path, text=CURVES):
        return reference.load(written(tmp_path, text, "figure4"))

    def draw(self, tmp_path, name, cells=SWEEP):
        figure = self.load(tmp_path)
        outputs = [tmp_path / f"{name}.{ending}" for ending in figure.endings]
        curves.draw(figure, results(cells, {}), outputs)
        return [path.read_bytes() for path in outputs]

    def test_the_same_inputs_give_the_same_bytes(self, tmp_path):
        first = self.draw(tmp_path, "a")
        assert first == self.draw(tmp_path, "b")
        assert all(len(data) > 5000 for data in first)
        assert all(self.draw(tmp_path, "empty", []))

    def test_points_are_placed_by_the_stated_fact_or_by_a_metric(self, tmp_path):
        figure = self.load(tmp_path)
        assert [x for x, _ in curves.find_places(figure, results(SWEEP))] == [6.0, 100.0, 800.0]
        x = "x: {metric: psr, judge: {name: Azure Face, role: azure}}\nscale: linear"
        figure = self.load(tmp_path, CURVES.replace("fact: epsilon", x))
        places = curves.find_places(figure, results(SWEEP))
        assert [key[2] for _, key in places] == ["eps_800", "eps_100", "eps_6"]
        assert [x for x, _ in places] == pytest.approx([0.205, 0.905, 0.999])
        assert curves.label_axis(figure, places, results(SWEEP)) == "Privacy budget (measured here by dlib_face)"

    @pytest.mark.parametrize("axis", ["axis: Privacy budget", "fact: epsilon\nx: {metric: psr}\naxis: Privacy budget"])
    def test_curves_have_one_x_axis(self, tmp_path, axis):
        with pytest.raises(ReferenceFileError, match="either a 'fact' of the statement or a metric"):
            self.load(tmp_path, CURVES.replace("fact: epsilon\naxis: Privacy budget", axis))

    def test_the_note_counts_the_images_of_each_curve_if_they_differ(self, tmp_path):
        azure, absent = self.load(tmp_path).panels[0].curves
        run = results(SWEEP)
        key = ("synthetic_hq", "ours", "eps_6")
        measured = {azure: [run.measure(key, azure)], absent: [run.measure(key, absent)]}
        assert curves.describe_counts(measured) == "Each point is over 20 faces. "
        measured[absent] = [replace(measured[azure][0], of=96)]
        assert curves.describe_counts(measured) == "Number of images behind each point: 20 (Azure), 96 (absent). "
        assert curves.describe_counts({azure: []}) == "Nothing was measured. "

    def test_a_printed_threshold_is_a_line_at_its_height(self, tmp_path):
        text = CURVES.replace("printed: false}", "printed: false, threshold: {printed: 0.6, source: Table 1}}")
        ax = Figure().add_subplot()
        curves.draw_threshold(ax, self.load(tmp_path, text).panels[0].curves[1], "red", 1)
        [line] = ax.get_lines()
        assert list(line.get_ydata()) == [0.6, 0.6]
        assert line.get_label() == "absent, threshold 0.6, printed (Table 1)"
        with pytest.raises(ReferenceFileError, match="threshold"):
            self.load(tmp_path, text.replace("printed: 0.6", "printed: null"))


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


@pytest.fixture
def drawings(monkeypatch):
    """The drawings that are saved from now on, and no files."""
    saved = []
    monkeypatch.setattr(canvas, "save_drawing", lambda drawing, *_, **__: saved.append(drawing))
    return saved


def read_notes(drawing) -> str:
    texts = [text for part in (drawing, *drawing.axes) for text in part.texts]
    return " ".join(" ".join(text.get_text().split()) for text in texts)


class TestTradeoffs:
    @pytest.fixture
    def figure(self, tmp_path):
        return reference.load(written(tmp_path, TRADEOFF, "tradeoff"))

    def test_the_same_inputs_give_the_same_bytes(self, figure, tmp_path):
        files = [[tmp_path / f"{name}.{ending}" for ending in figure.endings] for name in "ab"]
        for outputs in files:
            tradeoffs.draw(figure, results(ATTACKED), outputs)
        assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]

    def test_methods_and_controls_are_needed(self, figure):
        needed = [method for _, method, _ in reference.needs(figure)]
        assert needed == ["weak", "strong", "useless", "silent", "other", "original"]
        assert reference.list_attempts(figure) == []

    def test_a_point_has_one_variant(self, tmp_path):
        text = TRADEOFF.replace("method: weak, variant: default", "method: weak, variant: eps_*")
        with pytest.raises(ReferenceFileError, match="'Weak' is one point: its 'variant' is a name and no pattern"):
            reference.load(written(tmp_path, text, "tradeoff"))

    def test_a_method_without_both_numbers_is_left_out_with_its_reason(self, figure, drawings):
        points, reasons = tradeoffs.find_points(figure, results(ATTACKED))
        assert [(point.title, point.control, point.images) for point in points] == [
            ("Weak", False, 10), ("Strong", False, 10), ("Useless", False, 10), ("Original", True, 10),
        ]  # fmt: skip
        assert reasons == {"Silent": "not a number", "Other": "other is not built yet"}
        for cells in (ATTACKED, []):
            tradeoffs.draw(figure, results(cells), [])
        left_out = (
            "2 of 6 methods are left out, because one of the two numbers is missing: Silent (not a number); "
            "Other (other is not built yet)."
        )
        assert left_out in read_notes(drawings[0])
        assert "Nothing was measured." in read_notes(drawings[1])

    def test_the_front_has_every_method_that_no_other_beats_in_both(self, figure):
        points, _ = tradeoffs.find_points(figure, results(ATTACKED))
        assert [point.title for point in tradeoffs.find_front(figure, points)] == ["Weak", "Strong"]

    def test_better_is_up_and_right_and_a_hollow_point_is_joined_to_its_filled_one(self, figure, drawings):
        tradeoffs.draw(figure, results(ATTACKED), [])
        ax = drawings[0].axes[0]
        assert (ax.xaxis_inverted(), ax.yaxis_inverted()) == (True, True)
        hollow = [line.get_xydata()[0].tolist() for line in ax.lines if line.get_markerfacecolor() == "white"]
        assert hollow == [[0.04, 0.1], [0.06, 0.1], [0.03, 1.0]]
        assert [[0.04, 0.9], [0.04, 0.1]] in [line.get_xydata().tolist() for line in ax.lines]

    def test_labels_stand_apart_beside_the_plot_in_the_order_of_their_points(self):
        ax = Figure(figsize=(8, 5)).add_subplot()
        numbers = np.random.default_rng(0).normal(size=(22, 2)).round(1)
        points = [tradeoffs.Point(str(y), False, x, y, (x, x), (y, y), None, 1) for x, y in numbers]
        ax.plot(*numbers.T)
        tradeoffs.draw_labels(ax, points, ["black"] * 22)
        labels = sorted((text.xyann[1], float(text.get_text())) for text in ax.texts)
        assert [height for _, height in labels] == sorted(numbers[:, 1])
        assert min(np.diff([place for place, _ in labels])) >= tradeoffs.ROW - 1e-9
        assert all(text.xyann[0] > 1 for text in ax.texts)
        assert labels[-1][0] <= 1


def place_tile(pixels, row, column):
    """The pixels of one tile of a grid, 192 screen pixels wide, with gaps of 6 below a head of 42."""
    top, left = 42 + row * 198, 6 + column * 198
    return pixels[top : top + 192, left : left + 192]


class TestGrids:
    @pytest.fixture
    def figure(self, tmp_path):
        return reference.load(written(tmp_path, GRID, "figure6"))

    def test_grid_is_repeatable_and_has_whole_pixels(self, figure, tmp_path, images):
        files = [[tmp_path / f"{name}.{ending}" for ending in figure.endings] for name in "ab"]
        for outputs in files:
            grids.draw(figure, grids.GridArchives(*images), SKIPPED, CONTEXT, outputs)
        assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]
        pixels = np.asarray(Image.open(files[0][0]).convert("L"))
        for row, column, shade in [(0, 0, 255), (0, 1, 60), (0, 2, 100), (1, 2, 100)]:
            assert (place_tile(pixels, row, column) == shade).all()
        refused = place_tile(pixels, 1, 1)
        assert np.median(refused) == 228
        assert refused.min() < 100

    def test_no_image_of_a_private_dataset_is_drawn_and_the_notes_say_why(self, figure, images, drawings):
        for private in (False, True):
            grids.draw(figure, grids.GridArchives(*images, private=private), SKIPPED, CONTEXT, [])
        assert [sum(len(ax.images) for ax in drawing.axes) > 0 for drawing in drawings] == [True, False]
        assert "No image of" in read_notes(drawings[1])

    def test_columns_are_ordered_by_their_fact_and_a_missing_one_is_in_the_notes(self, figure, images, drawings):
        columns = grids.list_columns(figure, grids.group_by_variant(images[1]), {}, SKIPPED, CONTEXT)
        assert [(column.title, column.key, column.reason) for column in columns] == [
            ("e = 6", ("ours", "eps_6"), ""), ("e = 10", ("ours", "eps_10"), ""),
            ("Other", ("other", "default"), "other is not built yet"),
        ]  # fmt: skip
        grids.draw(figure, grids.GridArchives(*images), SKIPPED, CONTEXT, [])
        assert [ax.get_title() for ax in drawings[0].axes if ax.get_title()] == ["original", "e = 6", "e = 10"]
        assert "Left out: Other (other is not built yet)." in read_notes(drawings[0])

    def test_faces_are_the_first_or_closest_to_the_mean_one_a_person(self, figure, tmp_path, images):
        first = reference.load(written(tmp_path, GRID.replace("closest_to_mean", "first"), "figure7"))
        assert grids.select_faces(first, images[0], None) == ["f0", "f2"]
        apart = self.distances({"f0": 1.0, "f1": 2.1, "f2": 2.0, "f3": 3.0, "f4": 1.8, "f5": np.nan})  # mean 1.98
        assert grids.select_faces(figure, images[0], apart) == ["f2", "f1"]
        with pytest.raises(ArchiveError, match="holds no test face for paper/figure6"):
            grids.select_faces(figure, images[0], self.distances(dict.fromkeys(["f0", "f1"], np.nan)))

    def test_distances_are_euclidean_between_each_original_and_its_draw(self, tmp_path):
        source = measured(tmp_path / "source.parquet", {"a": [0.0, 0.0], "b": [1.0, 0.0]})
        derived = {Cell("faces", "ours", "eps_6", 0): measured(
            tmp_path / "derived.parquet", {"b": [1.0, 2.0], "a": [3.0, 4.0], "c": None}
        )}  # fmt: skip
        with pytest.raises(ArchiveError, match="does not measure every source"):
            grids.measure_distances(source, derived, "judge")
        source = measured(tmp_path / "source.parquet", {"a": [0.0, 0.0], "b": [1.0, 0.0], "c": [1.0, 1.0]})
        apart = grids.measure_distances(source, derived, "judge")
        assert apart["source_id"].tolist() == ["b", "a", "c"]
        assert apart["distance"].tolist() == pytest.approx([2.0, 5.0, np.nan], nan_ok=True)
        with pytest.raises(ArchiveError, match=r"holds no other.embedding: is 'other' among measure.judges"):
            grids.measure_distances(source, {}, "other")

    def test_the_draw_closest_to_the_mean_of_its_face_is_shown(self, images):
        key = ("ours", "eps_10")
        archives = grids.group_by_variant(images[1])[key]
        third = FaceArchive(archives[0].path)  # the same images under another seed
        third.metadata["seed"] = 2
        for of_seeds, distances, shade in ((archives, [1.0, 1.9], 100), ([*archives, third], [0.0, 1.9, 2.6], 101)):
            rows = [(*key, seed, "f0", distance) for seed, distance in enumerate(distances)]  # a tie: the first seed
            apart = pd.DataFrame(rows, columns=["method", "variant", "seed", "source_id", "distance"])
            assert grids.load_draw("f0", of_seeds, key, apart)[0, 0, 0] == pytest.approx(shade / 127.5 - 1)

    def test_a_refused_face_gives_its_reason_and_never_the_original(self, images):
        archives = grids.group_by_variant(images[1])[("ours", "eps_6")]
        assert grids.load_draw("f2", archives, ("ours", "eps_6"), None) == "it has no landmarks"

    @staticmethod
    def distances(apart: dict[str, float]) -> pd.DataFrame:
        rows = [("ours", "eps_6", 0, name, value) for name, value in apart.items()]
        return pd.DataFrame(rows, columns=["method", "variant", "seed", "source_id", "distance"])


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
    """Rows, columns, curves and grids of recovered images."""

    @pytest.fixture
    def recovery(self, tmp_path):
        cells = [tried(0, number(0.1), number(0.7)), tried(1, number(0.2), number(0.8)), CELLS[-1]]
        return tables.build(reference.load(written(tmp_path, RECOVERY)), results(cells, {}))

    def test_attempts_of_columns_and_rows_are_measured_and_a_missing_one_has_a_reason(self, recovery):
        """That of a column overrides that of a row; a control has the same images in every column."""
        values = [[entry.measured.value for entry in line.entries] for line in recovery.lines]
        assert values[0] == pytest.approx([0.9, 0.15])
        assert values[1] == pytest.approx([0.75, 0.15])
        assert values[3] == [1.0, 1.0]
        assert recovery.lines[2].entries[0].measured.reason == "ours has no attempt 'saved'"

    def test_csv_has_an_attempt_column_only_if_the_table_has_attempts(self, recovery, tmp_path):
        assert [record["attempt"] for record in parse_csv(recovery.csv())] == [
            "", "recovered", "wrong", "recovered", "saved", "recovered", "", "",
        ]  # fmt: skip
        plain = tables.build(reference.load(written(tmp_path, TABLE)), results())
        assert "attempt" not in plain.csv().splitlines()[0]

    @pytest.mark.parametrize(
        ("text", "attempts"),
        [
            (RECOVERY, [("celeba_hq", "ours", "eps_6")]),
            (TABLE, []),
            (GRID.replace("variant: default}", "variant: default, attempt: wrong, number: 1}"),
             [("celeba_hq", "other", "default")]),
            (CURVES.replace("metric: psr\n", "metric: psr\n        attempt: recovered\n"),
             [("celeba_hq", "ours", "eps_6")]),
        ],
        ids=["table", "none", "grid", "curves"],
    )  # fmt: skip
    def test_needed_attempts_are_listed(self, tmp_path, text, attempts):
        offered = [("ours", "eps_6"), ("ours", "plain")]
        assert reference.list_attempts(reference.load(written(tmp_path, text)), offered) == attempts

    def draw(self, tmp_path, images, columns):
        text = GRID.replace("closest_to_mean", "first").split("columns:")[0] + "\n".join(["columns:", *columns])
        figure, attempts, output = (
            reference.load(written(tmp_path, text)),
            self.archive(tmp_path),
            tmp_path / "grid.png",
        )
        grids.draw(figure, grids.GridArchives(*images, attempts=[attempts]), SKIPPED, CONTEXT, [output])
        return figure, attempts, np.asarray(Image.open(output).convert("L"))

    def test_grid_shows_the_difference_to_the_original_times_its_factor(self, tmp_path, images):
        column = "  - {title: right, method: ours, variant: eps_10, attempt: recovered, difference: %s}"
        shown = {
            factor: place_tile(self.draw(tmp_path, images, [column % factor])[2], 0, 1)[96, 96] for factor in (0.5, 2)
        }
        assert shown == {0.5: pytest.approx(0.5 * (255 - 50), abs=1), 2: 255}  # of f2: 50 in the place of 255

    def test_grid_shows_the_named_attempt_and_number(self, tmp_path, images):
        figure, attempts, pixels = self.draw(tmp_path, images, [
            "  - {title: right, method: ours, variant: eps_10, attempt: recovered}",
            "  - {title: second wrong, method: ours, variant: eps_10, attempt: wrong, number: 1}",
            "  - {title: pasted, method: ours, variant: eps_10, attempt: pasted}",
            "  - {title: Other, method: other, variant: default, attempt: wrong}",
        ])  # fmt: skip
        for column, shade in enumerate((255, 50, 81)):  # images of f2: f0 has no attempt
            assert (place_tile(pixels, 0, column) == shade).all()
        assert grids.select_faces(figure, images[0], None, [attempts]) == ["f2", "f4"]
        columns = grids.list_columns(figure, grids.group_by_variant(images[1]), {}, SKIPPED, CONTEXT)
        assert [column.reason for column in columns] == ["nothing was tried here"] * 3 + ["other is not built yet"]
        assert grids.load_attempt("f2", [attempts], figure.columns[2]) == "no attempt 'pasted' of this face"
        assert grids.load_attempt("f4", [attempts], figure.columns[0]) == "no face was found"

    @staticmethod
    def archive(folder):
        facts = {"method": "ours", "variant": "eps_10", "seed": 0}
        with ArchiveWriter(folder / "attempts.zip", facts) as writer:
            for name in ("f2", "f4"):
                for attempt, number, shade in (("recovered", 0, 50), ("wrong", 0, 80), ("wrong", 1, 81)):
                    row = {"id": f"{name}.{attempt}.{number}", "source_id": name, "identity": "p", "split": "test",
                           "attempt": attempt, "number": number}  # fmt: skip
                    if name == "f4":
                        writer.add(None, row | {"status": "refused", "reason": "no face was found"})
                    else:
                        writer.add(np.full((32, 32, 3), shade, np.uint8), row)
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
