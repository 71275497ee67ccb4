"""Code fingerprints: they change with all code that a step imports, and not with comments or layout."""

import textwrap

import pytest

from masquerade.core import fingerprints as lineage


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package: step imports a; a imports b inside a function; c is for type checkers; d is not imported."""
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
    monkeypatch.setattr(lineage, "PACKAGES", ("toy",))
    forget()
    yield tmp_path
    forget()


def forget():
    """Clears the caches, as in a new process."""
    for cached in (lineage._source, lineage._rules, lineage._imports, lineage._modules, lineage.recall):
        cached.cache_clear()
    lineage._parsed.clear()


def fingerprints(package):
    forget()
    output = package / "out" / "step.json"
    return lineage.write_fingerprints(output, [package / "step.py"], package).read_text()


def test_closure_follows_imports_and_nothing_else(package):
    assert {path.name for path in lineage.find_closure(package / "step.py")} == {
        "step.py",
        "__init__.py",
        "a.py",
        "b.py",
    }


def test_comments_docstrings_and_layout_do_not_change_fingerprints(package):
    before = fingerprints(package)
    (package / "toy" / "b.py").write_text(textwrap.dedent('''
        """Other words."""

        # a new comment
        ONE = (
            1
        )
    '''))  # fmt: skip
    assert fingerprints(package) == before


def test_change_of_an_indirect_import_changes_fingerprints(package):
    before = fingerprints(package)
    (package / "toy" / "b.py").write_text("ONE = 2")
    assert fingerprints(package) != before


def test_change_outside_the_closure_does_not_change_fingerprints(package):
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


def test_next_process_reuses_the_cached_imports(package, monkeypatch):
    before = fingerprints(package)
    monkeypatch.setattr(lineage, "_list_imports", None)  # a call would fail: the imports must come from the cache
    assert fingerprints(package) == before


def test_damaged_cache_is_ignored(package):
    before = fingerprints(package)
    (package / "out" / lineage.CACHE).write_text('{"half')
    assert fingerprints(package) == before


def test_closure_of_a_method_excludes_other_methods(root):
    methods = root / "src/masquerade/methods"
    names = {path.name for path in lineage.find_closure(methods / "gaussian_blur.py")}
    assert "gaussian_blur.py" in names
    assert "identitydp.py" not in names


def test_tracking_and_launcher_are_outside_the_closure_of_a_step(root):
    names = {path.name for path in lineage.find_closure(root / "workflow/scripts/train.py")}
    assert {"train.py", "program.py"} <= names
    assert not {"tracking.py", "publishing.py", "launch.py"} & names


def test_md5_equals_that_of_dvc(tmp_path):
    (tmp_path / "file").write_bytes(b"masquerade")
    assert lineage.md5(tmp_path / "file") == "980ff88b1adf961750ca413752af6f10"  # md5sum
