"""The installed PyTorch has the internals that `torch_internals` uses. Every replaced function is restored."""

import inspect
from importlib.metadata import version

import pytest
import torch
from torch import nn
from torch.optim import optimizer
from torch.utils import _python_dispatch
from tqdm import tqdm

from masquerade.pipeline.costs import torch_internals


def parameters(function) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_internals_are_written_for_the_installed_and_locked_torch(root):
    assert version("torch").partition("+")[0] == torch_internals.VERSION, "check each function of torch_internals.py"
    assert f"torch=={torch_internals.VERSION}\n" in (root / "requirements.lock").read_text()


def test_functions_that_are_replaced_have_not_changed():
    assert parameters(nn.Module.to) == ["self", "args", "kwargs"]
    assert parameters(nn.Module.load_state_dict) == ["self", "state_dict", "strict", "assign"]
    assert parameters(optimizer._get_foreach_kernels_supported_devices) == []
    assert "cuda" in optimizer._get_foreach_kernels_supported_devices()
    assert parameters(torch.cuda.is_available) == []
    assert parameters(torch.load)[0] == "f"
    assert "disable" in parameters(tqdm.__init__)


def test_functions_that_are_used_have_not_changed():
    with _python_dispatch._disable_current_modes() as modes:
        assert modes == []
    kept, dropped = torch.zeros(3).untyped_storage(), torch.zeros(3).untyped_storage()
    assert torch_internals.storage_key(kept) != torch_internals.storage_key(dropped)
    reference, dead = torch_internals.StorageWeakRef(kept), torch_internals.StorageWeakRef(dropped)
    del dropped
    assert not reference.expired()
    assert dead.expired()
    dispatch = torch_internals.TorchDispatchMode.__torch_dispatch__
    assert parameters(dispatch) == ["self", "func", "types", "args", "kwargs"]


def test_operations_are_described_as_pytorch_defines_them():
    aten = torch.ops.aten
    assert torch_internals.flop_formula(aten.mm.default)((2, 3), (3, 5), out_val=torch.zeros(2, 5)) == 2 * 2 * 3 * 5
    assert torch_internals.flop_formula(aten.relu.default) is None
    assert torch_internals.is_composite(aten.linear.default)
    assert not torch_internals.is_composite(aten.mm.default)
    assert torch_internals.makes_tensor(aten.zeros.default)
    assert not torch_internals.makes_tensor(aten.mm.default)


@pytest.mark.parametrize(
    ("name", "effect"),
    [("mm", "fresh"), ("relu_", "in place"), ("t_", "other"), ("view", "other"), ("rand", "other")],
)
def test_operation_has_the_expected_effect(name, effect):
    assert torch_internals.effect(getattr(torch.ops.aten, name).default) == effect


@pytest.mark.parametrize("context", ["networks_without_values", "files_with_values", "no_progress_bars"])
def test_replaced_functions_are_restored(context):
    owners = (nn.Module, optimizer, torch.cuda, torch, tqdm)
    before = [dict(vars(owner)) for owner in owners]
    with pytest.raises(KeyError), getattr(torch_internals, context)():
        assert [dict(vars(owner)) for owner in owners] != before
        raise KeyError
    assert [dict(vars(owner)) for owner in owners] == before
