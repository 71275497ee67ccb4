"""The installed DVC has the internals that `dvc_internals` uses, and changed stages alone are committed."""

import inspect
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from masquerade.lineage import dvc_internals


def test_installed_dvc_is_the_version_that_the_module_is_written_for():
    assert version("dvc") == dvc_internals.VERSION, "check each function of dvc_internals.py"


def test_dvc_has_the_parts_that_are_used():
    from dvc.dvcfile import ProjectFile
    from dvc.output import OutputAlreadyTrackedError
    from dvc.repo import lock_repo
    from dvc.stage import Stage

    assert next(iter(inspect.signature(lock_repo).parameters)) == "repo"
    assert "update_pipeline" in inspect.signature(ProjectFile.dump_stages).parameters
    assert "one.out" in str(OutputAlreadyTrackedError("one.out"))
    for name in ("addressing", "changed", "commit", "save"):
        assert hasattr(Stage, name), name


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """Two stages of two files each, committed with Git but not with DVC."""
    from dulwich import porcelain
    from dvc.repo import Repo

    monkeypatch.chdir(tmp_path)
    porcelain.init(str(tmp_path))
    Repo.init(str(tmp_path)).close()
    stages = {name: {"cmd": f"make {name}", "deps": ["source"], "outs": [f"{name}.out"]} for name in ("one", "two")}
    Path("dvc.yaml").write_text(yaml.safe_dump({"stages": stages}))
    for name in ("source", "one.out", "two.out"):
        Path(name).write_text(name)
    porcelain.add(str(tmp_path), [str(tmp_path / "source")])
    return tmp_path


def test_stages_are_committed_as_by_dvc_itself(repository):
    from dvc.repo import Repo

    assert dvc_internals.commit_changed() == ["one", "two"]
    lock = Path("dvc.lock").read_bytes()
    with Repo() as repo:
        assert repo.status() == {}
        repo.commit(force=True, relink=False)
    assert Path("dvc.lock").read_bytes() == lock


def test_what_changed_is_committed_and_nothing_else(repository):
    from dvc.repo import Repo

    dvc_internals.commit_changed()
    assert dvc_internals.commit_changed() == []
    Path("two.out").write_text("changed")
    assert dvc_internals.commit_changed() == ["two"]
    Path("source").write_text("changed")
    assert dvc_internals.commit_changed() == ["one", "two"]
    edited = Path("dvc.yaml").read_text().replace("make one", "build one")
    Path("dvc.yaml").write_text(edited)
    assert dvc_internals.commit_changed() == ["one"]
    with Repo() as repo:
        assert repo.status() == {}


def test_a_file_that_the_cache_has_lost_is_committed_again(repository):
    dvc_internals.commit_changed()
    shutil.rmtree(".dvc/cache/files")
    assert dvc_internals.commit_changed() == ["one", "two"]
    assert len([path for path in Path(".dvc/cache/files").rglob("*") if path.is_file()]) == 2


def test_an_output_that_git_tracks_is_refused(repository):
    from dulwich import porcelain
    from dvc.exceptions import DvcException

    porcelain.add(str(repository), [str(repository / "one.out")])
    with pytest.raises(DvcException, match=r"one\.out"):
        dvc_internals.commit_changed()
