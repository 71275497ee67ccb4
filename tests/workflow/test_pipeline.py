"""The graph builds from nothing, repeats no job, and rebuilds exactly what a change affects."""

import json
import os

import pytest

from masquerade.core.images import FaceArchive
from masquerade.pipeline import forked_job

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

CELL = {"anonymize", "anonymize_neural", "measure", "evaluate"}


def of_method(jobs: set[str], method: str) -> set[str]:
    """The anonymize, measure and metrics jobs of one method."""
    return {job for job in jobs if f"-{method}-" in job and job.split("-")[0] in CELL}


@pytest.fixture(scope="module")
def everything(plans_only) -> set[str]:
    """All jobs, of which those of tables are of one paper."""
    return plans_only.all_jobs()


def test_build_from_nothing_leaves_every_target(built_once):
    listed = json.loads(built_once.run("masquerade", "matrix", "--json"))
    assert all(cell["reason"] == "" for cell in listed)
    for cell in listed:
        place = f"{cell['dataset']}/{cell['method']}/{cell['variant']}/{cell['seed']}"
        metrics = json.loads((built_once.path / f"results/tiny/metrics/{place}.json").read_text())
        assert metrics["metrics"]["psnr"][""]["of"] == metrics["statement"]["faces"] > 0
    results = built_once.path / "results/tiny"
    for path in (built_once.path / "reference").glob("*/*.yaml"):
        item = f"{path.parent.name}/{path.stem}"
        shown = [*results.glob(f"tables/{item}.*"), *results.glob(f"figures/{item}.*")]
        shown += results.glob("leaderboard.*") if path.stem == "leaderboard" else []
        assert [file for file in shown if file.stat().st_size], item
    backbones = (results / "tables/backbones.md").read_text()
    assert all(f"`{name}`" in backbones for name in ("generator", "inversion", "semantics", "parsing", "landmarks"))
    assert "1,000,000 keys" in (results / "tables/attackers/keys.csv").read_text()
    claims = (results / "tables/claims.md").read_text()
    assert "numbers mean nothing" in claims
    assert "is not built yet" not in claims
    assert "numbers mean nothing" in (results / "tables/identitydp/table1.md").read_text()


def test_no_anonymized_picture_is_an_original(built_once):
    folder = built_once.path / "data/tiny"
    originals = FaceArchive(folder / "faces/synthetic_hq.zip").load("test")
    original_pixels = {picture.tobytes() for picture in originals.images}
    for archive in sorted((folder / "anonymized/synthetic_hq").rglob("*.zip")):
        if "original" not in archive.parts:
            faces = FaceArchive(archive).load()
            assert not any(picture.tobytes() in original_pixels for picture in faces.images), archive


def test_every_job_is_a_finished_run(built_once):
    program = (
        "from mlflow.tracking.client import MlflowClient as C\n"
        "c = C('sqlite:///mlflow.db')\n"
        "e = c.get_experiment_by_name('masquerade').experiment_id\n"
        "for r in c.search_runs([e], max_results=5000): print('RUN', r.info.status, r.info.run_name)"
    )
    lines = [line for line in built_once.run("python", "-c", program).splitlines() if line.startswith("RUN")]
    assert all(line.split()[1] == "FINISHED" for line in lines)
    names = " ".join(lines)
    for expected in ("backbone identity", "train ifadit without_div", "recover ifadit/full", "attack cao21/d_9",
                     "attack the keys of cao21/d_9", "invert synthetic_hq", "measure", "table identitydp"):  # fmt: skip
        assert expected in names


def tables(jobs: set[str]) -> set[str]:
    """The jobs that make tables, figures, scores and the report."""
    shows = {"table", "curves", "grid", "claims_table", "report", "scores"}
    return {job for job in jobs if job.split("-")[0] in shows}


def test_each_change_reruns_what_it_affects_and_nothing_else(planned, everything):
    """A variant, a training, an ablation, FALCO's margin (no code or fake is made again), and an edited module."""

    def change(tree: dict) -> None:
        methods = tree["methods"]
        methods["gaussian_blur"]["variants"]["size_7"].update(size=8)
        methods["identitydp"]["params"]["losses"].update(identity=4.0)
        methods["ifadit"]["ablations"]["without_div"].update(compensation=False)
        methods["falco"]["variants"]["m_0_9"].update(margin=0.8)

    planned.edit_params(change)
    source = "src/masquerade/methods/gaussian_noise.py"
    planned.edit(source, "class GaussianNoise", "ADDED = 1\n\n\nclass GaussianNoise")
    jobs = planned.out_of_date()
    cells = {
        "gaussian_blur": "-size_7-",
        "ifadit": "-without_div-",
        "falco": "-m_0_9-",
        "identitydp": "",
        "gaussian_noise": "",
    }
    expected = {job for method, variant in cells.items() for job in of_method(everything, method) if variant in job}
    assert len({job.split("-")[2] for job in expected}) == len(cells)
    trainings = {job for job in everything if job.startswith("method-identitydp")} | {"ablation-ifadit-without_div-0"}
    assert jobs - tables(jobs) == expected | trainings
    assert "table-identitydp-table1" in jobs


def test_times_comments_and_the_launcher_rerun_nothing(planned):
    for name in ("methods/gaussian_noise", "core/images", "judges/pixels", "training/loop"):
        path = planned.path / f"src/masquerade/{name}.py"
        path.write_text(path.read_text() + "\n# a remark\n")
    planned.edit_params(lambda tree: tree["compute"].update(launcher="local", requeues=7))
    for path in [*(planned.path / "src").rglob("*.py"), *(planned.path / "data").rglob("*.zip")]:
        path.touch()
    assert planned.out_of_date() == set()


