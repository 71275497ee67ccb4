"""The trainings of LDFA: first the autoencoder, then the diffusion model in its latent maps. Both are ours."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from masquerade.core import seeding
from masquerade.core.images import to_float
from masquerade.methods._inpainting import region
from masquerade.methods._inpainting.training import People, read_people
from masquerade.methods.ldfa import LdfaSettings, PhaseSettings
from masquerade.methods.ldfa.network import TIMES, LatentInpainter
from masquerade.networks.inputs import apply_in_batches, device
from masquerade.training.optimizers import Optimizers, cooldown_share
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

BETAS = (0.9, 0.99)
ENCODED = 128  # pictures whose latent maps are computed at a time
BOXES = 0.5  # share of the training masks that are face boxes; the others are random boxes
SMALLEST, LARGEST = 0.3, 0.8  # sides of random boxes, as shares of the side of the picture
SAMPLES = 6  # rows of a sample picture


class LdfaTask:
    """The updates of the autoencoder, then those of the diffusion model."""

    def __init__(self, settings: LdfaSettings, people: People, seed: int):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        self.settings, self.people, self.seed = settings, people, seed
        self.network = LatentInpainter(settings).to(device())
        self.modules = {"network": self.network}
        self.optimizers = {
            "autoencoder": self._optimizer(settings.autoencoder, "autoencoder"),
            "denoiser": self._optimizer(settings.denoiser, "denoiser"),
        }

    def _optimizer(self, phase: PhaseSettings, name: str) -> Optimizers:
        module = {name: getattr(self.network, name)}
        return Optimizers.with_kernels(module, phase.learning_rate, phase.kernel_rate, BETAS)

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name."""
        first, settings = self.settings.autoencoder.steps, self.settings
        draw = seeding.make_generator(self.seed, "ldfa", step)
        if step < first:
            values = self._reconstruct(draw)
            loss = values["pixels"] + settings.edges * values["edges"]
            share = cooldown_share(step, first, settings.cooldown)
            self.optimizers["autoencoder"].descend(loss, share)
        else:
            if step == first:
                self._standardize()
            values = {"denoising": self._denoise(draw)}
            share = cooldown_share(step - first, settings.denoiser.steps, settings.cooldown)
            self.optimizers["denoiser"].descend(values["denoising"], share)
        return {name: value.item() for name, value in values.items()}

    def _reconstruct(self, draw: np.random.Generator) -> dict[str, Tensor]:
        images, _ = self._batch(draw, self.settings.autoencoder.batch)
        error = self.network.autoencoder(images) - images
        edges = torch.stack([error.diff(dim=along).abs().mean() for along in (2, 3)]).sum()
        return {"pixels": error.abs().mean(), "edges": edges}

    def _denoise(self, draw: np.random.Generator) -> Tensor:
        """The mean squared error of v at random times (Salimans and Ho 2022)."""
        images, masks = self._batch(draw, self.settings.denoiser.batch)
        with torch.no_grad():
            maps, condition = self.network.encode(images), self.network.condition(images * (1 - masks), masks)
        noise = torch.from_numpy(draw.standard_normal(maps.shape, dtype=np.float32)).to(maps)
        times = torch.from_numpy(draw.integers(TIMES, size=len(maps))).to(maps.device)
        noisy, v = self.network.add_noise(maps, noise, times)
        return mse_loss(self.network.predict(noisy, condition, times), v)

    @torch.no_grad()
    def _standardize(self) -> None:
        """Set mean and deviation of the latent maps of the training pictures."""
        maps = apply_in_batches(self.network.autoencoder.encoder, ENCODED, self.people.pictures)
        self.network.mean.copy_(maps.mean(dim=(0, 2, 3), keepdim=True))
        self.network.deviation.copy_(maps.std(dim=(0, 2, 3), keepdim=True))

    def _batch(self, draw: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
        """Pictures (N, 3, S, S), half of them mirrored, and masks (N, 1, S, S): face boxes and random boxes."""
        rows = draw.integers(len(self.people.pictures), size=count)
        images, size = to_float(self.people.pictures[rows]), self.settings.size
        corners = region.find_boxes(self.people.landmarks[rows], size)
        sides = draw.uniform(SMALLEST, LARGEST, (count, 2)) * size
        start = draw.uniform(0, 1, (count, 2)) * (size - sides)
        others = np.rint(np.concatenate([start, start + sides], axis=1)).astype(int)
        of_face = np.arange(count) < round(BOXES * count)
        masks = region.draw_masks(np.where(of_face[:, None], corners, others), size)[:, None].astype(np.float32)
        turned = draw.random(count) < 0.5
        images[turned], masks[turned] = images[turned][..., ::-1], masks[turned][..., ::-1]
        where = self.network.mean.device
        return torch.from_numpy(images).to(where), torch.from_numpy(masks).to(where)


def train(settings: LdfaSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged networks)."""
    training = Training(job, settings)
    task = LdfaTask(settings, read_people(training.archive, job.people, settings.size), job.seed)
    network = training.average(task.network)
    known = read_people(training.archive, "validation", settings.size, SAMPLES)
    first = settings.autoencoder.steps
    training.fit(task, first + settings.denoiser.steps, lambda: draw_samples(network, known, job.seed), first=first)
    training.save({"network": network}, {"size": settings.size})


@torch.no_grad()
def draw_samples(network: LatentInpainter, people: People, seed: int) -> np.ndarray:
    """uint8 (rows, columns, 3): original | hidden | encoded and decoded | drawn from noise, twice."""
    where, size = network.mean.device, people.pictures.shape[1]
    images = torch.from_numpy(to_float(people.pictures)).to(where)
    masks = torch.from_numpy(region.draw_box_masks(people.landmarks, size)[:, None].astype(np.float32)).to(where)
    hidden, columns = images * (1 - masks), [images, images * (1 - masks), network.autoencoder(images)]
    for number in range(2):
        draw = seeding.make_generator(seed, "samples", number)
        noise = draw.standard_normal(network.encode(images).shape, dtype=np.float32)
        drawn = network(hidden, masks, images, torch.from_numpy(noise).to(where))
        columns.append(hidden + drawn * masks)
    return arrange_columns(columns)
