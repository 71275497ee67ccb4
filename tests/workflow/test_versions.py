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
from repository import KEPT, Repository

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
    assert Records.read("tiny", built_once.path).makers.keys() == built_once.files(*KEPT).keys()
    assert built_once.git("status", "--porcelain") == ""


def test_repro_makes_only_what_a_change_affects_and_checkout_restores_the_old_bytes(built):
    assert "up to date" in built.run("dvc", "repro")
    before, runs = built.files(*KEPT), built.runs()
    built.edit_params(louder)
    expected = built.files_out_of_date()
    del built.environment[forked_job.ADDRESS]  # the build starts a server for its jobs, as from a terminal
    built.run(DVC, "repro")
    assert built.made_since(runs) == expected
    assert built.out_of_date() == set()
    assert "up to date" in built.run("dvc", "status")
    after = built.files(*KEPT)
    assert after != before
    built.commit("changed")
    for commit, files in (("HEAD~1", before), ("HEAD@{1}", after)):
        built.git("checkout", "--quiet", commit)
        built.run("dvc", "checkout")
        assert built.files(*KEPT) == files
        assert "Nothing to be done" in built.snakemake("all")
        assert "up to date" in built.run("dvc", "status")
        assert built.git("status", "--porcelain") == ""


def test_checkout_of_git_alone_leaves_exactly_the_changed_jobs_to_make(built):
    built.edit_params(louder)
    affected = built.files_out_of_date()
    built.snakemake("all")
    built.commit("changed")
    built.git("checkout", "--quiet", "HEAD~1")
    assert built.files_out_of_date() == affected
    built.run("dvc", "checkout")
    assert built.files_out_of_date() == set()


def test_experiment_reruns_its_jobs_and_appears_in_every_comparison(built):
    cell, runs = "synthetic_hq.gaussian_noise/sigma_9", built.runs()
    built.run(DVC, "exp", "run", "--name", "louder", "--set-param", f"{NOISE}=20")
    made = built.made_since(runs)
    assert {NOISY, "results/tiny/scores.json", "results/tiny/report/index.html"} < made
    assert not any(path.startswith("checkpoints/") or "gaussian_blur" in path for path in made)
    changed_params = json.loads(built.run("dvc", "params", "diff", "--json"))
    assert changed_params["records/tiny.yaml"] == {NOISE: {"old": 9.0, "new": 20.0, "diff": 11.0}}
    changed = json.loads(built.run("dvc", "metrics", "diff", "--json"))["results/tiny/scores.json"]
    assert all(name.startswith(f"{cell}.") for name in changed)
    assert changed[f"{cell}.psnr"]["new"] < changed[f"{cell}.psnr"]["old"]
    experiments = built.run("dvc", "exp", "show", "--csv", "--only-changed")
    assert "louder" in experiments
    assert f"{cell}.psnr" in experiments
    assert NOISE in experiments
    built.run("dvc", "plots", "diff", "--out", "compared")
    page = (built.path / "compared" / "index.html").read_text()
    pictures = [path for path in built.files("compared") if path.endswith("identitydp_figure7.png")]
    assert len(pictures) == 2
    assert all(path.rpartition("/")[2] in page for path in pictures)


def test_experiment_in_a_temporary_folder_makes_the_same_jobs_and_leaves_this_folder_alone(built):
    before, runs = built.files(*KEPT), built.runs()
    built.edit_params(louder)
    expected = built.files_out_of_date()
    built.git("checkout", "params.yaml")
    built.run(DVC, "exp", "run", "--temp", "--name", "elsewhere", "--set-param", f"{NOISE}=10")
    assert built.files(*KEPT) == before
    experiment = built.git("for-each-ref", "--format=%(objectname)", "refs/exps/**/elsewhere").strip()
    text = built.git("show", f"{experiment}:records/tiny.jsonl")
    recorded = {key: record.circumstances["run"] for key, record in Records.parse(text).jobs.items()}
    assert {key for key, run in recorded.items() if runs[key] != run} == expected


def test_experiment_with_a_knob_of_the_overlay_stops_with_the_right_command(built):
    knob, runs = "methods.identitydp.params.steps", built.runs()
    output = built.run("dvc", "exp", "run", "--set-param", f"{knob}=9", fails=True)
    assert f"'{knob}' was changed, but scales/tiny.yaml sets it at this scale" in output
    assert f"dvc exp run -S 'scales/tiny.yaml:{knob}=9'" in output
    assert built.made_since(runs) == set()


def test_repro_after_a_comment_reruns_no_job(built):
    path, runs = built.path / "src/masquerade/methods/gaussian_noise.py", built.runs()
    path.write_text(path.read_text() + "\n# a remark\n")
    built.run("dvc", "repro")
    assert built.made_since(runs) == set()


def test_a_forged_file_is_made_again_here_and_by_those_who_pulled_it(built, tmp_path):
    path = built.path / NOISY
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"0.", b"1.", 1))
    built.run("dvc", "commit", "--force")
    share(built)
    clone = built.clone(tmp_path / "clone")
    for repository in (built, clone):
        assert NOISY in repository.files_out_of_date()
        assert "not recorded" in repository.run("python", "workflow/scripts/finish.py", "record", fails=True)
        repository.snakemake("all")
        assert (repository.path / NOISY).read_bytes() == whole
        assert "up to date" in repository.run("dvc", "status")


