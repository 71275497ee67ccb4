"""AnonymousNet: the networks of StarGAN (Choi et al. 2018, arXiv:1711.09020), layer by layer as in the published code
(model.py), and the training: the classifier of stage I, the generator of stage III, the perturbation of stage IV.

The published generator takes the label as constant channels of the image. Instance norm removes a constant from each
channel, so only the borders, which are padded with zeros, carry the label. With ``scaled`` the label scales and shifts
the channels after the norms of the residual blocks instead (ours).
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones import load_backbone
from masquerade.backbones.attribute_classifier.training import (
    Classifier,
    list_annotated,
    read_annotations,
    weigh_classes,
)
from masquerade.backbones.recognition.training import augment
from masquerade.core import seeding
from masquerade.core.annotations import ATTRIBUTES
from masquerade.core.errors import ParameterError
from masquerade.core.images import to_float
from masquerade.methods.anonymousnet import AnonymousNetSettings
from masquerade.methods.latent.codes import Table
from masquerade.networks.discriminators import gradient_penalty
from masquerade.networks.inputs import device
from masquerade.training.optimizers import Optimizers, compute_cooldown, weigh_losses
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

SLOPE = 0.01  # of the critic's LeakyReLU
INSIDE = 1 - 1 / 512  # keeps artanh finite for black and white
MOST = 2048  # largest number of channels of the critic


class LabeledBlock(nn.Module):
    """x + f(x): convolution, norm, ReLU, convolution, norm; the label scales and shifts what the norms give."""

    def __init__(self, width: int, labels: int):
        super().__init__()
        self.first, self.norm1 = _convolution(width, width, 3), _norm(width)
        self.second, self.norm2 = _convolution(width, width, 3), _norm(width)
        self.label = nn.Linear(labels, 4 * width) if labels else None

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        affine = [None] * 4 if self.label is None else self.label(labels)[:, :, None, None].chunk(4, dim=1)
        deep = _modulate(self.norm1(self.first(x)), affine[0], affine[1]).relu()
        return x + _modulate(self.norm2(self.second(deep)), affine[2], affine[3])


class StarGanGenerator(nn.Module):
    """An image (N, 3, S, S) in [-1, 1] and a label (N, L) of 0 and 1 -> the image with that label, same range.

    ``width``: channels before the first halving (64); ``halvings`` (2); ``blocks`` (6). ``reach`` 0: the network draws
    the image, as published; else the largest change of the artanh of a color. ``scaled``: see above.
    """

    def __init__(self, labels: int, width: int = 64, halvings: int = 2, blocks: int = 6, reach: float = 0.0,
                 scaled: bool = False):  # fmt: skip
        super().__init__()
        self.reach, self.scaled = reach, scaled
        layers: list[nn.Module] = [_convolution(3 + (0 if scaled else labels), width, 7), _norm(width), nn.ReLU()]
        for level in range(halvings):
            wide = width * 2**level
            layers += [nn.Conv2d(wide, 2 * wide, 4, 2, 1, bias=False), _norm(2 * wide), nn.ReLU()]
        self.down = nn.Sequential(*layers)
        deep = width * 2**halvings
        self.middle = nn.ModuleList(LabeledBlock(deep, labels if scaled else 0) for _ in range(blocks))
        layers = []
        for level in reversed(range(halvings)):
            wide = width * 2**level
            layers += [nn.ConvTranspose2d(2 * wide, wide, 4, 2, 1, bias=False), _norm(wide), nn.ReLU()]
        last = _convolution(width, 3, 7)
        if reach:
            nn.init.zeros_(last.weight)  # the training starts at the image itself
        self.up = nn.Sequential(*layers, last)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        features = images
        if not self.scaled:
            # (N, 3 + L, S, S): the label as constant channels
            features = torch.cat([images, labels[:, :, None, None].expand(-1, -1, *images.shape[2:])], dim=1)
        features = self.down(features)
        for block in self.middle:
            features = block(features, labels)
        generated = self.up(features).tanh()
        return generated if not self.reach else ((INSIDE * images).atanh() + self.reach * generated).tanh()


class StarGanCritic(nn.Module):
    """Images (N, 3, S, S) -> a map of scores (N, 1, h, w), larger is more real, and logits of the label (N, L).

    ``width``: channels after the first halving (64), which each of the ``depth`` (6) halvings doubles.
    """

    def __init__(self, size: int, labels: int, width: int = 64, depth: int = 6):
        super().__init__()
        layers: list[nn.Module] = []
        into = 3
        for level in range(depth):
            out = min(width * 2**level, MOST)
            layers += [nn.Conv2d(into, out, 4, 2, 1), nn.LeakyReLU(SLOPE)]
            into = out
        self.layers = nn.Sequential(*layers)
        self.score = nn.Conv2d(into, 1, 3, padding=1, bias=False)
        self.label = nn.Conv2d(into, labels, size // 2**depth, bias=False)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.layers(images)
        return self.score(features), self.label(features).flatten(1)


def _modulate(x: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    return x if scale is None or shift is None else x * (1 + scale) + shift


def _convolution(inputs: int, outputs: int, kernel: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)


def _norm(width: int) -> nn.InstanceNorm2d:
    return nn.InstanceNorm2d(width, affine=True)


CROP = (0.0, 0.0, 1.0, 1.0)  # the classifier sees the whole image, as hair is among the attributes
DROPOUT, BALANCE, COOLDOWN = 0.3, 0.5, 0.5  # of stage I
ADAM_RATE = 0.3  # of stage I: the rate of Adam as a share of Muon's
SAMPLES = 6  # rows of a sample image


class AnonymousNetTask:
    """The updates of stage I, then those of stage III. ``pictures`` uint8 (M, S, S, 3); ``labels`` bool (M, A)."""

    def __init__(self, settings: AnonymousNetSettings, pictures: np.ndarray, labels: np.ndarray, seed: int):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        self.settings, self.pictures, self.seed, self.device = settings, pictures, seed, device()
        self.labels = torch.from_numpy(labels).float()
        self.weights = weigh_classes(labels, BALANCE)
        self.chosen = select_columns(settings)
        self.estimator = build_estimator(settings).to(self.device)
        self.network = build_generator(settings).to(self.device)
        critic = settings.critic
        self.critic = StarGanCritic(pictures.shape[1], len(self.chosen), critic.width, critic.depth).to(self.device)
        self.modules = {"estimator": self.estimator, "network": self.network, "critic": self.critic}
        critic_rates = (settings.critic.learning_rate, settings.small_scale.critic_kernel_rate)
        network_rates = (settings.learning_rate, settings.kernel_rate)
        self.optimizers = {
            "estimator": Optimizers(
                {"estimator": self.estimator}, settings.estimator.learning_rate, (0.9, 0.99), (2, 4), ADAM_RATE
            ),
            "network": Optimizers.with_kernels({"network": self.network}, *network_rates, settings.betas),
            "critic": Optimizers.with_kernels({"critic": self.critic}, *critic_rates, settings.betas),
        }

    def step(self, step: int) -> dict[str, float]:
        """One update: of stage I first, then of the critic's labels, then of stage III. Returns the losses by name."""
        if step < self.settings.estimator.steps:
            return {"estimation": self._estimate(step).item()}
        if step < count_warmup_steps(self.settings):
            return {"labels": self._learn_labels(step).item()}
        return {name: value.item() for name, value in self._update_generator(step).items()}

    def _estimate(self, step: int) -> Tensor:
        """Stage I: binary cross-entropy of every attribute."""
        draw = seeding.make_generator(self.seed, "stage I", step)
        torch.manual_seed(seeding.derive_seed(self.seed, "dropout", step))
        self.estimator.train()
        rows = torch.from_numpy(draw.integers(len(self.pictures), size=self.settings.estimator.batch))
        images = augment(torch.from_numpy(self.pictures[rows.numpy()]), draw).to(self.device)
        labels, weights = self.labels[rows].to(self.device), self.weights[rows].to(self.device)
        loss = functional.binary_cross_entropy_with_logits(self.estimator(images), labels, weights)
        self.optimizers["estimator"].descend(loss, compute_cooldown(step, self.settings.estimator.steps, COOLDOWN))
        return loss

    def _learn_labels(self, step: int) -> Tensor:
        """An update of the critic by the labels of real images alone (Choi et al. 2018, Eq. 2)."""
        images, labels, _ = self._draw_batch(step, 0)
        loss = functional.binary_cross_entropy_with_logits(self.critic(images)[1], labels)
        self.optimizers["critic"].descend(loss, 1.0)
        return loss

    def _update_generator(self, step: int) -> dict[str, Tensor]:
        """Stage III: the losses of StarGAN (Choi et al. 2018, Eq. 1-7)."""
        updates = range(self.settings.critic_updates)
        criticism = [self._update_critic(*self._draw_batch(step, number), step) for number in updates]
        images, labels, target_labels = self._draw_batch(step, self.settings.critic_updates)
        weights = self.settings.losses
        generated = self.network(images, target_labels)
        self.critic.requires_grad_(False)
        scores, logits = self.critic(generated)
        values = {
            "adversarial": -scores.mean(),  # Eq. 7, of the generator
            "classification": functional.binary_cross_entropy_with_logits(logits, target_labels),  # Eq. 3
            "cycle": (self.network(generated, labels) - images).abs().mean(),  # Eq. 4
        }
        total = weigh_losses(values, weights)  # Eq. 6
        share = compute_cooldown(step - count_warmup_steps(self.settings), self.settings.steps, self.settings.cooldown)
        self.optimizers["network"].descend(total, share)
        self.critic.requires_grad_(True)
        return values | {"critic": criticism[-1]}

    def _update_critic(self, images: Tensor, labels: Tensor, target_labels: Tensor, step: int) -> Tensor:
        weights, settings = self.settings.losses, self.settings
        with torch.no_grad():
            generated = self.network(images, target_labels)
        (real, logits), (fake, _) = self.critic(images), self.critic(generated)
        loss = fake.mean() - real.mean()  # Eq. 7, of the critic
        loss = loss + weights.classification * functional.binary_cross_entropy_with_logits(logits, labels)  # Eq. 2
        if weights.gradient_penalty and step % settings.small_scale.penalty_every == 0:
            draw = seeding.make_generator(self.seed, "penalty", step)
            penalty = gradient_penalty(lambda mixed: self.critic(mixed)[0], images, generated, draw)  # Eq. 7
            loss = loss + weights.gradient_penalty * settings.small_scale.penalty_every * penalty
        self.optimizers["critic"].descend(loss, 1.0)
        return loss.detach()

    def _draw_batch(self, step: int, number: int) -> tuple[Tensor, Tensor, Tensor]:
        """Images, half of them mirrored, their own labels, and the labels of other images of the training."""
        draw = seeding.make_generator(self.seed, "stage III", step, number)
        rows, target_rows = (draw.integers(len(self.pictures), size=self.settings.batch) for _ in range(2))
        images = to_float(self.pictures[rows])
        mirrored = draw.random(len(rows)) < 0.5
        images[mirrored] = images[mirrored][..., ::-1]
        labels, target_labels = (
            self.labels[torch.from_numpy(some)][:, self.chosen].to(self.device) for some in (rows, target_rows)
        )
        return torch.from_numpy(images).to(self.device), labels, target_labels


