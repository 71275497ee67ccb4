"""Losses and training of the disentanglement-fusion network, by swaps of key features (section 3.4, Eq. 5-10).

The first half of a batch of 2N rows is I_1 (or s_1), the second half is I_2. `exchange_halves` gives the partner of
each row. Every term of the losses is per pair. docs/lreorg.md says how the equations are read.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.backbones import load_backbone
from masquerade.backbones.recognition.training import Recognizer
from masquerade.core import seeding
from masquerade.core.images import FaceArchive, to_float
from masquerade.methods.latent.codes import has_diverged
from masquerade.methods.latent.space import BATCH, LatentSpace
from masquerade.methods.lreorg import IDENTITY, LReOrgSettings
from masquerade.methods.lreorg.network import CDFNet, Vocabulary, train_reader
from masquerade.networks.inputs import apply_in_batches, place
from masquerade.networks.ir_se import IRSE
from masquerade.training.checkpoints import Saved
from masquerade.training.optimizers import Optimizers, compute_cooldown, weigh_losses
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

logger = logging.getLogger(__name__)

TIED = ("generator", "semantics", "identity")  # the backbones that a checkpoint belongs to
SAMPLES = 6  # pairs in a sample image
TRUNCATION = 1.0  # psi of the faces that are drawn for training (the paper gives none)
MAPS = 3  # feature maps of the identity encoder that are compared: at full, half and quarter size of its input


def exchange_halves(pairs: Tensor) -> Tensor:
    """(2N, ...) with its halves exchanged."""
    return pairs.roll(len(pairs) // 2, 0)


def cosine_distance(first: Tensor, second: Tensor) -> Tensor:
    """d of Eq. 6: 1 - cos of unit vectors (N, D) twice, (N,); 0 .. 2."""
    return 1 - (first * second).sum(-1)


def swapped_identity_loss(original: Tensor, swapped: Tensor) -> Tensor:
    """L_I, Eq. 6, of unit identity vectors (2N, D); per pair, -4 .. 4.

    A swapped image should have the identity of its partner and not its own.
    """
    return 2 * (cosine_distance(exchange_halves(original), swapped) - cosine_distance(original, swapped)).mean()


def kept_identity_loss(original: Tensor, swapped: Tensor) -> Tensor:
    """L_I' of Eq. 8, of unit identity vectors (2N, D); per pair, 0 .. 4."""
    return 2 * cosine_distance(original, swapped).mean()


def latent_loss(original: Tensor, swapped: Tensor) -> Tensor:
    """L_f, Eq. 7: the Euclidean distance of codes (2N, width); per pair."""
    return 2 * (original - swapped).norm(dim=-1).mean()


def information_loss(lost: Tensor) -> Tensor:
    """L_r: the mean magnitude of the information loss (2N, width); per pair."""
    return 2 * lost.abs().mean()


def swapped_attribute_loss(original: Tensor, swapped: Tensor) -> Tensor:
    """L_s, Eq. 9 and 10, of log D (2N, C); per pair. A swapped image should show the content of its partner.

    The cross-entropy -sum_j D(I_1, t_ij) log D(I_2', t_ij) and its counterpart; I_2' has the key feature of s_1.
    """
    return -2 * (exchange_halves(original).exp() * swapped).sum(-1).mean()


def other_attributes_loss(original: Tensor, swapped: Tensor) -> Tensor:
    """The cross-entropy with the own original image, for keywords that are not swapped: their content should stay."""
    return -2 * (original.exp() * swapped).sum(-1).mean()


def perceptual_loss(original: list[Tensor], swapped: list[Tensor]) -> Tensor:
    """eta of Eq. 5: mean squared differences of feature maps (2N, C, H, W), the mean over maps; per pair.

    The difference of a map is divided by the mean square of the original map, so that all maps have equal weight.
    """
    parts = [
        (after - before).square().mean() / before.square().mean()
        for before, after in zip(original, swapped, strict=True)
    ]
    return 2 * cast("Tensor", sum(parts)) / len(parts)


