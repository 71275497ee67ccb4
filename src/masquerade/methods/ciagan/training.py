"""The training of CIAGAN (Maximov et al. 2020, section 3, and the published code)."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, relu

from masquerade.backbones import loaded
from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive, to_float
from masquerade.core.people import sort_by_hash
from masquerade.methods._inpainting import region, training
from masquerade.methods._inpainting.training import InpaintingTask, People, Scenes
from masquerade.methods.ciagan import CiaganSettings
from masquerade.methods.ciagan.network import CiaganCritic, build_generator, build_siamese
from masquerade.networks.inputs import apply_in_batches, device
from masquerade.training.optimizers import Optimizers
from masquerade.training.settings import TrainingJob

MARGIN = 3.0  # distance beyond which two people are not pushed further apart: the published code


class CiaganTask(InpaintingTask):
    """Least-squares GAN and, for the identity, the distance to a real picture, or to the mean, of the wanted person.

    Half of a batch is drawn as its own person. ``encoder``: the frozen identity encoder; None: a siamese network is
    trained along.
    """

    def __init__(self, settings: CiaganSettings, people: People, encoder: nn.Module | None, seed: int):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        network = build_generator(settings).to(device())
        critic = CiaganCritic(settings.critic.widths, settings.critic.hidden, settings.size).to(device())
        super().__init__(settings, network, critic, people, seed)
        self.owners, self.encoder = np.unique(people.identities, return_inverse=True)[1], encoder
        if encoder is None:
            self.siamese = build_siamese(settings.embedding).to(device())
            self.modules |= {"siamese": self.siamese}
            own = {"siamese": self.siamese}
            self.optimizers |= {"siamese": Optimizers(own, settings.learning_rate, settings.betas)}
        else:
            self.centers = compute_centers(encoder, people.pictures, self.owners)

    def choose_region(self, landmarks: np.ndarray, draw: np.random.Generator) -> np.ndarray:
        return region.draw_polygon_masks(landmarks, self.size)

    def build_guide(self, landmarks: np.ndarray) -> np.ndarray:
        return region.draw_outlines(landmarks, self.size)

    def draw_codes(self, count: int, draw: np.random.Generator) -> np.ndarray:
        return encode_one_hot(draw.integers(self.settings.labels, size=count), self.settings.labels)

    def draw_scenes(self, draw: np.random.Generator) -> Scenes:
        """A batch, half of it mirrored, whose first half has the labels of its own people."""
        scenes = super().draw_scenes(draw)
        own = encode_one_hot(self.owners[scenes.rows[: len(scenes.rows) // 2]], self.settings.labels)
        scenes.code[: len(own)] = torch.from_numpy(own).to(scenes.code)
        return scenes

    def shows_owner(self, scenes: Scenes) -> Tensor:
        return self._labels(scenes) == self._owners(scenes)

    def scores(self, images: Tensor, scenes: Scenes) -> Tensor:
        return self.critic(images, scenes.guide)

    def generator_loss(self, scores: Tensor) -> Tensor:
        return (scores - 1).square().mean()  # LSGAN: Mao et al. 2017, Eq. 9

    def critic_loss(self, scenes: Scenes, pasted: Tensor, step: int) -> Tensor:
        real, fake = self.scores(scenes.images, scenes), self.scores(pasted, scenes)
        if self.encoder is None:
            self._update_siamese(scenes, step)
        return (real - 1).square().mean() + fake.square().mean()  # LSGAN: Mao et al. 2017, Eq. 9

    def further_losses(self, pasted: Tensor, scenes: Scenes) -> dict[str, Tensor]:
        labels = self._labels(scenes)
        if self.encoder is not None:
            cosine = (normalize(self.encoder(pasted)) * self.centers[labels]).sum(dim=1)
            return {"identity": (1 - cosine).mean()}
        draw = seeding.make_generator(self.seed, "wanted", int(scenes.rows[0]), int(scenes.rows[-1]))
        other = self._draw_images(labels.cpu().numpy(), draw)
        self.siamese.requires_grad_(False)
        distance = (self.siamese(pasted) - self.siamese(other)).square().sum(dim=1)
        self.siamese.requires_grad_(True)
        return {"identity": 0.5 * distance.mean()}

    def _update_siamese(self, scenes: Scenes, step: int) -> None:
        """One update of the siamese network on real pairs, of which half are of one person."""
        others = self._draw_images(self._labels(scenes).cpu().numpy(), seeding.make_generator(self.seed, "pairs", step))
        first, second = self.siamese(scenes.images), self.siamese(others)
        loss = contrastive_loss(first, second, self.shows_owner(scenes), MARGIN)
        self.optimizers["siamese"].descend(loss, 1.0)

    def _draw_images(self, labels: np.ndarray, draw: np.random.Generator) -> Tensor:
        """A picture of each labeled person, (N, 3, S, S)."""
        rows = [draw.choice(np.flatnonzero(self.owners == label)) for label in labels]
        return torch.from_numpy(to_float(self.people.pictures[rows])).to(self.device)

    def _labels(self, scenes: Scenes) -> Tensor:
        return scenes.code.argmax(dim=1)

    def _owners(self, scenes: Scenes) -> Tensor:
        return torch.from_numpy(self.owners[scenes.rows]).to(self.device)


def contrastive_loss(first: Tensor, second: Tensor, same: Tensor, margin: float) -> Tensor:
    """1/2 (y d^2 + (1 - y) max(0, margin - d)^2), the mean over pairs (Hadsell et al. 2006, Eq. 4)."""
    squared = (first - second).square().sum(dim=1)
    apart = relu(margin - (squared + 1e-12).sqrt()).square()
    return 0.5 * torch.where(same, squared, apart).mean()


def encode_one_hot(labels: np.ndarray, count: int) -> np.ndarray:
    """float32 (N, count): 1 at the label, else 0."""
    return np.eye(count, dtype=np.float32)[labels]


@torch.no_grad()
def compute_centers(encoder: nn.Module, pictures: np.ndarray, owners: np.ndarray) -> Tensor:
    """The mean identity vector of each person, unit (people, D). ``owners`` int64 (M,): the person of each picture."""
    where = next(encoder.parameters()).device
    vectors = apply_in_batches(encoder, 256, pictures).to(where)
    sums = torch.zeros(owners.max() + 1, vectors.shape[1], device=where)
    return normalize(sums.index_add_(0, torch.from_numpy(owners).to(where), vectors))


def choose_people(archive: FaceArchive, part: str, count: int) -> list[str]:
    """``count`` people of a part with known landmarks, in the order of a hash of their names.

    Raises ParameterError if there are fewer.
    """
    names = sort_by_hash(training.select_located(archive, part)["identity"])
    if len(names) < count:
        raise ParameterError(
            f"methods.ciagan.params.labels is {count}, and the group {part} of {archive.path} has {len(names)} people "
            "with known landmarks. Lower labels, or build a larger archive."
        )
    return names[:count]


def train(settings: CiaganSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged generator)."""

    def task(people: People) -> CiaganTask:
        encoder = loaded("identity", job.backbones) if settings.small_scale.compared_by == "identity" else None
        return CiaganTask(settings, people, encoder, job.seed)

    training.train(
        settings, job, settings.size, task, lambda archive: choose_people(archive, job.people, settings.labels)
    )
