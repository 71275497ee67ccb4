"""The training that all inpainters share: hide a region, draw it, paste it, and compare it with real faces."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from masquerade.backbones.generator.sharpening import compute_texture
from masquerade.backbones.landmarks.training import order_mirrored_points
from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive, Faces, to_float, to_uint8
from masquerade.methods._inpainting import InpaintingSettings, region
from masquerade.networks import deterministic
from masquerade.training.optimizers import Optimizers, compute_cooldown, weigh_losses
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

DECODED = 256  # images that are decoded at a time
SAMPLES = 6  # rows of a sample image


class Scenes(NamedTuple):
    """Images with a hidden region, and what the generator may know of it."""

    images: Tensor
    """(N, 3, S, S) in [-1, 1]; only losses and the critic see the hidden region."""
    masks: Tensor
    """(N, 1, S, S): 1 in the region to draw, else 0."""
    guide: Tensor
    """What the generator knows of the face: keypoints (N, K, 2), an image of landmarks, or nothing (N, 0)."""
    code: Tensor
    """(N, ...): random numbers, or the label of the person to draw."""
    rows: np.ndarray
    """The row of each image among the images of the training."""

    @property
    def hidden(self) -> Tensor:
        """The images, gray (0) in the region."""
        return self.images * (1 - self.masks)

    def paste(self, generated: Tensor) -> Tensor:
        """The images with the drawn region."""
        return self.hidden + generated * self.masks


class People(NamedTuple):
    """Images, uint8 (M, S, S, 3), their 68 landmarks in pixels, float32 (M, 68, 2), and the names of their people."""

    pictures: np.ndarray
    landmarks: np.ndarray
    identities: list[str]


class InpaintingTask(ABC):
    """One update of the generator and one of the critic, on a batch of images. A method's subclass adds its parts.

    The batch depends only on the seed and the number of the step.
    """

    jitter: ClassVar[float] = 0.0
    """Largest shift of each side of the region while training, as a share of its size."""

    def __init__(self, settings: Any, network: nn.Module, critic: nn.Module, people: People, seed: int):
        self.settings, self.network, self.critic, self.people, self.seed = settings, network, critic, people, seed
        self.size, self.device = people.pictures.shape[1], next(network.parameters()).device
        self._order = order_mirrored_points().numpy()
        self.modules = {"network": network, "critic": critic}
        knobs: InpaintingSettings = settings
        rate, betas = knobs.learning_rate, knobs.betas
        self.optimizers = {
            "network": Optimizers.with_kernels({"network": network}, rate, knobs.kernel_rate, betas),
            "critic": Optimizers({"critic": critic}, rate, betas),
        }

    def choose_region(self, landmarks: np.ndarray, draw: np.random.Generator) -> np.ndarray:
        """The region to draw, bool (N, S, S): the box of the face, its sides shifted at random by up to `jitter`."""
        corners = jitter_boxes(region.find_boxes(landmarks, self.size), self.jitter, self.size, draw)
        return region.draw_masks(corners, self.size)

    @abstractmethod
    def build_guide(self, landmarks: np.ndarray) -> np.ndarray:
        """What the generator knows of the face, float32 (N, ...)."""

    @abstractmethod
    def draw_codes(self, count: int, draw: np.random.Generator) -> np.ndarray:
        """Random codes, float32 (count, ...)."""

    @abstractmethod
    def scores(self, images: Tensor, scenes: Scenes) -> Tensor:
        """The critic's scores of images with the guide and the mask of ``scenes``."""

    @abstractmethod
    def generator_loss(self, scores: Tensor) -> Tensor:
        """The generator's adversarial loss, from the scores of its images."""

    @abstractmethod
    def critic_loss(self, scenes: Scenes, pasted: Tensor, step: int) -> Tensor:
        """The critic's loss; ``pasted``: the generator's images, without a gradient."""

    def further_losses(self, pasted: Tensor, scenes: Scenes) -> dict[str, Tensor]:
        """Further losses of the generator, whose weights are in ``settings.losses``."""
        return {}

    def shows_owner(self, scenes: Scenes) -> Tensor:
        """Whether the hidden face is the one to draw, bool (N,): only then the drawn pixels are compared with it."""
        return torch.ones(len(scenes.images), dtype=torch.bool)

    def draw_scenes(self, draw: np.random.Generator) -> Scenes:
        """A batch, half of it mirrored."""
        rows = draw.integers(len(self.people.pictures), size=self.settings.batch)
        images, points = to_float(self.people.pictures[rows]), self.people.landmarks[rows].copy()
        mirrored = draw.random(len(rows)) < 0.5
        images[mirrored] = images[mirrored][..., ::-1]
        points[mirrored] = points[mirrored][:, self._order]
        points[mirrored, :, 0] = self.size - 1 - points[mirrored, :, 0]
        return self.build_scenes(images, points, rows, draw)

    def build_scenes(
        self, images: np.ndarray, landmarks: np.ndarray, rows: np.ndarray, draw: np.random.Generator
    ) -> Scenes:
        """Images (N, 3, S, S) with their landmarks as scenes, on the device of the network."""
        masks = self.choose_region(landmarks, draw)[:, None].astype(np.float32)
        arrays = (images, masks, self.build_guide(landmarks), self.draw_codes(len(rows), draw))
        return Scenes(*[torch.from_numpy(array).to(self.device) for array in arrays], rows=rows)

    def penalizes(self, step: int) -> bool:
        """Whether the critic's loss has a penalty of its gradient at a step."""
        return False

    def step(self, step: int) -> dict[str, float]:
        """One update of the generator, then one of the critic from ``critic_from`` on. Returns the losses by name."""
        draw = seeding.make_generator(self.seed, "inpainting", step)
        scenes, criticised = self.draw_scenes(draw), step >= self.settings.small_scale.critic_from
        values, pasted = self._update_generator(scenes, step, criticised)
        if criticised:
            values["critic"] = self.critic_loss(scenes, pasted, step)
            self.optimizers["critic"].descend(values["critic"], 1.0)
        return {name: value.item() for name, value in values.items()}

    def _update_generator(self, scenes: Scenes, step: int, criticised: bool) -> tuple[dict[str, Tensor], Tensor]:
        pasted = paint_region(self.network, scenes)
        values = compute_differences(pasted, scenes, self.shows_owner(scenes)) | self.further_losses(pasted, scenes)
        if criticised:
            self.critic.requires_grad_(False)
            values["adversarial"] = self.generator_loss(self.scores(pasted, scenes))
        total = weigh_losses(values, self.settings.weights)
        self.optimizers["network"].descend(total, compute_cooldown(step, self.settings.steps, self.settings.cooldown))
        self.critic.requires_grad_(True)
        return values | {"total": total}, pasted.detach()


