"""The losses and the training of FIT (Gu et al. 2020, section 3, and the published code)."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, relu

from masquerade.backbones import loaded
from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive, to_float, to_uint8
from masquerade.methods.fit import BITS, GROUP, FitSettings, draw_passwords, encode_bits, group_bits
from masquerade.methods.fit.network import IdentityTransformer, PasswordClassifier, build_discriminators
from masquerade.training import distributed
from masquerade.training.optimizers import Optimizers, cooldown_share, weigh_losses
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns


def cosine(first: Tensor, second: Tensor) -> Tensor:
    """Cosine of unit vectors, row by row: (N, D) twice -> (N,)."""
    return (first * second).sum(dim=1)


def feature_loss(first: Tensor, second: Tensor, margin: float) -> Tensor:
    """L_feat: max(0, cos - margin), the mean over pairs of unit vectors (N, D) that should be of different people."""
    return relu(cosine(first, second) - margin).mean()


def identity_loss(original: Tensor, vectors: Mapping[str, Tensor], margin: float, both: bool) -> Tensor:
    """L_adv and L_rec_cls: the recovered face keeps the identity; hidden and wrongly recovered faces do not.

    ``vectors``: unit vectors (N, D) by the kind of face (`draw_passwords`). The loss is the mean of three terms:
    1 - cos of ``recovered``, `feature_loss` of the hidden faces, and `feature_loss` of the wrongly recovered ones.
    ``both``: also of the face hidden with a second password, and of the second wrongly recovered one, which the
    published code leaves out. The paper trains a classifier of names for this; our encoder is frozen and compares
    identities (docs/fit.md).
    """

    def different(*names: str) -> Tensor:
        return torch.stack([feature_loss(vectors[name], original, margin) for name in names[: 1 + both]]).mean()

    recovered = (1 - cosine(vectors["recovered"], original)).mean()
    return (recovered + different("anonymized", "other") + different("wrong", "wrong_too")) / 3


def password_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """L_aux: cross-entropy of each group of bits, the sum over groups and the mean over pictures.

    ``logits`` (N, groups, classes), ``targets`` int64 (N, groups).
    """
    return cross_entropy(logits.flatten(0, 1), targets.flatten()) * targets.shape[1]


def adversarial_loss(fake: Sequence[Tensor]) -> Tensor:
    """L_GAN of the transformer: mean (D - 1)^2, the sum over the scales (LSGAN, Mao et al. 2017, Eq. 9)."""
    return torch.stack([(scores - 1).square().mean() for scores in fake]).sum()


def discriminator_loss(real: Sequence[Tensor], fake: Sequence[Tensor]) -> Tensor:
    """L_GAN of a discriminator: 1/2 mean (D(real) - 1)^2 + 1/2 mean D(fake)^2, the sum over scales (LSGAN, Eq. 9)."""
    losses = [(r - 1).square().mean() + f.square().mean() for r, f in zip(real, fake, strict=True)]
    return 0.5 * torch.stack(losses).sum()


TIED = ("identity",)  # the backbones that a checkpoint belongs to
SAMPLES = 6  # rows of a sample picture
KINDS = ("anonymized", "recovered", "wrong")  # of pictures; each has its discriminator


class TransformerTask:
    """One update of the discriminators, and one of the transformer and the password classifier.

    ``pictures`` uint8 (M, S, S, 3); ``identity``: the frozen identity encoder. The batch and the passwords of a step
    depend only on the seed and the number of the step.
    """

    parallel = True

    def __init__(self, settings: FitSettings, identity: nn.Module, pictures: np.ndarray, seed: int):
        distributed.check_batch(settings.batch, "methods.fit.params.batch")
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        self.settings, self.identity, self.pictures, self.seed = settings, identity, pictures, seed
        self.device = next(identity.parameters()).device
        small = settings.small_scale
        self.network = build_transformer(settings).to(self.device)
        self.classifier = PasswordClassifier(
            BITS, GROUP, **dict(settings.classifier), last_stride=small.last_stride, first_norm=small.first_norm
        ).to(self.device)
        self.discriminators = build_discriminators(KINDS, **dict(settings.discriminator), shared=small.shared).to(
            self.device
        )
        self.modules = {
            "network": self.network,
            "classifier": self.classifier,
            "discriminators": self.discriminators,
        }
        rate, betas = settings.learning_rate, settings.betas
        hiding = {"network": self.network, "classifier": self.classifier}
        self.optimizers = {
            "hiding": Optimizers.with_kernels(hiding, rate, settings.kernel_rate, betas, spared=("classifier.",)),
            "discriminating": Optimizers({"discriminators": self.discriminators}, rate, betas),
        }

    def step(self, step: int) -> dict[str, float]:
        torch.manual_seed(seeding.derive_seed(self.seed, "gray", step))
        draw = seeding.make_generator(self.seed, "batch", step)
        count = self.settings.batch
        chosen = distributed.select_rows(draw.integers(len(self.pictures), size=count))
        images = torch.from_numpy(to_float(self.pictures[chosen])).to(self.device)
        mirrored = torch.from_numpy(distributed.select_rows(draw.random(count) < 0.5)).to(self.device)
        images = torch.where(mirrored[:, None, None, None], images.flip(-1), images)
        numbers = {name: distributed.select_rows(drawn) for name, drawn in draw_passwords(draw, count).items()}
        made = self._draw_all(images, numbers)
        values = {"discriminators": self._update_discriminators(images, made)}
        values |= self._update_transformer(
            images, made, numbers, cooldown_share(step, self.settings.steps, self.settings.cooldown)
        )
        return {name: value.item() for name, value in values.items()}

    def _draw_all(self, images: Tensor, numbers: dict[str, np.ndarray]) -> dict[str, Tensor]:
        """Faces (B, 3, S, S) by kind, see `draw_passwords`. The recovered kinds are recovered from ``anonymized``."""
        hidden = self._draw_under(images, ("anonymized", "other"), numbers)
        return hidden | self._draw_under(hidden["anonymized"], ("recovered", "wrong", "wrong_too"), numbers)

    def _draw_under(self, images: Tensor, names: tuple[str, ...], numbers: dict[str, np.ndarray]) -> dict[str, Tensor]:
        """The pictures under passwords of several kinds, in one pass."""
        bits = np.concatenate([encode_bits(numbers[name]) for name in names])
        drawn = self.network(images.repeat(len(names), 1, 1, 1), torch.from_numpy(bits).to(self.device))
        return dict(zip(names, round_to_8_bits(drawn).chunk(len(names)), strict=True))

    def _update_discriminators(self, images: Tensor, made: dict[str, Tensor]) -> Tensor:
        """The mean over the kinds, of both hidden pictures, the recovered one, and both wrongly recovered ones."""
        detached = {name: value.detach() for name, value in made.items()}
        fake = {
            "anonymized": torch.cat([detached["anonymized"], detached["other"]]),
            "recovered": detached["recovered"],
            "wrong": torch.cat([detached["wrong"], detached["wrong_too"]]),
        }
        by_kind = [discriminator_loss(self.discriminators[kind](images), self.discriminators[kind](fake[kind]))
                 for kind in KINDS]  # fmt: skip
        loss = torch.stack(by_kind).mean()
        self.optimizers["discriminating"].descend(loss, 1.0)
        return loss

    def _update_transformer(
        self, images: Tensor, made: dict[str, Tensor], numbers: dict[str, np.ndarray], share: float
    ) -> dict[str, Tensor]:
        self.discriminators.requires_grad_(False)
        values = self._compute_losses(images, made, numbers)
        self.discriminators.requires_grad_(True)
        total = weigh_losses(values, self.settings.losses)
        self.optimizers["hiding"].descend(total, share)
        return values | {"total": total}

    def _compute_losses(
        self, images: Tensor, made: dict[str, Tensor], numbers: dict[str, np.ndarray]
    ) -> dict[str, Tensor]:
        """The losses by the name of their weight."""
        pictures = torch.stack([images, *made.values()])
        gray = distributed.select_rows(torch.rand(self.settings.batch, 1, 1, 1) < self.settings.small_scale.gray).to(
            self.device
        )
        pictures = torch.where(gray, pictures.mean(dim=2, keepdim=True), pictures)
        original, *others = self.identity(pictures.flatten(0, 1)).chunk(len(made) + 1)
        vectors = dict(zip(made, others, strict=True))
        margin = self.settings.margin
        fooled = [adversarial_loss(self.discriminators[kind](made[kind])) for kind in KINDS]
        return {
            "adversarial": torch.stack(fooled).mean(),
            "password": self._password_loss(images, made, numbers),
            "identity": identity_loss(original, vectors, margin, self.settings.small_scale.identity_of == "both"),
            "feature": feature_loss(vectors["anonymized"], vectors["other"], margin),
            "wrong_feature": feature_loss(vectors["wrong"], vectors["wrong_too"], margin),
            "between_feature": feature_loss(vectors["anonymized"], vectors["wrong"], margin),
            "pixels": (made["anonymized"] - images).abs().mean() + (made["wrong"] - images).abs().mean(),
            "reconstruction": (made["recovered"] - images).abs().mean(),
        }

    def _password_loss(self, images: Tensor, made: dict[str, Tensor], numbers: dict[str, np.ndarray]) -> Tensor:
        """L_aux, the sum over the three kinds. Q takes the picture before and the picture after."""
        before = torch.cat([images, made["anonymized"], made["anonymized"]])
        logits = self.classifier(before, torch.cat([made[kind] for kind in KINDS]))
        targets = np.concatenate([group_bits(numbers[kind]) for kind in KINDS])
        return password_loss(logits, torch.from_numpy(targets).to(self.device)) * len(KINDS)


def build_transformer(settings: FitSettings) -> IdentityTransformer:
    """The network with the widths of ``settings``."""
    shape = settings.width, settings.halvings, settings.blocks, settings.small_scale.reach
    return IdentityTransformer(BITS, *shape)


def round_to_8_bits(drawn: Tensor) -> Tensor:
    """Pictures rounded to 8 bits; the gradient is that of pictures without rounding.

    Recovery starts from a saved picture, so what the network hides in the picture must survive the rounding.
    """
    saved = ((drawn.detach() + 1) * 127.5).round() / 127.5 - 1
    return drawn + (saved - drawn.detach())


def train(settings: FitSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged transformer).

    Raises ParameterError if pictures and ``halvings`` do not fit.
    """
    training = Training(job, settings)
    archive = training.archive
    pictures = read_images(archive, job.people, settings.halvings)
    check_classifier(settings, pictures.shape[1])
    task = TransformerTask(settings, loaded("identity", job.backbones), pictures, job.seed)
    network = training.average(task.network)
    sources = to_float(read_images(archive, "validation", settings.halvings, SAMPLES))
    training.fit(task, settings.steps, lambda: draw_samples(network, sources, job.seed))
    training.save({"network": network}, {"size": archive.metadata["size"]}, TIED)


