"""The training of DeepPrivacy (Hukkelås et al. 2019, and the published code)."""

import numpy as np
import torch
from torch import Tensor

from masquerade.core import seeding
from masquerade.methods._inpainting import region, training
from masquerade.methods._inpainting.training import InpaintingTask, People, Scenes
from masquerade.methods.deepprivacy import DeepPrivacySettings
from masquerade.methods.deepprivacy.network import SMALLEST, InpaintingCritic, build_generator
from masquerade.networks.inputs import device
from masquerade.training.settings import TrainingJob


class DeepPrivacyTask(InpaintingTask):
    """Improved Wasserstein loss (Gulrajani et al. 2017, Eq. 3) with a drift term (Karras et al. 2018, appendix A.1)."""

    jitter = 0.02  # the published code

    def __init__(self, settings: DeepPrivacySettings, people: People, seed: int):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        network, critic = (
            build_generator(settings).to(device()),
            InpaintingCritic(settings.widths, settings.pose).to(device()),
        )
        super().__init__(settings, network, critic, people, seed)

    def build_guide(self, landmarks: np.ndarray) -> np.ndarray:
        return region.select_keypoints(landmarks, self.size)

    def draw_codes(self, count: int, draw: np.random.Generator) -> np.ndarray:
        return draw.standard_normal((count, self.settings.code, SMALLEST, SMALLEST), dtype=np.float32)

    def scores(self, images: Tensor, scenes: Scenes) -> Tensor:
        return self.critic(images, scenes.hidden, scenes.masks, scenes.guide)

    def generator_loss(self, scores: Tensor) -> Tensor:
        return -scores.mean()

    def penalizes(self, step: int) -> bool:
        return self.settings.losses.gradient_penalty > 0 and step % self.settings.small_scale.penalty_every == 0

    def critic_loss(self, scenes: Scenes, pasted: Tensor, step: int) -> Tensor:
        weights = self.settings.losses
        real, fake = self.scores(scenes.images, scenes), self.scores(pasted, scenes)
        loss = fake.mean() - real.mean() + weights.drift * real.square().mean()
        if self.penalizes(step):
            draw = seeding.make_generator(self.seed, "penalty", step)
            penalty = self._gradient_penalty(scenes, pasted, draw)
            loss = loss + weights.gradient_penalty * self.settings.small_scale.penalty_every * penalty
        return loss

    def _gradient_penalty(self, scenes: Scenes, pasted: Tensor, draw: np.random.Generator) -> Tensor:
        """(|grad D(mixture)| - 1)^2 of mixtures of real and drawn pictures (Gulrajani et al. 2017, Eq. 3)."""
        share = torch.from_numpy(draw.random((len(pasted), 1, 1, 1), dtype=np.float32)).to(pasted)
        mixed = torch.lerp(scenes.images, pasted, share).requires_grad_(True)
        slope = torch.autograd.grad(self.scores(mixed, scenes).sum(), mixed, create_graph=True)[0]
        return (slope.flatten(1).norm(dim=1) - 1).square().mean()


def train(settings: DeepPrivacySettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged generator)."""
    training.train(settings, job, settings.size, lambda people: DeepPrivacyTask(settings, people, job.seed))
