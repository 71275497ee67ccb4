"""Trains a recognizer for photographs: images are augmented as photographs differ, and a face loses its surroundings.

Generated images of a person share hair, clothes and background, which a network takes for the person. So the training
exchanges what lies outside of the face with that of another person of the batch, or erases it.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from masquerade.backbones.recognition import PhotographSettings, RecognitionSettings, training
from masquerade.backbones.recognition.training import CROP
from masquerade.core.images import to_float, to_uint8
from masquerade.networks.imagenet_recognizer import ImageNetRecognizer, Trunk
from masquerade.networks.ir_se import compute_margin_logits
from masquerade.training.batches import BatchTask, build_maps, to_images
from masquerade.training.settings import TrainingJob

TURN, ZOOM, SHIFT = 8.0, 0.08, 0.05
"""Largest rotation in degrees, largest change of the scale as a share, largest shift as a share of the crop's side."""
GAIN, TINT, LIFT = 0.25, 0.12, 0.2
"""Largest change of the contrast, of the contrast of a color, and of the brightness on the scale [-1, 1]."""
GRAY, REDUCED, COMPRESSED = 0.15, 0.4, 0.4
"""Shares of the images in gray, with fewer pixels, and with JPEG's errors."""
SMALLEST, QUALITY, NOISE = 0.25, (15, 80), 0.06
"""Fewest pixels of a side as a share, range of JPEG's quality, largest deviation of noise on the scale [-1, 1]."""
FACE = (0.0, 0.05, 0.62, 0.84)
"""Middle and half axes of the face's oval in the crop, on the scale [-1, 1]: ears, hair and neck lie outside."""
EDGE = 0.12
"""Width of the oval's soft edge, as a share of its axes."""