class SwapTask:
    """One update on pairs of drawn faces; it swaps the identity (IOS) and a random attribute (AOS) in turn.

    The faces are drawn once: ``codes`` W (F, style), ``images`` uint8 (F, S, S, 3), ``identities`` unit vectors
    (F, D) and ``features`` of the text-image model (F, E). ``inverted``: W+ (M, layers, style) of photographs that are
    faces for training, too; then all ``codes`` are W+. The batch of a step depends only on the seed and the number of
    the step.
    """

    def __init__(
        self,
        settings: LReOrgSettings,
        space: LatentSpace,
        identity: Recognizer,
        seed: int,
        inverted: Tensor | None = None,
    ):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        self.settings, self.space, self.identity, self.seed = settings, space, identity, seed
        self.words = Vocabulary(space.semantics, settings.keywords)
        self.attributes = [name for name in settings.keywords if name != IDENTITY]
        self._draw_faces(settings.faces, inverted)
        self.network = build_network(settings, space).to(space.device)
        styles = self.codes.flatten(0, -2)
        self.network.mean.copy_(styles.mean(0))
        self.network.deviation.copy_((styles - styles.mean(0)).square().mean().sqrt())
        self.modules: dict[str, nn.Module] = {"network": self.network}
        if settings.small_scale.pictures_every > 1:
            faces = self.codes.flatten(1), self.identities, self.features
            self.reader = train_reader(*faces, settings.small_scale.reader_steps, seed)
        self.optimizers = {"network": Optimizers(self.modules, settings.learning_rate, settings.betas)}

    @torch.no_grad()
    def _draw_faces(self, faces: int, inverted: Tensor | None) -> None:
        space = self.space
        generator = space.generator
        faces -= 0 if inverted is None else len(inverted)
        z = seeding.make_generator(self.seed, "lreorg", "faces").standard_normal(
            (faces, generator.style_width), np.float32
        )

        def draw_part(part: Tensor) -> tuple[Tensor, ...]:
            w = generator.truncate(generator.map(part), TRUNCATION)
            return (w if inverted is None else generator.broadcast(w), *describe(w))

        def describe(codes: Tensor) -> tuple[Tensor, ...]:
            images = self._generate(codes).clamp(-1, 1)
            return self.identity(images), space.semantics.cls(images), _to_uint8(images)

        every = apply_in_batches(draw_part, generator.at_once, z)
        if inverted is not None:
            further = (inverted.cpu(), *apply_in_batches(describe, generator.at_once, inverted))
            every = [torch.cat(both) for both in zip(every, further, strict=True)]
        *every, images = every
        self.codes, self.identities, self.features = (values.to(space.device) for values in every)
        self.images = images.numpy()

    def _generate(self, codes: Tensor) -> Tensor:
        """The images of codes W (N, style) or W+ (N, layers, style)."""
        generator = self.space.generator
        return generator.synthesize(generator.broadcast(codes) if codes.ndim == 2 else codes)

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name."""
        draw, settings = seeding.make_generator(self.seed, "lreorg", step), self.settings
        swapped = IDENTITY if step % 2 == 0 else str(draw.choice(self.attributes))
        small = settings.small_scale
        draws_images = step % (2 * small.pictures_every) < 2  # a swap of the identity and one of an attribute
        pairs = min(settings.batch if draws_images else small.code_batch, len(self.codes) // 2)
        rows = torch.from_numpy(draw.choice(len(self.codes), 2 * pairs, replace=False))
        values, features = self._compute_losses(rows, swapped, draws_images)
        total = weigh_losses(values, settings.losses)
        if small.others:
            values["others"] = self._other_attributes_loss(rows, swapped, features)
            total = total + small.others * values["others"]
        self.optimizers["network"].descend(total, compute_cooldown(step, settings.steps, small.cooldown), small.clip)
        kind = ("" if draws_images else "codes.") + ("identity" if swapped == IDENTITY else "attribute")
        return {f"{kind}.{name}": value.item() for name, value in (values | {"total": total}).items()}

    def _compute_losses(self, rows: Tensor, keyword: str, draws_images: bool) -> tuple[dict[str, Tensor], Tensor]:
        """The terms of Eq. 5 (identity) or Eq. 8 (attribute), after an exchange of key features under a keyword.

        Also returns the text-image features of the swapped faces, (2N, E).
        """
        codes, condition = self.codes[rows], self.words.condition(keyword, len(rows))
        key, residual = self.network.disentangle(codes, condition)
        lost, swapped = self.network.fuse(exchange_halves(key), residual, condition)
        values = {"latent": latent_loss(codes, swapped), "information": information_loss(lost)}
        if draws_images:
            vectors, features, maps = self._encode_images(self._generate(swapped))
        else:
            (vectors, features), maps = self.reader(swapped.flatten(1)), None
        identities = self.identities[rows]
        if keyword == IDENTITY:
            values["swapped_identity"] = swapped_identity_loss(identities, vectors)
            if maps is not None:
                with torch.no_grad():
                    images = torch.from_numpy(to_float(self.images[rows.numpy()])).to(codes.device)
                    *_, before = self._encode_images(images)
                values["perceptual"] = perceptual_loss(before, maps)
        else:
            values["kept_identity"] = kept_identity_loss(identities, vectors)
            values["swapped_attribute"] = swapped_attribute_loss(*self._log_probabilities(keyword, rows, features))
        return values, features

    def _other_attributes_loss(self, rows: Tensor, keyword: str, features: Tensor) -> Tensor:
        """The mean of `other_attributes_loss` over the attributes that were not swapped."""
        names = [name for name in self.attributes if name != keyword]
        parts = [other_attributes_loss(*self._log_probabilities(name, rows, features)) for name in names]
        return cast("Tensor", sum(parts)) / len(parts)

    def _log_probabilities(self, keyword: str, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """log D of the original faces and of the swapped ones."""
        return self.words.log_probabilities(keyword, self.features[rows]), self.words.log_probabilities(
            keyword, features
        )

    def _encode_images(self, images: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Identities, features, and maps of the identity encoder, for images."""
        vectors, maps = encode_identity(self.identity, images)
        return vectors, self.space.semantics.cls(images), maps