def paint_region(network: nn.Module, scenes: Scenes) -> Tensor:
    """The images with the region that ``network``, a generator or its average, draws: (N, 3, S, S)."""
    return scenes.paste(network(scenes.hidden, scenes.masks, scenes.guide, scenes.code))


def compute_differences(pasted: Tensor, scenes: Scenes, compared: Tensor) -> dict[str, Tensor]:
    """The mean absolute errors of the drawn pixels, and of the differences between neighbors of which one is drawn.

    And of the texture around the drawn pixels. Only of the ``compared`` images, bool (N,).
    """
    weights = compared.to(pasted)[:, None, None, None]
    error, mask = (pasted - scenes.images) * weights, scenes.masks * weights
    edges = places = 0.0
    for along in (2, 3):
        neighbors = mask.narrow(along, 1, mask.shape[along] - 1), mask.narrow(along, 0, mask.shape[along] - 1)
        edges = edges + error.diff(dim=along).abs().sum()
        places = places + 3 * torch.maximum(*neighbors).sum()
    finer = (compute_texture(pasted) - compute_texture(scenes.images)).abs() * mask
    pixels = torch.clamp(mask.sum(), min=1)
    return {
        "reconstruction": error.abs().sum() / (3 * pixels),
        "edges": edges / torch.clamp(torch.as_tensor(places), min=1),
        "texture": finer.sum() / pixels,
    }


