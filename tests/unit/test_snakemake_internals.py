"""The installed Snakemake has the internals that `snakemake_internals` uses."""

import inspect
import os
from importlib.metadata import version
from types import SimpleNamespace

import pytest

from masquerade.lineage import snakemake_internals


def test_installed_snakemake_is_the_version_that_the_module_is_written_for():
    assert version("snakemake") == snakemake_internals.VERSION, "check each function of snakemake_internals.py"


def test_snakemake_has_the_parts_that_are_used():
    from snakemake.api import SnakemakeApi
    from snakemake.dag import DAG
    from snakemake.io import IOCache
    from snakemake.jobs import GroupJob
    from snakemake.scheduling.job_scheduler import JobScheduler
    from snakemake.workflow import Workflow

    assert callable(SnakemakeApi.workflow)

    assert hasattr(IOCache(10), "exists_local")
    assert "job_rate_limiter" in inspect.getsource(JobScheduler.__init__)
    assert list(inspect.signature(GroupJob.log_error).parameters)[:2] == ["self", "msg"]
    assert next(iter(inspect.signature(DAG.needrun_jobs).parameters)) == "self"
    for name in ("non_local_exec", "touch", "is_main_process"):
        assert hasattr(Workflow, name), name
    prepare = inspect.signature(Workflow._prepare_dag).parameters
    assert {"forceall", "ignore_incomplete", "lock_warn_only", "nolock"} <= set(prepare)
    assert callable(Workflow._build_dag)


def test_jobs_of_a_group_are_counted_on_the_command_line_of_its_snakemake():
    from snakemake_interface_executor_plugins.executors import real

    assert '"--target-jobs"' in inspect.getsource(real)
    words = ["snakemake", "--target-jobs", "metrics:seed=0", "measure:seed=0", "--allowed-rules", "metrics", "measure"]
    group, build = SimpleNamespace(is_main_process=False), SimpleNamespace(is_main_process=True)
    assert snakemake_internals.count_handed_jobs(group, words) == 2
    assert (
        snakemake_internals.count_handed_jobs(group, words[:1])
        == snakemake_internals.count_handed_jobs(build, words)
        == 0
    )


def test_benchmark_file_has_the_time_and_the_memory_of_the_job_itself(monkeypatch):
    from snakemake import benchmark, shell

    assert "with benchmarked(proc.pid, bench_record):" in inspect.getsource(shell)
    monkeypatch.setattr(benchmark, "benchmarked", benchmark.benchmarked)  # is put back after the test
    snakemake_internals.account_for_jobs({os.getpid(): {"cpu_time": 80.5, "max_rss": 512.0}}.get)
    record = benchmark.BenchmarkRecord()
    with benchmark.benchmarked(os.getpid(), record):
        pass
    record.running_time = 161.0
    columns = dict(zip(record.get_header(), record.to_tsv(False).split("\t"), strict=True))
    assert [columns[name] for name in ("max_rss", "max_uss", "mean_load", "cpu_time")] == [
        "512.00",
        "-",
        "50.00",
        "80.50",
    ]


@pytest.mark.parametrize("output", ["results/x.md", "data/" + "long/" * 90 + "file.parquet"])
def test_record_of_an_output_is_where_snakemake_keeps_it(tmp_path, monkeypatch, output):
    from snakemake.persistence import file

    monkeypatch.chdir(tmp_path)
    snakemake_internals.RECORDS.mkdir(parents=True)
    (store,) = [kind for _, kind in inspect.getmembers(file, inspect.isclass) if "_record_path" in vars(kind)]
    persistence = store.__new__(store)
    persistence._max_len = None
    path = snakemake_internals.record_path(output)
    assert path == persistence._record_path(str(snakemake_internals.RECORDS), output)
    mark = persistence._record_path(str(snakemake_internals.INCOMPLETE), output)
    assert mark == snakemake_internals.incomplete_path(output)
    record = tmp_path / path
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("{}")
    assert snakemake_internals.list_recorded_outputs(tmp_path) == {output}


def test_parameters_of_a_record_are_its_json_mapping():
    record = {
        "rule": "r", "shellcmd": None, "code": None, "input": ["b", "a"], "input_checksums": {"a": "sha256:12"},
        "params": ["'text'", "'{\"x.y\": 1}'"], "conda_env": None, "starttime": 1.0, "endtime": 2.0,
    }  # fmt: skip
    read = snakemake_internals.parse_output_record(record)
    assert read["params"] == {"x.y": 1}
    assert read["inputs"] == {"a": "12", "b": ""}
    assert read["command"] == read["template"] == read["declared_environment"] == read["code"] == ""
