"""The networks, the losses (section 3) and the training of FIT (Gu et al. 2020, arXiv:1911.11759).

The transformer is the residual generator of Johnson et al. 2016 (arXiv:1603.08155) and CycleGAN (Zhu et al. 2017,
appendix 7.2), with the password as additional constant channels of the image. The paper normalizes over the batch.
Here each face is normalized separately, in groups of channels (Wu and He 2018), so that a result does not depend on the
other faces of the batch. Groups of one channel (instance norm) would remove the password: it shifts each channel of the
first layer by a constant.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import cv2
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, relu

from masquerade.backbones import load_backbone
from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive, to_float, to_uint8
from masquerade.methods.fit import BITS, GROUP, FitSettings, draw_passwords, encode_bits, group_bits
from masquerade.networks import deterministic
from masquerade.networks.deterministic import ReflectedConv2d
from masquerade.networks.discriminators import MultiScale
from masquerade.networks.inputs import round_to_8_bits
from masquerade.training import distributed
from masquerade.training.optimizers import Optimizers, compute_cooldown, weigh_losses
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

NORMALIZED = 16  # channels that are normalized together: Wu and He 2018, Table 3
INSIDE = 1 - 1 / 512  # keeps artanh finite for black and white; changes a value by less than half a step of 8 bits
SLOPE = 0.2  # of the classifier's LeakyReLU: PatchGAN (Isola et al. 2017)


class IdentityTransformer(nn.Module):
    """T(I, p): an image (N, 3, S, S) in [-1, 1] and a password (N, bits) of +-0.5 -> an image, same shape and range.

    S is a multiple of ``2 ** halvings``. ``width``: channels before the first halving; each halving doubles them.
    ``reach`` 0: the network draws the image, T = tanh f(I, p), as published. Otherwise it draws a change that is odd
    in the password, T = tanh(artanh I + reach / 2 (tanh f(I, p) - tanh f(I, -p))). The inverse password undoes the
    change as far as f is the same for both images, and no color is clipped (docs/fit_and_riddle.md).
    """

    def __init__(self, bits: int, width: int, halvings: int, blocks: int, reach: float):
        super().__init__()
        self.reach = reach
        self.first = ReflectedConv2d(3, width, 7, bias=False)
        # The bits as constant channels of that convolution, which maps a constant to a constant: the sum of its kernel.
        self.password = nn.Linear(bits, width, bias=False)
        # With a smaller start than the image's, the network learns to ignore the password.
        nn.init.normal_(self.password.weight, std=2 / bits**0.5)
        widths = [width * 2**level for level in range(halvings + 1)]
        layers: list[nn.Module] = [_norm(width), nn.ReLU()]
        for into, out in pairwise(widths):
            layers += [_convolution(into, out, stride=2), _norm(out), nn.ReLU()]
        layers += [Block(widths[-1]) for _ in range(blocks)]
        for into, out in pairwise(widths[::-1]):
            # as published: unlike transposed convolutions, these leave no chequerboard
            layers += [nn.Upsample(scale_factor=2), _convolution(into, out), _norm(out), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.last = ReflectedConv2d(width, 3, 7)

    def forward(self, images: Tensor, passwords: Tensor) -> Tensor:
        # channels last here and in all that follows: twice as fast on a CPU
        of_image = self.first(images.contiguous(memory_format=torch.channels_last))
        of_password = self.password(passwords)[:, :, None, None]
        if not self.reach:
            return self._f(of_image + of_password).tanh()
        features = torch.cat([of_image + of_password, of_image - of_password])
        change, inverse_change = self._f(features).tanh().chunk(2)  # with p and with -p
        return ((INSIDE * images).atanh() + self.reach / 2 * (change - inverse_change)).tanh()

    def _f(self, features: Tensor) -> Tensor:
        return self.last(self.layers(features))


class Block(nn.Module):
    """x + f(x), f two convolutions with their norms (He et al. 2016, as in Johnson et al. 2016)."""

    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.Sequential(
            _convolution(width, width), _norm(width), nn.ReLU(), _convolution(width, width), _norm(width)
        )

    def forward(self, features: Tensor) -> Tensor:
        return features + self.layers(features)


class PasswordClassifier(nn.Module):
    """Q: the password that turned one image into the other (Gu et al. 2020, after InfoGAN, Chen et al. 2016).

    Two images (N, 3, S, S) -> logits (N, bits / group, 2 ** group) of the number in each group of bits. ``depth``
    convolutions halve the image, the first with ``width`` channels, each further one twice as many, up to 8 times
    ``width``; then the mean over the image is taken. ``last_stride`` 4: the last convolution takes blocks of 4 x 4
    without padding. ``first_norm``: whether the first convolution is normalized; if not, it has biases.
    """

    def __init__(self, bits: int, group: int, width: int, depth: int, last_stride: int = 2, first_norm: bool = True):
        super().__init__()
        self.shape = (bits // group, 2**group)
        widths = [6, *(width * min(2**level, 8) for level in range(depth))]
        layers: list[nn.Module] = []
        for level, (into, out) in enumerate(pairwise(widths), start=1):
            stride, padding = (4, 0) if level == depth and last_stride == 4 else (2, 1)
            normalized = level > 1 or first_norm
            layers += [nn.Conv2d(into, out, 4, stride, padding, bias=not normalized)]
            layers += [_norm(out)] * normalized + [nn.LeakyReLU(SLOPE)]
        self.layers = nn.Sequential(*layers)
        self.score = nn.Linear(widths[-1], self.shape[0] * self.shape[1])

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        features = self.layers(torch.cat([before, after], dim=1)).mean(dim=(2, 3))  # (N, channels)
        return self.score(features).unflatten(1, self.shape)


class Discriminators(MultiScale):
    """PatchGAN (Isola et al. 2017), with other weights for images halved 0, 1, ..., ``scales`` - 1 times.

    Input (N, 3, S, S) in [-1, 1]. Output: ``scales`` maps of scores, finest first; 1 means real, 0 drawn. ``depth``
    convolutions precede the one that gives the score. The first has ``width`` channels, each further one twice as many,
    up to 8 times ``width``; all but the last halve the image. The instance norm of `PatchDiscriminator` would
    hide the colors.
    ``coarser``: the networks of all scales but the finest, if other discriminators have them, too.
    """

    def __init__(self, width: int, depth: int, scales: int, coarser: Iterable[nn.Module] | None = None):
        widths = [width * min(2**level, 8) for level in range(depth)]
        super().__init__(
            [_patch(widths), *(coarser if coarser is not None else (_patch(widths) for _ in range(scales - 1)))]
        )


def build_discriminators(kinds: Iterable[str], width: int, depth: int, scales: int, shared: bool) -> nn.ModuleDict:
    """A discriminator for each kind of image. ``shared``: only the finest scale of each is its own (Gu et al. 2020's
    published code); all coarser scales are one network for all kinds.
    """
    by_kind: dict[str, Discriminators] = {}
    for kind in kinds:
        coarser = next(iter(by_kind.values())).scales[1:] if shared and by_kind else None
        by_kind[kind] = Discriminators(width, depth, scales, coarser)
    return nn.ModuleDict(by_kind)


def _patch(widths: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 2, 1), nn.LeakyReLU(SLOPE)]
    for level, (into, out) in enumerate(pairwise(widths), start=2):
        stride = 1 if level == len(widths) else 2
        layers += [nn.Conv2d(into, out, 4, stride, 1, bias=False), _norm(out), nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*layers, nn.Conv2d(widths[-1], 1, 4, 1, 1))


def _convolution(into: int, out: int, stride: int = 1) -> nn.Conv2d:
    return ReflectedConv2d(into, out, 3, stride, bias=False)


def _norm(width: int) -> nn.GroupNorm:
    return nn.GroupNorm(max(1, width // NORMALIZED), width)


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
    identities (docs/fit_and_riddle.md).
    """

    def different(*names: str) -> Tensor:
        return torch.stack([feature_loss(vectors[name], original, margin) for name in names[: 1 + both]]).mean()

    recovered = (1 - cosine(vectors["recovered"], original)).mean()
    return (recovered + different("anonymized", "other") + different("wrong", "wrong_too")) / 3


