"""A colleague's working copy after clone and pull: nothing to do, the same bytes, the same lineage."""

import logging
from collections.abc import Iterator

import pytest

from repository import BUILT_FOLDERS, Repository, follow

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
NUMBER = "identitydp/table1:identitydp/eps_6:psnr"


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3 server on this machine. It has a bucket `lab` and accepts the keys of `AWS`."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    keys = {"aws_access_key_id": AWS["AWS_ACCESS_KEY_ID"], "aws_secret_access_key": AWS["AWS_SECRET_ACCESS_KEY"]}
    boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys).create_bucket(Bucket="lab")
    yield address
    server.stop()


AWS = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="module")
def shared(narrow_once, tmp_path_factory) -> Repository:
    """A built working copy whose files were pushed to a folder."""
    repository = narrow_once.copy(tmp_path_factory.mktemp("shared") / "repository")
    repository.run("dvc", "remote", "add", "--default", "lab", str(repository.path.parent / "remote"))
    repository.commit("remote")
    assert "pushed" in repository.run("dvc", "push")
    return repository


@pytest.fixture(scope="module")
def clone(shared, tmp_path_factory) -> Repository:
    """The working copy of a colleague after ``git clone`` and ``dvc pull``."""
    return shared.clone(tmp_path_factory.mktemp("clone") / "repository")


def test_the_whole_chain_of_a_number_is_in_a_clone_without_any_pull(shared, tmp_path):
    shared.git("clone", "--quiet", str(shared.path), str(tmp_path / "clone"))
    unpulled = Repository(tmp_path / "clone", shared.environment)
    unpulled.run("dvc", "remote", "modify", "--local", "lab", "url", str(tmp_path / "nowhere"))
    for address in (NUMBER, "checkpoints/tiny/methods/fit/0.safetensors"):
        assert follow(unpulled, address)[1] == follow(shared, address)[1]
    assert not unpulled.files(*BUILT_FOLDERS)


def test_after_clone_and_pull_everything_is_traced_and_intact(shared, clone):
    assert "Every link holds" in clone.run("masquerade", "lineage", "verify")
    original, cloned = (follow(repository, NUMBER) for repository in (shared, clone))
    assert original == cloned
    output = clone.run("masquerade", "lineage", "show", NUMBER)
    assert "not in this MLflow store" in output
    assert not (clone.path / "mlflow.db").exists()


def test_clone_and_pull_have_nothing_to_do(shared, clone):
    assert "Nothing to be done" in clone.snakemake("all")
    assert "up to date" in clone.run("dvc", "status")
    assert "up to date" in clone.run("dvc", "repro")
    assert clone.files(*BUILT_FOLDERS) == shared.files(*BUILT_FOLDERS)
    assert clone.git("status", "--porcelain") == ""
    assert any(path.endswith("tables/identitydp/table1.md") for path in clone.files(*BUILT_FOLDERS))


def test_clone_with_changed_code_and_parameters_is_out_of_date(shared, tmp_path):
    shared.edit_params(lambda tree: tree["methods"]["gaussian_noise"]["variants"]["sigma_9"].update(sigma=10))
    shared.edit("src/masquerade/methods/k_same.py", "class KSame", "ADDED = 1\n\n\nclass KSame")
    shared.commit("changed")
    clone = shared.clone(tmp_path / "clone")
    out_of_date = clone.out_of_date()
    cells = {job for job in out_of_date if job.split("-")[0] in {"anonymize", "measure", "evaluate"}}
    assert {job.split("-", 1)[1] for job in cells} == {
        "synthetic_hq-gaussian_noise-sigma_9-0",
        "synthetic_hq-k_same-k_5-0",
    }
    shown = {"table", "claims_table", "grid", "scores", "report"}
    assert {job.split("-")[0] for job in out_of_date - cells} == shown
    assert out_of_date == shared.out_of_date()
    for path in clone.files(*BUILT_FOLDERS, ".snakemake/metadata"):
        (clone.path / path).touch()
    assert clone.out_of_date() == out_of_date
    assert "--touch is not for this workflow: it would record old bytes" in clone.snakemake(
        "--touch", "all", fails=True
    )
    assert clone.out_of_date() == out_of_date


def test_files_are_pushed_to_s3_and_pulled_from_it(narrow, s3, tmp_path):
    narrow.environment |= AWS
    narrow.run("dvc", "remote", "add", "--default", "lab", "s3://lab/masquerade")
    narrow.run("dvc", "remote", "modify", "lab", "endpointurl", s3)
    narrow.commit("remote")
    assert "pushed" in narrow.run("dvc", "push")
    narrow.git("clone", "--quiet", str(narrow.path), str(tmp_path / "clone"))
    clone = Repository(tmp_path / "clone", narrow.environment)
    clone.run("dvc", "pull", "results/tiny/tables/identitydp")
    pulled, pushed = clone.files(*BUILT_FOLDERS), narrow.files(*BUILT_FOLDERS)
    assert sorted(pulled) == sorted(path for path in pushed if path.startswith("results/tiny/tables/identitydp/"))
    assert {path: pushed[path] for path in pulled} == pulled
    output = clone.run("masquerade", "records", "save", "--partial", fails=True)
    assert "`dvc pull` first" in output, "what was not pulled is not forgotten"
