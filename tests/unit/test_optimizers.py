"""Adam and Muon: which weights each gets, and the same updates as PyTorch's own."""

import pytest
import torch
from torch import nn

from masquerade.training import precision
from masquerade.training.optimizers import Muon, Optimizers, cooldown_share, orthogonalize, warmup_cosine_share


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
    shares = [warmup_cosine_share(step, 100) for step in range(100)]
    assert shares[0] == pytest.approx(0.1)
    assert shares[9] == pytest.approx(1.0) == max(shares)
    assert shares[-1] == pytest.approx(0.0)
    assert shares[54] == pytest.approx(0.5)  # half of the way down
    assert [cooldown_share(step, 100, 0.5) for step in (0, 50, 75, 99)] == pytest.approx([1.0, 1.0, 0.5, 0.02])
    assert cooldown_share(99, 100, 0.0) == 1.0


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