def password_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """L_aux: cross-entropy of each group of bits, the sum over groups and the mean over images.

    ``logits`` (N, groups, classes), ``targets`` int64 (N, groups).
    """
    return cross_entropy(logits.flatten(0, 1), targets.flatten()) * targets.shape[1]


def adversarial_loss(fake: Sequence[Tensor]) -> Tensor:
    """L_GAN of the transformer: mean (D - 1)^2, the sum over the scales (LSGAN, Mao et al. 2017, Eq. 9)."""
    return torch.stack([(scores - 1).square().mean() for scores in fake]).sum()


def reduce(images: Tensor, size: int) -> Tensor:
    """Images (N, 3, S, S) -> (N, 3, size, size): means of blocks."""
    return images if images.shape[-1] == size else deterministic.average(images, (size, size))


def enlarge(images: Tensor, side: int) -> Tensor:
    """Images (N, 3, S, S) -> (N, 3, side, side) in [-1, 1]."""
    return images if images.shape[-1] == side else deterministic.resize(images, (side, side), "bicubic").clamp(-1, 1)


def discriminator_loss(real: Sequence[Tensor], fake: Sequence[Tensor]) -> Tensor:
    """L_GAN of a discriminator: 1/2 mean (D(real) - 1)^2 + 1/2 mean D(fake)^2, the sum over scales (LSGAN, Eq. 9)."""
    losses = [(r - 1).square().mean() + f.square().mean() for r, f in zip(real, fake, strict=True)]
    return 0.5 * torch.stack(losses).sum()


