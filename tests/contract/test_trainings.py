"""The contract of every training of a backbone or a method: it resumes exactly, and its file is loaded strictly."""

import pytest
from safetensors import safe_open
from safetensors.torch import save_file

import accelerator
import kit
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError
from masquerade.methods import Resources

BACKBONES = discovery.list_names("backbones")
METHODS = [name for name in discovery.list_names("methods") if discovery.load("methods", name).capabilities.trains]
TRAININGS = [*(("backbones", name) for name in BACKBONES), *(("methods", name) for name in METHODS)]
RESUMED = [
    *((*training, {}) for training in TRAININGS),
    ("backbones", "attribute_classifier", {"small_scale": {"optimizer": "adam"}}),
    ("backbones", "identity", {"recognition": {"small_scale": {"kernel_rate": 0.0}}}),
    ("backbones", "landmarks", {"small_scale": {"kernel_rate": 0.0}}),
    ("backbones", "semantics", {"small_scale": {"kernel_rate": 0.0, "word_weight": 0.0}}),
    ("methods", "fit", {"kernel_rate": 0.0}),
    ("methods", "lreorg", {"ema": 0.5}),
    ("methods", "riddle", {"small_scale": {"optimizer": "muon"}, "ema": 0.5}),
]
"""Every training, and some with optimizers and phases that scale tiny does not use: room, name and changed knobs."""


@pytest.mark.parametrize(("room", "name", "knobs"), RESUMED)
def test_interrupted_training_ends_with_the_same_bytes(workshop, room, name, knobs):
    """A training resumes where it stopped: in its second and its sixth step, so in both phases of two."""
    train = workshop.training(room, name, knobs)
    whole, cut = (workshop.job("-".join([room, name, *knobs, label]), room, name) for label in ("whole", "cut"))
    if knobs:
        train(whole)
    steps = kit.resumed(train, cut, stops=[1, 5])
    assert steps[:4] == [0, 1, 1, 2]
    assert cut.checkpoint.read_bytes() == (whole.checkpoint if knobs else workshop.checkpoint(room, name)).read_bytes()


@pytest.mark.parametrize(("room", "name"), TRAININGS)
def test_training_differentiates_what_a_gpu_computes_alike_each_time(workshop, room, name):
    nodes = workshop.differentiated_by(workshop.checkpoint(room, name))
    assert nodes
    refused = nodes & accelerator.NONDETERMINISTIC
    assert not refused


def load(workshop, room, name, checkpoint, backbones=None):
    """The trained networks from another checkpoint, or beside other backbones."""
    if room == "backbones":
        return discovery.load(room, name).load(checkpoint)
    usual, block = workshop.resources(name), workshop.parameters.methods[name]
    resources = Resources(checkpoint, backbones or usual.backbones, usual.gallery, usual.fakes)
    return discovery.load(room, name)(block.params, next(iter(block.variants.values())), resources)


def altered(path, folder, change):
    """A copy of a checkpoint whose tensors ``change`` has changed."""
    with safe_open(path, framework="pt") as file:
        tensors, metadata = {key: file.get_tensor(key) for key in file.keys()}, file.metadata()  # noqa: SIM118
    change(tensors)
    save_file(tensors, folder / path.name, metadata)
    return folder / path.name


@pytest.mark.parametrize("name", BACKBONES)
def test_loaded_backbone_is_frozen(workshop, name):
    network = load(workshop, "backbones", name, workshop.backbone(name))
    assert not network.training
    assert not any(weight.requires_grad for weight in network.parameters())


@pytest.mark.parametrize(("room", "name"), TRAININGS)
def test_checkpoint_of_another_network_is_refused(workshop, tmp_path, room, name):
    path = altered(workshop.checkpoint(room, name), tmp_path, lambda tensors: tensors.pop(min(tensors)))
    with pytest.raises(CheckpointError, match=path.name):
        load(workshop, room, name, path)


@pytest.mark.parametrize("name", BACKBONES)
def test_checkpoint_of_another_backbone_is_refused(workshop, name):
    other = workshop.backbone("landmarks" if name != "landmarks" else "parsing")
    with pytest.raises(
        CheckpointError, match=rf"{other.name} is not a checkpoint of (this network|a generator|an inversion)"
    ):
        load(workshop, "backbones", name, other)


USED = {
    "cao21": ["identity"], "fit": ["identity"], "identitydp": ["identity"],
    "ifadit": ["generator", "identity", "parsing"], "lreorg": ["generator", "semantics", "identity"],
    "riddle": ["generator", "inversion", "identity"],
}  # fmt: skip
"""Method -> the backbones without which the networks of its checkpoint have no meaning."""


@pytest.mark.parametrize(("name", "need"), [(name, need) for name, needs in USED.items() for need in needs])
def test_checkpoint_that_was_trained_with_another_backbone_is_refused(workshop, tmp_path, name, need):
    backbones = dict(workshop.resources(name).backbones)
    backbones[need] = altered(backbones[need], tmp_path, lambda tensors: tensors[max(tensors)].view(-1)[:1].add_(1))
    with pytest.raises(CheckpointError, match=rf"another .*({need}|generator)"):  # an inversion names its generator
        load(workshop, "methods", name, workshop.checkpoint("methods", name), backbones)
