"""A small detector of one face in a grid of cells: its network, its images, its loss, and what it finds.

The detectors of DartBlur and of the published Safe Fakes (Klomp et al. 2021, arXiv:2104.11721) are large networks for
whole photographs. Ours looks at an image with one face and is trained here from nothing (docs/other_methods.md).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import affine_grid, binary_cross_entropy_with_logits, grid_sample, smooth_l1_loss

from masquerade.networks.inputs import device

BOXES = 2.0  # weight of the boxes beside that of the scores: MultiBox, as in the published code of DartBlur
SHIFT, SCALE = 0.2, (0.6, 1.1)  # of the views that the detectors see: shares of the side of the image


class GridDetector(nn.Module):
    """Images (N, 3, S, S) in [-1, 1] -> (N, 5, s, s) with s = S / 2 ** len(widths).

    For each cell: the logit that the center of the face is in it, and the box: its center as shares of the cell, its
    width and height as shares of the image. There is no batch norm, as a step of its training is differentiated.
    """

    def __init__(self, widths: Sequence[int]):
        super().__init__()
        layers: list[nn.Module] = []
        for into, out in pairwise([3, *widths]):
            layers += [nn.Conv2d(into, out, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(out, out, 3, padding=1)]
            layers += [nn.GroupNorm(1, out), nn.LeakyReLU(0.1)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(widths[-1], 5, 1))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


def build_targets(corners: Tensor, size: int, cells: int) -> Tensor:
    """What a detector should say of boxes (N, 4), left, top, right, bottom in pixels: (N, 5, cells, cells).

    The first channel is 1 in the cell with the center of the face, else 0; the others are NaN but in that cell.
    """
    center, sides = (corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]
    position = (center / size * cells).clamp(0, cells - 1e-4)
    cell = position.long()
    targets = corners.new_full((len(corners), 5, cells, cells), torch.nan)
    targets[:, 0] = 0.0
    rows = torch.arange(len(corners), device=corners.device)
    values = torch.cat([torch.ones_like(center[:, :1]), position - cell, sides / size], dim=1)
    targets[rows, :, cell[:, 1], cell[:, 0]] = values
    return targets


def draw_views(draw: np.random.Generator, images: np.ndarray, corners: np.ndarray) -> tuple[Tensor, np.ndarray]:
    """Images, shifted, scaled and half of them mirrored, and their boxes: (N, 3, S, S) on `device`, and int (N, 4).

    ``images``: float32 (N, 3, S, S), square. ``corners``: their boxes, int (N, 4): left, top, right, bottom in pixels.
    """
    count, size = len(images), images.shape[-1]
    images, corners = images.copy(), corners.copy()
    is_mirrored = draw.random(count) < 0.5
    images[is_mirrored] = images[is_mirrored][..., ::-1]
    left, top, right, bottom = corners[is_mirrored].T
    corners[is_mirrored] = np.stack([size - right, top, size - left, bottom], 1)
    scale = draw.uniform(*SCALE, count)
    shift = draw.uniform(-SHIFT, SHIFT, (count, 2))
    views = torch.from_numpy(images).to(device())
    place = torch.zeros(count, 2, 3)
    place[:, 0, 0] = place[:, 1, 1] = torch.from_numpy(1 / scale).float()
    place[:, :, 2] = torch.from_numpy(-shift / scale[:, None] * 2).float()
    grid = affine_grid(place, list(views.shape), align_corners=False).to(views)
    views = grid_sample(views, grid, padding_mode="reflection", align_corners=False)
    half = size / 2
    moved_corners = (corners - half) * scale[:, None] + half + np.tile(shift, 2) * size
    return views, np.clip(np.rint(moved_corners).astype(int), 0, size)


def compute_detection_loss(answers: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of the scores of all cells, and twice the smooth L1 distance of the boxes where they are known.

    ``answers``, ``targets`` (N, 5, s, s); scores of targets are probabilities; unknown boxes are NaN.
    """
    scores = binary_cross_entropy_with_logits(answers[:, 0], targets[:, 0])
    has_box = ~targets[:, 1:].isnan()
    return scores + BOXES * smooth_l1_loss(answers[:, 1:][has_box], targets[:, 1:][has_box])


def evaluate_detections(answers: Tensor, corners: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Whether the largest score is in the cell with the center of the face, bool (N,), and the overlap, float (N,).

    ``answers`` (N, 5, s, s), true ``corners`` (N, 4) in images of ``size`` pixels a side. The overlap of the true box
    with the box of the cell with the largest score is their intersection over their union, from 0 to 1.
    """
    cells = answers.shape[-1]
    best = answers[:, 0].flatten(1).argmax(dim=1)
    boxes = answers.flatten(2)[torch.arange(len(best), device=best.device), 1:, best]
    cell = torch.stack([best % cells, best // cells], dim=1)
    center, half = (cell + boxes[:, :2]) / cells * size, boxes[:, 2:] * size / 2
    predicted, true = torch.cat([center - half, center + half], dim=1), corners.to(answers)
    middle = ((true[:, :2] + true[:, 2:]) / 2 / size * cells).clamp(0, cells - 1e-4).long()
    sides = (torch.minimum(predicted[:, 2:], true[:, 2:]) - torch.maximum(predicted[:, :2], true[:, :2])).clamp(min=0)
    intersection = sides.prod(dim=1)
    areas = [(boxes[:, 2:] - boxes[:, :2]).clamp(min=0).prod(dim=1) for boxes in (predicted, true)]
    return (cell == middle).all(dim=1), intersection / (areas[0] + areas[1] - intersection).clamp(min=1e-6)
