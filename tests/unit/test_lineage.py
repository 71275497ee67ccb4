"""Code closure: an edit that changes what a step does is seen, wherever it is; a comment is not."""

import textwrap

import pytest

from masquerade.core import fingerprints as lineage


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A little package: step -> a -> b (inside a function); c only for type checkers; d not at all."""
    files = {
        "__init__.py": "",
        "a.py": "import os\ndef work():\n    from toy import b\n    return b.ONE",
        "b.py": '"""About b."""\nONE = 1  # one\n',
        "c.py": "TWO = 2",
        "d.py": "THREE = 3",
    }
    for name, text in files.items():
        path = tmp_path / "toy" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    step = tmp_path / "step.py"
    step.write_text(
        "from typing import TYPE_CHECKING\nfrom toy.a import work\nif TYPE_CHECKING:\n    from toy import c\n"
    )
    monkeypatch.setattr(lineage, "SOURCE", tmp_path)
    monkeypatch.setattr(lineage, "PACKAGE", "toy")
    forget()
    yield tmp_path
    forget()


def forget():
    """As a new process would begin."""
    for cached in (lineage._source, lineage._rules, lineage._imports, lineage._modules, lineage._recall):
        cached.cache_clear()
    lineage._known.clear()


def fingerprints(package):
    forget()
    output = package / "out" / "step.json"
    return lineage.write_fingerprints(output, [package / "step.py"], package).read_text()


def test_closure_follows_imports_and_nothing_else(package):
    assert {path.name for path in lineage.closure(package / "step.py")} == {
        "step.py",
        "__init__.py",
        "a.py",
        "b.py",
    }


def test_comment_docstring_and_layout_do_not_count(package):
    before = fingerprints(package)
    (package / "toy" / "b.py").write_text(textwrap.dedent('''
        """Other words."""

        # a new comment
        ONE = (
            1
        )
    '''))  # fmt: skip
    assert fingerprints(package) == before


def test_change_of_a_deep_import_counts(package):
    before = fingerprints(package)
    (package / "toy" / "b.py").write_text("ONE = 2")
    assert fingerprints(package) != before


def test_change_elsewhere_does_not_count(package):
    before = fingerprints(package)
    (package / "toy" / "d.py").write_text("THREE = 4")
    (package / "toy" / "c.py").write_text("TWO = 4")
    assert fingerprints(package) == before


def test_unchanged_fingerprints_are_not_written_again(package):
    fingerprints(package)
    output = package / "out" / "step.json"
    written = output.stat().st_mtime_ns
    fingerprints(package)
    assert output.stat().st_mtime_ns == written


def test_what_was_learnt_of_files_serves_the_next_process(package, monkeypatch):
    before = fingerprints(package)
    monkeypatch.setattr(lineage, "_imported", None)  # no syntax tree can be looked at any more
    assert fingerprints(package) == before


def test_broken_memory_of_files_is_no_error(package):
    before = fingerprints(package)
    (package / "out" / lineage.CACHE).write_text('{"half')
    assert fingerprints(package) == before


def test_closure_of_a_method_does_not_hold_another_one(root):
    methods = root / "src/masquerade/methods"
    names = {path.name for path in lineage.closure(methods / "gaussian_blur.py")}
    assert "gaussian_blur.py" in names
    assert "identitydp.py" not in names


def test_recorder_and_launcher_are_no_part_of_any_step(root):
    names = {path.name for path in lineage.closure(root / "workflow/scripts/train.py")}
    assert {"train.py", "program.py"} <= names
    assert not {"tracking.py", "publishing.py", "launch.py"} & names


def test_md5_is_that_of_dvc(tmp_path):
    (tmp_path / "file").write_bytes(b"masquerade")
    assert lineage.md5(tmp_path / "file") == "980ff88b1adf961750ca413752af6f10"  # md5sum
