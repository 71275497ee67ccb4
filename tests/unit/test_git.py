"""Git is asked about the repository of a folder, and never about another one around it or in the environment."""

import subprocess
from pathlib import Path

import pytest

from masquerade.core import fingerprints
from masquerade.core.errors import ParameterError
from masquerade.lineage import history, versioning
from masquerade.lineage.history import LineageError
from masquerade.lineage.local_records import NotRecorded
from masquerade.params import repository
from masquerade.pipeline import checks


def repository_at(folder: Path) -> str:
    """Make a repository with one commit. Returns the commit."""
    folder.mkdir(parents=True)
    (folder / "params.yaml").write_text("scale: tiny\n")
    names = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for command in (["init", "--quiet"], ["add", "--all"], [*names, "commit", "--quiet", "--message", str(folder)]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True).stdout[
        :-1
    ]


@pytest.fixture
def recorded_commit():
    """The commit that a job in the current folder records."""
    fingerprints.describe_commit.cache_clear()
    yield fingerprints.describe_commit
    fingerprints.describe_commit.cache_clear()


@pytest.fixture
def copy(tmp_path, monkeypatch) -> Path:
    """The current folder: a copy of the files, without ``.git``, inside another repository."""
    repository_at(tmp_path / "outer")
    (tmp_path / "outer/copy").mkdir()
    monkeypatch.chdir(tmp_path / "outer/copy")
    return tmp_path / "outer/copy"


def test_a_copy_without_git_inside_another_repository_has_an_unknown_commit(copy, recorded_commit, monkeypatch):
    assert recorded_commit() == "unknown"
    monkeypatch.setattr(repository, "SOURCES", copy)
    assert repository.read_commit() == "unknown"


def test_a_copy_without_git_inside_another_repository_has_no_revisions_and_no_merge(copy):
    with pytest.raises(LineageError, match=r"copy has no \.git, so it has no revisions"):
        history.read_revision("HEAD", copy)
    assert history.explain_refusal(copy) == ""
    with pytest.raises(NotRecorded, match="no merge is under way"):
        versioning._find_sides()


def test_an_experiment_of_dvc_in_a_copy_without_git_is_refused_with_the_remedy(copy, monkeypatch):
    """DVC finds the repository around the copy, and would start from its commit."""
    (copy / "params.yaml").write_text("scale: tiny\n")
    monkeypatch.setenv(checks.BASELINE, fingerprints.run_git(copy.parent, "rev-parse", "HEAD").stdout.strip())
    with pytest.raises(ParameterError, match=r"Run `dvc exp run` in a clone of Masquerade, which has a \.git"):
        checks.check_experiment(copy)


def test_a_commit_is_that_of_the_folder_where_a_hook_of_git_names_another_repository(
    tmp_path, recorded_commit, monkeypatch
):
    commit, other = repository_at(tmp_path / "ours"), repository_at(tmp_path / "other")
    assert commit != other
    monkeypatch.chdir(tmp_path / "ours")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other/.git/index"))
    assert recorded_commit() == commit


def test_a_submodule_and_a_worktree_have_their_own_commit(tmp_path, recorded_commit, monkeypatch):
    """There ``.git`` is a file that names the place of the repository."""
    commit = repository_at(tmp_path / "ours")
    repository_at(tmp_path / "outer")
    inner = tmp_path / "outer/inner"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", inner], cwd=tmp_path / "ours", check=True)
    assert (inner / ".git").is_file()
    monkeypatch.chdir(inner)
    assert recorded_commit() == commit
    (inner / "params.yaml").write_text("scale: mini\n")
    assert fingerprints.run_git(inner, "status", "--porcelain").stdout == " M params.yaml\n"
