"""torchvision imports beside every build of torch, and nothing of it is replaced where it loads by itself."""

import subprocess
import sys

import torch

from masquerade import _torchvision

# In a process of its own: what one import did cannot help the other.
ALONE = "import torchvision, torchvision.ops; torchvision.ops.boxes._assert_has_ops()"
AFTER = (
    "from masquerade import _torchvision; import torch; found = _torchvision.ensure(); import torchvision.ops;"
    "kernels = torch._C._dispatch_dump('torchvision::nms');"
    "named = torchvision.ops.boxes._assert_has_ops.__qualname__;"
    "print(found, len(_torchvision._KEPT_ALIVE), named, 'Python' if '_torchvision.py' in kernels else 'compiled')"
)


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_nothing_is_replaced_where_torchvision_loads_by_itself_and_what_lacks_is_there_elsewhere():
    native = run(ALONE).returncode == 0
    done = run(AFTER)
    assert done.returncode == 0, done.stderr
    if native:
        assert done.stdout.split() == ["native", "0", "_assert_has_ops", "compiled"]
    else:
        assert torch.version.cuda is None, "the registry's torchvision fits the registry's torch"
        assert done.stdout.split() == ["shim", "1", "ensure.<locals>.<lambda>", "Python"]


def test_nms_keeps_the_better_of_two_boxes():
    _torchvision.ensure()
    from torchvision.ops import nms

    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 11.0, 10.0], [20.0, 20.0, 30.0, 30.0]])
    scores = torch.tensor([0.5, 0.9, 0.7])  # the first two overlap by 90 / 110
    assert nms(boxes, scores, 0.5).tolist() == [1, 2]
    assert _torchvision.nms(boxes, scores, 0.5).tolist() == [1, 2]
    assert _torchvision.nms(boxes, scores, 0.9).tolist() == [1, 2, 0]
    assert _torchvision.nms(boxes[:0], scores[:0], 0.5).tolist() == []
