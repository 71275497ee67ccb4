"""Files appear whole or not at all; in CSV no text of a user is a formula, and each cell is read back as it was."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masquerade.core import files


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def _interrupted(path, unique, error):
    with files.write_atomically(path, unique) as temporary:
        temporary.write_text("half of the n")
        raise error


@pytest.mark.parametrize("unique", [False, True])
def test_the_file_appears_at_the_end_of_the_block(tmp_path, unique):
    path = tmp_path / "new" / "folder" / "file.txt"
    with files.write_atomically(path, unique) as temporary:
        temporary.write_text("content")
        assert not path.exists()
        assert temporary.parent == path.parent
        assert temporary.suffix == ".part"
    assert path.read_text() == "content"
    assert listing(path.parent) == ["file.txt"]


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, unique, error):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(error):
        _interrupted(path, unique, error)
    assert path.read_text() == "old"
    assert listing(tmp_path) == ["file.txt"]


def test_temporary_file_of_a_killed_process_is_overwritten(tmp_path):
    (tmp_path / ".file.txt.part").write_text("left behind, and longer")
    files.write_text(tmp_path / "file.txt", "new")
    assert (tmp_path / "file.txt").read_text() == "new"
    assert listing(tmp_path) == ["file.txt"]


def test_two_unique_temporary_files_of_one_path_differ(tmp_path):
    path = tmp_path / "file.txt"
    with files.write_atomically(path, unique=True) as first, files.write_atomically(path, unique=True) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"  # its block ended last


def test_a_file_that_already_holds_the_text_keeps_its_time(tmp_path):
    path = tmp_path / "file.txt"
    files.write_if_changed(path, "text")
    before = path.stat()
    assert files.write_if_changed(path, "text") == path
    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    files.write_if_changed(path, "other")
    assert path.read_text() == "other"


SIGNS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20'"
ends = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
cells = st.tuples(st.text(SIGNS, max_size=3), ends).map("".join)


@given(st.lists(cells, min_size=1, max_size=4))
def test_each_cell_is_read_back_as_it_was(texts):
    rows = [{"a": text, "b": 1.5} for text in texts]
    assert files.parse_csv(files.format_csv(("a", "b"), rows)) == [{"a": text, "b": "1.5"} for text in texts]


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", "-"])
def test_no_text_begins_as_a_formula_does(text):
    ((cell,),) = csv.reader(io.StringIO(files.format_csv(("a",), [{"a": text}], header=False), newline=""))
    assert cell == f"'{text}"


@pytest.mark.parametrize("number", [-1.5, 2, "-0.25", "+3", "1e-5", ".5"])
def test_a_number_stays_one(number):
    assert files.parse_csv(files.format_csv(("a",), [{"a": number}])) == [{"a": str(number)}]


def test_a_spreadsheet_that_splits_at_semicolons_finds_no_formula_behind_one():
    ((file, *_), *_) = csv.reader(io.StringIO(files.format_csv(("a",), [{"a": "x;=1+1"}], header=False)), delimiter=";")
    assert file == "x;=1+1"
