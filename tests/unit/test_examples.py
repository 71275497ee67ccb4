"""Examples: those in docstrings of metrics and of calls from Python, the notebook, and a method that loads weights."""

import doctest
import hashlib
import importlib
import io
import json
from contextlib import redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch
from PIL import Image

from masquerade.core import discovery
from masquerade.core.errors import CheckpointError
from masquerade.methods import Resources

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK = EXAMPLES / "photographs.ipynb"
CALLS = ["masquerade", "masquerade.pipeline.photographs.anonymizer"]
METRICS = {discovery.load("metrics", name) for name in discovery.list_names("metrics")}
MODULES = [*CALLS, *sorted({metric.__module__ for metric in METRICS})]


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_module(module, root, monkeypatch):
    monkeypatch.chdir(root)
    failed, tried = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert not failed
    assert tried, f"{module} has no example"


@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_its_text_says(monkeypatch):
    monkeypatch.chdir(NOTEBOOK.parent)  # as Jupyter does
    names, printed = {}, io.StringIO()
    with redirect_stdout(printed):
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, NOTEBOOK.name, "exec"), names)
    text = printed.getvalue()
    assert "still recognized (distance 0." in text
    assert "wrong key" in text
    assert "[('one.jpg', 'ok', '0." in text
    assert names["whole"].image.size == names["photograph"].size
    assert isinstance(names["recovered"], Image.Image)
    assert names["result"].distance > names["result"].faces[0].threshold


def test_the_notebook_holds_no_results():
    """An image of a build would drift away from the code."""
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    nbformat.validate(nbformat.from_dict(content))
    assert [cell["id"] for cell in content["cells"] if cell.get("outputs") or cell.get("execution_count")] == []


def test_the_example_with_pretrained_weights_loads_its_file_and_no_other(tmp_path, monkeypatch):
    example = SourceFileLoader("pretrained_method", str(EXAMPLES / "pretrained_method.py")).load_module()
    monkeypatch.chdir(tmp_path)
    torch.save(example.build_network().state_dict(), "mine.pt")
    sha256 = hashlib.sha256(Path("mine.pt").read_bytes()).hexdigest()

    def build(sha256: str):
        cls = example.Pretrained
        return cls(cls.Params(weights="mine.pt", sha256=sha256), cls.Variant(), Resources())

    faces = np.random.default_rng(0).uniform(-1, 1, (10, 3, 32, 32)).astype(np.float32)
    images = build(sha256).anonymize(SimpleNamespace(images=faces), seed=0)
    assert images.shape == faces.shape
    assert np.abs(images).max() <= 1
    with pytest.raises(CheckpointError, match="is not the file of `sha256`"):
        build("0" * 64)
