"""The networks of CIAGAN (Maximov et al. 2020, arXiv:2005.09544), its published weight file, and its training.

The networks are those of the published code, layer by layer: arch_unet_flex.py has the generator and the critic,
arch_resnet_siam.py the siamese network.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import normalize, relu
from torch.nn.utils.parametrizations import spectral_norm

from masquerade.backbones import load_backbone
from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive, to_float
from masquerade.core.people import sort_by_hash
from masquerade.methods._inpainting import region, training
from masquerade.methods._inpainting.training import InpaintingTask, People, Scenes
from masquerade.methods.ciagan import CiaganSettings
from masquerade.networks.deterministic import ReflectedConv2d
from masquerade.networks.inputs import apply_in_batches, device
from masquerade.training import weight_files
from masquerade.training.optimizers import Optimizers
from masquerade.training.settings import TrainingJob

SLOPE = 0.2  # of every LeakyReLU
BOTTOM = 4
"""Side in pixels of the coarsest maps."""
CODE = 32  # channels of the identity at 4 x 4 pixels


def build_convolution(inputs: int, outputs: int, kernel: int = 3) -> nn.Module:
    """A convolution with reflected borders and spectral norm, as each of the generator and the critic."""
    return spectral_norm(ReflectedConv2d(inputs, outputs, kernel))


class Down(nn.Module):
    """A residual block that halves the image: ReLU, convolution, ReLU, convolution, mean of 2 x 2 pixels."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.first, self.second = build_convolution(inputs, outputs), build_convolution(outputs, outputs)
        self.beside = build_convolution(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        deep = self.second(functional.relu(self.first(functional.relu(x))))
        return functional.avg_pool2d(deep, 2) + functional.avg_pool2d(self.beside(x), 2)


class Up(nn.Module):
    """A residual block that doubles the image: norm, ReLU, twice as large, convolution, norm, ReLU, convolution."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.norm1, self.norm2 = build_norm(inputs), build_norm(outputs)
        self.first, self.second = build_convolution(inputs, outputs), build_convolution(outputs, outputs)
        self.beside = build_convolution(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        large = self.first(_twice(functional.relu(self.norm1(x))))
        return self.second(functional.relu(self.norm2(large))) + self.beside(_twice(x))


class Middle(nn.Module):
    """A residual block of one size: convolution, norm, ReLU, convolution, norm."""

    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.Sequential(
            build_convolution(width, width),
            build_norm(width),
            nn.ReLU(),
            build_convolution(width, width),
            build_norm(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class CiaganGenerator(nn.Module):
    """Draws a face from its surroundings, lines along its landmarks, and the label of another person.

    ``down``: channels after each halving (32, 64, 128, 256, 256 at 128 pixels: published). ``up``: channels after each
    doubling (256, 128, 64, 32, 16). ``labels``: people whose identity it can draw (1,200: published). ``identity``:
    widths of the layers that read the label, the last one times 4 x 4 a multiple of 16 numbers.
    """

    def __init__(self, down: Sequence[int], up: Sequence[int], labels: int, identity: Sequence[int], blocks: int = 4):
        super().__init__()
        self.size = BOTTOM * 2 ** len(down)
        self.down = nn.ModuleList(Down(a, b) for a, b in zip([6, *down], down, strict=False))
        self.down_norms = nn.ModuleList(build_norm(width) for width in down)
        widths = [labels, *identity]
        layers: list[nn.Module] = []
        for into, out in zip(widths, identity, strict=False):
            layers += [nn.Linear(into, out), nn.LeakyReLU(SLOPE)]
        self.label = nn.Sequential(*layers)
        self.code = identity[-1] // BOTTOM**2
        maps = [self.code, max(1, down[-1] // 4), max(1, down[-1] // 2), down[-1]]
        spread: list[nn.Module] = []
        for into, out in pairwise(maps):
            spread += [build_convolution(into, out), nn.LeakyReLU(SLOPE), build_norm(out)]
        self.spread = nn.Sequential(*spread)
        self.merge = nn.Sequential(build_convolution(2 * down[-1], down[-1]), build_norm(down[-1]))
        self.middle = nn.Sequential(*(Middle(down[-1]) for _ in range(blocks)))
        self.up = nn.ModuleList(Up(a, b) for a, b in zip([down[-1], *up], up, strict=False))
        self.up_norms = nn.ModuleList(build_norm(width) for width in up)
        self.end = nn.Conv2d(up[-1], 3, 3, padding=1)

    def forward(self, hidden: Tensor, masks: Tensor, lines: Tensor, labels: Tensor) -> Tensor:
        """The image that is drawn, (N, 3, S, S), not limited to [-1, 1].

        ``hidden`` (N, 3, S, S) in [-1, 1]; ``masks`` (N, 1, S, S), 1 in the region to draw; ``lines`` (N, 1, S, S), 0
        on the lines, else 1; ``labels`` (N, labels), 1 at the wanted person and 0 elsewhere.
        """
        features = torch.cat(
            [color_lines(lines), (hidden + 1) / 2 * (1 - masks)], dim=1
        )  # in [0, 1], black in the region
        for block, norm in zip(self.down, self.down_norms, strict=True):
            features = norm(block(features))
        code = self.label(labels).unflatten(1, (self.code, BOTTOM, BOTTOM))  # (N, code, 4, 4)
        features = self.middle(self.merge(torch.cat([features, self.spread(code)], dim=1)))
        for block, norm in zip(self.up, self.up_norms, strict=True):
            features = norm(block(features))
        return self.end(features) * 2 - 1


class CiaganCritic(nn.Module):
    """Scores an image beside its lines, (N,); larger is more real. ``widths``: channels after each halving."""

    def __init__(self, widths: Sequence[int], hidden: int, size: int):
        super().__init__()
        self.down = nn.ModuleList(Down(a, b) for a, b in zip([6, *widths], widths, strict=False))
        side = size // 2 ** len(widths)
        self.dense = nn.Sequential(
            nn.Flatten(), nn.Linear(widths[-1] * side * side, hidden), nn.LeakyReLU(SLOPE), nn.Linear(hidden, 1)
        )

    def forward(self, images: Tensor, lines: Tensor) -> Tensor:
        """Images (N, 3, S, S) in [-1, 1] and lines (N, 1, S, S) -> (N,)."""
        features = torch.cat([(images + 1) / 2, color_lines(lines)], dim=1)
        for block in self.down:
            features = block(features)
        return functional.leaky_relu(self.dense(features), SLOPE).squeeze(1)  # on the score too: published code


def build_siamese(embedding: int) -> nn.Module:
    """The network that compares two people, (N, 3, S, S) -> (N, embedding): ResNet-18 that starts at full size."""
    from masquerade.networks import torchvision_internals

    torchvision_internals.ensure()
    from torchvision.models import resnet18

    network = resnet18(weights=None)
    network.conv1, network.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    network.fc = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, embedding))
    return network


def color_lines(lines: Tensor) -> Tensor:
    """Blue lines on white, (N, 3, S, S), as the published code saves them."""
    return torch.cat([lines, lines, torch.ones_like(lines)], dim=1)


def build_norm(width: int) -> nn.InstanceNorm2d:
    """The norm of each image and channel, with a learned gain and bias."""
    return nn.InstanceNorm2d(width, affine=True)


def _twice(x: Tensor) -> Tensor:
    return functional.interpolate(x, scale_factor=2.0, mode="nearest")


LEVELS = 5
"""Halvings of the published network of 128 pixels. That of 64 pixels lacks the first, number 0."""
PLAIN = {"weight": "weight", "bias": "bias"}
SPECTRAL = {
    "weight_orig": "parametrizations.weight.original",
    "weight_u": "parametrizations.weight.0._u",
    "weight_v": "parametrizations.weight.0._v",
    "bias": "bias",
}
"""Names of a convolution with spectral norm, by the older interface of PyTorch -> by the newer one."""


def build_generator(settings: CiaganSettings) -> CiaganGenerator:
    """The generator with the widths of ``settings``, untrained."""
    return CiaganGenerator(settings.down, settings.up, settings.labels, settings.identity, settings.blocks)


def load_official(params: CiaganSettings, path: Path) -> CiaganGenerator:
    """The generator of a file with the published layout and the sizes of ``params``, frozen.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    tensors = weight_files.select_tensors(weight_files.read(path), path)
    return weight_files.load(
        build_generator(params), weight_files.rename_tensors(tensors, official_names(params), path), path
    )


def official_names(params: CiaganSettings) -> dict[str, str]:
    """Published name -> our name of each tensor of a generator with the sizes of ``params``."""
    first, convolutions, plain = LEVELS - len(params.down), {"embed.0": "merge.0"}, {"embed.1": "merge.1"}
    residual = {"conv_r1": "first", "conv_r2": "second", "conv_l": "beside"}
    for level in range(len(params.down)):
        theirs, back = first + level, LEVELS - 1 - level
        convolutions |= {f"conv{theirs}.{a}": f"down.{level}.{b}" for a, b in residual.items()}
        convolutions |= {f"deconv{back}.{a}": f"up.{level}.{b}" for a, b in residual.items()}
        plain |= {f"deconv{back}.norm_r{number}": f"up.{level}.norm{number}" for number in (1, 2)}
        plain |= {f"in{theirs}_e": f"down_norms.{level}", f"in{back}_d": f"up_norms.{level}"}
    plain |= {f"encode_one_hot.{2 * layer}": f"label.{2 * layer}" for layer in range(len(params.identity))}
    for at in (0, 3, 6):  # convolution, LeakyReLU, norm
        convolutions[f"encode_noise.{at}"], plain[f"encode_noise.{at + 2}"] = f"spread.{at}", f"spread.{at + 2}"
    for block in range(params.blocks):
        convolutions |= {f"res{block + 1}.conv{n}": f"middle.{block}.layers.{at}" for n, at in ((1, 0), (2, 3))}
        plain |= {f"res{block + 1}.in{n}": f"middle.{block}.layers.{at}" for n, at in ((1, 1), (2, 4))}
    plain["conv_end.0"] = "end"
    names = {f"{a}.conv2d.{x}": f"{b}.{y}" for a, b in convolutions.items() for x, y in SPECTRAL.items()}
    return names | {f"{a}.{x}": f"{b}.{y}" for a, b in plain.items() for x, y in PLAIN.items()}


MARGIN = 3.0  # distance beyond which two people are not pushed further apart: the published code


class CiaganTask(InpaintingTask):
    """Least-squares GAN and, for the identity, the distance to a real image, or to the mean, of the wanted person.

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
        owner_codes = encode_one_hot(self.owners[scenes.rows[: len(scenes.rows) // 2]], self.settings.labels)
        scenes.code[: len(owner_codes)] = torch.from_numpy(owner_codes).to(scenes.code)
        return scenes

    def shows_owner(self, scenes: Scenes) -> Tensor:
        return self._labels(scenes) == torch.from_numpy(self.owners[scenes.rows]).to(self.device)

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
        target_images = self._draw_images(labels.cpu().numpy(), draw)
        self.siamese.requires_grad_(False)
        distance = (self.siamese(pasted) - self.siamese(target_images)).square().sum(dim=1)
        self.siamese.requires_grad_(True)
        return {"identity": 0.5 * distance.mean()}

    def _update_siamese(self, scenes: Scenes, step: int) -> None:
        """One update of the siamese network on real pairs, of which half are of one person."""
        others = self._draw_images(self._labels(scenes).cpu().numpy(), seeding.make_generator(self.seed, "pairs", step))
        first, second = self.siamese(scenes.images), self.siamese(others)
        loss = contrastive_loss(first, second, self.shows_owner(scenes), MARGIN)
        self.optimizers["siamese"].descend(loss, 1.0)

    def _draw_images(self, labels: np.ndarray, draw: np.random.Generator) -> Tensor:
        """An image of each labeled person, (N, 3, S, S)."""
        rows = [draw.choice(np.flatnonzero(self.owners == label)) for label in labels]
        return torch.from_numpy(to_float(self.people.pictures[rows])).to(self.device)

    def _labels(self, scenes: Scenes) -> Tensor:
        return scenes.code.argmax(dim=1)


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
    """The mean identity vector of each person, unit (people, D). ``owners`` int64 (M,): the person of each image."""
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
        encoder = load_backbone("identity", job.backbones) if settings.small_scale.compared_by == "identity" else None
        return CiaganTask(settings, people, encoder, job.seed)

    training.train(
        settings, job, settings.size, task, lambda archive: choose_people(archive, job.people, settings.labels)
    )