def count_warmup_steps(settings: AnonymousNetSettings) -> int:
    """The first step that updates the generator."""
    return settings.estimator.steps + settings.small_scale.label_steps


def select_columns(settings: AnonymousNetSettings) -> list[int]:
    """The columns of the selected attributes among `ATTRIBUTES`."""
    return [ATTRIBUTES.index(name) for name in settings.selected]


def build_estimator(settings: AnonymousNetSettings) -> Classifier:
    """The classifier of stage I, untrained."""
    chosen = settings.estimator
    return Classifier(CROP, chosen.input_size, chosen.widths, [1] * len(chosen.widths), DROPOUT)


def build_generator(settings: AnonymousNetSettings) -> StarGanGenerator:
    """The generator of stage III, untrained."""
    small = settings.small_scale
    return StarGanGenerator(len(settings.selected), **dict(settings.generator), reach=small.reach, scaled=small.scaled)


def train(settings: AnonymousNetSettings, job: TrainingJob) -> None:
    """Train stages I, III and IV on the people of the job and write ``job.checkpoint``."""
    training = Training(job, settings)
    archive, pictures = training.archive, training.pictures()
    labels = read_labels(settings, archive.select(job.people), archive.path)
    task = AnonymousNetTask(settings, pictures, labels, job.seed)
    network = training.average(task.network)
    sources = archive.load(rows=archive.select("validation").iloc[:SAMPLES]).images
    first = count_warmup_steps(settings)
    training.fit(task, first + settings.steps, lambda: draw_samples(network, sources, len(task.chosen)), first=first)
    perturbation = search_perturbation(load_backbone("identity", job.backbones), pictures, settings, job.seed)
    population = np.unique(labels[:, task.chosen], axis=0, return_counts=True)
    label_sets, counts = (torch.from_numpy(array) for array in population)
    # bool (K, selected): each label that occurs; int64 (K,): its images; (3, S, S): the perturbation
    columns = {"labels": label_sets, "counts": counts, "perturbation": perturbation}
    modules = {"estimator": task.estimator, "network": network, "population": Table(columns)}
    training.save(modules, {"size": pictures.shape[1], "labels": len(label_sets)})


