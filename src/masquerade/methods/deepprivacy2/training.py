"""The training of DeepPrivacy2 (Hukkelås and Lindseth 2023, and the published code)."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from masquerade.core import seeding
from masquerade.methods._inpainting import region, training
from masquerade.methods._inpainting.training import InpaintingTask, People, Scenes
from masquerade.methods.deepprivacy2 import DeepPrivacy2Settings
from masquerade.methods.deepprivacy2.network import build_generator
from masquerade.networks.discriminators import Discriminator
from masquerade.networks.inputs import device
from masquerade.training.settings import TrainingJob

CONDITION = 4  # channels of the hidden picture and of its mask


class DeepPrivacy2Task(InpaintingTask):
    """Non-saturating logistic loss with R1 at some steps (Karras et al. 2020) and a drift term."""

    def __init__(self, settings: DeepPrivacy2Settings, people: People, seed: int):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        size = settings.generator.size
        critic = Discriminator(size, settings.critic, inputs=3 + CONDITION).to(device())
        super().__init__(settings, build_generator(settings).to(device()), critic, people, seed)

    def build_guide(self, landmarks: np.ndarray) -> np.ndarray:
        return region.make_empty_guide(landmarks, self.size)

    def draw_codes(self, count: int, draw: np.random.Generator) -> np.ndarray:
        return draw.standard_normal((count, self.settings.generator.style), dtype=np.float32)

    def scores(self, images: Tensor, scenes: Scenes) -> Tensor:
        return self.critic(torch.cat([images, scenes.hidden, scenes.masks], dim=1)).squeeze(1)

    def generator_loss(self, scores: Tensor) -> Tensor:
        return softplus(-scores).mean()

    def penalizes(self, step: int) -> bool:
        return self.settings.losses.r1 > 0 and step % self.settings.r1_every == 0

    def critic_loss(self, scenes: Scenes, pasted: Tensor, step: int) -> Tensor:
        weights, every, penalized = self.settings.losses, self.settings.r1_every, self.penalizes(step)
        images = scenes.images.detach().requires_grad_(penalized)  # what the scenes show beside them gets no slope
        real, fake = self.scores(images, scenes), self.scores(pasted, scenes)
        loss = softplus(fake).mean() + softplus(-real).mean() + weights.drift * real.square().mean()
        if penalized:  # R1: Mescheder et al. 2018, Eq. 9
            slope = torch.autograd.grad(real.sum(), images, create_graph=True)[0]
            loss = loss + weights.r1 / 2 * every * slope.square().sum(dim=(1, 2, 3)).mean()
        return loss


def train(settings: DeepPrivacy2Settings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged generator)."""
    training.train(settings, job, settings.generator.size, lambda people: DeepPrivacy2Task(settings, people, job.seed))