TIED = ("identity",)  # the backbones that a checkpoint belongs to
SAMPLES = 6  # rows of a sample image
KINDS = ("anonymized", "recovered", "wrong")  # of images; each has its discriminator


class TransformerTask:
    """One update of the discriminators, and one of the transformer and the password classifier.

    ``pictures`` uint8 (M, S, S, 3), where S is ``settings.size``. ``side``: the side of the images that are written.
    ``identity``: the frozen identity encoder. The batch and the passwords of a step depend only on the seed and the
    number of the step.
    """

    parallel = True

    def __init__(self, settings: FitSettings, identity: nn.Module, pictures: np.ndarray, side: int, seed: int):
        distributed.check_batch(settings.batch, "methods.fit.params.batch")
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        self.settings, self.identity, self.pictures, self.side, self.seed = settings, identity, pictures, side, seed
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
        rows = distributed.select_rows(draw.integers(len(self.pictures), size=count))
        images = torch.from_numpy(to_float(self.pictures[rows])).to(self.device)
        mirrored = torch.from_numpy(distributed.select_rows(draw.random(count) < 0.5)).to(self.device)
        images = torch.where(mirrored[:, None, None, None], images.flip(-1), images)
        numbers = {name: distributed.select_rows(drawn) for name, drawn in draw_passwords(draw, count).items()}
        faces = self._draw_under(images, ("anonymized", "other"), numbers)  # (B, 3, S, S) by kind: `draw_passwords`
        faces |= self._draw_under(faces["anonymized"], ("recovered", "wrong", "wrong_too"), numbers)
        values = {"discriminators": self._update_discriminators(images, faces)}
        values |= self._update_transformer(
            images, faces, numbers, compute_cooldown(step, self.settings.steps, self.settings.cooldown)
        )
        return {name: value.item() for name, value in values.items()}

    def _draw_under(self, images: Tensor, names: tuple[str, ...], numbers: dict[str, np.ndarray]) -> dict[str, Tensor]:
        """The images under passwords of several kinds, in one pass."""
        bits = np.concatenate([encode_bits(numbers[name]) for name in names])
        transformed = self.network(images.repeat(len(names), 1, 1, 1), torch.from_numpy(bits).to(self.device))
        # Recovery starts from a saved image, so what the network hides must survive the enlargement and the rounding.
        saved = reduce(round_to_8_bits(enlarge(transformed, self.side)), self.settings.size)
        return dict(zip(names, saved.chunk(len(names)), strict=True))

    def _update_discriminators(self, images: Tensor, faces: dict[str, Tensor]) -> Tensor:
        """The mean over the kinds, of both hidden images, the recovered one, and both wrongly recovered ones."""
        detached = {name: value.detach() for name, value in faces.items()}
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
        self, images: Tensor, faces: dict[str, Tensor], numbers: dict[str, np.ndarray], share: float
    ) -> dict[str, Tensor]:
        self.discriminators.requires_grad_(False)
        values = self._compute_losses(images, faces, numbers)
        self.discriminators.requires_grad_(True)
        total = weigh_losses(values, self.settings.losses)
        self.optimizers["hiding"].descend(total, share)
        return values | {"total": total}

    def _compute_losses(
        self, images: Tensor, faces: dict[str, Tensor], numbers: dict[str, np.ndarray]
    ) -> dict[str, Tensor]:
        """The losses by the name of their weight."""
        pictures = torch.stack([images, *faces.values()])
        gray = distributed.select_rows(torch.rand(self.settings.batch, 1, 1, 1) < self.settings.small_scale.gray).to(
            self.device
        )
        pictures = torch.where(gray, pictures.mean(dim=2, keepdim=True), pictures)
        original, *others = self.identity(pictures.flatten(0, 1)).chunk(len(faces) + 1)
        vectors = dict(zip(faces, others, strict=True))
        margin = self.settings.margin
        fooled = [adversarial_loss(self.discriminators[kind](faces[kind])) for kind in KINDS]
        return {
            "adversarial": torch.stack(fooled).mean(),
            "password": self._password_loss(images, faces, numbers),
            "identity": identity_loss(original, vectors, margin, self.settings.small_scale.identity_of == "both"),
            "feature": feature_loss(vectors["anonymized"], vectors["other"], margin),
            "wrong_feature": feature_loss(vectors["wrong"], vectors["wrong_too"], margin),
            "between_feature": feature_loss(vectors["anonymized"], vectors["wrong"], margin),
            "pixels": (faces["anonymized"] - images).abs().mean() + (faces["wrong"] - images).abs().mean(),
            "reconstruction": (faces["recovered"] - images).abs().mean(),
        }

    def _password_loss(self, images: Tensor, faces: dict[str, Tensor], numbers: dict[str, np.ndarray]) -> Tensor:
        """L_aux, the sum over the three kinds. Q takes the image before and the image after."""
        before = torch.cat([images, faces["anonymized"], faces["anonymized"]])
        logits = self.classifier(before, torch.cat([faces[kind] for kind in KINDS]))
        targets = np.concatenate([group_bits(numbers[kind]) for kind in KINDS])
        return password_loss(logits, torch.from_numpy(targets).to(self.device)) * len(KINDS)