def read_labels(settings: AnonymousNetSettings, rows: pd.DataFrame, archive: Path) -> np.ndarray:
    """The annotations, bool (N, all of `ATTRIBUTES`). Those that the faces do not have are False, and never chosen.

    Raises ParameterError if the faces are not annotated with the attributes that are chosen anew.
    """
    known = list_annotated(rows, archive)
    if missing := [name for name in settings.selected if name not in known]:
        raise ParameterError(
            f"methods.anonymousnet.params.selected has {', '.join(missing)}, with which the faces of {archive} are not "
            f"annotated. Choose among those that they have: {', '.join(known)}."
        )
    labels = np.zeros((len(rows), len(ATTRIBUTES)), dtype=bool)
    labels[:, [ATTRIBUTES.index(name) for name in known]] = read_annotations(rows, known)
    return labels


def search_perturbation(identity: nn.Module, pictures: np.ndarray, settings: AnonymousNetSettings, seed: int) -> Tensor:
    """One change of all images, (3, S, S), that moves their identity vectors away; by steps along signs of gradients.

    After Moosavi-Dezfooli et al. 2017, with the sum over a batch in place of one image at a time (ours).
    """
    limit, where = settings.perturbation, next(identity.parameters()).device
    first = seeding.make_generator(seed, "stage IV").uniform(-limit / 10, limit / 10, (3, *pictures.shape[1:3]))
    change = torch.from_numpy(first.astype(np.float32)).to(where)
    for step in range(settings.perturbation_steps):
        draw = seeding.make_generator(seed, "stage IV", step)
        rows = draw.integers(len(pictures), size=settings.estimator.batch)
        images = torch.from_numpy(to_float(pictures[rows])).to(where)
        with torch.no_grad():
            identity_vectors = identity(images)
        change.requires_grad_(True)
        cosine = (identity((images + change).clamp(-1, 1)) * identity_vectors).sum(dim=1).mean()
        slope = torch.autograd.grad(cosine, change)[0]
        change = (change.detach() - limit / 4 * slope.sign()).clamp(-limit, limit)
    return change


@torch.no_grad()
def draw_samples(network: nn.Module, images: np.ndarray, labels: int) -> np.ndarray:
    """uint8 (rows, columns, 3): original | each selected attribute alone."""
    where = next(network.parameters()).device
    pictures = torch.from_numpy(images).to(where)
    generated = [network(pictures, label.expand(len(pictures), -1)) for label in torch.eye(labels, device=where)]
    return arrange_columns([pictures, *generated])
