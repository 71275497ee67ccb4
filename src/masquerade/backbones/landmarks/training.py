"""The landmark network: from images to points, its training, and its quality."""

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.backbones._views import Views
from masquerade.backbones.landmarks import LandmarksSettings
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive, Faces
from masquerade.networks import deterministic
from masquerade.networks.inputs import apply_in_batches, place
from masquerade.training.batches import BatchTask
from masquerade.training.checkpoints import Saved
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training

logger = logging.getLogger(__name__)

POINTS = 68
EYE_CORNERS = (36, 45)
"""The points of the outer corners of both eyes; their distance is the unit of the error."""
GOOD = 8.0
"""Percent of that distance; a larger error counts as a failure."""


def order_mirrored_points() -> Tensor:
    """int64 (68,): for each point of a mirrored image, its number in the image, in iBUG order."""
    runs = [
        range(16, -1, -1), range(26, 16, -1), range(27, 31), range(35, 30, -1),  # outline, brows, bridge, nostrils
        (45, 44, 43, 42, 47, 46), (39, 38, 37, 36, 41, 40),  # eyes, lids in the order of the other eye
        range(54, 47, -1), range(59, 54, -1), range(64, 59, -1), range(67, 64, -1),  # outer lips, inner lips
    ]  # fmt: skip
    return torch.tensor([point for run in runs for point in run])


WIDTHS = (32, 64, 128, 256, 512)
"""Channels of the five convolutions of CNN-6."""


class LandmarkNet(nn.Module):
    """Images (N, 3, size, size) in [-1, 1] -> points (N, points, 2): x, y as shares of the image's side.

    CNN-6 (Feng et al. 2018, section 3): 3 x 3 convolutions, each followed by ReLU and 2 x 2 max pooling, one hidden
    layer, and the coordinates. Unlike a heat map, a coordinate has a gradient at every position.
    """

    def __init__(self, points: int = 68, size: int = 64, widths: Sequence[int] = WIDTHS, hidden: int = 1024):
        super().__init__()
        side = size // 2 ** len(widths)
        if side < 1:
            raise ValueError(f"size is {size}; {len(widths)} halvings need at least {2 ** len(widths)} pixels.")
        layers = []
        for inputs, outputs in zip((3, *widths[:-1]), widths, strict=True):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*layers)
        self.hidden = nn.Sequential(nn.Flatten(), nn.Linear(widths[-1] * side * side, hidden), nn.ReLU())
        self.places = nn.Linear(hidden, 2 * points)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                assert module.bias is not None
                nn.init.zeros_(module.bias)

    def start_at(self, shape: Tensor) -> None:
        """Initialize the output as the mean ``shape`` (points, 2), in shares of the side."""
        with torch.no_grad():
            self.places.weight.mul_(0.01)
            self.places.bias.copy_(shape.flatten())

    def forward(self, images: Tensor) -> Tensor:
        return self.places(self.hidden(self.features(images))).unflatten(1, (-1, 2))


def compute_wing_loss(predicted: Tensor, true: Tensor, w: float, epsilon: float) -> Tensor:
    """Mean of Wing(x) over all coordinates, x = predicted - true in pixels (Feng et al. 2018, Eq. 5).

    Below ``w`` pixels a logarithm, with the slope w / epsilon at 0, and a straight line above: small and medium errors
    have more weight than with L1.
    """
    x = (predicted - true).abs()
    c = w - w * math.log(1 + w / epsilon)  # joins both parts at |x| = w
    return torch.where(x < w, w * torch.log1p(x / epsilon), x - c).mean()


class Landmarker(nn.Module):
    """(N, 3, H, W) in [-1, 1], any size -> (N, 68, 2): x, y in pixels of those images, iBUG order. Differentiable."""

    def __init__(self, network: LandmarkNet, input_size: int):
        super().__init__()
        self.network, self.input_size = network, input_size

    def forward(self, images: Tensor) -> Tensor:
        shares = self.network(deterministic.resize(images, (self.input_size, self.input_size)))
        return to_pixels(shares, tuple(images.shape[-2:]))


def to_pixels(shares: Tensor, size: tuple[int, ...]) -> Tensor:
    """Shares of the sides -> pixels of an image of ``size`` (H, W); the center of pixel 0 is at 0."""
    return shares * shares.new_tensor([size[1], size[0]]) - 0.5


