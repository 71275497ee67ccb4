"""Training the conditional disentanglement-fusion network by swapping what keywords name (section 3.4)."""

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from masquerade import discovery, lineage, seeding, training
from masquerade.backbones._recognition import Recogniser
from masquerade.errors import CheckpointError
from masquerade.images import to_float, to_uint8
from masquerade.latent.world import BATCH, World
from masquerade.latent_reorganization import losses
from masquerade.latent_reorganization.keywords import Vocabulary
from masquerade.latent_reorganization.settings import IDENTITY, ReorganizationSettings
from masquerade.methods import TrainingJob
from masquerade.networks.cdfnet import CDFNet
from masquerade.optimisers import Optimisers, cooled

OURS = ("generator", "semantics", "identity")  # the backbones that a checkpoint belongs to
SAMPLES = 6  # pairs of a sample picture
OTHERS_RATE = 0.1  # Adam's learning rate beside Muon's, of what is no matrix
MAPS = 3  # of the identity encoder that are compared: at the size of its input, at half and at a quarter of it


class SwapTask:
    """One update on pairs of drawn faces: by turns of the identity (IOS) and of a random attribute (AOS).

    Drawn once: ``codes`` W (F, style), their ``pictures`` uint8 (F, S, S, 3), ``identities`` unit vectors (F, D) and
    ``features`` of the text-image model (F, E). The batch of a step depends on the seed and the step's number alone.
    """

    def __init__(self, settings: ReorganizationSettings, world: World, identity: Recogniser, seed: int):
        torch.manual_seed(seeding.derive(seed, "weights"))
        self.settings, self.world, self.identity, self.seed = settings, world, identity, seed
        self.words = Vocabulary(world.semantics, settings.keywords)
        self.attributes = [name for name in settings.keywords if name != IDENTITY]
        self._draw(settings.faces, settings.truncation)
        self.network = build(settings, world).to(world.device)
        self.network.mean.copy_(self.codes.mean(0))
        self.network.deviation.copy_((self.codes - self.codes.mean(0)).square().mean().sqrt())
        self.modules = {"network": self.network}
        muon, others = ((2,), OTHERS_RATE) if settings.optimiser == "muon" else ((), 1.0)
        self._optimisers = Optimisers(self.modules, settings.learning_rate, settings.betas, muon, others)
        self.optimisers = self._optimisers.named

    @torch.no_grad()
    def _draw(self, faces: int, truncation: float) -> None:
        world = self.world
        generator = world.generator
        z = seeding.generator(self.seed, "lreorg", "faces").standard_normal((faces, generator.style_width), np.float32)
        parts = []
        for part in torch.from_numpy(z).to(world.device).split(BATCH):
            w = generator.truncate(generator.map(part), truncation)
            images = generator.synthesize(generator.broadcast(w)).clamp(-1, 1)
            parts.append((w, self.identity(images), world.semantics.cls(images), images.cpu()))
        self.codes, self.identities, self.features, images = map(torch.cat, zip(*parts, strict=True))
        self.pictures = to_uint8(images.numpy())

    def step(self, step: int) -> dict[str, float]:
        draw, weights = seeding.generator(self.seed, "lreorg", step), self.settings.losses
        rows = torch.from_numpy(draw.choice(len(self.codes), 2 * min(self.settings.batch, len(self.codes) // 2), False))
        swapped = IDENTITY if step % 2 == 0 else str(draw.choice(self.attributes))
        values = self._of_identity(rows) if swapped == IDENTITY else self._of_attribute(rows, swapped)
        total = sum(getattr(weights, name) * value for name, value in values.items())
        self._optimisers.descend(total, cooled(step, self.settings.steps, self.settings.cooldown))
        found = values | {"total": total}
        return {f"{'identity' if swapped == IDENTITY else 'attribute'}.{name}": found[name].item() for name in found}

    def _of_identity(self, rows: Tensor) -> dict[str, Tensor]:
        """Eq. 5."""
        values, images = self._swapped(rows, IDENTITY)
        pictures = torch.from_numpy(to_float(self.pictures[rows.numpy()])).to(images.device)
        with torch.no_grad():
            _, known = seen(self.identity, pictures)
        vectors, maps = seen(self.identity, images)
        values["swapped_identity"] = losses.swapped_identity(self.identities[rows], vectors)
        values["perceptual"] = losses.perceptual(known, maps)
        if self.settings.losses.others:
            values["others"] = self._kept(rows, images, self.attributes)
        return values

    def _of_attribute(self, rows: Tensor, keyword: str) -> dict[str, Tensor]:
        """Eq. 8."""
        values, images = self._swapped(rows, keyword)
        features = self.world.semantics.cls(images)
        known, made = (self.words.log_shares(keyword, part) for part in (self.features[rows], features))
        values["kept_identity"] = losses.kept_identity(self.identities[rows], self.identity(images))
        values["swapped_attribute"] = losses.swapped_attribute(known, made)
        if self.settings.losses.others:
            values["others"] = self._kept(rows, images, [name for name in self.attributes if name != keyword], features)
        return values

    def _swapped(self, rows: Tensor, keyword: str) -> tuple[dict[str, Tensor], Tensor]:
        """Key features of pairs exchanged under a keyword: what both losses share, and the pictures I'."""
        codes, condition = self.codes[rows], self.words.condition(keyword, len(rows))
        key, residual = self.network.disentangle(codes, condition)
        lost, swapped = self.network.fuse(losses.exchanged(key), residual, condition)
        values = {"latent": losses.latent(codes, swapped), "information": losses.information(lost)}
        return values, self.world.generator.synthesize(self.world.generator.broadcast(swapped))

    def _kept(self, rows: Tensor, images: Tensor, keywords: list[str], features: Tensor | None = None) -> Tensor:
        features = self.world.semantics.cls(images) if features is None else features
        parts = [losses.others(*(self.words.log_shares(name, part) for part in (self.features[rows], features)))
                 for name in keywords]  # fmt: skip
        return sum(parts) / max(len(parts), 1)


def seen(identity: Recogniser, images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Unit vectors (N, D) and feature maps, the last of each of the `MAPS` largest sizes, in one pass."""
    maps: dict[int, Tensor] = {}
    parts = (identity.network.input_layer, *identity.network.body)
    hooks = [
        part.register_forward_hook(lambda _part, _given, made: maps.update({made.shape[-1]: made})) for part in parts
    ]
    try:
        vectors = identity(images)
    finally:
        for hook in hooks:
            hook.remove()
    return vectors, [maps[size] for size in sorted(maps, reverse=True)[:MAPS]]


def build(settings: ReorganizationSettings, world: World) -> CDFNet:
    """A network with the widths of ``settings`` for the generator and the text-image model of ``world``."""
    condition = world.semantics.facts["embedding"]
    return CDFNet(world.generator.style_width, condition, settings.blocks, settings.hidden, settings.growth)


def train(settings: ReorganizationSettings, job: TrainingJob) -> None:
    """Train on faces that the generator draws, and write ``job.checkpoint`` (the averaged network)."""
    torch.set_num_threads(job.threads)
    world = World({name: job.backbones[name] for name in ("generator", "semantics")})
    identity = discovery.load("backbones", "identity").load(job.backbones["identity"]).to(world.device)
    task = SwapTask(settings, world, identity, job.seed)
    average = training.Average(task.network, settings.ema)

    def sample(step: int) -> None:
        if (step + 1) % settings.samples_every == 0 or step + 1 == settings.steps:
            job.picture(f"samples_{step + 1:06d}", samples(average.module, task))

    made_with = {name: lineage.md5(job.backbones[name]) for name in OURS}
    training.fit(
        task,
        steps=settings.steps,
        state=job.state,
        fingerprint=json.dumps([settings.model_dump(mode="json"), job.seed, made_with]),
        log=job.log,
        averages={"network": average},
        after=sample,
    )
    training.save_checkpoint(job.checkpoint, {"network": average.module}, made_with)
    training.finish(job.state)


def load(settings: ReorganizationSettings, checkpoint: Path, made_with: dict[str, Path], world: World) -> CDFNet:
    """The network of a checkpoint, frozen. Raises CheckpointError where it or a backbone does not belong to it."""
    tensors, facts = training.load_checkpoint(checkpoint)
    for name in OURS:
        if facts.get(name) != lineage.md5(made_with[name]):
            raise CheckpointError(
                f"{checkpoint} was trained with another {name} than {made_with[name]}: its features mean nothing. "
                f"Run `snakemake {checkpoint}` again."
            )
    network = build(settings, world)
    training.load_into(network, tensors.get("network", {}), checkpoint)
    return network.to(world.device).eval().requires_grad_(False)


@torch.no_grad()
def samples(network: CDFNet, task: SwapTask) -> np.ndarray:
    """A picture, uint8 (rows, columns): a face | another | the first with the other's identity, and each attribute."""
    world, count = task.world, min(SAMPLES, len(task.codes) // 2)
    codes = task.codes[: 2 * count]
    columns = [task.pictures[:count], task.pictures[count : 2 * count]]
    for keyword in (IDENTITY, *task.attributes):
        condition = task.words.condition(keyword, len(codes))
        key, residual = network.disentangle(codes, condition)
        _, swapped = network.fuse(losses.exchanged(key), residual, condition)
        drawn: Tensor = world.draw(world.generator.broadcast(swapped[:count]))
        columns.append(to_uint8(drawn.numpy()))
    return np.concatenate([np.concatenate(list(column)) for column in columns], axis=1)
