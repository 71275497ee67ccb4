"""Muon: against the one of PyTorch, and against a singular value decomposition."""

import pytest
import torch
from torch import nn

from masquerade.training import precision
from masquerade.training.optimizers import Muon, orthogonalize


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
        with precision.mixed(cpu, True):
            assert torch.is_autocast_enabled("cpu")
    for lacking in ({"avx2": True, "avx512_f": True, "avx512_bf16": False},
                    {"avx512_bf16": True, "amx_bf16": False, "cpu_name": "Intel Xeon"}):  # fmt: skip
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda lacking=lacking: lacking)
        assert not precision.bfloat16_pays(cpu)
        with precision.mixed(cpu, True):
            assert not torch.is_autocast_enabled("cpu")
    assert precision.bfloat16_pays(torch.device("cuda"))
    assert not precision.bfloat16_pays(torch.device("meta"))
