"""Adam and Muon: which weights each gets, and PyTorch's updates; the arithmetic of a step, by one knob for all."""

import pytest
import torch
from torch import nn

import kit
from masquerade.core import discovery
from masquerade.training import loop, precision
from masquerade.training.optimizers import Muon, Optimizers, compute_cooldown, compute_warmup_cosine, orthogonalize
from masquerade.training.settings import Arithmetic, Computed


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8, 4))


def optimized(net, kernel_rate, **more):
    return Optimizers.with_kernels({"net": net}, 0.002, kernel_rate, (0.9, 0.999), **more)


def test_each_weight_belongs_to_one_optimizer_and_a_kernel_to_muon():
    net = network()
    made = optimized(net, 0.01)
    (matrix,) = made.named["muon"].param_groups[0]["params"]
    assert matrix.data_ptr() == net[0].weight.data_ptr()
    left = [weight for group in made.named["adam"].param_groups for weight in group["params"]]
    assert {id(weight) for weight in left} == {id(net[0].bias), id(net[2].weight), id(net[2].bias)}
    assert len(left) == 3


def test_without_a_kernel_rate_adam_changes_all_weights():
    one, other = network(), network()
    made = optimized(one, 0.0)
    assert set(made.named) == {"adam"}
    adam = torch.optim.Adam(other.parameters(), lr=0.001)
    for _ in range(3):
        pictures = torch.randn(2, 3, 3, 3)
        made.descend(one(pictures).square().sum(), 0.5)
        adam.zero_grad()
        other(pictures).square().sum().backward()
        adam.step()
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-7)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_each_rate_is_multiplied_by_the_share(share):
    net = network()
    made = optimized(net, 0.01)
    before = [weight.detach().clone() for weight in net.parameters()]
    made.descend(net(torch.randn(64, 3, 3, 3)).square().sum(), share)
    kernel, *others = (weight.detach() - old for weight, old in zip(net.parameters(), before, strict=True))
    # Adam's first step is its rate in every weight; Muon's has a mean square of about 0.2 of its rate
    for change in others:
        assert change.abs().max().item() == pytest.approx(0.002 * share, rel=1e-3)
    assert 0.1 * 0.01 * share < kernel.square().mean().sqrt().item() < 0.3 * 0.01 * share


def test_schedules_rise_and_fall():
    shares = [compute_warmup_cosine(step, 100) for step in range(100)]
    assert shares[0] == pytest.approx(0.1)
    assert shares[9] == pytest.approx(1.0) == max(shares)
    assert shares[-1] == pytest.approx(0.0)
    assert shares[54] == pytest.approx(0.5)  # half of the way down
    assert [compute_cooldown(step, 100, 0.5) for step in (0, 50, 75, 99)] == pytest.approx([1.0, 1.0, 0.5, 0.02])
    assert compute_cooldown(99, 100, 0.0) == 1.0


@pytest.mark.parametrize("shape", [(5, 12), (12, 5)])
def test_steps_are_those_of_pytorch(shape):
    torch.manual_seed(0)
    start, gradients = torch.randn(shape), torch.randn(3, *shape)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    one = Muon([ours], lr=0.1, weight_decay=0.02)
    other = torch.optim.Muon([theirs], lr=0.1, momentum=0.9, weight_decay=0.02, adjust_lr_fn="match_rms_adamw")
    for gradient in gradients:
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        one.step()
        other.step()
    torch.testing.assert_close(ours, theirs, atol=0.01, rtol=0)  # PyTorch computes with 8 bits
    assert (ours - start).abs().max() > 0.1


@pytest.mark.parametrize("shape", [(6, 40), (40, 6), (7, 7)])
def test_singular_values_become_about_one_and_singular_vectors_stay(shape):
    torch.manual_seed(0)
    matrix = torch.randn(shape)
    made = orthogonalize(matrix)
    assert torch.linalg.svdvals(made).sub(1).abs().max() < 0.4
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    assert torch.nn.functional.cosine_similarity(made.flatten(), (left @ right).flatten(), dim=0) > 0.97


def test_a_matrix_without_gradient_stays():
    still, moved = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(2, 3))
    moved.grad = torch.randn(2, 3)
    Muon([still, moved], lr=0.1).step()
    assert torch.equal(still, torch.ones(2, 3))
    assert not torch.equal(moved, torch.ones(2, 3))


def test_bfloat16_is_used_only_where_it_pays(monkeypatch):
    cpu = torch.device("cpu")
    for name in ("avx512_bf16", "amx_bf16", "bf16"):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda name=name: {name: True, "avx2": True})
        assert precision.bfloat16_pays(cpu)
        with precision.use_bfloat16(cpu, True):
            assert torch.is_autocast_enabled("cpu")
    for lacking in ({"avx2": True, "avx512_f": True, "avx512_bf16": False},
                    {"avx512_bf16": True, "amx_bf16": False, "cpu_name": "Intel Xeon"}):  # fmt: skip
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda lacking=lacking: lacking)
        assert not precision.bfloat16_pays(cpu)
        with precision.use_bfloat16(cpu, True):
            assert not torch.is_autocast_enabled("cpu")
    assert precision.bfloat16_pays(torch.device("cuda"))
    assert not precision.bfloat16_pays(torch.device("meta"))


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