def to_shares(points: Tensor, size: tuple[int, ...]) -> Tensor:
    """The inverse of `to_pixels`."""
    return (points + 0.5) / points.new_tensor([size[1], size[0]])


class LandmarksTask(BatchTask):
    """The Wing loss of the points, in pixels of the network's input (Feng et al. 2018, Eq. 5)."""

    stream = "views"

    def __init__(
        self, landmarker: Landmarker, params: LandmarksSettings, pictures: np.ndarray, points: np.ndarray, seed: int
    ):
        super().__init__({"network": landmarker.network}, params, pictures, points, seed)
        self.landmarker, self.partner = landmarker, order_mirrored_points()

    def losses(self, draw: np.random.Generator, pictures: Tensor, targets: Tensor) -> dict[str, Tensor]:
        views, size, side = Views.sampled(draw, len(pictures)), pictures.shape[1:3], self.landmarker.input_size
        true = to_shares(views.points(targets, size, self.partner), size).to(self.device)
        predicted = self.landmarker.network(deterministic.resize(views.images(pictures).to(self.device), (side, side)))
        return {
            "loss": compute_wing_loss(predicted * side, true * side, self.params.wing_width, self.params.wing_epsilon)
        }


def train(params: LandmarksSettings, job: TrainingJob) -> None:
    """Train on the landmarks of the job's people and write the checkpoint."""
    training = Training(job, params, "landmarks")
    archive = training.archive
    rows = archive.select(job.people)
    pictures = archive.pictures(rows)
    points = read_points(Faces(pictures, rows), job.faces)
    logger.info("training on %d images", len(pictures))
    training.start()
    metadata = {"input_size": params.input_size, "widths": params.widths, "hidden": params.hidden}
    landmarker = build(metadata)
    landmarker.network.start_at(to_shares(torch.from_numpy(points.mean(0)), pictures.shape[1:3]))
    task = LandmarksTask(place(landmarker), params, pictures, points, training.seed)
    training.fit(task, params.steps)
    training.save(task.modules, metadata)


def read_points(faces: Faces, archive: Path) -> np.ndarray:
    """The landmarks, float32 (N, 68, 2). Raises ParameterError if a face of the archive has none."""
    points = faces.landmarks
    unknown = int(np.isnan(points).any(axis=(1, 2)).sum())
    if unknown:
        raise ParameterError(
            f"{archive}: {unknown} of {len(points)} faces have no 68 landmarks, which the landmark network needs for "
            "its training and its quality. Rendered faces have them: set matrix.train_on to one of those datasets."
        )
    return points


def build(metadata: Mapping) -> Landmarker:
    """The network of the metadata of a checkpoint, with random weights."""
    return Landmarker(
        LandmarkNet(POINTS, metadata["input_size"], metadata["widths"], metadata["hidden"]), metadata["input_size"]
    )


def load(checkpoint: Path) -> Landmarker:
    """The network of a checkpoint, frozen. Raises CheckpointError if it does not fit."""
    saved = Saved(checkpoint)
    module = build(saved.metadata)
    saved.frozen("network", module.network)
    return module.eval().requires_grad_(False)


def quality(landmarker: Landmarker, job: TrainingJob) -> dict[str, float]:
    """`measure_accuracy` on the validation split."""
    predicted, true = [], []
    for faces in FaceArchive(job.faces).batches(64, part="validation"):
        predicted.append(apply_in_batches(landmarker, len(faces), faces.images).numpy())
        true.append(read_points(faces, job.faces))
    return measure_accuracy(np.concatenate(predicted), np.concatenate(true))


def compute_normalized_error(predicted: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Percent (N,): mean error of the points (N, 68, 2) over the distance of the true outer eye corners (300-W)."""
    left, right = EYE_CORNERS
    unit = np.linalg.norm(true[:, left] - true[:, right], axis=-1)
    return 100 * np.linalg.norm(predicted - true, axis=-1).mean(1) / unit


def measure_accuracy(predicted: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """``nme``: mean of `compute_normalized_error`, smaller is better; ``share_below_8``: share of faces below 8 %."""
    errors = compute_normalized_error(predicted, true)
    return {"nme": float(errors.mean()), "share_below_8": float((errors < GOOD).mean()), "pictures": float(len(errors))}
