"""CSV files: no text of a user is a formula in a spreadsheet, and each cell is read back as it was."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masquerade.core import files

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
