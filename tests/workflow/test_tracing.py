"""Every number is traced to raw data, every deviation from the records is reported, and changes have a cause."""

import csv
import hashlib
import json
import zipfile
from pathlib import Path

import pytest
import yaml

from masquerade.lineage.history import read_working_copy
from masquerade.lineage.snakemake_internals import record_path
from masquerade.lineage.verify import verify
from repository import follow

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

NOISY = "identitydp/table1:gaussian_noise/sigma_9:psnr"


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = path.read_bytes()
    path.chmod(0o644)
    middle = len(content) // 2
    path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


ADDRESSES = {
    "falco/table1:falco/m_0:fid": {"anonymize_neural", "invert", "fakes", "attributes"},
    "falco/table5:falco/m_0:bald": {"anonymize_train", "pseudo_labels", "attributes"},
    "identitydp/table1:identitydp/eps_6:psnr": {"method", "anonymize_neural"},
    "cao21/table4:cao21": {"method", "recover", "measure_recoveries"},
    "ifadit/table5:ifadit/without_div": {"ablation", "anonymize_neural"},
    "claims:falco:larger_margin_hides_less": {"anonymize_neural", "claims_table"},
    "identitydp/figure4": {"curves", "method"},
    "lreorg/figure7": {"method"},
    "backbones": {"backbones_table", "backbone"},
    "attackers/keys:cao21": {"table", "key_attacks", "method"},
    "checkpoints/tiny/methods/fit/0.safetensors": {"method", "backbone"},
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_kind_of_number_is_traced_to_raw_data(built_once, address):
    resolved, links = follow(built_once, address)
    assert ":" not in address or resolved.cells
    assert {"faces"} | ADDRESSES[address] <= {link.name for link in links}
    made_by = built_once.git("rev-parse", "HEAD~1").strip()  # the commit that was built; its records came after
    for link in links:
        assert bool(link.raw) == (not link.made_from), "only raw data is made from nothing"
        assert all(need > link.number for need in link.made_from)
        for path, recorded in link.files.items():
            kind, _, file_hash = recorded.partition(":")
            assert hashlib.new(kind, (built_once.path / path).read_bytes()).hexdigest() == file_hash, path
        if link.job:
            assert link.job.circumstances["commit"] == made_by
            assert len(link.job.code_sha256) == len(link.job.circumstances["environment"]["sha256"]) == 64
            assert link.job.circumstances["machine"]["cores"]
            assert link.job.circumstances["started"]
            assert link.job.circumstances["run"]
            assert link.job.params
    assert {link.raw for link in links} <= {"", "drawn by the code", "declared in the repository"}
    trained = [link.job for link in links if link.name == "method"]
    assert all(job.words["seed"] == "0" and f"methods.{job.words['method']}.params" in job.params for job in trained)
    face_jobs = [link.job for link in links if link.name == "faces"]
    assert all({"data_seed", f"datasets.{job.words['dataset']}"} <= job.params.keys() for job in face_jobs)


def test_number_depends_on_its_own_cell_and_no_other(built_once):
    _, links = follow(built_once, "falco/table1:falco/m_0:fid")
    assert {link.job.words["method"] for link in links if link.name == "anonymize_neural"} == {"falco"}
    _, whole = follow(built_once, "falco/table1")
    assert {"falco", "blackout"} <= {link.job.words["method"] for link in whole if link.name.startswith("anonymize")}


def test_chain_is_printed_and_written_as_json(built_once):
    address = "falco/table1:falco:fid"
    printed = built_once.run("masquerade", "lineage", "show", address)
    for text in (
        "printed 29.93",
        "results/tiny/metrics/synthetic_hq/falco/m_0/0.json",
        "MLflow run",
        "drawn by the code",
    ):
        assert text in printed
    plain = json.loads(built_once.run("masquerade", "lineage", "show", address, "--json"))
    assert all(len(link["mlflow_run"]) == 32 for link in plain["links"] if link["job"])
    (environment,) = plain["environments"].values()
    locked = dict(line.split("==") for line in (built_once.path / "requirements.lock").read_text().split())
    assert environment["packages"]["snakemake"] == locked["snakemake"]
    output = built_once.run("masquerade", "lineage", "show", "falco/tabel1", fails=True)
    assert "Did you mean 'falco/table1'?" in output
    assert "Traceback" not in output


KINDS = (
    "data/tiny/faces/synthetic_hq.zip", "data/tiny/faces/synthetic_wild.parquet",
    "checkpoints/tiny/backbones/identity.safetensors", "checkpoints/tiny/backbones/parsing.json",
    "data/tiny/fakes.safetensors", "data/tiny/latents/synthetic_hq.safetensors",
    "checkpoints/tiny/methods/riddle/0.safetensors", "checkpoints/tiny/ablations/ifadit/without_div/0.safetensors",
    "data/tiny/anonymized/synthetic_hq/falco/m_0/0.zip", "data/tiny/anonymized/synthetic_hq/falco/m_0/0.parquet",
    "data/tiny/anonymized_train/synthetic_hq/falco/m_0/0.zip", "data/tiny/recoveries/synthetic_hq/cao21/d_9/0.zip",
    "data/tiny/measurements/synthetic_hq/source.parquet", "data/tiny/measurements/synthetic_hq/k_same/k_5/0.parquet",
    "data/tiny/measurements_of_recoveries/synthetic_hq/cao21/d_9/0.parquet",
    "data/tiny/features/synthetic_hq/lreorg/default/0.parquet", "data/tiny/attributes/pseudo_labels.parquet",
    "data/tiny/attributes/synthetic_hq/falco/m_0/0.parquet", "results/tiny/attacks/synthetic_hq/cao21/d_9/0.json",
    "results/tiny/metrics/synthetic_hq/falco/m_0/0.json", "results/tiny/tables/identitydp/table1.csv",
    "results/tiny/tables/identitydp/table1.md", "results/tiny/tables/identitydp/table1.tex",
    "results/tiny/tables/claims.csv",
    "results/tiny/figures/identitydp/figure4.png", "results/tiny/figures/identitydp/figure4.svg",
    "reference/identitydp/table1.yaml",
)  # fmt: skip


def test_one_flipped_bit_is_found_in_every_kind_of_artifact(built):
    """Every file with a flipped bit is named, and no other."""
    assert verify(built.path).breaks == ()
    contents = {name: (built.path / name).read_bytes() for name in KINDS}
    for name in KINDS:
        flip(built.path / name)
    assert sorted(broken.path for broken in verify(built.path).breaks) == sorted(KINDS)
    for name, content in contents.items():
        (built.path / name).write_bytes(content)
    assert verify(built.path).breaks == ()


def test_altered_record_and_missing_file_are_found(narrow):
    table, checkpoint = "results/tiny/tables/identitydp/table2.md", "checkpoints/tiny/methods/fit/0.safetensors"
    path = narrow.path / record_path(checkpoint)
    path.write_text(path.read_text().replace('"rule": "method"', '"rule": "Method"'))
    (narrow.path / table).unlink()
    broken = {broken_link.path: broken_link.what for broken_link in verify(narrow.path).breaks}
    assert broken.keys() == {table, record_path(checkpoint)}
    assert "missing" in broken[table]


def test_hand_edited_table_is_named(narrow):
    path = narrow.path / "results/tiny/tables/identitydp/table1.csv"
    rows = list(csv.DictReader(path.open()))
    value = next(row["measured"] for row in rows if row["measured"])
    path.write_text(path.read_text().replace(value, "0.999", 1))
    output = narrow.run("masquerade", "lineage", "verify", fails=True)
    assert "First broken link: results/tiny/tables/identitydp/table1.csv" in output
    assert "dvc checkout" in output
    narrow.run("dvc", "checkout", "--force", "results/tiny/tables/identitydp/table1.csv")
    assert "Every link holds" in narrow.run("masquerade", "lineage", "verify")


def test_checkpoint_of_other_parameters_is_found_even_with_correct_records(built):
    """The checkpoint has correct records and was committed, but it was trained with other parameters."""
    checkpoint, overlay = "checkpoints/tiny/methods/fit/0.safetensors", "scales/tiny.yaml"
    overlay_text = (built.path / overlay).read_text()
    steps = yaml.safe_load(overlay_text)["methods"]["fit"]["params"]["steps"]
    built.edit_params(lambda tree: tree["methods"]["fit"]["params"].update(steps=steps + 1), overlay)
    built.build(checkpoint)
    (built.path / overlay).write_text(overlay_text)
    built.run("masquerade", "records", "save", "--partial")
    first = verify(built.path).breaks[0]
    assert first.path == checkpoint
    assert f"methods.fit.params.steps: {steps + 1} -> {steps}" in first.what
    assert any("/tables/" in path for path in first.rests)


def test_edited_code_is_found_and_a_comment_is_not(planned):
    source = "src/masquerade/methods/gaussian_blur.py"
    path = planned.path / source
    code = path.read_text()
    path.write_text(code + "\n# a remark\n")
    assert verify(planned.path).breaks == ()
    path.write_text(code + "\nREMARK = 1\n")
    breaks = verify(planned.path).breaks
    assert all(source in broken.what for broken in breaks)
    made_with_it = {broken.path for broken in breaks if "gaussian_blur" in broken.path}
    assert made_with_it
    assert {broken.path for broken in breaks} - made_with_it == {"results/tiny/report/index.html"}


def test_difference_names_the_parameter_and_then_the_code_that_changed(narrow):
    def diff(*more: str) -> dict:
        return json.loads(narrow.run("masquerade", "lineage", "diff", *more, "--cell", NOISY, "--json"))

    louder, doubled = "methods.gaussian_noise.variants.sigma_9.sigma", "src/masquerade/methods/gaussian_noise.py"
    table = "results/tiny/tables/identitydp/table1.csv"
    narrow.edit_params(lambda tree: tree["methods"]["gaussian_noise"]["variants"]["sigma_9"].update(sigma=30.0))
    narrow.build(table)
    narrow.run("masquerade", "records", "save", "--partial")
    narrow.commit("louder")
    narrow.edit(doubled, "region + sigma * noise", "region + 2 * sigma * noise")
    narrow.build(table)

    committed = diff("HEAD~1", "HEAD")
    assert [(cause["kind"], cause["what"], cause["effect"]) for cause in committed["causes"]] == [
        ("parameter", f"{louder}: 9.0 -> 30.0", True)
    ]
    ((title, before, after),) = committed["values"]
    assert "PSNR" in title
    assert float(before) > float(after)
    since = diff("HEAD")  # the working copy
    assert {(cause["kind"], cause["what"]) for cause in since["causes"]} == {("code", doubled)}
    assert {cause["job"] for cause in since["causes"]} == {
        "data/tiny/anonymized/synthetic_hq/gaussian_noise/sigma_9/0.zip"
    }
    both = narrow.run("masquerade", "lineage", "diff", "HEAD~1", "--cell", NOISY)
    assert louder in both
    assert doubled in both
    assert diff("HEAD", "HEAD")["causes"] == []

    other = narrow.run(
        "masquerade", "lineage", "diff", "HEAD~1", "--cell", "identitydp/table1:gaussian_blur/size_7:psnr"
    )
    assert "nothing behind it changed" in other


def test_difference_gives_advice_if_no_build_was_committed(built_once):
    output = built_once.run("masquerade", "lineage", "diff", "HEAD~1", "--cell", NOISY, fails=True)
    assert "records/tiny.jsonl is not in" in output
    assert "snakemake all" in output
    output = built_once.run("masquerade", "lineage", "diff", "nobody", "--cell", NOISY, fails=True)
    assert "no revision 'nobody'" in output


def test_run_is_exported_as_a_crate_that_holds_what_it_names(narrow):
    output = narrow.run("masquerade", "export", "run.zip")
    jobs = read_working_copy(narrow.path).jobs()
    assert f"{len(jobs)} jobs" in output
    with zipfile.ZipFile(narrow.path / "run.zip") as crate:
        graph = {item["@id"]: item for item in json.loads(crate.read("ro-crate-metadata.json"))["@graph"]}
        inside = set(crate.namelist())
        files = [item for item in graph.values() if "File" in item["@type"]]
        for item in files:
            assert item["license"]
            assert item["@id"] in inside
            kind, _, file_hash = item.get("identifier", "").partition(":")
            assert not file_hash or hashlib.new(kind, crate.read(item["@id"])).hexdigest() == file_hash
    assert {
        "CITATION.cff",
        "LICENSE",
        "Snakefile",
        "dvc.lock",
        "records/tiny.jsonl",
        "results/tiny/tables/identitydp/table1.md",
    } <= inside
    assert not any(name.startswith(("data/", "checkpoints/", ".masquerade/", ".snakemake/")) for name in inside)
    actions = [item for item in graph.values() if item["@type"] == "CreateAction"]
    assert len(actions) == len(jobs) + 1
