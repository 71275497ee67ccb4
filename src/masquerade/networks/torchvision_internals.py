"""Makes torchvision importable when its compiled extension does not fit the installed torch, and quickly.

torchvision's wheel on the package registry is a CUDA build. Beside a CPU build of torch its extension cannot be loaded,
and ``import torchvision`` fails because the operator ``torchvision::nms`` is missing. No operator is replaced when the
extension loads (on a GPU machine).

torchvision also imports PyTorch's compiler, for one function that it calls when it compiles. This takes a second.

``tests/unit/test_torchvision.py`` fails when an installed torchvision differs from VERSION in these parts.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Literal

import numpy as np
import torch

VERSION = "0.28.0"
"""The version of torchvision for which this module is written."""
OPERATORS = ("nms", "qnms")
"""The operators that ``import torchvision`` needs."""
_LIBRARIES = []
"""An operator exists as long as the Library object that declared it."""
_COMPILER = "torch._dynamo", "torch._dynamo.utils"
"""The compiler, and its module from which torchvision imports a function."""


@cache
def ensure() -> Literal["native", "shim", "absent"]:
    """Call before importing torchvision, or a package that imports it. Later calls do nothing.

    Returns ``native`` when the extension loads, ``absent`` when torchvision is not installed. Otherwise declares
    OPERATORS, computes ``nms`` in plain torch, and returns ``shim``.
    """
    spec = find_spec("torchvision")
    if spec is None:
        return "absent"
    try:
        folders = spec.submodule_search_locations or [""]
        torch.ops.load_library(Path(folders[0], "_C.so"))
        native = True
    except (OSError, ImportError):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in OPERATORS:
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl("nms", nms, "CPU")
        _LIBRARIES.append(library)
        native = False
    with _compiler_left_out():
        import torchvision.ops.boxes
    if not native:
        torchvision.ops.boxes._assert_has_ops = lambda: None  # it checks for the extension, not for the operator
    return "native" if native else "shim"


@contextmanager
def _compiler_left_out() -> Iterator[None]:
    """Within the block, torchvision gets a function that imports the compiler when it is called."""
    if _COMPILER[0] in sys.modules:
        yield
        return
    package, module = (ModuleType(name) for name in _COMPILER)

    def is_compile_supported(device: str) -> bool:
        from torch._dynamo.utils import is_compile_supported

        return is_compile_supported(device)

    module.__dict__["is_compile_supported"] = is_compile_supported
    sys.modules |= {_COMPILER[0]: package, _COMPILER[1]: module}
    try:
        yield
    finally:
        for name in _COMPILER:
            del sys.modules[name]


def nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Non-maximum suppression: indices of the kept boxes, best score first.

    ``boxes`` (N, 4) x1, y1, x2, y2; ``scores`` (N,). A box is dropped when its intersection over union with a better
    box is above ``iou_threshold``.
    """
    x1, y1, x2, y2 = boxes.numpy().T  # NumPy, because it takes a fifth of torch's time for such small arrays
    order = scores.argsort(descending=True, stable=True).numpy()
    area = (x2 - x1) * (y2 - y1)
    chosen_boxes = []
    while order.size:
        best, rest = order[0], order[1:]
        chosen_boxes.append(best)
        width = (np.minimum(x2[best], x2[rest]) - np.maximum(x1[best], x1[rest])).clip(min=0)
        height = (np.minimum(y2[best], y2[rest]) - np.maximum(y1[best], y1[rest])).clip(min=0)
        intersection = width * height
        with np.errstate(invalid="ignore"):  # 0 / 0 of two boxes without an area
            order = rest[intersection / (area[best] + area[rest] - intersection) <= iou_threshold]
    return torch.from_numpy(np.array(chosen_boxes, dtype=np.int64))