def check_classifier(settings: FitSettings, size: int) -> None:
    """Raises ParameterError if pictures of ``size`` pixels are too small for the convolutions of the classifier."""
    chosen, last_stride = settings.classifier, settings.small_scale.last_stride
    smallest = 2 ** (chosen.depth - 1) * last_stride
    if size < smallest:
        raise ParameterError(
            f"methods.fit.params.classifier: {chosen.depth} convolutions with last_stride {last_stride} need "
            f"pictures of {smallest} pixels or more, and these have {size}. Lower depth or last_stride."
        )


def read_images(archive: FaceArchive, part: str, halvings: int, limit: int | None = None) -> np.ndarray:
    """The pictures of a part (at most ``limit``), uint8 (M, S, S, 3).

    Raises ParameterError if there is none, or if S cannot be halved ``halvings`` times.
    """
    size, rows = archive.metadata["size"], archive.select(part).iloc[:limit]
    if size % 2**halvings:
        raise ParameterError(
            f"{archive.path}: pictures of {size} pixels cannot be halved {halvings} times. Lower halvings."
        )
    if rows.empty:
        raise ParameterError(f"{archive.path} holds no usable face in part {part}; one is needed. Build it again.")
    return archive.pictures(rows)


@torch.no_grad()
def draw_samples(network: IdentityTransformer, images: np.ndarray, seed: int) -> np.ndarray:
    """uint8 (rows, columns, 3): original | anonymized | with another password | recovered | wrongly, twice."""
    device = next(network.parameters()).device
    numbers = draw_passwords(seeding.make_generator(seed, "samples"), len(images))

    def transformed(pictures: np.ndarray, name: str) -> np.ndarray:
        bits = torch.from_numpy(encode_bits(numbers[name])).to(device)
        return to_float(to_uint8(network(torch.from_numpy(pictures).to(device), bits).cpu().numpy()))

    hidden = transformed(images, "anonymized")
    columns = [images, hidden, transformed(images, "other")]
    columns += [transformed(hidden, name) for name in ("recovered", "wrong", "wrong_too")]
    return arrange_columns(columns)
