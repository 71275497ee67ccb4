"""DVC and Snakemake agree: on what is in the graph, on what a change affects, and after a clone and a pull."""

import json

import pytest
import yaml

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def test_committed_dvc_yaml_is_that_of_the_graph(root, fresh, tmp_path):
    repository = fresh.copy(tmp_path / "repository")
    repository.edit("params.yaml", "scale: tiny", "scale: mini")
    repository.run("python", "workflow/scripts/dvc_yaml.py")
    written = (repository.path / "dvc.yaml").read_text()
    assert (root / "dvc.yaml").read_text() == written, "run `make dvc.yaml`"


def test_finished_build_is_recorded(built_once):
    assert "stages recorded" in built_once.build_output
    assert "up to date" in built_once.run("dvc", "status")
    locked = yaml.safe_load((built_once.path / "dvc.lock").read_text())["stages"]
    declared = yaml.safe_load((built_once.path / "dvc.yaml").read_text())["stages"]
    assert set(locked) == set(declared)


def test_clone_and_pull_have_nothing_to_do(built, tmp_path):
    built.run("dvc", "remote", "add", "--default", "lab", str(tmp_path / "remote"))
    built.commit("remote")
    built.run("dvc", "push")
    clone = type(built)(tmp_path / "clone")
    built.git("clone", "--quiet", str(built.path), str(clone.path))
    clone.run("dvc", "pull")
    assert "Nothing to be done" in clone.snakemake("all")
    assert "up to date" in clone.run("dvc", "status")
    table = "results/tiny/tables/identitydp/table1.md"
    assert (clone.path / table).read_bytes() == (built.path / table).read_bytes()


def test_clone_whose_parameters_differ_is_honestly_out_of_date(built, tmp_path):
    built.run("dvc", "remote", "add", "--default", "lab", str(tmp_path / "remote"))
    built.run("dvc", "push")
    built.edit_params(lambda tree: tree["methods"]["gaussian_noise"]["variants"]["sigma_9"].update(sigma=10))
    built.commit("changed")
    clone = type(built)(tmp_path / "clone")
    built.git("clone", "--quiet", str(built.path), str(clone.path))
    clone.run("dvc", "pull")
    found = clone.out_of_date()
    kinds = {"anonymize", "measure", "metrics", "table", "claims_table", "grid", "report"}
    assert {job.split("-")[0] for job in found} == kinds
    assert all("gaussian_noise" in job for job in found if job.split("-")[0] == "anonymize")


def test_repro_does_nothing_twice_and_only_what_a_change_affects(built):
    assert "up to date" in built.run("dvc", "repro")
    built.edit_params(lambda tree: tree["methods"]["gaussian_noise"]["variants"]["sigma_9"].update(sigma=10))
    expected = built.out_of_date()
    output = built.run("dvc", "repro")
    ran = {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")}
    assert ran == expected
    assert built.out_of_date() == set()
    assert "up to date" in built.run("dvc", "status")


def test_repro_after_a_comment_reruns_no_job(built):
    path = built.path / "src/masquerade/methods/gaussian_noise.py"
    path.write_text(path.read_text() + "\n# a remark\n")
    output = built.run("dvc", "repro")
    ran = {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")}
    assert ran == {"code"}


def downstream(stages: dict, changed: set[str]) -> set[str]:
    """The changed stages and all that depend on what they write."""
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
    ("params.yaml", "compute.minutes", 3),
]


def test_both_engines_find_the_same_jobs_for_every_kind_of_knob(built):
    """Change one knob after the other; Snakemake's jobs and DVC's stages that are out of date must be the same."""
    stages = yaml.safe_load((built.path / "dvc.yaml").read_text())["stages"]
    for file, key, value in KNOBS:
        kept = (built.path / file).read_text()
        built.edit_params(lambda tree, key=key, value=value: assign(tree, key.split("."), value), file)
        status = json.loads(built.run("dvc", "status", "--json").splitlines()[-1])
        assert downstream(stages, set(status)) == built.out_of_date(), key
        (built.path / file).write_text(kept)


def assign(tree: dict, names: list[str], value) -> None:
    for name in names[:-1]:
        tree = tree[name]
    assert tree[names[-1]] != value, "the knob must change"
    tree[names[-1]] = value
