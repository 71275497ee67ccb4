"""Anonymized images come back changed, or from an older version: the right face, or a refusal. Reports keep salts."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from command_line import anonymize_from_seed as anonymize
from command_line import folder_with_portrait, make_original_keyed, recover, report, repository
from masquerade.core.errors import MasqueradeError
from masquerade.pipeline import image_texts
from masquerade.pipeline.outputs import Report, read_report

PHRASE = "cafe\u0301 au lait, twice a day"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture(autouse=True)
def keyed(monkeypatch):
    make_original_keyed(monkeypatch)


@pytest.fixture
def key(tmp_path) -> tuple[str, Path]:
    (tmp_path / "key").write_text(PHRASE, encoding="utf-8")
    return "--key-file", tmp_path / "key"


@pytest.fixture
def pictures(tmp_path) -> Path:
    return folder_with_portrait(tmp_path, "one.jpg")


@pytest.fixture
def hidden(root, pictures, tmp_path, key) -> Path:
    assert anonymize(root, pictures, tmp_path / "hidden", *key, method="original") == 0
    return tmp_path / "hidden"


def stripped(hidden: Path, name: str, **options) -> None:
    """Replace the anonymized image by one without its texts, under another name."""
    (row,) = report(hidden).values()
    with Image.open(hidden / row["output"]) as picture:
        pixels = Image.fromarray(np.asarray(picture))
    (hidden / row["output"]).unlink()
    pixels.save(hidden / name.format(stem=Path(row["output"]).stem), **options)


def test_a_jpeg_has_the_salt_of_its_row_and_a_picture_without_a_row_is_refused(root, hidden, tmp_path, key):
    stripped(hidden, "{stem}.jpg", quality=95)
    Image.new("RGB", (64, 64), "gray").save(hidden / "holiday.png")
    assert recover(root, hidden, tmp_path / "back", *key) == 3
    rows = report(tmp_path / "back")
    assert rows.pop("holiday.png")["reason"].startswith("its salt is not known")
    (row,) = rows.values()
    assert (row["status"], row["salted"]) == ("ok", "yes")


@pytest.mark.parametrize("form", [
    "caf\u00e9 au lait, twice a day".encode(), (PHRASE + " \r\n").encode("utf-8-sig"), PHRASE.encode("utf-16"),
])  # fmt: skip
def test_the_same_pass_phrase_from_another_system_opens_a_picture(root, hidden, tmp_path, key, form):
    key[1].write_bytes(form)
    assert recover(root, hidden, tmp_path / "back", *key) == 0


def test_a_result_of_a_version_without_normal_form_and_check_still_opens(
    root, pictures, hidden, tmp_path, key, monkeypatch
):
    from masquerade.core import keys

    with monkeypatch.context() as before:
        before.setattr(keys, "normalize", keys.strip_line_ends)
        assert anonymize(root, pictures, hidden, *key, "--no-key-check", "--overwrite", method="original") == 0
    (row,) = report(hidden).values()
    stripped(hidden, row["output"])
    with (hidden / "report.csv").open("w", encoding="utf-8", newline="") as file:
        columns = ["file", "output", "salt", image_texts.MAKER]
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerow(row)
    assert recover(root, hidden, tmp_path / "back", *key, "--originals", pictures) == 0
    (found,) = report(tmp_path / "back").values()
    assert (found["psnr"], found["salted"]) == ("inf", "yes")


def test_without_salts_the_key_alone_opens_every_picture(root, pictures, hidden, tmp_path, key):
    assert anonymize(root, pictures, hidden, *key, "--no-salt", "--overwrite", method="original") == 0
    assert recover(root, hidden, tmp_path / "by_png", *key) == 0
    stripped(hidden, "{stem}.png")
    assert recover(root, hidden, tmp_path / "by_report", *key) == 0
    (hidden / "report.csv").unlink()
    assert recover(root, hidden, tmp_path / "lost", *key) == 1
    assert recover(root, hidden, tmp_path / "insisting", *key, "--no-salt") == 0


COLUMNS = ("file", "output", "salt", "maker", "check", "reason")
cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=12)
tables = st.lists(st.tuples(*[cells] * len(COLUMNS)), min_size=1, max_size=5)


@given(tables)
def test_what_is_written_is_read_again(tmp_path_factory, table):
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in table]
    path = tmp_path_factory.mktemp("report") / "report.csv"
    report = Report(path, COLUMNS)
    for row in rows:
        report.add([row])
    assert read_report(path) == report.rows == rows


@pytest.mark.parametrize("text", ["", "file,output,maker\na.jpg,a.png,m\n"])
def test_a_file_that_is_no_whole_report_is_an_error_because_its_salts_are_lost(tmp_path, text):
    (tmp_path / "report.csv").write_text(text)
    with pytest.raises(MasqueradeError, match="no columns 'file', 'output' and 'salt'"):
        read_report(tmp_path / "report.csv")


def test_a_report_from_before_salts_is_read(tmp_path):
    assert read_report(tmp_path / "report.csv") == []
    (tmp_path / "report.csv").write_text("file,output\na.jpg,a.png\n")
    assert read_report(tmp_path / "report.csv") == [{"file": "a.jpg", "output": "a.png"}]