def jitter_boxes(corners: np.ndarray, share: float, size: int, draw: np.random.Generator) -> np.ndarray:
    """Boxes (N, 4) whose sides are shifted by up to ``share`` of their width or height, within the image."""
    sides = corners[:, 2:] - corners[:, :2]
    shifts = draw.uniform(-share, share, corners.shape) * np.concatenate([sides, sides], axis=1)
    moved = np.rint(corners + shifts).astype(int)
    return np.clip(moved, 0, size)


def select_located(archive: FaceArchive, part: str) -> pd.DataFrame:
    """The rows of a part whose landmarks are known."""
    rows = archive.select(part)
    return rows[~np.isnan(Faces(np.empty(0), rows).landmarks).any(axis=(1, 2))]


def read_people(
    archive: FaceArchive, part: str, size: int, limit: int | None = None, names: Collection[str] | None = None
) -> People:
    """The images of a part with ``size`` pixels a side. Faces without landmarks are left out.

    ``names``: only these people. Larger images are averaged down. Raises ParameterError if fewer than two faces
    remain, or if images are smaller than ``size``.
    """
    rows, archive_size = select_located(archive, part), archive.metadata["size"]
    if names is not None:
        rows = rows[rows["identity"].isin(set(names))]
    rows = rows.iloc[:limit]
    if archive_size < size:
        raise ParameterError(
            f"{archive.path} holds images of {archive_size} pixels; this network needs {size}. Lower widths."
        )
    if len(rows) < 2:
        raise ParameterError(
            f"{archive.path} holds {len(rows)} usable faces with landmarks in part {part}; two are needed. Build a "
            "larger archive, or one with landmarks."
        )
    pictures = np.concatenate(
        [to_uint8(average_down(faces.images, size)) for faces in archive.batches(DECODED, rows=rows)]
    )
    return People(
        pictures,
        region.scale_landmarks(Faces(np.empty(0), rows).landmarks, archive_size, size),
        rows["identity"].tolist(),
    )


def average_down(images: np.ndarray, size: int) -> np.ndarray:
    """Images (N, 3, H, W), averaged down to ``size`` pixels a side."""
    if images.shape[-1] == size:
        return images
    return deterministic.average(torch.from_numpy(images), (size, size)).numpy()


def train(
    settings: InpaintingSettings,
    job: TrainingJob,
    size: int,
    task_of: Callable[[People], InpaintingTask],
    names: Callable[[FaceArchive], Collection[str]] | None = None,
) -> None:
    """Train the task of the people of the job, and write ``job.checkpoint`` (the averaged generator).

    ``size``: side in pixels of the images. ``names``: chooses among the people of an archive; None: all.
    """
    training = Training(job, settings)
    archive = training.archive
    task = task_of(read_people(archive, job.people, size, names=names and names(archive)))
    network = training.average(task.network)
    samples = read_people(archive, "validation", size, SAMPLES)
    draw = seeding.make_generator(job.seed, "samples")
    with torch.no_grad():
        scenes = task.build_scenes(
            to_float(samples.pictures),
            samples.landmarks,
            np.arange(len(samples.pictures)),
            draw,
        )
    training.fit(task, settings.steps, lambda: draw_samples(network, scenes))
    training.save({"network": network}, {"size": size})


@torch.no_grad()
def draw_samples(network: nn.Module, scenes: Scenes) -> np.ndarray:
    """uint8 (rows, columns, 3): original | hidden | drawn | drawn with the code of the row above."""
    draws = [scenes, scenes._replace(code=scenes.code.roll(1, dims=0))]
    return arrange_columns([scenes.images, scenes.hidden, *(paint_region(network, each) for each in draws)])
