"""DartBlur (Jiang et al. 2023): the U-Net of the published code (nets/UNet.py), its weight file, and the training.

The blur is here, too. A detector is trained first, then the U-Net and another detector.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import smooth_l1_loss

from masquerade.core import seeding
from masquerade.core.images import to_float
from masquerade.methods._inpainting import region
from masquerade.methods._inpainting.training import People, read_people
from masquerade.methods.dartblur import HALVINGS, DartBlurSettings
from masquerade.networks.grid_detector import GridDetector, build_targets, compute_detection_loss, draw_views
from masquerade.networks.inputs import device
from masquerade.training import weight_files
from masquerade.training.optimizers import Optimizers, compute_cooldown
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

SLOPE = 0.01  # of every LeakyReLU: torch's default, as the published code has it


class _Down(nn.Sequential):
    """Two convolutions with LeakyReLU, then the largest of 2 x 2 pixels."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(*_active(inputs, outputs), *_active(outputs, outputs), nn.MaxPool2d(2))


class _Up(nn.Sequential):
    """A convolution to four times the channels, whose groups of four become 2 x 2 pixels, and a convolution."""

    def __init__(self, inputs: int, between: int, outputs: int, last: bool = False):
        end = [nn.Conv2d(between, outputs, 3, padding=1)] if last else _active(between, outputs)
        super().__init__(*_active(inputs, 4 * between), nn.PixelShuffle(2), *end)


class DartBlurUNet(nn.Module):
    """A blurred image (N, 3, S, S) in [-1, 1] and the mask of its boxes (N, 1, S, S) -> an image of the same shape.

    ``widths``: channels after each of the five halvings (32, 64, 128, 256, 512: published).
    """

    def __init__(self, widths: Sequence[int]):
        super().__init__()
        first, second, third, fourth, fifth = widths
        self.down = nn.ModuleList(_Down(a, b) for a, b in pairwise([4, *widths]))
        self.up4, self.up3 = _Up(fifth, fourth, fourth), _Up(fourth, third, third)
        self.up2, self.up1 = _Up(third, second, second), _Up(2 * second, 3 * first, 3 * first)
        self.up0 = _Up(4 * first, 3 * first, 3, last=True)

    def forward(self, blurred: Tensor, masks: Tensor) -> Tensor:
        features, maps = torch.cat([blurred, masks], dim=1), []
        for down in self.down:
            features = down(features)
            maps.append(features)
        features = self.up4(features) + maps[3]
        features = self.up3(features) + maps[2]
        features = torch.cat([self.up2(features), maps[1]], dim=1)
        features = torch.cat([self.up1(features), maps[0]], dim=1)
        return (self.up0(features) + blurred).tanh()


def _active(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.LeakyReLU(SLOPE)]


def load_official(params: DartBlurSettings, path: Path) -> DartBlurUNet:
    """The U-Net of a file with the published layout and the sizes of ``params``, frozen.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    tensors = weight_files.select_tensors(weight_files.read(path), path)
    return weight_files.load(
        DartBlurUNet(params.widths), weight_files.rename_tensors(tensors, official_names(), path), path
    )


def official_names() -> dict[str, str]:
    """Published name -> our name of each tensor."""
    layers = {f"down{level}.module.{at}": f"down.{level}.{at}" for level in range(HALVINGS) for at in (0, 2)}
    layers |= {f"up{level}.module.{at}": f"up{level}.{at}" for level in range(HALVINGS) for at in (0, 3)}
    return {f"{a}.{kind}": f"{b}.{kind}" for a, b in layers.items() for kind in ("weight", "bias")}


def blur_boxes(images: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Images (N, 3, H, W), blurred in their boxes, int (N, 4): left, top, right, bottom.

    Kernels of w / 2 and h / 2 pixels, made odd; the deviation follows from them by OpenCV's rule.
    """
    result = images.copy()
    for image, (left, top, right, bottom) in zip(result, corners, strict=True):
        kernel = tuple(int(side / 2) | 1 for side in (right - left, bottom - top))
        region = np.ascontiguousarray(image[:, top:bottom, left:right].transpose(1, 2, 0))
        image[:, top:bottom, left:right] = cv2.GaussianBlur(region, kernel, 0).transpose(2, 0, 1)
    return result


UNITS = 127.5  # from [-1, 1] to units of 255


def review_loss(images: Tensor, plain: Tensor, masks: Tensor, budget: float) -> Tensor:
    """max(0, d - budget), d the mean smooth L1 distance to the plain blur in the box, in units of 255."""
    apart = smooth_l1_loss(images * UNITS, plain * UNITS, reduction="none") * masks
    return (apart.sum() / (3 * masks.sum()) - budget).relu()


def make_targets(answers: Tensor, truth: Tensor) -> Tensor:
    """A detector's own answers as targets: its probabilities, and its boxes in the cells with a face."""
    boxes = torch.where(truth[:, 1:].isnan(), torch.nan, answers[:, 1:])
    return torch.cat([answers[:, :1].sigmoid(), boxes], dim=1).detach()


CLIP = 500.0  # largest norm of the gradient of the U-Net: published code
SMOOTHED = 0.1  # label smoothing of the second detector's targets
SAMPLES = 6  # rows of a sample image


