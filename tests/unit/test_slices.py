"""Slices of the parameters as files, which DVC compares."""

import json
from types import SimpleNamespace

import pytest

from masquerade.core.errors import ParameterError
from masquerade.lineage import versioning
from masquerade.params import loading, slices
from masquerade.params.slices import Knobs

DECLARED = {"train.fit": ["methods.fit.params"], "tables": ["scale", "seeds"]}


@pytest.fixture(scope="module")
def parameters(root):
    return loading.load(root, "tiny")


def files(root) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root / slices.FOLDER).iterdir()}


def test_each_slice_has_one_file_with_the_text_that_its_job_gets(parameters, tmp_path):
    slices.write(parameters, DECLARED, tmp_path)
    assert files(tmp_path) == {
        "train.fit.json": slices.text_of(parameters, ["methods.fit.params"]) + "\n",
        "tables.json": '{"scale": "tiny", "seeds": [0]}\n',
    }


def test_equal_file_keeps_its_time_and_the_file_of_a_lost_slice_is_removed(parameters, tmp_path):
    slices.write(parameters, DECLARED | {"gone": ["scale"]}, tmp_path)
    file = tmp_path / slices.path_of("tables")
    before = file.stat().st_mtime_ns
    slices.write(parameters, DECLARED, tmp_path)
    assert file.stat().st_mtime_ns == before
    assert set(files(tmp_path)) == {"train.fit.json", "tables.json"}


def test_nothing_is_written_if_a_key_is_missing(parameters, tmp_path):
    slices.write(parameters, DECLARED, tmp_path)
    before = files(tmp_path)
    with pytest.raises(ParameterError, match=r"no 'methods.fit.nothing'"):
        slices.write(parameters, {"tables": ["scale"], "train.fit": ["methods.fit.nothing"]}, tmp_path)
    assert files(tmp_path) == before


def test_key_with_a_question_mark_may_be_missing(parameters):
    assert slices.text_of(parameters, ["methods.fit.ablations.none?"]) == "{}"


def test_slice_of_a_rehearsal_holds_its_mark(parameters):
    rehearsing = SimpleNamespace(rehearsal=True, slice=lambda keys: dict.fromkeys(keys, 1))
    assert json.loads(slices.text_of(rehearsing, ["a"])) == {"a": 1, "rehearsal": 1}


def job(rule: str, name: str, *keys: str) -> SimpleNamespace:
    knobs = Knobs(name, keys, lambda keys: "")
    params = SimpleNamespace(_allitems=lambda: [("cfg", knobs), ("split", "test"), ("state", lambda wildcards: "")])
    return SimpleNamespace(rule=SimpleNamespace(name=rule, params=params), wildcards={"method": "fit"})


def test_jobs_with_the_same_keys_share_a_slice():
    jobs = [job("anonymize", "{method}", "m.{method}", "b"), job("features", "{method}", "b", "m.{method}")]
    assert versioning.slices_of(jobs) == {"fit": ["b", "m.fit"]}


def test_one_name_for_two_slices_is_refused():
    with pytest.raises(versioning.SliceConflict, match="Rule features: another rule gives the name 'fit'"):
        versioning.slices_of([job("anonymize", "{method}", "b"), job("features", "{method}", "c")])