def build_transformer(settings: FitSettings) -> IdentityTransformer:
    """The network with the widths of ``settings``."""
    shape = settings.width, settings.halvings, settings.blocks, settings.small_scale.reach
    return IdentityTransformer(BITS, *shape)


def train(settings: FitSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged transformer).

    Raises ParameterError if images and ``halvings`` do not fit.
    """
    training = Training(job, settings)
    archive = training.archive
    pictures, side = read_images(archive, job.people, settings), archive.metadata["size"]
    check_classifier(settings)
    task = TransformerTask(settings, load_backbone("identity", job.backbones), pictures, side, job.seed)
    network = training.average(task.network)
    sources = to_float(read_images(archive, "validation", settings, SAMPLES))
    training.fit(task, settings.steps, lambda: draw_samples(network, sources, job.seed))
    training.save({"network": network}, {"size": side}, TIED)


def check_classifier(settings: FitSettings) -> None:
    """Raises ParameterError if the images are too small for the convolutions of the classifier."""
    classifier, last_stride = settings.classifier, settings.small_scale.last_stride
    smallest = 2 ** (classifier.depth - 1) * last_stride
    if settings.size < smallest:
        raise ParameterError(
            f"methods.fit.params.classifier: {classifier.depth} convolutions with last_stride {last_stride} need "
            f"images of {smallest} pixels or more, and size is {settings.size}. Lower depth or last_stride."
        )


def read_images(archive: FaceArchive, part: str, settings: FitSettings, limit: int | None = None) -> np.ndarray:
    """The images of a part (at most ``limit``), reduced to the size S of the networks: uint8 (M, S, S, 3).

    Raises ParameterError if there is none, if their side is no multiple of S, or if S cannot be halved as often.
    """
    side, size, rows = archive.metadata["size"], settings.size, archive.select(part).iloc[:limit]
    if side % size:
        raise ParameterError(
            f"{archive.path}: images of {side} pixels cannot be reduced to methods.fit.params.size, {size}. Set it to "
            f"{side}, or to a number by which {side} can be divided."
        )
    if size % 2**settings.halvings:
        raise ParameterError(f"Images of {size} pixels cannot be halved {settings.halvings} times. Lower halvings.")
    if rows.empty:
        raise ParameterError(f"{archive.path} holds no usable face in part {part}; one is needed. Build it again.")
    pictures = archive.pictures(rows)
    if side == size:
        return pictures
    return np.stack([cv2.resize(picture, (size, size), interpolation=cv2.INTER_AREA) for picture in pictures])


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