class DartBlurTask:
    """The updates of the first detector; then, in each step, one of the U-Net and one of the second detector."""

    def __init__(self, settings: DartBlurSettings, people: People, seed: int):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        self.settings, self.seed, self.people, self.size = settings, seed, people, people.pictures.shape[1]
        self.network = DartBlurUNet(settings.widths).to(device())
        self.clear = GridDetector(settings.detector.widths).to(device())
        self.second = GridDetector(settings.detector.widths).to(device())
        self.modules = {"network": self.network, "clear": self.clear, "second": self.second}
        rate, betas = settings.detector.learning_rate, (0.9, 0.999)
        self.optimizers = {
            "network": Optimizers({"network": self.network}, settings.learning_rate, settings.betas),
            "clear": Optimizers({"clear": self.clear}, rate, betas),
            "second": Optimizers({"second": self.second}, rate, betas),
        }

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name."""
        first = self.settings.detector.steps
        draw = seeding.make_generator(self.seed, "dartblur", step)
        if step < first:
            images, corners = self._draw_views(draw, self.settings.detector.batch)
            loss = compute_detection_loss(self.clear(images), self._make_grid_targets(corners))
            self.optimizers["clear"].descend(loss, compute_cooldown(step, first, 0.5))
            return {"detection": loss.item()}
        if step == first:
            self.second.load_state_dict(self.clear.state_dict())
        images, corners = self._draw_views(draw, self.settings.batch)
        plain = torch.from_numpy(blur_boxes(images.cpu().numpy(), corners)).to(images)
        masks = torch.from_numpy(region.draw_masks(corners, self.size)[:, None].astype(np.float32)).to(images)
        share = compute_cooldown(step - first, self.settings.steps, self.settings.cooldown)
        values, blurred = self._update_network(images, plain, masks, corners, share)
        second = compute_detection_loss(self.second(blurred), self._make_grid_targets(corners))
        self.optimizers["second"].descend(second, 1.0)
        return {name: value.item() for name, value in (values | {"second": second}).items()}

    def _update_network(
        self, images: Tensor, plain: Tensor, masks: Tensor, corners: np.ndarray, share: float
    ) -> tuple[dict[str, Tensor], Tensor]:
        truth = self._make_grid_targets(corners)
        with torch.no_grad():
            targets = make_targets(self.clear(images), truth)
        smoothed = targets.clone()
        smoothed[:, 0] = targets[:, 0] * (1 - SMOOTHED) + SMOOTHED / 2
        blurred = plain * (1 - masks) + self.network(plain, masks) * masks
        values = {
            "review": review_loss(blurred, plain, masks, self.settings.budget),
            "processing": compute_detection_loss(self.clear(blurred), targets),
            "post": compute_detection_loss(self.second(blurred), smoothed),
            "cyclic": compute_detection_loss(self._predict_after_step(blurred, truth, images), targets),
        }
        total: Any = sum(values.values())  # each with the weight 1, as in the published code
        self.optimizers["network"].descend(total, share, clip=CLIP)
        return values, blurred.detach()

    def _predict_after_step(self, blurred: Tensor, truth: Tensor, images: Tensor) -> Tensor:
        """The second detector's answers on original images after a step on the ``blurred`` ones.

        They are differentiable in ``blurred``.
        """
        weights: dict[str, Tensor] = dict(self.second.named_parameters())
        loss = compute_detection_loss(functional_call(self.second, weights, (blurred,)), truth)
        slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        rate = self.settings.inner_rate
        stepped = {name: weight - rate * slope for (name, weight), slope in zip(weights.items(), slopes, strict=True)}
        return functional_call(self.second, stepped, (images,))

    def _make_grid_targets(self, corners: np.ndarray) -> Tensor:
        cells = self.size // 2 ** len(self.settings.detector.widths)
        return build_targets(
            torch.from_numpy(corners).float().to(next(self.network.parameters()).device), self.size, cells
        )

    def _draw_views(self, draw: np.random.Generator, count: int) -> tuple[Tensor, np.ndarray]:
        """Images, shifted, scaled and half of them mirrored, and the boxes of their faces, int (N, 4)."""
        rows = draw.integers(len(self.people.pictures), size=count)
        corners = region.find_boxes(self.people.landmarks[rows], self.size)
        return draw_views(draw, to_float(self.people.pictures[rows]), corners)


def train(settings: DartBlurSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged U-Net)."""
    training = Training(job, settings)
    archive = training.archive
    size, first = archive.metadata["size"], settings.detector.steps
    task = DartBlurTask(settings, read_people(archive, job.people, size), job.seed)
    network = training.average(task.network)
    samples = read_people(archive, "validation", size, SAMPLES)
    training.fit(task, first + settings.steps, lambda: draw_samples(network, samples), first=first)
    training.save({"network": network}, {"size": size})


@torch.no_grad()
def draw_samples(network: DartBlurUNet, people: People) -> np.ndarray:
    """uint8 (rows, columns, 3): original | plain blur | result."""
    images, size = to_float(people.pictures), people.pictures.shape[1]
    corners = region.find_boxes(people.landmarks, size)
    plain, masks = blur_boxes(images, corners), region.draw_masks(corners, size)[:, None].astype(np.float32)
    where = next(network.parameters()).device
    generated = network(torch.from_numpy(plain).to(where), torch.from_numpy(masks).to(where)).cpu().numpy()
    return arrange_columns([images, plain, plain * (1 - masks) + generated * masks])