class PhotographTask(BatchTask):
    """ArcFace (Deng et al. 2019, Eq. 3) in which two augmented images of a person are each other's class center.

    The classes of a step are the people of its batch. Centers that are learned start at random, and a short training
    spends its steps on them.
    """

    stream = "photographs"

    def __init__(
        self,
        settings: PhotographSettings,
        recognizer: training.Recognizer,
        params: RecognitionSettings,
        pictures: np.ndarray,
        labels: np.ndarray,
        seed: int,
    ):
        self.settings, self.recognizer = settings, recognizer
        self.rows = [np.flatnonzero(labels == person) for person in range(labels.max() + 1)]
        blocks: Any = recognizer.network.get_submodule("blocks")
        blocks[: settings.frozen].requires_grad_(False)
        super().__init__({"recognizer": recognizer}, params, pictures, labels, seed)

    def draw_rows(self, draw: np.random.Generator) -> np.ndarray:
        """Two images of each of some people: first one of each, then the others in the same order."""
        people = draw.choice(len(self.rows), min(self.params.batch // 2, len(self.rows)), replace=False)
        pairs = np.stack([draw.choice(self.rows[person], 2, replace=len(self.rows[person]) < 2) for person in people])
        return pairs.T.ravel()

    def losses(self, draw: np.random.Generator, pictures: Tensor, targets: Tensor) -> dict[str, Tensor]:
        views = augment(pictures, draw, self.recognizer.input_size, self.settings)
        vectors = self.recognizer.network(views.to(self.device, memory_format=torch.channels_last))
        first, second = functional.normalize(vectors).chunk(2)
        cosine = first @ second.T  # (people, people)
        labels = torch.arange(len(cosine), device=self.device)
        logits = compute_margin_logits(
            torch.cat([cosine, cosine.T]), labels.repeat(2), self.params.scale, self.params.margin
        )
        loss = functional.cross_entropy(logits, labels.repeat(2))
        return {"loss": loss, "accuracy": (cosine.argmax(1) == labels).float().mean()}


def train(name: str, trunk: Trunk, settings: PhotographSettings, params: RecognitionSettings, job: TrainingJob) -> None:
    """Train on the job's people and write the checkpoint. ``name`` is part of the seed."""
    metadata = {"network": trunk, "crop": CROP._asdict()}
    training.train(name, build_started, params, job, metadata, partial(PhotographTask, settings))


def build_started(metadata: Mapping[str, Any]) -> ImageNetRecognizer:
    """The network with ImageNet's weights, in the order of memory in which depthwise convolutions are quick."""
    network = ImageNetRecognizer(metadata["network"], metadata["input_size"])
    network.start_from_imagenet()
    return network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def augment(pictures: Tensor, draw: np.random.Generator, side: int, settings: PhotographSettings) -> Tensor:
    """uint8 (N, S, S, 3) of aligned faces -> their augmented crops, float (N, 3, side, side) in [-1, 1]."""
    images = _crop(pictures, draw, side)
    images = _change_surroundings(images, draw, settings)
    images = _change_light(images, draw)
    return torch.from_numpy(np.stack([_degrade(image, draw) for image in images.numpy()]))


def _crop(pictures: Tensor, draw: np.random.Generator, side: int) -> Tensor:
    """Mirrored or not, turned, scaled and shifted crops."""
    count = len(pictures)
    images = to_images(pictures)
    middle = np.array([CROP.left + CROP.right, CROP.top + CROP.bottom]) / CROP.of - 1
    half = (CROP.right - CROP.left) / CROP.of
    turn = np.radians(draw.uniform(-TURN, TURN, count))
    scale = half * (1 + draw.uniform(-ZOOM, ZOOM, count))
    place = middle + 2 * half * draw.uniform(-SHIFT, SHIFT, (count, 2))
    mirror = np.where(draw.random(count) < 0.5, -1.0, 1.0)
    maps = build_maps(turn, scale, place, mirror)
    grid = functional.affine_grid(maps, [count, 3, side, side], align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def _change_surroundings(images: Tensor, draw: np.random.Generator, settings: PhotographSettings) -> Tensor:
    """Exchange what lies outside of the face with that of another image, or erase it."""
    count, _, side, _ = images.shape
    rows, columns = torch.meshgrid(*(torch.linspace(-1, 1, side),) * 2, indexing="ij")
    middle = torch.from_numpy(np.array(FACE[:2]) + draw.uniform(-0.05, 0.05, (count, 2))).float()[..., None, None]
    axes = torch.from_numpy(np.array(FACE[2:]) * draw.uniform(0.9, 1.15, (count, 2))).float()[..., None, None]
    distance = (((columns - middle[:, 0]) / axes[:, 0]).square() + ((rows - middle[:, 1]) / axes[:, 1]).square()).sqrt()
    face = ((1 + EDGE - distance) / EDGE).clamp(0, 1)[:, None]
    other_images = images.roll(int(draw.integers(1, count)), 0)
    colors = torch.from_numpy(draw.uniform(-1, 1, (count, 3, 1, 1))).float()
    noise = torch.from_numpy(draw.standard_normal((count, 3, side, side), dtype=np.float32))
    kind = torch.from_numpy(draw.random(count))[:, None, None, None]
    around = torch.where(kind < settings.exchanged, other_images, colors + 0.2 * noise)
    changed = face * images + (1 - face) * around
    return torch.where(kind < settings.exchanged + settings.erased, changed, images)


def _change_light(images: Tensor, draw: np.random.Generator) -> Tensor:
    """Other contrast, colors and brightness, some images in gray."""
    count = len(images)
    gain = 1 + draw.uniform(-GAIN, GAIN, (count, 1, 1, 1)) + draw.uniform(-TINT, TINT, (count, 3, 1, 1))
    lift = draw.uniform(-LIFT, LIFT, (count, 1, 1, 1)) + draw.uniform(-TINT, TINT, (count, 3, 1, 1))
    gray = torch.from_numpy(draw.random((count, 1, 1, 1)) < GRAY)
    images = torch.where(gray, images.mean(1, keepdim=True), images)
    return (images * torch.from_numpy(gain).float() + torch.from_numpy(lift).float()).clamp(-1, 1)


def _degrade(image: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Fewer pixels, noise, and JPEG: float32 (3, S, S) in [-1, 1] -> the same."""
    side = image.shape[-1]
    picture = np.ascontiguousarray(image.transpose(1, 2, 0))
    reduced, compressed = draw.random(2) < (REDUCED, COMPRESSED)
    small = max(1, round(side * draw.uniform(SMALLEST, 1)))
    quality = int(draw.integers(*QUALITY))
    if reduced:
        picture = cv2.resize(cv2.resize(picture, (small, small), interpolation=cv2.INTER_AREA), (side, side))
    picture = picture + draw.standard_normal(picture.shape, dtype=np.float32) * np.float32(draw.uniform(0, NOISE))
    picture = picture.transpose(2, 0, 1).clip(-1, 1)
    if compressed:
        pixels = to_uint8(picture)
        _, encoded = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])
        picture = to_float(np.asarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR)))
    return np.ascontiguousarray(picture, dtype=np.float32)
