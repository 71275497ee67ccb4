"""DVC keeps the bytes of a build and git its records: what changes is made again, and what is kept fits together."""

import json
import os
import signal
import time
from contextlib import suppress

import pytest

import programs
from masquerade.lineage.records import Records
from masquerade.pipeline import forked_job
from repository import BUILT_FOLDERS, Repository

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

DVC = str(programs.BIN / "dvc")
"""DVC in a process of its own, as from a terminal."""
NOISE, BLUR = "methods.gaussian_noise.variants.sigma_9.sigma", "methods.gaussian_blur.variants.size_7.size"
NOISY, BLURRED = (f"results/tiny/metrics/synthetic_hq/{cell}/0.json" for cell in
                  ("gaussian_noise/sigma_9", "gaussian_blur/size_7"))  # fmt: skip


def louder(tree) -> None:
    tree["methods"]["gaussian_noise"]["variants"]["sigma_9"].update(sigma=10)


def sharper(tree) -> None:
    tree["methods"]["gaussian_blur"]["variants"]["size_7"].update(size=8)


def share(built: Repository) -> None:
    """Push the files of a build to a folder beside it."""
    built.run("dvc", "remote", "add", "--force", "--default", "lab", str(built.path.parent / "remote"))
    built.commit("shared")
    built.run("dvc", "push")


def test_finished_build_is_recorded_whole(built_once):
    assert "jobs recorded" in built_once.build_output
    assert "up to date" in built_once.run("dvc", "status")
    assert Records.read("tiny", built_once.path).makers.keys() == built_once.files(*BUILT_FOLDERS).keys()
    assert built_once.git("status", "--porcelain") == ""


def test_repro_makes_only_what_a_change_affects_and_checkout_restores_the_old_bytes(narrow):
    before, runs = narrow.files(*BUILT_FOLDERS), narrow.runs()
    source = narrow.path / "src/masquerade/methods/gaussian_noise.py"
    source.write_text(source.read_text() + "\n# a remark\n")
    narrow.run("dvc", "repro")
    assert narrow.made_since(runs) == set(), "a comment reruns no job"
    assert "up to date" in narrow.run("dvc", "repro")
    narrow.commit("a comment")
    narrow.edit_params(louder)
    expected = narrow.files_out_of_date()
    del narrow.environment[forked_job.ADDRESS]  # the build starts a server for its jobs, as from a terminal
    narrow.run(DVC, "repro")
    assert narrow.made_since(runs) == expected
    assert narrow.out_of_date() == set()
    after = narrow.files(*BUILT_FOLDERS)
    assert after != before
    narrow.commit("changed")
    for commit, files, affected in (("HEAD~1", before, expected), ("HEAD@{1}", after, set())):
        narrow.git("checkout", "--quiet", commit)
        if affected:
            assert narrow.files_out_of_date() == affected, "git alone leaves exactly the changed jobs to make"
        narrow.run("dvc", "checkout")
        assert narrow.files(*BUILT_FOLDERS) == files
        assert "Nothing to be done" in narrow.snakemake("all")
        assert "up to date" in narrow.run("dvc", "status")
        assert narrow.git("status", "--porcelain") == ""


def test_experiment_reruns_its_jobs_and_appears_in_every_comparison(narrow):
    cell, runs = "synthetic_hq.gaussian_noise/sigma_9", narrow.runs()
    narrow.run(DVC, "exp", "run", "--name", "louder", "--set-param", f"{NOISE}=20")
    made = narrow.made_since(runs)
    assert {NOISY, "results/tiny/scores.json", "results/tiny/report/index.html"} < made
    assert not any(path.startswith("checkpoints/") or "gaussian_blur" in path for path in made)
    changed_params = json.loads(narrow.run("dvc", "params", "diff", "--json"))
    assert changed_params["records/tiny.yaml"] == {NOISE: {"old": 9.0, "new": 20.0, "diff": 11.0}}
    changed = json.loads(narrow.run("dvc", "metrics", "diff", "--json"))["results/tiny/scores.json"]
    assert all(name.startswith(f"{cell}.") for name in changed)
    assert changed[f"{cell}.psnr"]["new"] < changed[f"{cell}.psnr"]["old"]
    experiments = narrow.run("dvc", "exp", "show", "--csv", "--only-changed")
    assert "louder" in experiments
    assert f"{cell}.psnr" in experiments
    assert NOISE in experiments
    narrow.run("dvc", "plots", "diff", "--out", "compared")
    page = (narrow.path / "compared" / "index.html").read_text()
    pictures = [path for path in narrow.files("compared") if path.endswith("identitydp_figure7.png")]
    assert len(pictures) == 2
    assert all(path.rpartition("/")[2] in page for path in pictures)