def test_a_killed_build_leaves_nothing_that_a_push_sends_as_whole(built, tmp_path):
    before = built.files(*KEPT)
    share(built)
    built.edit_params(louder)
    built.commit("changed")
    log = tmp_path / "log"
    log.write_text("")
    process = programs.start(("dvc", "repro"), built.path, built.environment, log, log, session=True)
    while not list((built.path / ".snakemake/incomplete").iterdir()) and process.is_alive():
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    assert "not recorded" in built.run("python", "workflow/scripts/finish.py", "record", fails=True)
    assert "Everything is up to date" in built.run("dvc", "push")
    clone = built.clone(tmp_path / "clone")
    assert NOISY in clone.files_out_of_date()
    assert clone.files(*KEPT) == before
    built.snakemake("--unlock")
    built.run("dvc", "checkout", "--force")
    assert built.files_out_of_date() == clone.files_out_of_date()


def test_two_labs_merge_their_builds_and_only_what_both_touched_is_made_again(built, tmp_path):
    assert "`git merge` first" in built.run("masquerade", "records", "merge", fails=True)
    built.edit_params(lambda tree: None)  # so that each side changes one line of it
    share(built)
    other = built.clone(tmp_path / "other")
    other.edit_params(sharper)
    other.snakemake("all")
    share(other)
    built.edit_params(louder)
    built.snakemake("all")
    built.commit("louder")
    built.git("fetch", "--quiet", str(other.path), "main")
    with pytest.raises(AssertionError, match="CONFLICT"):
        built.git("merge", "--quiet", "FETCH_HEAD")
    assert "masquerade records merge" in built.snakemake("--dry-run", "all", fails=True)
    built.run("masquerade", "records", "merge")
    left = built.files_out_of_date()
    assert not {NOISY, BLURRED} & left
    assert "results/tiny/scores.json" in left
    assert not any(path.startswith(("data/", "checkpoints/")) for path in left)
    built.snakemake("all")
    built.commit("merged")
    assert "up to date" in built.run("dvc", "status")
    assert (built.path / BLURRED).read_bytes() == (other.path / BLURRED).read_bytes()


def test_an_unfinished_build_of_another_scale_is_shared_beside_the_first(built, tmp_path):
    (built.path / "scales/few.yaml").write_text("base: tiny\ndata_seed: 7\n")
    built.commit("few")
    archive = "data/few/faces/synthetic_wild.zip"
    built.edit("params.yaml", "scale: tiny", "scale: few")
    built.snakemake(archive)
    assert "out of date" in built.run("masquerade", "records", "save", fails=True)
    built.run("masquerade", "records", "save", "--partial")
    assert "changed command" in built.run("dvc", "status"), "`dvc repro` goes on"
    share(built)
    built.edit("params.yaml", "scale: few", "scale: tiny")
    share(built)
    clone = built.clone(tmp_path / "clone")
    assert "Nothing to be done" in clone.snakemake("all")
    clone.edit("params.yaml", "scale: tiny", "scale: few")
    clone.run("dvc", "pull")
    assert "Nothing to be done" in clone.snakemake(archive)
    clone.edit("params.yaml", "scale: few", "scale: tiny")
    clone.run("dvc", "checkout", "build@tiny")
    assert clone.files(*KEPT) == built.files(*KEPT)
    assert (clone.path / archive).is_file()
    assert "Nothing to be done" in clone.snakemake("all")


def test_files_of_a_removed_variant_are_listed_and_removed_on_request(built):
    overlay = "scales/tiny.yaml"
    built.edit_params(lambda tree: tree["matrix"]["evaluate"]["synthetic_hq"].remove("gaussian_blur/size_7"), overlay)
    built.edit_params(lambda tree: tree.update(papers=["falco"]))
    built.snakemake("all")
    strays = built.run("masquerade", "records", "clean").split()
    assert BLURRED in strays
    assert NOISY not in strays
    assert (built.path / BLURRED).is_file()
    built.run("masquerade", "records", "clean", "--delete")
    built.run("masquerade", "records", "save")
    assert BLURRED not in Records.read("tiny", built.path).makers
    assert "up to date" in built.run("dvc", "status")


KNOBS = [
    ("params.yaml", "data_seed", 7, True),
    ("params.yaml", BLUR, 9.0, True),
    ("scales/tiny.yaml", "methods.identitydp.params.steps", 3, True),
    ("params.yaml", "methods.identitydp.params.steps", 3, False),  # the overlay sets it
    ("params.yaml", "compute.light.minutes", 3, False),
]


@pytest.mark.parametrize(("file", "key", "value", "matters"), KNOBS)
def test_dvc_sees_every_change_of_a_knob_and_snakemake_those_that_matter(built, file, key, value, matters):
    built.edit_params(lambda tree: assign(tree, key.split("."), value), file)
    assert "modified" in built.run("dvc", "status")
    assert bool(built.out_of_date()) == matters


def assign(tree: dict, names: list[str], value) -> None:
    for name in names[:-1]:
        tree = tree[name]
    assert tree[names[-1]] != value, "the knob must change"
    tree[names[-1]] = value
