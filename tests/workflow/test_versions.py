"""DVC and Snakemake agree on the graph and on what a change affects."""

import json

import pytest

import programs
from masquerade.lineage import stage_files
from masquerade.pipeline import forked_job
from repository import KEPT

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def test_committed_dvc_yaml_is_that_of_the_graph(root, fresh, tmp_path):
    repository = fresh.copy(tmp_path / "repository")
    repository.edit("params.yaml", "scale: tiny", "scale: mini")
    repository.run("python", "workflow/scripts/dvc_yaml.py")
    written, committed = (
        {path.relative_to(top): path.read_text() for path in stage_files.present("dvc.yaml", top)}
        for top in (repository.path, root)
    )
    assert written == committed, "run `make dvc.yaml`"


def test_finished_build_is_recorded_by_dvc(built_once):
    assert "stages recorded" in built_once.build_output
    assert "up to date" in built_once.run("dvc", "status")
    locked, declared = (stage_files.read(name, built_once.path) for name in ("dvc.lock", "dvc.yaml"))
    assert set(locked) == set(declared)


def stages_run(output: str) -> set[str]:
    """The stages that DVC ran, without the one that records the parameters."""
    lines = [line for line in output.splitlines() if line.startswith("Running stage")]
    return {line.split("'")[1].rpartition(":")[2] for line in lines} - {"params"}


DVC = str(programs.BIN / "dvc")
"""DVC in a process of its own, as from a terminal: it then makes everything in one build."""


def test_repro_runs_only_what_a_change_affects_in_one_build_and_checkout_restores_the_old_bytes(built):
    assert "up to date" in built.run("dvc", "repro")
    before = built.files(*KEPT)
    built.edit_params(lambda tree: tree["methods"]["gaussian_noise"]["variants"]["sigma_9"].update(sigma=10))
    expected = built.out_of_date()
    del built.environment[forked_job.GIVEN]  # DVC starts a server for its jobs, as from a terminal
    output = built.run(DVC, "repro")
    assert stages_run(output) == expected
    assert output.count("Building DAG of jobs") == 1
    assert built.out_of_date() == set()
    assert status(built) == set()
    assert built.files(*KEPT) != before
    built.commit("changed")
    built.git("checkout", "--quiet", "HEAD~1")
    built.run("dvc", "checkout")
    assert built.files(*KEPT) == before
    assert "Nothing to be done" in built.snakemake("all")
    assert status(built) == set()


def test_repro_of_a_target_makes_its_jobs_alone(built):
    built.edit_params(lambda tree: tree["methods"]["gaussian_noise"]["variants"]["sigma_9"].update(sigma=10))
    cell = "synthetic_hq-gaussian_noise-sigma_9-0"
    target = f"workflow/stages/measure/gaussian_noise/dvc.yaml:measure-{cell}"
    expected = built.out_of_date()
    assert stages_run(built.run(DVC, "repro", target)) == {f"anonymize-{cell}", f"measure-{cell}"}
    assert built.out_of_date() == expected - {f"anonymize-{cell}", f"measure-{cell}"}


def test_experiment_reruns_its_jobs_and_appears_in_every_comparison(built):
    knob, cell = "methods.gaussian_noise.variants.sigma_9.sigma", "synthetic_hq.gaussian_noise/sigma_9"
    output = built.run(DVC, "exp", "run", "--name", "louder", "--set-param", f"{knob}=20")
    assert stages_run(output) == {
        *(f"{step}-synthetic_hq-gaussian_noise-sigma_9-0" for step in ("anonymize", "measure", "metrics")),
        *("scores", "claims_table", "grid-identitydp-figure7", "table-identitydp-table1", "report"),
    }
    changed_params = json.loads(built.run("dvc", "params", "diff", "--json"))
    assert changed_params[".masquerade/params.yaml"] == {knob: {"old": 9.0, "new": 20.0, "diff": 11.0}}
    changed = json.loads(built.run("dvc", "metrics", "diff", "--json"))["results/tiny/scores.json"]
    assert all(name.startswith(f"{cell}.") for name in changed)
    assert changed[f"{cell}.psnr"]["new"] < changed[f"{cell}.psnr"]["old"]
    experiments = built.run("dvc", "exp", "show", "--csv", "--only-changed")
    assert "louder" in experiments
    assert f"{cell}.psnr" in experiments
    assert knob in experiments
    built.run("dvc", "plots", "diff", "--out", "compared")
    page = (built.path / "compared" / "index.html").read_text()
    pictures = [path for path in built.files("compared") if "identitydp" in path and "figure7" in path]
    assert len(pictures) == 2
    assert all(path.rpartition("/")[2] in page for path in pictures)


