"""torchvision imports beside every build of torch and is not replaced if it loads by itself; EfficientNet-Lite too."""

import inspect
import subprocess
import sys
from importlib.metadata import version

import torch

from masquerade.networks import efficientnet_lite_internals, torchvision_internals

# Each runs in a process of its own, so that one import cannot affect the other.
ALONE = "import torchvision, torchvision.ops; torchvision.ops.boxes._assert_has_ops()"
AFTER = (
    "import torch; from masquerade.networks import torchvision_internals as internals;"
    "result = internals.ensure(); import torchvision.ops;"
    "kernels = torch._C._dispatch_dump('torchvision::nms');"
    "name = torchvision.ops.boxes._assert_has_ops.__qualname__;"
    "kernel = 'Python' if 'torchvision_internals.py' in kernels else 'compiled';"
    "print(result, len(internals._LIBRARIES), name, kernel)"
)


QUICK = (
    "import sys; from masquerade.networks import torchvision_internals as internals; internals.ensure();"
    "assert not any(name.startswith('torch._dynamo') for name in sys.modules), 'the compiler was imported';"
    "from torchvision.ops import roi_align; supported = sys.modules[roi_align.__module__].is_compile_supported;"
    "import torch._dynamo.utils; assert supported('cpu') == torch._dynamo.utils.is_compile_supported('cpu');"
    "import torch; print(torch.compile(lambda x: x + 1, backend='eager')(torch.ones(1)).item())"
)


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_internals_are_written_for_the_installed_and_locked_torchvision(root):
    assert version("torchvision").partition("+")[0] == torchvision_internals.VERSION, "check torchvision_internals.py"
    assert f"torchvision=={torchvision_internals.VERSION}\n" in (root / "requirements.lock").read_text()


def test_parts_of_torchvision_that_are_replaced_have_not_changed():
    torchvision_internals.ensure()
    from torchvision import extension
    from torchvision.ops import boxes

    assert list(inspect.signature(extension._assert_has_ops).parameters) == []
    assert "_assert_has_ops()" in inspect.getsource(boxes.nms)
    for name in torchvision_internals.OPERATORS:
        schema = str(getattr(torch.ops.torchvision, name).default._schema)
        assert schema == f"torchvision::{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def test_nothing_is_replaced_when_torchvision_loads_by_itself():
    native = run(ALONE).returncode == 0
    done = run(AFTER)
    assert done.returncode == 0, done.stderr
    if native:
        assert done.stdout.split() == ["native", "0", "_assert_has_ops", "compiled"]
    else:
        assert torch.version.cuda is None, "the registry's torchvision fits the registry's torch"
        assert done.stdout.split() == ["shim", "1", "ensure.<locals>.<lambda>", "Python"]


def test_compiler_is_imported_when_it_is_needed_and_is_then_the_true_one():
    done = run(QUICK)
    assert done.stdout.split() == ["2.0"], done.stderr


def test_nms_keeps_the_better_of_two_boxes():
    torchvision_internals.ensure()
    from torchvision.ops import nms

    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 11.0, 10.0], [20.0, 20.0, 30.0, 30.0]])
    scores = torch.tensor([0.5, 0.9, 0.7])  # the first two overlap by 90 / 110
    assert nms(boxes, scores, 0.5).tolist() == [1, 2]
    assert torchvision_internals.nms(boxes, scores, 0.5).tolist() == [1, 2]
    assert torchvision_internals.nms(boxes, scores, 0.9).tolist() == [1, 2, 0]
    assert torchvision_internals.nms(boxes[:0], scores[:0], 0.5).tolist() == []


def test_module_is_written_for_the_installed_and_locked_version(root):
    assert version("efficientnet-lite-pytorch") == efficientnet_lite_internals.VERSION
    assert (
        f"efficientnet-lite-pytorch=={efficientnet_lite_internals.VERSION}\n"
        in (root / "requirements.lock").read_text()
    )


def test_blocks_one_after_the_other_give_the_features_of_the_network():
    network = efficientnet_lite_internals.load_network(0)
    blocks = efficientnet_lite_internals.list_blocks(network)
    assert len(blocks) == 18  # the stem, 16 blocks, the head
    signal = images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        for block in blocks:
            signal = block(signal)
        assert torch.equal(signal, network.extract_features(images))


def test_network_with_fewer_copies_gives_the_same_values():
    images = torch.rand(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = efficientnet_lite_internals.load_network(0).extract_features(images)
        network = efficientnet_lite_internals.quicken(efficientnet_lite_internals.load_network(0))
        assert torch.equal(network.extract_features(images), expected)
    padded = [layer for layer in network.modules() if isinstance(layer, torch.nn.ZeroPad2d)]
    assert len(padded) == 5, "those with stride 2, whose padding is one-sided"
    assert all(layer.inplace for layer in network.modules() if isinstance(layer, torch.nn.ReLU6))
