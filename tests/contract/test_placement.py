"""Every torch network of methods, judges, backbones and attribute classifiers runs on the GPU (`accelerator`)."""

from dataclasses import replace

import numpy as np
import pytest
from torch import nn

import official
from accelerator import pretended
from masquerade import assets
from masquerade.assets import lock
from masquerade.core import discovery, rehearsal
from masquerade.params.protocols import AttributeSettings
from masquerade.pipeline import attributes

METHODS = discovery.list_programs()
JUDGES, BACKBONES = (discovery.list_names(room) for room in ("judges", "backbones"))
SEED = 5
PUBLISHED = [name for name in JUDGES if discovery.load("judges", name).assets]


@pytest.fixture(scope="module")
def faces(workshop):
    return workshop.archive.load(rows=workshop.archive.select("test").iloc[:3])


def results(method, faces) -> list[np.ndarray]:
    """The images of all public functions of a method that run its networks."""
    kind = method.capabilities.keys
    keys = [kind.experiment(SEED, name) for name in faces.ids] if kind else None
    given = replace(faces, images=faces.images.copy())
    made = [method.anonymize(given, SEED, keys), *method.features(given).values(), *method.views(given).values()]
    return [*made, method.recover(made[0], keys)] if method.capabilities.invertible else made


@pytest.mark.parametrize("name", METHODS)
def test_networks_of_a_method_run_on_the_accelerator(workshop, name, faces, monkeypatch):
    method = workshop.method(name)
    networks = method.needs or method.capabilities.trains
    expected = results(method, faces)
    with pretended(monkeypatch) as gpu:
        made = results(workshop.method(name), faces)
    assert not gpu.astray, "a parameter, a buffer or an input lies elsewhere"
    assert gpu.ran or not networks
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A folder where weight files of random numbers count as the published ones. Networks start without numbers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(rehearsal.VARIABLE, "1")
    for name in ("kaiming_uniform_", "kaiming_normal_", "uniform_", "normal_", "trunc_normal_"):
        monkeypatch.setattr(nn.init, name, lambda tensor, *_, **__: tensor)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in PUBLISHED)) for name in JUDGES]
)
def test_networks_of_a_judge_run_on_the_accelerator(workshop, name, faces, request, monkeypatch):
    cls = discovery.load("judges", name)
    if cls.assets:
        request.getfixturevalue("lab")
    for role in cls.assets:
        path = official.write(role, assets.path(role))
        lock.record(role, path.name, assets.digest(path), path.stat().st_size, "placed", rehearsal=True)
    backbones = {need: workshop.backbone(need) for need in cls.needs}
    params = workshop.parameters.judges.get(name) or cls.Params()
    with pretended(monkeypatch) as gpu:
        made = cls(params, backbones).measure(faces.images, faces.images[::-1].copy())
    assert not gpu.astray, "a parameter, a buffer or an input lies elsewhere"
    assert bool(gpu.ran) == (cls.engine == "torch")
    assert made.keys() == cls.quantities.keys()


@pytest.mark.parametrize("architecture", list(attributes.ARCHITECTURES))
def test_classifiers_of_the_attribute_protocol_run_on_the_accelerator(workshop, architecture, monkeypatch):
    block = workshop.parameters.attributes
    kept = block.model_dump(include=set(AttributeSettings.model_fields))
    settings = AttributeSettings(**kept | {"small_scale": {"frozen_blocks": 3}})
    pictures = np.random.default_rng(SEED).integers(0, 256, (6, 32, 32, 3)).astype(np.uint8)
    labels = np.arange(12).reshape(6, 2) % 3 == 0

    def probabilities():
        made = attributes.Classifier(architecture, ["Smiling", "Young"], settings, SEED)
        features = made.features(pictures)
        made.fit(features, made.features(pictures[:, :, ::-1]), labels)
        return made.predict(features)

    expected = probabilities()
    with pretended(monkeypatch) as gpu:
        made = probabilities()
    assert not gpu.astray, "a parameter, a buffer or an input lies elsewhere"
    assert {"AdaptiveAvgPool2d", "Linear"} <= gpu.ran
    np.testing.assert_allclose(made, expected, atol=2e-4)


@pytest.mark.parametrize("name", BACKBONES)
def test_quality_of_a_backbone_is_measured_on_the_accelerator(workshop, name, monkeypatch):
    job = workshop.job(name, "backbones", name, workshop.backbone(name).parent)
    with pretended(monkeypatch) as gpu:
        figures = discovery.load("backbones", name)(workshop.parameters.backbones[name]).quality(job)
    assert not gpu.astray, "a parameter, a buffer or an input lies elsewhere"
    assert gpu.ran
    assert figures


TRAININGS = [
    *(("backbones", name) for name in BACKBONES),
    *(("methods", name) for name in METHODS if discovery.load("methods", name).capabilities.trains),
]


@pytest.mark.slow
@pytest.mark.parametrize(("room", "name"), TRAININGS)
def test_training_runs_on_the_accelerator(workshop, room, name, monkeypatch):
    job = workshop.job(f"placed-{room}-{name}", room, name)
    with pretended(monkeypatch) as gpu:
        workshop.training(room, name)(job)
    assert not gpu.astray, "a parameter, a buffer or an input lies elsewhere"
    assert gpu.ran
