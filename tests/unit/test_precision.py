"""How trainings compute: one knob for all, its effect within a step alone."""

import pytest
import torch
from torch import nn

import kit
from masquerade.core import discovery
from masquerade.params import loading
from masquerade.training import loop, precision
from masquerade.training.optimizers import Optimizers
from masquerade.training.settings import Arithmetic, Computed

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def arithmetic(name="float32", channels_last=False):
    return Arithmetic(precision=name, channels_last=channels_last)


def settings():
    """Whether convolutions, products of matrices, and networks have a lower precision now."""
    flags = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    return *flags, torch.is_autocast_enabled("cpu")


@pytest.fixture
def bfloat16_everywhere(monkeypatch):
    monkeypatch.setattr(precision, "bfloat16_pays", lambda device: True)


class Colors:
    """Learns the mean color of noise. Each step updates twice."""

    def __init__(self):
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(32, 3))
        self.modules = {"network": self.network}
        self.optimizers = {"all": Optimizers(self.modules, 0.01, (0.9, 0.99), (4,))}
        self.seen, self.backwards, self.orders = [], [], []
        self.network[2].register_forward_hook(lambda part, given, made: self.orders.append(made.stride()))

    def step(self, step):
        images = torch.rand(4, 3, 6, 6, generator=torch.Generator().manual_seed(step))
        for _ in range(2):
            self.seen.append(settings())
            made = self.network(images)
            made.register_hook(lambda _: self.backwards.append(torch.is_autocast_enabled("cpu")))
            loss = (made.float() - images.mean((2, 3))).square().mean()
            self.optimizers["all"].descend(loss, 1.0)
        return {"loss": loss.item()}


class Limited(Colors):
    own_precision = True


def trained(folder, how=None, task=Colors, steps=20):
    task, curve = task(), kit.Curve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "LOG_EVERY", 1)
        loop.fit(task, steps, loop.Unfinished(folder / "s", ""), curve, arithmetic=how)
    return task, curve.of("loss")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("float32", (False, False, False)), ("tf32", (True, True, False)), ("bfloat16", (True, True, True))],
)
def test_a_step_computes_as_its_knob_says_and_what_follows_as_before(tmp_path, bfloat16_everywhere, name, expected):
    before = settings()
    task, _ = trained(tmp_path, arithmetic(name), steps=1)
    assert task.seen == [expected] * 2
    assert settings() == before
    assert task.backwards == [False] * 2, "backward passes compute in the types of their forward passes"
    assert trained(tmp_path, steps=1)[0].seen == [before] * 2


def test_a_task_that_limits_bfloat16_itself_gets_none_around_its_step(tmp_path, bfloat16_everywhere):
    assert trained(tmp_path, arithmetic("bfloat16"), Limited, steps=1)[0].seen == [(True, True, False)] * 2


def test_a_training_with_bfloat16_learns_what_one_in_32_bits_does(tmp_path, bfloat16_everywhere):
    """It updates the weights twice in a step, and the second pass sees the first update."""
    (_, exact), (task, reduced) = trained(tmp_path), trained(tmp_path, arithmetic("bfloat16"))
    assert exact[-1] < 0.5 * exact[0]
    assert reduced[-1] == pytest.approx(exact[-1], rel=0.1)
    assert reduced != exact
    assert task.network[0].weight.dtype == torch.float32


def test_channels_last_changes_the_order_of_maps_and_not_what_is_learned(tmp_path):
    (plain, exact), (last, reordered) = trained(tmp_path), trained(tmp_path, arithmetic(channels_last=True))
    assert set(plain.orders) == {(32, 4, 2, 1)}
    assert set(last.orders) == {(32, 1, 16, 8)}
    assert reordered == pytest.approx(exact, rel=1e-2)
    for name, value in last.network.state_dict().items():
        assert value.stride() == plain.network.state_dict()[name].stride(), "a checkpoint has the usual order"


@pytest.mark.parametrize(("name", "usual"), [("tf32", "tf32"), ("bfloat16", "bfloat16")])
def test_deterministic_gpus_train_as_the_knob_says_and_compute_frozen_networks_in_32_bits(monkeypatch, name, usual):
    how = arithmetic(name)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: False)  # whatever ran here before
    assert (precision.find_precision(how, GPU), precision.find_precision(arithmetic("tf32"), CPU)) == (usual, "float32")
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    assert precision.find_precision(how, GPU) == "float32"
    before = settings()
    with precision.use_tf32(how, GPU, frozen=True):
        assert settings() == before
    with precision.use_tf32(how, GPU):
        assert settings()[:2] == (True, True)


def test_every_training_has_the_knob():
    backbones = {name: discovery.load("backbones", name).Params for name in discovery.list_names("backbones")}
    classes = {name: discovery.load("methods", name) for name in discovery.list_names("methods")}
    methods = {name: cls.Params for name, cls in classes.items() if cls.capabilities.trains}
    learning = {"parrot", "adapted", "insider", "restoring"}
    attackers = {name: discovery.load("attackers", name).Params for name in learning}
    for name, block in (backbones | methods | attackers).items():
        inner = block.model_fields.get("recognition")
        assert issubclass(inner.annotation if inner else block, Computed), name


def test_scale_paper_names_the_precision_of_what_it_trains_and_optimizes(root):
    paper = loading.load(root, "paper")
    named = {"identitydp", "cao21", "lreorg", "riddle", "anonymousnet", "fit", "ldfa", "ifadit", "falco"}
    assert {paper.methods[name].params.arithmetic.precision for name in named} == {"tf32", "bfloat16"}
    assert paper.methods["falco"].params.arithmetic.precision == "bfloat16"
    for name in ("inversion", "landmarks", "attribute_classifier"):
        assert paper.backbones[name].arithmetic.precision == "tf32"
    assert {block.arithmetic.precision for name, block in paper.attackers.items() if hasattr(block, "batch")} == {
        "tf32"
    }


@pytest.mark.parametrize("scale", ["tiny", "mini"])
def test_small_scales_compute_in_32_bits(root, scale):
    assert "arithmetic" not in str(loading.load(root, scale).tree)
