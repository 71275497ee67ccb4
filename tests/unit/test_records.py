"""The records of a build as text in git, and their agreement with the bytes."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masquerade.lineage import local_records, provenance, records, snakemake_internals
from masquerade.lineage.local_records import NotRecorded
from masquerade.lineage.records import Record, Records
from masquerade.lineage.snakemake_internals import incomplete_path, record_path
from toy_lineage import CHECKPOINT, CSV, FACES, METRICS, PRINTED, TABLE, Toy

PAGE = TABLE.replace(".csv", ".md")
BUILT = (FACES, CHECKPOINT, METRICS, TABLE, PAGE)


@pytest.fixture
def clone(toy, tmp_path) -> Toy:
    """What ``git clone`` and ``dvc pull`` bring: the text and the files, and no record of Snakemake."""
    toy.git("clone", "--quiet", str(toy.root), str(tmp_path / "clone"))
    for name in BUILT:
        (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(toy.root / name, tmp_path / "clone" / name)
    twin = toy.copy(tmp_path / "unused")
    twin.root = tmp_path / "clone"
    return twin


def marked(toy: Toy) -> set[str]:
    return {name for name in BUILT if (toy.root / incomplete_path(name)).is_file()}


def snakemake_record(toy: Toy, path: str) -> dict:
    return json.loads((toy.root / record_path(path)).read_text())


def retrained(toy: Toy, keys=("scale",), content="other weights") -> None:
    toy.job("method", "train", [CHECKPOINT], [FACES], keys, content, "--method fit --seed 0")


names = st.text("abc/", min_size=1, max_size=6)
shared = st.dictionaries(st.sampled_from(["code", "environment", "conda_env", "rule"]), st.text("xy", max_size=2))
jobs = st.dictionaries(
    names, st.builds(Record, st.dictionaries(names, names, min_size=1, max_size=2), shared, shared), max_size=4
).map(lambda found: {record.key: record for record in found.values()})
closures = st.dictionaries(names, st.dictionaries(names, names, min_size=1, max_size=3), max_size=3)
builds = st.builds(Records, jobs, closures)


class TestText:
    @given(build=builds)
    def test_text_holds_everything_and_the_same_records_give_the_same_text(self, build):
        read = Records.parse(build.text())
        assert (read.jobs, read.closures) == (build.jobs, build.closures)
        assert read.text() == build.text()

    @given(base=builds, ours=builds)
    def test_merge_with_an_unchanged_side_is_the_other_side(self, base, ours):
        assert (
            records.merge_records(base, ours, base)
            == records.merge_records(base, base, ours)
            == records.merge_records(base, ours, ours)
        )
        assert records.merge_records(base, ours, base) == ours

    @given(base=builds, ours=builds, theirs=builds)
    def test_merge_takes_each_job_from_the_side_that_changed_it_and_ours_if_both_did(self, base, ours, theirs):
        merged = records.merge_records(base, ours, theirs).jobs
        for key in {*base.jobs, *ours.jobs, *theirs.jobs}:
            side = theirs if ours.jobs.get(key) == base.jobs.get(key) else ours
            assert merged.get(key) == side.jobs.get(key)

    def test_one_changed_job_changes_one_line(self, toy):
        before = (toy.root / records.text_path("tiny")).read_text().splitlines()
        retrained(toy)
        toy.record()
        after = (toy.root / records.text_path("tiny")).read_text().splitlines()
        assert len(before) == len(after)
        assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


class TestSettle:
    def test_a_clone_gets_every_record_from_the_text_and_then_has_nothing_to_settle(self, toy, clone):
        assert "5 files came with git and DVC" in local_records.sync_records("tiny", clone.root)
        for name in BUILT:
            assert snakemake_record(clone, name) == snakemake_record(toy, name)
        assert json.loads((clone.root / provenance.circumstances_path(TABLE)).read_text()) == json.loads(
            (toy.root / provenance.circumstances_path(TABLE)).read_text()
        )
        assert local_records.sync_records("tiny", clone.root) == ""
        assert marked(clone) == set()

    @pytest.mark.parametrize("name", BUILT)
    @pytest.mark.parametrize("content", ["forged", ""])
    def test_a_forged_or_truncated_file_is_marked_and_not_recorded(self, toy, name, content):
        toy.write(name, content)
        with pytest.raises(NotRecorded, match=name):
            local_records.write_records("tiny", toy.root)
        assert marked(toy) == {name}

    def test_old_bytes_do_not_get_the_record_of_new_ones(self, toy):
        """A knob was changed, the checkpoint trained anew, and DVC brings the old bytes back."""
        old = (toy.root / CHECKPOINT).read_bytes()
        retrained(toy)
        assert local_records.sync_records("tiny", toy.root) == ""
        (toy.root / CHECKPOINT).write_bytes(old)
        assert "1 files came with git and DVC" in local_records.sync_records("tiny", toy.root)
        assert "methods.fit.params" in str(snakemake_record(toy, CHECKPOINT)["params"])

    def test_back_and_forth_between_two_commits_each_file_has_the_record_of_its_bytes(self, toy):
        files = {"old": {name: (toy.root / name).read_bytes() for name in BUILT}}
        retrained(toy)
        toy.job("table", "table", [TABLE, PAGE], [METRICS, PRINTED], ("scale", "seeds"), CSV + "\n")
        toy.commit()
        files["new"] = {name: (toy.root / name).read_bytes() for name in BUILT}
        record = {"new": snakemake_record(toy, CHECKPOINT)}
        for side, commit in [("old", "HEAD~1"), ("new", "HEAD@{1}")] * 2:
            toy.git("checkout", "--quiet", commit)
            for name, content in files[side].items():
                if (toy.root / name).read_bytes() != content:
                    (toy.root / name).write_bytes(content)
            local_records.sync_records("tiny", toy.root)
            assert marked(toy) == set()
            assert (snakemake_record(toy, CHECKPOINT) == record["new"]) == (side == "new")
            assert local_records.sync_records("tiny", toy.root) == ""

    def test_a_job_of_which_one_file_changed_keeps_its_record_whole(self, toy):
        """Git goes back and DVC does not: the table is new, its page has the same bytes in both commits."""
        toy.job("table", "table", [TABLE, PAGE], [METRICS, PRINTED], ("seeds",), CSV)
        toy.write(TABLE, CSV + "\n")
        path = toy.root / provenance.circumstances_path(TABLE)
        path.write_text(path.read_text().replace(toy.hash(PAGE), toy.hash(TABLE), 1))
        new = snakemake_record(toy, TABLE)
        text = toy.root / records.text_path("tiny")
        text.write_text(text.read_text().replace('"run of faces"', '"another run"'))  # git brings another text
        local_records.sync_records("tiny", toy.root)
        assert snakemake_record(toy, TABLE) == snakemake_record(toy, PAGE) == new
        assert marked(toy) == set()

    def test_same_bytes_of_other_parameters_keep_their_new_record_until_git_brings_another_text(self, toy):
        retrained(toy, content="weights")
        local_records.sync_records("tiny", toy.root)
        assert "methods.fit.params" not in str(snakemake_record(toy, CHECKPOINT)["params"])
        text = toy.root / records.text_path("tiny")
        text.write_text(text.read_text().replace('"run of table"', '"another run of table"'))
        local_records.sync_records("tiny", toy.root)
        assert "methods.fit.params" in str(snakemake_record(toy, CHECKPOINT)["params"])

    def test_bytes_that_dvc_brought_back_after_a_killed_job_are_whole(self, toy):
        mark = toy.root / incomplete_path(CHECKPOINT)
        mark.parent.mkdir(parents=True)
        mark.write_text("{}")
        assert local_records.sync_records("tiny", toy.root) == ""
        assert marked(toy) == set()

    def test_unrecorded_file_of_an_interrupted_job_stays_marked(self, toy):
        retrained(toy)
        mark = toy.root / incomplete_path(CHECKPOINT)
        mark.parent.mkdir(parents=True)
        mark.write_text("{}")
        with pytest.raises(NotRecorded, match="interrupted"):
            local_records.write_records("tiny", toy.root)
        assert marked(toy) == {CHECKPOINT}

    def test_a_running_build_is_left_alone(self, toy):
        toy.write(CHECKPOINT, "half")
        toy.write((snakemake_internals.LOCKS / "0.input.lock").as_posix(), "")
        assert local_records.sync_records("tiny", toy.root) == ""
        assert marked(toy) == set()

    def test_deleted_records_come_back_from_the_text(self, toy):
        shutil.rmtree(toy.root / ".snakemake/metadata")
        assert "5 files" in local_records.sync_records("tiny", toy.root)
        assert local_records.sync_records("tiny", toy.root) == ""

    def test_temporary_file_of_a_killed_job_is_no_file_of_the_build(self, toy):
        toy.write(str(Path(CHECKPOINT).with_name(".0.safetensors.part")), "half")
        assert local_records.sync_records("tiny", toy.root) == ""
        assert local_records.write_records("tiny", toy.root) == 4


class TestKeep:
    def test_files_of_the_text_that_were_not_pulled_are_not_forgotten(self, clone):
        (clone.root / CHECKPOINT).unlink()
        with pytest.raises(NotRecorded, match="dvc pull"):
            local_records.write_records("tiny", clone.root, needed=BUILT)

    def test_job_that_the_graph_no_longer_has_is_forgotten_when_its_files_are_gone(self, toy):
        (toy.root / CHECKPOINT).unlink()
        assert local_records.write_records("tiny", toy.root, needed=set(BUILT) - {CHECKPOINT}) == 3

    def test_missing_file_of_a_job_with_several_is_refused(self, toy):
        (toy.root / PAGE).unlink()
        with pytest.raises(NotRecorded, match=PAGE):
            local_records.write_records("tiny", toy.root)

    def test_records_of_other_scales_stay(self, toy):
        other = toy.root / records.text_path("mini")
        other.write_text("")
        local_records.write_records("tiny", toy.root)
        assert other.read_text() == ""
