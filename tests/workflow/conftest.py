"""The real Snakefile and dvc.yaml at `tiny` scale: built once, then copied by each test."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from repository import Repository


@pytest.fixture(scope="session")
def built_once(fresh, once, tmp_path_factory) -> Repository:
    """The whole tiny matrix, built from nothing and recorded by DVC. Built once; every test process gets a copy."""

    def build(folder: Path) -> None:
        repository = fresh.copy(folder / "repository")
        (folder / "output").write_text(repository.snakemake("all"))
        repository.commit("built")

    whole = once("whole", build)
    repository = Repository(whole / "repository").copy(tmp_path_factory.mktemp("built") / "repository")
    repository.build_output = (whole / "output").read_text()
    return repository


@pytest.fixture
def built(built_once, tmp_path) -> Repository:
    """A copy of the built working copy, which a test may change. Unlike in a clone, files keep their times."""
    return built_once.copy(tmp_path / "repository")


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


@pytest.fixture(params=["folder", "s3"])
def shared(request, built, tmp_path) -> Repository:
    """A built working copy whose files were pushed to a remote, once for each kind of remote."""
    if request.param == "folder":
        built.run("dvc", "remote", "add", "--default", "lab", str(tmp_path / "remote"))
    else:
        built.environment |= AWS
        built.run("dvc", "remote", "add", "--default", "lab", "s3://lab/masquerade")
        built.run("dvc", "remote", "modify", "lab", "endpointurl", request.getfixturevalue("s3"))
    built.commit("remote")
    assert "pushed" in built.run("dvc", "push")
    return built
