"""Training the conditional disentanglement-fusion network by swaps of key features (section 3.4)."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.backbones import loaded
from masquerade.backbones.recognition.training import Recognizer
from masquerade.core import seeding
from masquerade.core.images import FaceArchive, to_float
from masquerade.methods.latent.codes import diverged
from masquerade.methods.latent.space import BATCH, LatentSpace
from masquerade.methods.lreorg import losses, reader
from masquerade.methods.lreorg.keywords import Vocabulary
from masquerade.methods.lreorg.settings import IDENTITY, LReOrgSettings
from masquerade.networks.cdfnet import CDFNet
from masquerade.networks.imagenet_recognizer import ImageNetRecognizer
from masquerade.networks.inputs import apply_in_batches, place
from masquerade.training.checkpoints import Saved
from masquerade.training.optimizers import Optimizers, cooldown_share, weigh_losses
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

logger = logging.getLogger(__name__)

TIED = ("generator", "semantics", "identity")  # the backbones that a checkpoint belongs to
SAMPLES = 6  # pairs in a sample picture
TRUNCATION = 1.0  # psi of the faces that are drawn for training (the paper gives none)
MAPS = 3  # feature maps of the identity encoder that are compared: at full, half and quarter size of its input


class SwapTask:
    """One update on pairs of drawn faces; it swaps the identity (IOS) and a random attribute (AOS) in turn.

    The faces are drawn once: ``codes`` W (F, style), ``pictures`` uint8 (F, S, S, 3), ``identities`` unit vectors
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
        self._draw(settings.faces, inverted)
        self.network = build(settings, space).to(space.device)
        styles = self.codes.flatten(0, -2)
        self.network.mean.copy_(styles.mean(0))
        self.network.deviation.copy_((styles - styles.mean(0)).square().mean().sqrt())
        self.modules: dict[str, nn.Module] = {"network": self.network}
        if settings.pictures_every > 1:
            known = self.codes.flatten(1), self.identities, self.features
            self.reader = reader.train(*known, settings.reader_steps, seed)
            logger.info("mean cosines of the reader: %s", reader.agreement(self.reader, *known))
        self.optimizers = {"network": Optimizers(self.modules, settings.learning_rate, settings.betas)}

    @torch.no_grad()
    def _draw(self, faces: int, inverted: Tensor | None) -> None:
        space = self.space
        generator = space.generator
        faces -= 0 if inverted is None else len(inverted)
        z = seeding.make_generator(self.seed, "lreorg", "faces").standard_normal(
            (faces, generator.style_width), np.float32
        )

        def drawn(part: Tensor) -> tuple[Tensor, ...]:
            w = generator.truncate(generator.map(part), TRUNCATION)
            return (w if inverted is None else generator.broadcast(w), *shown(w))

        def shown(codes: Tensor) -> tuple[Tensor, ...]:
            images = self._pictures_of(codes).clamp(-1, 1)
            return self.identity(images), space.semantics.cls(images), _as_saved(images)

        every = apply_in_batches(drawn, generator.at_once, z)
        if inverted is not None:
            further = (inverted.cpu(), *apply_in_batches(shown, generator.at_once, inverted))
            every = [torch.cat(both) for both in zip(every, further, strict=True)]
        *every, images = every
        self.codes, self.identities, self.features = (values.to(space.device) for values in every)
        self.pictures = images.numpy()

    def _pictures_of(self, codes: Tensor) -> Tensor:
        """The pictures of codes W (N, style) or W+ (N, layers, style)."""
        generator = self.space.generator
        return generator.synthesize(generator.broadcast(codes) if codes.ndim == 2 else codes)

    def _draws(self, step: int) -> bool:
        return step % (2 * self.settings.pictures_every) < 2  # a swap of the identity and one of an attribute

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name."""
        draw, settings = seeding.make_generator(self.seed, "lreorg", step), self.settings
        swapped = IDENTITY if step % 2 == 0 else str(draw.choice(self.attributes))
        drawn = self._draws(step)
        pairs = min(settings.batch if drawn else settings.code_batch, len(self.codes) // 2)
        rows = torch.from_numpy(draw.choice(len(self.codes), 2 * pairs, replace=False))
        values = self._losses(rows, swapped, drawn)
        total = weigh_losses(values, settings.losses)
        share = cooldown_share(step, settings.steps, settings.cooldown)
        self.optimizers["network"].descend(total, share, settings.clip)
        kind = ("" if drawn else "codes.") + ("identity" if swapped == IDENTITY else "attribute")
        return {f"{kind}.{name}": value.item() for name, value in (values | {"total": total}).items()}

    def _losses(self, rows: Tensor, keyword: str, drawn: bool) -> dict[str, Tensor]:
        """The terms of Eq. 5 (identity) or Eq. 8 (attribute), after an exchange of key features under a keyword."""
        codes, condition = self.codes[rows], self.words.condition(keyword, len(rows))
        key, residual = self.network.disentangle(codes, condition)
        lost, swapped = self.network.fuse(losses.exchanged(key), residual, condition)
        values = {"latent": losses.latent(codes, swapped), "information": losses.information(lost)}
        if drawn:
            vectors, features, maps = self._observed(self._pictures_of(swapped))
        else:
            (vectors, features), maps = self.reader(swapped.flatten(1)), None
        known = self.identities[rows]
        if keyword == IDENTITY:
            values["swapped_identity"] = losses.swapped_identity(known, vectors)
            if maps is not None:
                with torch.no_grad():
                    pictures = torch.from_numpy(to_float(self.pictures[rows.numpy()])).to(codes.device)
                    *_, before = self._observed(pictures)
                values["perceptual"] = losses.perceptual(before, maps)
        else:
            values["kept_identity"] = losses.kept_identity(known, vectors)
            values["swapped_attribute"] = losses.swapped_attribute(*self._contents(keyword, rows, features))
        if self.settings.losses.others:
            others = [name for name in self.attributes if name != keyword]
            parts = [losses.others(*self._contents(name, rows, features)) for name in others]
            values["others"] = cast("Tensor", sum(parts)) / len(parts)
        return values

    def _contents(self, keyword: str, rows: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """log D of the original faces and of the swapped ones."""
        return self.words.log_shares(keyword, self.features[rows]), self.words.log_shares(keyword, features)

    def _observed(self, images: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Identities, features, and maps of the identity encoder, for pictures."""
        vectors, maps = observed(self.identity, images)
        return vectors, self.space.semantics.cls(images), maps


