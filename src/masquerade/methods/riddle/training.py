"""The losses of RiDDLE (Li et al. 2023), as its published code computes them, our further terms, and the training."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones import load_backbone
from masquerade.backbones.generator.reconstruction import compute_energy_distance
from masquerade.core import seeding
from masquerade.core.images import to_float
from masquerade.methods.latent.space import LatentSpace
from masquerade.methods.riddle import RiddleSettings
from masquerade.methods.riddle.network import LatentEncryptor
from masquerade.methods.riddle.visible import LONGEST
from masquerade.networks import deterministic
from masquerade.networks.inputs import apply_in_batches, place, round_to_8_bits
from masquerade.networks.lpips import load_loss
from masquerade.training.checkpoints import Saved
from masquerade.training.optimizers import Muon, compute_cooldown, weigh_losses
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

LAYOUT = 8  # side in pixels of the images that `layout_loss` compares


def published_identity_losses(
    original: Tensor, encrypted: Tensor, encrypted_other: Tensor, recovered: Tensor, wrong: Tensor, wrong_other: Tensor,
    margin: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The reversed identity loss (0 .. 2) and the identity recovery loss (0 .. 1 - ``margin``) of the published code.

    Embeddings, unit vectors (N, D), of the faces of `compare_different` and of the face that the right password
    recovers. The first loss is the sum of two means of max(cos, margin): enc, of the original with both encrypted
    faces, and dec, of both wrongly decrypted faces with the original and with the recovered face. Pairs inside enc and
    dec (two encrypted faces, two wrongly decrypted ones) have the weight 0 there. The second loss is the mean of
    1 - max(cos, margin), which has no gradient while a recovered face is farther from the original than the margin.
    """

    def bounded(pairs: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        return torch.stack([(first * second).sum(-1).clamp(min=margin) for first, second in pairs]).mean()

    enc = bounded([(original, encrypted), (original, encrypted_other)])
    dec = bounded([(recovered, wrong), (recovered, wrong_other), (original, wrong), (original, wrong_other)])
    return enc + dec, 1 - bounded([(recovered, original)])


def pixel_loss(five: Tensor, target: Tensor) -> Tensor:
    """Mean absolute difference of each of five images (5, N, 3, S, S) from ``target`` (N, 3, S, S), the sum."""
    return (five - target).abs().mean(dim=(1, 2, 3, 4)).sum()


def compare_different(
    original: Tensor, encrypted: Tensor, encrypted_other: Tensor, wrong: Tensor, wrong_other: Tensor
) -> Tensor:
    """Cosines (6, N) of the pairs that should be different people, from unit vectors (N, D).

    The faces are the original, the original encrypted with two passwords, and the first of these decrypted with two
    wrong passwords. All pairs count except an encrypted face with a wrongly decrypted one.
    """
    pairs = ((encrypted, original), (encrypted_other, original), (encrypted, encrypted_other),
             (wrong, original), (wrong_other, original), (wrong, wrong_other))  # fmt: skip
    return torch.stack([(first * second).sum(-1) for first, second in pairs])


def reversed_identity_loss(cosines: Tensor, margin: float) -> Tensor:
    """max(0, cos - margin), the mean; 0 .. 1 - margin."""
    return functional.relu(cosines - margin).mean()


def reversed_latent_loss(cosines: Tensor, margin: float) -> Tensor:
    """max(0, |cos| - margin), the mean; 0 .. 1 - margin. A negated code reveals as much as the code itself."""
    return functional.relu(cosines.abs() - margin).mean()


def identity_recovery_loss(recovered: Tensor, target: Tensor) -> Tensor:
    """1 - cos of unit identity vectors (N, D) twice, the mean; 0 (same) .. 2 (opposite)."""
    return 1 - (recovered * target).sum(-1).mean()


def layout_loss(generated: Tensor, target: Tensor) -> Tensor:
    """Mean absolute difference of images (N, 3, S, S), reduced to LAYOUT pixels: pose, hair, colors, background."""
    small, small_target = (deterministic.average(images, (LAYOUT, LAYOUT)) for images in (generated, target))
    return (small - small_target).abs().mean()


def distribution_loss(codes: Tensor, real: Tensor) -> Tensor:
    """Energy distance of codes (N, K) and (M, K), divided by sqrt(K); 0 for equal distributions."""
    return compute_energy_distance(codes, real) / codes.shape[1] ** 0.5


EVERY, SHARE = 6, 0.5  # fast steps for each slow step, and the length of a slow step: Zhang et al. 2019, section 3


class Ranger(torch.optim.RAdam):
    """RAdam with LookAhead: every 6 steps the weights go back half of the way since the last such step."""

    def __init__(self, parameters, lr: float):
        super().__init__(parameters, lr=lr, betas=(0.95, 0.999), eps=1e-5)

    @torch.no_grad()
    def step(self, closure=None):
        weights = [weight for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        slow = [self.state[weight].get("slow", weight.detach().clone()) for weight in weights]
        loss = super().step(closure)
        for weight, kept in zip(weights, slow, strict=True):
            state = self.state[weight]
            state["slow"] = kept
            if int(state["step"]) % EVERY == 0:
                weight.copy_(kept.lerp_(weight, SHARE))  # phi <- phi + alpha (theta - phi), theta <- phi
        return loss


TIED = ("generator", "inversion", "identity")  # the backbones that a checkpoint belongs to
LPIPS_KNOB = "methods.riddle.params.losses.lpips"
PASSWORDS = 4  # for each face in an update: two that encrypt it, two that are wrong
DECODED = 256  # images at a time
SAMPLES = 6  # rows of a sample image
MEASURED = 4096  # codes of W from which the deviation is computed
OTHERS_RATE = 0.1  # learning rate of Adam, as a share of Muon's; Adam takes the weights that are no matrices


class EncryptorTask:
    """One update of the encryptor on a batch of training faces.

    ``pictures`` uint8 (M, S, S, 3); ``codes`` their W+ (M, layers, style); ``identities`` their unit vectors (M, D).
    The batch of a step depends only on the seed and the number of the step.
    """

    def __init__(self, settings: RiddleSettings, space: LatentSpace, identity: nn.Module, pictures: np.ndarray,
                 seed: int):  # fmt: skip
        # first, because a missing file should stop a training before all its images are inverted
        self.lpips = (
            load_loss(space.device, LPIPS_KNOB, settings.small_scale.perceptual) if settings.losses.lpips else None
        )
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        self.settings, self.space, self.identity, self.pictures, self.seed = settings, space, identity, pictures, seed
        parts = np.split(pictures, range(DECODED, len(pictures), DECODED))
        self.codes = torch.cat([space.encode(to_float(part)) for part in parts])
        self.identities = apply_in_batches(identity, DECODED, pictures)
        self.network = build_network(settings, space).to(space.device)
        if self.network.visible:
            self.network.visible.measure(self.codes)
            self.codes = self.network.visible(self.codes.to(space.device)).cpu()
        self.influence = measure_influence(self.network, space).sqrt() if settings.codes_alone else None
        self.modules = {"network": self.network}
        self.optimizers = build_optimizers(self.network, settings)

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name."""
        self._schedule(step)
        draw, weights = seeding.make_generator(self.seed, "riddle", step), self.settings.weights
        draws_images = step % self.settings.small_scale.pictures_every == 0
        values = self._compute_image_losses(draw) if draws_images else {}
        if self.settings.codes_alone:
            values |= self._compute_code_losses(draw)
        total = weigh_losses(values, weights)
        self.network.zero_grad(set_to_none=True)
        total.backward()
        if self.settings.small_scale.clip:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.small_scale.clip)
        for optimizer in self.optimizers.values():
            optimizer.step()
        return {name: value.item() for name, value in (values | {"total": total}).items()}

    def _compute_image_losses(self, draw: np.random.Generator) -> dict[str, Tensor]:
        """The terms on drawn images: those of the paper, and recovery from the image."""
        weights = self.settings.weights
        rows, codes = self._draw_faces(draw, self.settings.batch)
        right, five_codes = self._apply_passwords(codes, draw)
        targets, identity = self._find_targets(rows, codes)
        five = self.space.generator.synthesize(torch.cat(five_codes))  # (5 N, 3, S, S)
        vectors = self.identity(five).unflatten(0, (5, -1))
        images = five.unflatten(0, (5, -1))
        reversing, recovering = self._identity_losses(identity, *vectors)
        values = {
            "reversed_identity": reversing,
            "identity_recovery": recovering,
            "pixels": pixel_loss(images, targets)
            if self.settings.small_scale.pixels_of == "five"
            else (images[2] - targets).square().mean(),
        }
        repeated = targets.repeat(5, 1, 1, 1)
        if self.lpips is not None:
            values["lpips"] = self.lpips(five, repeated).mean() * 5  # the sum over the five images
        if weights.layout:
            values["layout"] = layout_loss(five, repeated)
        if weights.reinverted:
            values["reinverted"] = self._reinversion_loss(five[: len(codes)], right, targets, identity)
        return values

    def _find_targets(self, rows: np.ndarray, codes: Tensor) -> tuple[Tensor, Tensor]:
        """The images (N, 3, S, S) with which the drawn ones are compared, and their identity vectors (N, D)."""
        if self.settings.small_scale.target == "original":
            images = torch.from_numpy(to_float(self.pictures[rows])).to(codes.device)
            return images, self.identities[rows].to(codes.device)
        with torch.no_grad():
            images = self.space.generator.synthesize(codes)
            return images, self.identity(images)

    def _identity_losses(self, original: Tensor, *vectors: Tensor) -> tuple[Tensor, Tensor]:
        """The reversed identity loss and the identity recovery loss of the unit vectors (N, D) of all images."""
        encrypted, encrypted_other, recovered, wrong, wrong_other = vectors
        margin = self.settings.margin
        if self.settings.small_scale.pairs == "published":
            return published_identity_losses(
                original, encrypted, encrypted_other, recovered, wrong, wrong_other, margin
            )
        cosines = compare_different(original, encrypted, encrypted_other, wrong, wrong_other)
        return reversed_identity_loss(cosines, margin), identity_recovery_loss(recovered, original)

    def _reinversion_loss(self, encrypted: Tensor, right: Tensor, targets: Tensor, identity: Tensor) -> Tensor:
        """Loss of recovery from the image: the encrypted face is rounded to 8 bits, encoded, decrypted and drawn."""
        decrypted = self.network(self.space.inverter(round_to_8_bits(encrypted)), right)
        recovered = self.space.generator.synthesize(decrypted)
        return identity_recovery_loss(self.identity(recovered), identity) + (recovered - targets).square().mean()

    def _compute_code_losses(self, draw: np.random.Generator) -> dict[str, Tensor]:
        """The terms on codes alone, which is cheap because nothing is drawn; codes take the place of identities."""
        count = self.settings.small_scale.code_batch
        codes, others = self._draw_faces(draw, count)[1], self._draw_faces(draw, count)[1]
        _, five_codes = self._apply_passwords(codes, draw)
        original, encrypted, encrypted_other, decrypted, *wrong = map(self._weigh_codes, (codes, *five_codes))
        real = self._weigh_codes(others)
        unit = [functional.normalize(part) for part in (original, encrypted, encrypted_other, *wrong)]
        return {
            "latents": (decrypted - original).square().mean(),
            "reversed_latents": reversed_latent_loss(compare_different(*unit), self.settings.margin),
            "distribution": torch.stack([distribution_loss(part, real) for part in (encrypted, wrong[0])]).mean(),
        }

    def _apply_passwords(self, codes: Tensor, draw: np.random.Generator) -> tuple[Tensor, list[Tensor]]:
        """A password of each face (N, style), and the W+ of five faces.

        They are encrypted with it and with another one, and the first is decrypted with it and with two wrong ones.
        The passwords are z ~ N(0, I) after the mapping network.
        """
        z = draw.standard_normal((PASSWORDS * len(codes), self.space.generator.style_width), dtype=np.float32)
        with torch.no_grad():
            right, other, *wrong = self.space.generator.map(torch.from_numpy(z).to(self.space.device)).chunk(PASSWORDS)
        encrypted, encrypted_other = self.network(codes, right), self.network(codes, other)
        read = self._add_noise(encrypted, draw)
        return right, [encrypted, encrypted_other, *(self.network(read, key) for key in (right, *wrong))]

    def _add_noise(self, codes: Tensor, draw: np.random.Generator) -> Tensor:
        """Encrypted codes as they are read from images: with noise in their coordinates."""
        deviation, visible = self.settings.small_scale.noise, self.network.visible
        if visible is None or not deviation:
            return codes
        directions = visible.directions
        noise = draw.standard_normal((len(codes), len(directions)), dtype=np.float32)
        return codes + deviation * (torch.from_numpy(noise).to(codes.device) @ directions).view_as(codes)

    def _weigh_codes(self, codes: Tensor) -> Tensor:
        """Codes (N, layers, style) -> (N, layers * style), standardized and weighted by their influence on images."""
        assert self.influence is not None
        return (self.network.standardize(codes) * self.influence).flatten(1)

    def _draw_faces(self, draw: np.random.Generator, count: int) -> tuple[np.ndarray, Tensor]:
        """Rows of training faces (count,) and their codes (count, layers, style)."""
        rows = draw.integers(0, len(self.codes), count)
        codes = self.codes[torch.from_numpy(rows)].to(self.space.device)
        if self.network.visible:  # the coordinates that optimization finds are longer than the encoder's
            factors = torch.from_numpy(draw.uniform(1, LONGEST, count).astype(np.float32)).to(codes.device)
            codes = self.network.visible.lengthen(codes, factors)
        return rows, codes

    def _schedule(self, step: int) -> None:
        factor = compute_cooldown(step, self.settings.steps, self.settings.cooldown)
        for name, optimizer in self.optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = self.settings.learning_rate * factor * (OTHERS_RATE if name == "others" else 1.0)


def build_untrained(settings: RiddleSettings, space: LatentSpace) -> LatentEncryptor:
    """An encryptor with the widths of ``settings``, for the generator of ``space``."""
    generator = space.generator
    return LatentEncryptor(
        generator.layers, generator.style_width, settings.groups, settings.width, settings.heads, settings.hidden,
        settings.small_scale.visible,
    )  # fmt: skip


def build_network(settings: RiddleSettings, space: LatentSpace) -> LatentEncryptor:
    """The `build_untrained` encryptor, with the mean and deviation of W of its generator."""
    generator, network = space.generator, build_untrained(settings, space)
    z = seeding.make_generator(0, "riddle", "deviation").standard_normal(
        (MEASURED, generator.style_width), dtype=np.float32
    )
    with torch.no_grad():
        codes_of_w = generator.map(torch.from_numpy(z).to(space.device)).cpu()
        network.mean.copy_(generator.latent_avg)
        network.deviation.copy_((codes_of_w - network.mean).square().mean().sqrt())
    return network


@torch.no_grad()
def measure_influence(network: LatentEncryptor, space: LatentSpace) -> Tensor:
    """The influence of each number of W+ on the image of the mean face, (layers, style) with mean 1.

    It is the root mean square change of the image if the number is one deviation higher in all layers of its group.
    """
    generator, width = space.generator, space.generator.style_width
    mean = generator.broadcast(generator.latent_avg[None])
    still, steps = generator.synthesize(mean), torch.eye(width, device=space.device) * network.deviation
    by_group, first = [], 0
    for size in network.sizes:
        codes = mean.repeat(width, 1, 1)
        codes[:, first : first + size] += steps[:, None]
        images = apply_in_batches(generator.synthesize, generator.at_once, codes).to(codes.device)
        by_group.append((images - still).square().mean(dim=(1, 2, 3)).sqrt().expand(size, -1))
        first += size
    influences = torch.cat(by_group)
    return influences / influences.mean()


def build_optimizers(network: nn.Module, settings: RiddleSettings) -> dict[str, torch.optim.Optimizer]:
    """Ranger for all weights, or Muon for the matrices and Adam for the others, by name."""
    rate = settings.learning_rate
    if settings.small_scale.optimizer == "ranger":
        return {"all": Ranger(network.parameters(), lr=rate)}
    matrices = [weight for weight in network.parameters() if weight.ndim == 2]
    others = [weight for weight in network.parameters() if weight.ndim != 2]
    return {
        "matrices": Muon(matrices, lr=rate),
        "others": torch.optim.Adam(others, lr=rate * OTHERS_RATE, betas=(0.9, 0.99)),
    }


def train(settings: RiddleSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged encryptor).

    Raises PictureError if the archive holds another size than the generator draws, and CheckpointError if the
    inversion was trained for another generator.
    """
    training = Training(job, settings)
    archive, space = training.archive, LatentSpace({name: job.backbones[name] for name in ("generator", "inversion")})
    task = EncryptorTask(settings, space, load_backbone("identity", job.backbones), training.pictures(), job.seed)
    network = training.average(task.network)
    sources = archive.load(rows=archive.select("validation").iloc[:SAMPLES]).images
    training.fit(task, settings.steps, lambda: draw_samples(network, space, sources))
    training.save({"network": network}, {}, TIED)


def load(
    settings: RiddleSettings, checkpoint: Path, backbones: Mapping[str, Path], space: LatentSpace
) -> LatentEncryptor:
    """The encryptor of a checkpoint, frozen. Raises CheckpointError if it or a backbone does not fit."""
    return place(Saved(checkpoint, backbones, TIED).frozen("network", build_untrained(settings, space)))


@torch.no_grad()
def draw_samples(network: LatentEncryptor, space: LatentSpace, images: np.ndarray) -> np.ndarray:
    """uint8 (rows, columns, 3): original | encrypted | another password | right | wrong | right, from the image."""
    device, count = space.device, len(images)
    codes = space.encode(images).to(device)
    z = seeding.make_generator(0, "riddle", "samples").standard_normal(
        (3, space.generator.style_width), dtype=np.float32
    )
    right, other, wrong = (key.expand(count, -1) for key in space.generator.map(torch.from_numpy(z).to(device)))
    encrypted = network(codes, right)
    images_encrypted = space.draw(encrypted.cpu())
    reinverted = space.encode(round_to_8_bits(images_encrypted).numpy()).to(device)
    versions = [encrypted, network(codes, other), network(encrypted, right), network(encrypted, wrong),
             network(reinverted, right)]  # fmt: skip
    columns = [images, *(space.draw(part.cpu()).numpy() for part in versions)]
    return arrange_columns(columns)