def test_experiment_in_a_temporary_folder_makes_the_same_jobs_and_leaves_this_folder_alone(narrow):
    before, runs = narrow.files(*BUILT_FOLDERS), narrow.runs()
    narrow.edit_params(louder)
    expected = narrow.files_out_of_date()
    narrow.git("checkout", "params.yaml")
    narrow.run(DVC, "exp", "run", "--temp", "--name", "elsewhere", "--set-param", f"{NOISE}=10")
    assert narrow.files(*BUILT_FOLDERS) == before
    experiment = narrow.git("for-each-ref", "--format=%(objectname)", "refs/exps/**/elsewhere").strip()
    text = narrow.git("show", f"{experiment}:records/tiny.jsonl")
    recorded = {key: record.circumstances["run"] for key, record in Records.parse(text).jobs.items()}
    assert {key for key, run in recorded.items() if runs[key] != run} == expected


def test_experiment_with_a_knob_of_the_overlay_stops_with_the_right_command(narrow):
    knob, runs = "methods.identitydp.params.steps", narrow.runs()
    output = narrow.run("dvc", "exp", "run", "--set-param", f"{knob}=9", fails=True)
    assert f"'{knob}' was changed, but scales/tiny.yaml sets it at this scale" in output
    assert f"dvc exp run -S 'scales/tiny.yaml:{knob}=9'" in output
    assert narrow.made_since(runs) == set()


def test_a_forged_file_is_made_again_here_and_by_those_who_pulled_it(narrow, tmp_path):
    path = narrow.path / NOISY
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"0.", b"1.", 1))
    narrow.run("dvc", "commit", "--force")
    share(narrow)
    clone = narrow.clone(tmp_path / "clone")
    for repository in (narrow, clone):
        assert NOISY in repository.files_out_of_date()
        assert "not recorded" in repository.run("python", "workflow/scripts/finish.py", "record", fails=True)
        repository.snakemake("all")
        assert (repository.path / NOISY).read_bytes() == whole
        assert "up to date" in repository.run("dvc", "status")


def test_a_killed_build_leaves_nothing_that_a_push_sends_as_whole(narrow, tmp_path):
    before = narrow.files(*BUILT_FOLDERS)
    share(narrow)
    narrow.edit_params(louder)
    narrow.commit("changed")
    log = tmp_path / "log"
    log.write_text("")
    process = programs.start(("dvc", "repro"), narrow.path, narrow.environment, log, log, session=True)
    while not list((narrow.path / ".snakemake/incomplete").iterdir()) and process.is_alive():
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    assert "not recorded" in narrow.run("python", "workflow/scripts/finish.py", "record", fails=True)
    assert "Everything is up to date" in narrow.run("dvc", "push")
    clone = narrow.clone(tmp_path / "clone")
    assert NOISY in clone.files_out_of_date()
    assert clone.files(*BUILT_FOLDERS) == before
    narrow.snakemake("--unlock")
    narrow.run("dvc", "checkout", "--force")
    assert narrow.files_out_of_date() == clone.files_out_of_date()


