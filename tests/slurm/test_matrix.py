"""`snakemake --profile slurm all` on a real SLURM: every rule and every method of the whole matrix."""

import json
import re
import sqlite3

import pytest
import yaml
from building import LOG, rules_of

pytestmark = [pytest.mark.slow, pytest.mark.slurm]


def launched(repository) -> list[str]:
    """The rules of the finished jobs that go through submitit."""
    submitit = yaml.safe_load((repository.path / "slurm/config.yaml").read_text())["set-resources"]
    return [rule for rule in rules_of(repository.build_output) if rule in submitit]


def test_every_rule_and_every_method_of_the_whole_matrix_is_built(built_once, fresh):
    planned = re.findall(r"^(\w+) +\d+$", fresh.snakemake("--dry-run", "all"), re.MULTILINE)
    assert {*rules_of(built_once.build_output), "all", "total"} == {*planned}
    methods, whole = (
        {cell["method"] for cell in json.loads(repository.run("masquerade", "matrix", "--json"))}
        for repository in (built_once, fresh)
    )
    assert methods == whole


def test_matrix_is_built_by_the_literal_command(built_once, cluster):
    assert built_once.out_of_date() == set()
    submitted = cluster.jobs_of(built_once.path)
    assert {job["State"] for job in submitted} == {"COMPLETED"}
    assert len(submitted) < len(built_once.all_jobs()) * 2 / 3, "short jobs are submitted in groups"


def test_only_trainings_and_networks_have_a_gpu(built_once, cluster):
    mine = cluster.jobs_of(built_once.path)
    submitted = [job for job in mine if job["JobName"].startswith("masquerade ")]
    assert {job["ReqTRES"].count("gres/gpu=1") for job in submitted} == {1}
    assert {job["ReqTRES"].count("gpu") for job in mine if job not in submitted} == {0}


def test_every_run_has_its_slurm_job_and_submitted_ones_their_log(built_once, cluster):
    store = sqlite3.connect(built_once.path / "mlflow.db")
    tagged = {value for (value,) in store.execute("SELECT value FROM tags WHERE key = 'slurm.job_id'")}
    untagged = store.execute(
        "SELECT name FROM runs WHERE name NOT LIKE 'build %' AND run_uuid NOT IN "
        "(SELECT run_uuid FROM tags WHERE key = 'slurm.job_id')"
    ).fetchall()
    assert untagged == []
    assert tagged == {job["JobIDRaw"] for job in cluster.jobs_of(built_once.path)}
    submitted_logs = list((built_once.path / "mlruns").rglob("*_log.err"))
    assert len(submitted_logs) == len(launched(built_once))


def test_cells_of_a_method_share_a_submission(built_once, cluster):
    names = [job["JobName"] for job in cluster.jobs_of(built_once.path) if job["JobName"].startswith("masquerade ")]
    assert len(names) < len(launched(built_once))
    assert names.count("masquerade inference identitydp") < launched(built_once).count("anonymize_neural")


def test_jobs_of_a_group_share_one_import(built_once):
    obfuscation = built_once.path / "logs/tiny/benchmarks/anonymize/synthetic_hq/blackout/control/0.tsv"
    header, values = obfuscation.read_text().splitlines()  # its group is large enough for a fork server
    assert dict(zip(header.split("\t"), values.split("\t"), strict=True))["max_uss"] == "-"  # was forked


def test_log_of_a_training_is_that_of_its_rule(built_once):
    log = (built_once.path / LOG).read_text()
    assert "training identity is slurm job" in log
    assert "identity on unseen identities" in log
