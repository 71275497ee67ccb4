"""report.csv keeps every salt: after a spreadsheet saved it, and for pictures whose names were changed."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masquerade.core import files
from masquerade.core.errors import MasqueradeError, PictureError
from masquerade.faces.photographs.names import safe_id
from masquerade.pipeline import reports
from masquerade.pipeline.reports import Report, Written

COLUMNS = ("file", "output", "salt", "maker", "check", "reason")
cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=12)
names = st.text(st.sampled_from("abcdefxyz0123456789 _-.(é"), min_size=1, max_size=12)
tables = st.lists(st.tuples(*[cells] * len(COLUMNS)), min_size=1, max_size=5)


def saved(rows: list[dict[str, str]], columns: list[str], delimiter: str, encoding: str, first: str) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, delimiter=delimiter, extrasaction="ignore")
    writer.writeheader()
    writer.writerows({column: files.guard_formula(cell) for column, cell in row.items()} for row in rows)
    return (first + text.getvalue()).encode(encoding)


@given(
    tables, st.permutations(COLUMNS), st.sampled_from(",;\t"), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.booleans(),
)  # fmt: skip
def test_a_report_that_a_spreadsheet_saved_has_the_same_rows(
    tmp_path_factory, table, columns, delimiter, encoding, tells
):
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in table]
    path = tmp_path_factory.mktemp("report") / "report.csv"
    path.write_bytes(saved(rows, list(columns), delimiter, encoding, f"sep={delimiter}\r\n" if tells else ""))
    assert reports.read(path) == rows


@given(tables)
def test_what_is_written_is_read_again(tmp_path_factory, table):
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in table]
    path = tmp_path_factory.mktemp("report") / "report.csv"
    report = Report(path, COLUMNS)
    for row in rows:
        report.add([row])
    assert reports.read(path) == report.rows == rows


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "file,output,maker\na.jpg,a.png,m\n", "file output salt\n"])
def test_a_file_that_is_no_whole_report_is_an_error_because_its_salts_are_lost(tmp_path, text):
    (tmp_path / "report.csv").write_text(text)
    with pytest.raises(MasqueradeError, match="no columns 'file', 'output' and 'salt'"):
        reports.read(tmp_path / "report.csv")


def test_a_report_from_before_salts_is_read(tmp_path):
    assert reports.read(tmp_path / "report.csv") == []
    (tmp_path / "report.csv").write_text("file,output\na.jpg,a.png\n")
    assert reports.read(tmp_path / "report.csv") == [{"file": "a.jpg", "output": "a.png"}]


def test_a_report_on_a_full_disk_stays_as_it_was(tmp_path, monkeypatch):
    report = Report(tmp_path / "report.csv", COLUMNS)
    report.add([{"file": "a"}])
    before = report.path.read_bytes()
    with pytest.raises(UnicodeEncodeError):
        report.add([{"file": "b"}, {"file": "\ud800"}])
    assert report.path.read_bytes() == before
    assert len(report.rows) == 1


def written(*outputs: str) -> Written:
    return Written({"output": output, "salt": str(number)} for number, output in enumerate(outputs))


CHANGES = [
    *("{stem}.jpg", "{stem}.PNG", "{name}.jpg", "{stem} (1).png", "{stem}-2.jpeg", "Copy of {stem}.png"),
    *("sub/{name}", "IMG-2026-{stem}.webp", "{hyphens}.jpg", "{capitals}.JPG", "{stem}", "{digits}.jpg"),
    *("{stem}_small.png", "{stem}~edited.png"),
]


@given(st.lists(names, min_size=1, max_size=4, unique=True), st.sampled_from(CHANGES), st.integers(0, 12))
def test_a_picture_is_found_by_what_is_left_of_its_name(originals, change, count):
    ids = [safe_id(Path(f"{name}.jpg")) for name in originals]
    outputs = [f"{ids[0]}_{number}.png" for number in range(count)] or [f"{ids[0]}.png"]
    outputs += [f"{name}.png" for name in ids[1:]]
    rows = written(*outputs)
    for number, name in enumerate(outputs):
        stem = Path(name).stem
        left = {
            "stem": stem, "name": name, "hyphens": stem.replace("_", "-"), "capitals": stem.upper(),
            "digits": "_".join(stem.split("_")[-2 if number < count else -1 :]),
        }  # fmt: skip
        assert rows.row(change.format(**left))["salt"] == str(number), change


@pytest.mark.parametrize("file", ["holiday.jpg", "ann_3f2a9c1.png", "ann_3f2a9c1d0.png", "x3f2a9c1d.png", "ann.png"])
def test_a_picture_of_which_nothing_is_left_is_not_guessed(file):
    assert written("ann_3f2a9c1d.png", "bob_11111111_0.png").row(file) is None


def test_a_face_of_several_is_not_taken_for_another():
    rows = written(*[f"ann_3f2a9c1d_{number}.png" for number in (0, 1, 10)])
    assert rows.row("ann_3f2a9c1d_10.jpg")["salt"] == "2"
    assert rows.row("ann_3f2a9c1d_1_small.jpg")["salt"] == "1"
    assert rows.row("ann_3f2a9c1d_11.jpg") is None
    assert rows.row("ann_3f2a9c1d.jpg") is None


def test_a_name_that_fits_two_pictures_is_refused():
    rows = written("ann_3f2a9c1d.png", "bob_3f2a9c1d.png")
    assert rows.row("Ann_3f2a9c1d.jpg")["salt"] == "0"
    with pytest.raises(PictureError, match=r"it may be ann_3f2a9c1d\.png or bob_3f2a9c1d\.png"):
        rows.row("3f2a9c1d.jpg")
