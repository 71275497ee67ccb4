"""Makes torchvision importable where its compiled extension does not fit the installed torch.

torchvision's wheel on the package registry is a CUDA build: beside a CPU torch its extension cannot be loaded, and
``import torchvision`` fails because the operator ``torchvision::nms`` is not declared. Nothing is replaced where the
extension loads (a GPU machine).
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Literal

import torch

_KEPT_ALIVE = []  # an operator lives as long as the Library object that declared it


@cache
def ensure() -> Literal["native", "shim", "absent"]:
    """Call before importing torchvision, or a package that does. Says what was found; safe to call again.

    ``shim``: the operators that the import insists on are declared, and ``nms`` has a kernel in plain torch.
    """
    found = find_spec("torchvision")
    if found is None:
        return "absent"
    try:
        torch.ops.load_library(Path(found.submodule_search_locations[0], "_C.so"))
        return "native"
    except (OSError, ImportError):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl("nms", nms, "CPU")
        _KEPT_ALIVE.append(library)
    with _without_compiler():
        import torchvision.ops.boxes

    torchvision.ops.boxes._assert_has_ops = lambda: None  # it asks for the extension, not for the operator
    return "shim"


@contextmanager
def _without_compiler() -> Iterator[None]:
    """Spare torchvision's import that of PyTorch's compiler: 2.3 of 2.8 seconds.

    One operator of torchvision (roi_align) asks the compiler while it is imported whether it may be used. A stand-in
    answers no; it is gone afterwards, so that whoever needs the compiler gets the real one.
    """
    names = ("torch._dynamo", "torch._dynamo.utils")
    if names[0] in sys.modules:
        yield
        return
    modules = {name: ModuleType(name) for name in names}
    modules[names[1]].is_compile_supported = lambda device: False
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


def nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Non-maximum suppression: indices of the kept boxes, best score first.

    ``boxes`` (N, 4) x1, y1, x2, y2; ``scores`` (N,). A box falls to a better one when their intersection over union
    is above ``iou_threshold``.
    """
    order = scores.argsort(descending=True, stable=True)
    x1, y1, x2, y2 = boxes.unbind(1)
    area = (x2 - x1) * (y2 - y1)
    kept = []
    while order.numel():
        best, rest = order[0], order[1:]
        kept.append(best)
        width = (torch.minimum(x2[best], x2[rest]) - torch.maximum(x1[best], x1[rest])).clamp(min=0)
        height = (torch.minimum(y2[best], y2[rest]) - torch.maximum(y1[best], y1[rest])).clamp(min=0)
        both = width * height
        order = rest[both / (area[best] + area[rest] - both) <= iou_threshold]
    return torch.stack(kept) if kept else scores.new_empty(0, dtype=torch.long)