def _to_uint8(images: Tensor) -> Tensor:
    """`to_uint8` on tensors: (N, 3, S, S) in [-1, 1] -> uint8 (N, S, S, 3), which take a quarter of the memory."""
    return ((images + 1) * 127.5).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def encode_identity(identity: Recognizer, images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Unit vectors (N, D), and the last feature map of each of the `MAPS` largest sizes, in one pass."""
    maps: dict[int, Tensor] = {}
    network: Any = identity.network
    parts = (network.input_layer, *network.body) if isinstance(network, IRSE) else network.blocks
    hooks = [
        part.register_forward_hook(lambda _part, _input, made: maps.update({made.shape[-1]: made})) for part in parts
    ]
    try:
        vectors = identity(images)
    finally:
        for hook in hooks:
            hook.remove()
    return vectors, [maps[size] for size in sorted(maps, reverse=True)[:MAPS]]


def build_network(settings: LReOrgSettings, space: LatentSpace) -> CDFNet:
    """A network with the widths of ``settings``, for the generator and the text-image model of ``space``."""
    condition = space.semantics.metadata["embedding"]
    width = space.generator.style_width
    return CDFNet(width, condition, settings.blocks, settings.hidden, settings.growth, settings.limit)


def train(settings: LReOrgSettings, job: TrainingJob) -> None:
    """Train on faces that the generator draws, and write ``job.checkpoint`` (the averaged network)."""
    training = Training(job, settings)
    inversion = ("inversion",) * bool(settings.inverted)
    space = LatentSpace({name: job.backbones[name] for name in ("generator", "semantics", *inversion)})
    count = round(settings.inverted * settings.faces)
    photographs = invert_images(training.archive, space, count, job) if inversion else None
    task = SwapTask(settings, space, load_backbone("identity", job.backbones), job.seed, photographs)
    network = training.average(task.network)
    training.fit(task, settings.steps, lambda: draw_samples(network, task))
    training.save({"network": network}, {}, (*TIED, *inversion))


def invert_images(archive: FaceArchive, space: LatentSpace, count: int, job: TrainingJob) -> Tensor:
    """W+ (M, layers, style) of at most ``count`` random photographs of the methods' people that did not diverge.

    If there are fewer, all are taken, with a warning; the faces that lack are drawn.
    """
    rows = archive.select(job.people)
    if len(rows) < count:
        logger.warning(
            "inverted and faces ask for %d photographs, and the group '%s' has %d: the others are drawn",
            count,
            job.people,
            len(rows),
        )
        count = len(rows)
    photographs = np.sort(
        seeding.make_generator(job.seed, "lreorg", "photographs").choice(len(rows), count, replace=False)
    )
    codes = torch.cat([space.encode(part.images) for part in archive.batches(BATCH, rows=rows.iloc[photographs])])
    return codes[~has_diverged(codes, space)]


def load_network(
    settings: LReOrgSettings, checkpoint: Path, backbones: Mapping[str, Path], space: LatentSpace
) -> CDFNet:
    """The network of a checkpoint, frozen. Raises CheckpointError if it or a backbone does not fit."""
    return place(Saved(checkpoint, backbones, TIED).frozen("network", build_network(settings, space)))


@torch.no_grad()
def draw_samples(network: CDFNet, task: SwapTask) -> np.ndarray:
    """uint8 (rows, columns, 3): a face | another | the first with the other's identity, and with each attribute."""
    space, count = task.space, min(SAMPLES, len(task.codes) // 2)
    codes = task.codes[: 2 * count]
    columns = [to_float(task.images[:count]), to_float(task.images[count : 2 * count])]
    for keyword in (IDENTITY, *task.attributes):
        condition = task.words.condition(keyword, len(codes))
        key, residual = network.disentangle(codes, condition)
        _, swapped = network.fuse(exchange_halves(key), residual, condition)
        codes_shown = swapped[:count]
        columns.append(
            space.draw(space.generator.broadcast(codes_shown) if codes_shown.ndim == 2 else codes_shown).numpy()
        )
    return arrange_columns(columns)
