"""Methods with official weight files: strict loading of a file in the published layout, at the published size."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import kit
import official
from masquerade import assets
from masquerade.assets import lock
from masquerade.core import discovery, rehearsal
from masquerade.core.errors import CheckpointError
from masquerade.core.images import Faces
from masquerade.methods import Method, Resources
from masquerade.params import loading
from masquerade.training import checkpoints, pretrained

ROOT = Path(__file__).parents[2]
OTHER_SIZES = {
    "deepprivacy_default": {"widths": [64, 128, 256, 256, 256, 256]},
    "deepprivacy2_fdf128": {
        "generator": {"size": 128, "lowest": 8, "width": 128, "most": 4, "style": 512},
        "critic": [320, 320, 320, 320, 160, 80],
    },
}
"""Role -> the knobs in which its network differs from params.yaml."""
METHODS = {
    role: name for name in discovery.list_names("methods") for role in discovery.load("methods", name).official
}  # fmt: skip
BROKEN = {
    "deepprivacy_default": ("running_average_generator", "parameters"),
    "deepprivacy2_fdf128": ("EMA_generator",),
    "ciagan": (),
    "dartblur": (),
}
"""Role -> the keys that lead to its state dict."""


def state_of(content: dict, role: str) -> dict:
    for key in BROKEN[role]:
        content = content[key]
    return content


@pytest.fixture(autouse=True)
def rehearsing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(rehearsal.VARIABLE, "1")


def placed(role: str, content: dict) -> None:
    path = assets.path(role)
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)
    lock.record(role, path.name, assets.digest(path), path.stat().st_size, "placed", rehearsal=True)


def knobs(role: str):
    block = loading.load(ROOT, "paper").methods[METHODS[role]].params
    cls = discovery.load("methods", METHODS[role])
    return cls, cls.Params(**(block.model_dump(mode="json") | OTHER_SIZES.get(role, {})))


def faces(size: int) -> Faces:
    table = pd.DataFrame({"id": ["one"], "identity": ["a"], "landmarks": [kit.landmarks(size)[0].ravel().tolist()]})
    return Faces(np.full((1, 3, size, size), 0.25, np.float32), table)


def test_every_method_with_an_official_file_is_tested():
    assert set(METHODS) >= set(BROKEN)
    assert set(METHODS) <= set(official.FILES) & set(assets.registry())


@pytest.mark.parametrize("role", METHODS)
def test_file_in_the_published_layout_becomes_a_checkpoint_of_the_published_size(role, tmp_path):
    cls, params = knobs(role)
    placed(role, official.content(role))
    cls.convert_official(params, role, tmp_path / "network.safetensors")
    _, metadata = checkpoints.load_checkpoint(tmp_path / "network.safetensors")
    assert metadata[pretrained.PRETRAINED]["name"] == f"asset:{role}"
    variant = loading.load(ROOT, "paper").methods[METHODS[role]].variants["default"]
    backbones = dict.fromkeys(cls.needs, tmp_path / "unused")
    method: Method = cls(params, variant, Resources(checkpoint=tmp_path / "network.safetensors", backbones=backbones))
    size = 128 if role != "deepprivacy2_fdf256" else 256
    keys = [cls.capabilities.keys.experiment(0)] if cls.capabilities.keys else None
    result = method.anonymize(faces(size), 0, keys)
    assert result.shape == (1, 3, size, size)
    assert np.isfinite(result).all()


@pytest.mark.parametrize("role", BROKEN)
@pytest.mark.parametrize("mistake", ["missing", "left over"])
def test_file_that_does_not_fit_is_refused_by_the_name_of_the_tensor(role, mistake, tmp_path):
    content = official.content(role)
    state = state_of(content, role)
    if mistake == "missing":
        del state[next(name for name in sorted(state) if state[name].dim() == 4 and "filter" not in name)]
    else:
        state["surplus.weight"] = torch.zeros(1)
    refuse(role, content, tmp_path, assets.path(role).name)


def refuse(role: str, content: dict, folder: Path, message: str) -> None:
    """A file with this content must be refused, and no checkpoint must be written."""
    cls, params = knobs(role)
    placed(role, content)
    with pytest.raises(CheckpointError, match=message):
        cls.convert_official(params, role, folder / "network.safetensors")
    assert not (folder / "network.safetensors").exists()


def test_generator_that_has_not_grown_to_its_end_is_refused(tmp_path):
    content = official.content("deepprivacy_default")
    content["running_average_generator"]["transition_value"] = 0.5
    refuse("deepprivacy_default", content, tmp_path, "has grown 5 times")


def test_another_filter_is_refused(tmp_path):
    content = official.content("deepprivacy2_fdf128")
    content["EMA_generator"]["encoder.1.conv0.resample_filter"] *= 2
    refuse("deepprivacy2_fdf128", content, tmp_path, "is not the filter")