def test_two_labs_merge_their_builds_and_only_what_both_touched_is_made_again(narrow, tmp_path):
    assert "`git merge` first" in narrow.run("masquerade", "records", "merge", fails=True)
    narrow.edit_params(lambda tree: None)  # so that each side changes one line of it
    share(narrow)
    other = narrow.clone(tmp_path / "other")
    other.edit_params(sharper)
    other.snakemake("all")
    share(other)
    narrow.edit_params(louder)
    narrow.snakemake("all")
    narrow.commit("louder")
    narrow.git("fetch", "--quiet", str(other.path), "main")
    with pytest.raises(AssertionError, match="CONFLICT"):
        narrow.git("merge", "--quiet", "FETCH_HEAD")
    assert "masquerade records merge" in narrow.snakemake("--dry-run", "all", fails=True)
    narrow.run("masquerade", "records", "merge")
    left = narrow.files_out_of_date()
    assert not {NOISY, BLURRED} & left
    assert "results/tiny/scores.json" in left
    assert not any(path.startswith(("data/", "checkpoints/")) for path in left)
    narrow.snakemake("all")
    narrow.commit("merged")
    assert "up to date" in narrow.run("dvc", "status")
    assert (narrow.path / BLURRED).read_bytes() == (other.path / BLURRED).read_bytes()


def test_an_unfinished_build_of_another_scale_is_shared_beside_the_first(narrow, tmp_path):
    (narrow.path / "scales/few.yaml").write_text("base: tiny\ndata_seed: 7\n")
    narrow.commit("few")
    archive = "data/few/faces/synthetic_wild.zip"
    narrow.edit("params.yaml", "scale: tiny", "scale: few")
    narrow.snakemake(archive)
    assert "out of date" in narrow.run("masquerade", "records", "save", fails=True)
    narrow.run("masquerade", "records", "save", "--partial")
    assert "changed command" in narrow.run("dvc", "status"), "`dvc repro` goes on"
    share(narrow)
    narrow.edit("params.yaml", "scale: few", "scale: tiny")
    share(narrow)
    clone = narrow.clone(tmp_path / "clone")
    assert "Nothing to be done" in clone.snakemake("all")
    clone.edit("params.yaml", "scale: tiny", "scale: few")
    clone.run("dvc", "pull")
    assert "Nothing to be done" in clone.snakemake(archive)
    clone.edit("params.yaml", "scale: few", "scale: tiny")
    clone.run("dvc", "checkout", "build@tiny")
    assert clone.files(*BUILT_FOLDERS) == narrow.files(*BUILT_FOLDERS)
    assert (clone.path / archive).is_file()
    assert "Nothing to be done" in clone.snakemake("all")


def test_files_of_a_removed_variant_are_listed_and_removed_on_request(narrow):
    overlay = "scales/tiny.yaml"
    narrow.edit_params(lambda tree: tree["matrix"]["evaluate"]["synthetic_hq"].remove("gaussian_blur/size_7"), overlay)
    narrow.snakemake("all")
    strays = narrow.run("masquerade", "records", "clean").split()
    assert BLURRED in strays
    assert NOISY not in strays
    assert (narrow.path / BLURRED).is_file()
    narrow.run("masquerade", "records", "clean", "--delete")
    narrow.run("masquerade", "records", "save")
    assert BLURRED not in Records.read("tiny", narrow.path).makers
    assert "up to date" in narrow.run("dvc", "status")


CHANGES = [
    ("params.yaml", BLUR, 9.0, True),
    ("scales/tiny.yaml", "methods.identitydp.params.steps", 3, True),
    ("params.yaml", "methods.identitydp.params.steps", 3, False),  # the overlay sets it
    ("params.yaml", "compute.light.minutes", 3, False),
]


@pytest.mark.parametrize(("file", "key", "value", "matters"), CHANGES)
def test_dvc_sees_every_change_of_a_parameter_and_snakemake_those_that_matter(planned, file, key, value, matters):
    planned.edit_params(lambda tree: assign(tree, key.split("."), value), file)
    assert "modified" in planned.run("dvc", "status")
    assert bool(planned.out_of_date()) == matters


def assign(tree: dict, names: list[str], value) -> None:
    for name in names[:-1]:
        tree = tree[name]
    assert tree[names[-1]] != value, "the value must change"
    tree[names[-1]] = value