def _as_saved(images: Tensor) -> Tensor:
    """`to_uint8` on tensors: (N, 3, S, S) in [-1, 1] -> uint8 (N, S, S, 3), which take a quarter of the memory."""
    return ((images + 1) * 127.5).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def observed(identity: Recognizer, images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Unit vectors (N, D), and the last feature map of each of the `MAPS` largest sizes, in one pass."""
    maps: dict[int, Tensor] = {}
    network: Any = identity.network
    parts = network.blocks if isinstance(network, ImageNetRecognizer) else (network.input_layer, *network.body)
    hooks = [
        part.register_forward_hook(lambda _part, _given, made: maps.update({made.shape[-1]: made})) for part in parts
    ]
    try:
        vectors = identity(images)
    finally:
        for hook in hooks:
            hook.remove()
    return vectors, [maps[size] for size in sorted(maps, reverse=True)[:MAPS]]


def build(settings: LReOrgSettings, space: LatentSpace) -> CDFNet:
    """A network with the widths of ``settings``, for the generator and the text-image model of ``space``."""
    condition = space.semantics.facts["embedding"]
    width = space.generator.style_width
    return CDFNet(width, condition, settings.blocks, settings.hidden, settings.growth, settings.limit)


def train(settings: LReOrgSettings, job: TrainingJob) -> None:
    """Train on faces that the generator draws, and write ``job.checkpoint`` (the averaged network)."""
    training = Training(job, settings)
    inverts = ("inversion",) * bool(settings.inverted)
    space = LatentSpace({name: job.backbones[name] for name in ("generator", "semantics", *inverts)})
    count = round(settings.inverted * settings.faces)
    photographs = inverted(training.archive, space, count, job) if inverts else None
    task = SwapTask(settings, space, loaded("identity", job.backbones), job.seed, photographs)
    network = training.average(task.network)
    training.fit(task, settings.steps, lambda: samples(network, task))
    training.save({"network": network}, {}, (*TIED, *inverts))


def inverted(archive: FaceArchive, space: LatentSpace, count: int, job: TrainingJob) -> Tensor:
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
    chosen = np.sort(seeding.make_generator(job.seed, "lreorg", "photographs").choice(len(rows), count, replace=False))
    codes = torch.cat([space.encode(part.images) for part in archive.batches(BATCH, rows=rows.iloc[chosen])])
    return codes[~diverged(codes, space)]


def load(settings: LReOrgSettings, checkpoint: Path, backbones: Mapping[str, Path], space: LatentSpace) -> CDFNet:
    """The network of a checkpoint, frozen. Raises CheckpointError if it or a backbone does not fit."""
    return place(Saved(checkpoint, backbones, TIED).frozen("network", build(settings, space)))


@torch.no_grad()
def samples(network: CDFNet, task: SwapTask) -> np.ndarray:
    """uint8 (rows, columns, 3): a face | another | the first with the other's identity, and with each attribute."""
    space, count = task.space, min(SAMPLES, len(task.codes) // 2)
    codes = task.codes[: 2 * count]
    columns = [to_float(task.pictures[:count]), to_float(task.pictures[count : 2 * count])]
    for keyword in (IDENTITY, *task.attributes):
        condition = task.words.condition(keyword, len(codes))
        key, residual = network.disentangle(codes, condition)
        _, swapped = network.fuse(losses.exchanged(key), residual, condition)
        shown = swapped[:count]
        columns.append(space.draw(space.generator.broadcast(shown) if shown.ndim == 2 else shown).numpy())
    return arrange_columns(columns)
