"""Makes torchvision importable beside a CPU build of torch.

The only torchvision wheel on PyPI is built for CUDA: beside a CPU torch its C extension cannot load, and its import
fails over two operators. They are declared here, and ``nms`` gets a plain kernel, only where the extension is unusable.
"""

import importlib.util
from functools import cache
from pathlib import Path

import torch
from torch import Tensor


@cache
def ensure() -> torch.library.Library | None:
    """Call before importing torchvision, or a package that does. Returns what keeps the declarations alive."""
    found = importlib.util.find_spec("torchvision")
    if found is None:
        raise ModuleNotFoundError("torchvision is not installed; run `make environment`")
    try:
        torch.ops.load_library(str(Path(found.submodule_search_locations[0]) / "_C.so"))
        return None
    except OSError:
        pass  # the CUDA extension beside a CPU torch: declare the operators instead
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.impl("nms", nms, "CPU")
    import torchvision.ops.boxes

    torchvision.ops.boxes._assert_has_ops = lambda: None
    return library


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Greedy non-maximum suppression: indices of the boxes (N, 4; x1, y1, x2, y2) that are kept, best score first."""
    order = scores.argsort(descending=True, stable=True)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while order.numel():
        best, rest = order[0], order[1:]
        kept.append(best)
        corner = torch.maximum(boxes[best, :2], boxes[rest, :2])
        extent = (torch.minimum(boxes[best, 2:], boxes[rest, 2:]) - corner).clamp(min=0)
        overlap = extent.prod(dim=1)
        order = rest[overlap / (area[best] + area[rest] - overlap) <= iou_threshold]
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.long, device=boxes.device)
