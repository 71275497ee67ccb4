"""report.csv keeps every salt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masquerade.core.errors import MasqueradeError
from masquerade.pipeline import reports
from masquerade.pipeline.reports import Report

COLUMNS = ("file", "output", "salt", "maker", "check", "reason")
cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=12)
names = st.text(st.sampled_from("abcdefxyz0123456789 _-.(é"), min_size=1, max_size=12)
tables = st.lists(st.tuples(*[cells] * len(COLUMNS)), min_size=1, max_size=5)


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