def test_more_wrong_keys_rerun_recoveries_and_no_anonymization(planned, everything):
    planned.edit_params(lambda tree: tree["recovery"].update(wrong_keys=2), "scales/tiny.yaml")
    jobs = planned.out_of_date()
    tried = {job for job in everything if job.startswith(("recover-", "measure_recoveries-"))}
    assert tried
    assert jobs - tables(jobs) - tried == {
        job.replace("recover-", "evaluate-") for job in tried if job.startswith("recover-")
    }


def test_knob_of_one_metric_and_edit_of_another_rerun_metrics_alone(planned, everything):
    overlay = "scales/tiny.yaml"
    planned.edit_params(lambda tree: tree["metrics"]["protection_success_rate_at_far"].update(far=0.25), overlay)
    planned.edit("src/masquerade/metrics/image_quality.py", "class ", "ADDED = 1\n\n\nclass ")
    jobs = planned.out_of_date()
    assert jobs - tables(jobs) == {job for job in everything if job.startswith("evaluate-")}


def test_edited_generator_reruns_only_what_uses_the_generator(planned, everything):
    old = "class StyledConv"
    planned.edit("src/masquerade/networks/stylegan2.py", old, f"ADDED = 1\n\n\n{old}")
    jobs = planned.out_of_date()
    steps = {job.split("-")[0] for job in jobs}
    assert {"backbone", "fakes", "invert", "anonymize_neural", "attributes"} <= steps
    again = {job for job in jobs if job.startswith("backbone-")}
    assert again == {"backbone-generator", "backbone-inversion"}
    # its images are kept; the gallery of its evaluation is enlarged by faces of the generator
    assert {job.split("-")[0] for job in of_method(everything, "identitydp") & jobs} == {"evaluate"}


def test_a_deleted_or_damaged_file_and_what_depends_on_it_are_made_again(narrow):
    targets = "results/tiny/metrics/synthetic_hq/blackout/control/0.json", "data/tiny/faces/synthetic_wild.zip"
    deleted, damaged = (narrow.path / target for target in targets)
    whole = [path.read_bytes() for path in (deleted, damaged)]
    deleted.unlink()
    jobs = narrow.out_of_date()
    assert jobs - tables(jobs) == {"evaluate-synthetic_hq-blackout-control-0"}
    damaged.chmod(0o644)
    damaged.write_bytes(whole[1][:5000])
    narrow.build(*targets)
    assert [path.read_bytes() for path in (deleted, damaged)] == whole
    assert narrow.out_of_date() == set()


def test_jobs_take_their_packages_from_the_environment_and_not_from_pythonpath(narrow, tmp_path):
    """Environment modules of clusters put other versions there. What the environment lacks is still found there."""
    for name in ("PIL", "numpy", "extension_of_a_user"):
        (tmp_path / "module" / name).mkdir(parents=True)
        (tmp_path / "module" / name / "__init__.py").write_text(
            "raise ImportError('from PYTHONPATH')\n" * (name != "extension_of_a_user")
        )
    narrow.edit("workflow/scripts/curves.py", '"""\n', '"""\n\nimport extension_of_a_user\n')
    narrow.environment["PYTHONPATH"] = os.pathsep.join([str(narrow.path / "src"), str(tmp_path / "module")])
    del narrow.environment[forked_job.ADDRESS]  # a fork server has imported its packages already
    narrow.build("results/tiny/figures/identitydp/figure4.png")


@pytest.mark.parametrize(
    ("edit", "options", "error"),
    [
        (lambda tree: tree["image"].update(sise=64), (), "unknown parameter 'image.sise'. Did you mean 'size'?"),
        (lambda tree: None, ("--config", "sclae=mini"), "unknown parameter 'sclae'. Did you mean 'scale'?"),
    ],
)
def test_misspelled_parameter_stops_before_any_job(planned, edit, options, error):
    planned.edit_params(edit)
    output = planned.snakemake("all", *options, fails=True)
    assert error in output
    assert "Traceback" not in output


def test_training_through_submitit_gives_the_same_bytes(narrow):
    checkpoint = narrow.path / "checkpoints/tiny/methods/identitydp/0.safetensors"
    whole = checkpoint.read_bytes()
    checkpoint.unlink()
    narrow.edit_params(lambda tree: tree["compute"].update(launcher="local"))
    narrow.build(str(checkpoint.relative_to(narrow.path)))
    assert checkpoint.read_bytes() == whole
    assert list((narrow.path / "logs/tiny/submitit").glob("*.out"))


def test_poor_backbone_stops_the_run_with_its_figure(narrow):
    overlay = "scales/tiny.yaml"
    narrow.edit_params(lambda tree: tree["backbones"]["recognizer_a"]["recognition"].update(floor_auc=1.0), overlay)
    checkpoint = "checkpoints/tiny/backbones/recognizer_a.safetensors"
    output = narrow.build(checkpoint, fails=True)
    assert "backbone 'recognizer_a' is too poor to build on: auc is" in output
    assert not (narrow.path / checkpoint).exists()


def test_cluster_profile_can_be_planned(planned):
    output = planned.snakemake("--profile", "slurm", "--dry-run", "--forceall", "all")
    assert "checkpoints/tiny/methods/identitydp/0.safetensors" in output