def test_experiment_with_a_knob_of_the_overlay_stops_with_the_right_command(built):
    knob = "methods.identitydp.params.steps"
    output = built.run("dvc", "exp", "run", "--set-param", f"{knob}=9", fails=True)
    assert f"'{knob}' was changed, but scales/tiny.yaml sets it at this scale" in output
    assert f"dvc exp run -S 'scales/tiny.yaml:{knob}=9'" in output
    assert stages_run(output) == set()


def test_repro_after_a_comment_reruns_no_job(built):
    path = built.path / "src/masquerade/methods/gaussian_noise.py"
    path.write_text(path.read_text() + "\n# a remark\n")
    output = built.run("dvc", "repro")
    assert stages_run(output) == {"code"}


def status(repository) -> set[str]:
    """The stages that are out of date for `dvc status`."""
    found = json.loads(repository.run("dvc", "status", "--json").splitlines()[-1])
    return {name.rpartition(":")[2] for name in found}


def downstream(stages: dict, changed: set[str]) -> set[str]:
    """The changed stages, and every stage that depends on their outputs."""
    writer = {next(iter(out)): name for name, stage in stages.items() for out in stage["outs"]}
    reads = {name: {writer[path] for path in stage["deps"] if path in writer} for name, stage in stages.items()}
    while more := {name for name, needs in reads.items() if needs & changed} - changed:
        changed |= more
    return changed


KNOBS = [
    ("params.yaml", "data_seed", 7),
    ("params.yaml", "methods.gaussian_blur.variants.size_7.size", 8.0),
    ("params.yaml", "methods.k_same.variants.k_5.k", 4),
    ("params.yaml", "methods.identitydp.params.losses.identity", 4.0),
    ("scales/tiny.yaml", "methods.identitydp.params.steps", 3),
    ("params.yaml", "methods.identitydp.variants.eps_6.epsilon", 5.0),
    ("scales/tiny.yaml", "backbones.recogniser_a.recognition.steps", 3),
    ("scales/tiny.yaml", "measure.batch", 3),
    ("scales/tiny.yaml", "image.size", 48),
    ("params.yaml", "methods.identitydp.params.steps", 3),  # the overlay sets it
    ("params.yaml", "compute.light.minutes", 3),
]


def test_both_engines_find_the_same_jobs_for_every_kind_of_knob(built):
    """DVC finds the stage `params` out of date, and after it the stages of Snakemake's jobs."""
    stages = stage_files.read("dvc.yaml", built.path)
    write_parameters = stages["params"]["cmd"].partition(" #")[0].split()
    written = [path for path in built.files(".masquerade") if path.startswith(".masquerade/params")]
    kept, seen = {path: (built.path / path).read_bytes() for path in written}, set()
    for file, key, value in KNOBS:
        text = (built.path / file).read_text()
        built.edit_params(lambda tree, key=key, value=value: assign(tree, key.split("."), value), file)
        if file not in seen:
            assert status(built) == {"params"}, key
            seen.add(file)
        built.run(*write_parameters)
        assert downstream(stages, status(built) - {"params"}) == built.out_of_date(), key
        (built.path / file).write_text(text)
        for path, content in kept.items():
            (built.path / path).write_bytes(content)


def assign(tree: dict, names: list[str], value) -> None:
    for name in names[:-1]:
        tree = tree[name]
    assert tree[names[-1]] != value, "the knob must change"
    tree[names[-1]] = value
