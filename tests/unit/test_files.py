"""Files are written completely or not at all."""

import pytest

from masquerade.core import files


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def _interrupted(path, unique, error):
    with files.write_atomically(path, unique) as temporary:
        temporary.write_text("half of the n")
        raise error


@pytest.mark.parametrize("unique", [False, True])
def test_the_file_appears_at_the_end_of_the_block(tmp_path, unique):
    path = tmp_path / "new" / "folder" / "file.txt"
    with files.write_atomically(path, unique) as temporary:
        temporary.write_text("content")
        assert not path.exists()
        assert temporary.parent == path.parent
        assert temporary.suffix == ".part"
    assert path.read_text() == "content"
    assert listing(path.parent) == ["file.txt"]


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, unique, error):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(error):
        _interrupted(path, unique, error)
    assert path.read_text() == "old"
    assert listing(tmp_path) == ["file.txt"]


def test_a_block_that_writes_nothing_is_an_error_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), files.write_atomically(path):
        pass
    assert path.read_text() == "old"


def test_temporary_file_of_a_killed_process_is_overwritten(tmp_path):
    (tmp_path / ".file.txt.part").write_text("left behind, and longer")
    files.write_text(tmp_path / "file.txt", "new")
    assert (tmp_path / "file.txt").read_text() == "new"
    assert listing(tmp_path) == ["file.txt"]


def test_two_unique_temporary_files_of_one_path_differ(tmp_path):
    path = tmp_path / "file.txt"
    with files.write_atomically(path, unique=True) as first, files.write_atomically(path, unique=True) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"  # its block ended last


def test_a_file_that_already_holds_the_text_keeps_its_time(tmp_path):
    path = tmp_path / "file.txt"
    files.write_if_changed(path, "text")
    before = path.stat()
    assert files.write_if_changed(path, "text") == path
    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    files.write_if_changed(path, "other")
    assert path.read_text() == "other"
