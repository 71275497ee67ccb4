"""The training of the kind ``mobile``, on drawn pairs and on pictures without codes, and how good an inversion is."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.backbones.inversion import photographs
from masquerade.backbones.inversion.inverter import Inverter, errors
from masquerade.backbones.inversion.pairs import Pairs, StyleErrors
from masquerade.backbones.inversion.settings import InversionSettings
from masquerade.core import seeding
from masquerade.core.annotations import FACE_BOX
from masquerade.networks import deterministic, dlib_models, lpips
from masquerade.networks.inputs import device, pixels
from masquerade.networks.mobile_stylegan import MobileStyleGAN
from masquerade.training import precision
from masquerade.training.optimizers import Optimizers, warmup_cosine_share, weighted

MEAN_OF = 10_000  # draws of W: Karras et al. 2019, appendix B
OTHERS = 0.01  # share of the distances to reconstructions of other faces that count as reached
CHIP, PADDING = 150, 0.25  # of dlib's recognizer


class MobileTask:
    """Updates of the encoder.

    Each step has drawn pairs: the picture is made worse as photographs are, its code stays. Every
    ``pairs.pictures_every`` steps it also has pictures of the faces, in another light: what the generator draws of the
    code of the worse picture must be the picture.
    """

    own_precision = True

    def __init__(self, params: InversionSettings, inverter: Inverter, generator: MobileStyleGAN, pictures: Tensor,
                 state: Path, seed: int):  # fmt: skip
        self.params, self.inverter, self.generator, self.pictures = params, inverter, generator, pictures
        self.seed, self.device = seed, inverter.latent_avg.device
        inverter.encoder.start_from_imagenet()
        w = draws_of_w(generator, seed)
        inverter.encoder.principal.measure(w)
        self.modules: dict[str, nn.Module] = {"inverter": inverter.train()}
        self.optimizers = {"inverter": Optimizers({"inverter": inverter}, params.learning_rate, (0.9, 0.99))}
        assert params.pairs is not None
        self.own, folder = params.pairs, state.with_suffix(".pairs")
        self.pairs = Pairs(generator, self.own.count, inverter.encoder.size, folder, seed)
        self.error = StyleErrors(generator, w)
        knob = "backbones.inversion.weights.lpips"
        self.lpips = lpips.perceptual(self.device, knob) if params.weights.lpips else None

    def kind(self, step: int) -> bool:
        """Whether a step has pictures."""
        own = self.params.weights
        return bool(own.pixels or own.lpips) and step % self.own.pictures_every == 0

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name and their weighted sum, "total"."""
        params = self.params
        draw = seeding.generator(self.seed, "inversion", step)
        images, known = self.pairs.batch(draw, self.own.batch)
        with precision.mixed(self.device, params.mixed):
            codes = self.inverter(photographs.worse(images, draw)).float()
        values = {"codes": self.error(codes, known).mean()}
        if self.kind(step):
            values |= self._picture_losses(draw)
        total = weighted(values, params.weights)
        self.optimizers["inverter"].descend(total, warmup_cosine_share(step, params.steps), clip=1.0)
        return {name: value.item() for name, value in (values | {"total": total}).items()}

    def _picture_losses(self, draw: np.random.Generator) -> dict[str, Tensor]:
        rows = torch.from_numpy(draw.integers(0, len(self.pictures), self.params.batch))
        images = self.pictures[rows].to(self.device).permute(0, 3, 1, 2).float() / 127.5 - 1
        turned = torch.from_numpy(draw.random(len(images)) < 0.5).to(self.device)
        images = photographs.lit(torch.where(turned[:, None, None, None], images.flip(3), images), draw)
        side = self.inverter.encoder.size
        small = deterministic.averaged(images, (side, side))
        with precision.mixed(self.device, self.params.mixed):
            codes = self.inverter(photographs.worse(small, draw)).float()
            made = self.generator.synthesize(codes)
            values = {"pixels": (made - images).square().mean()}
            if self.lpips is not None:
                values["lpips"] = self.lpips(made, images).float().mean()
        return values


def draws_of_w(generator: MobileStyleGAN, seed: int) -> Tensor:
    """Codes of random faces, (MEAN_OF, style)."""
    z = seeding.generator(seed, "principal").standard_normal((MEAN_OF, generator.style_width), dtype=np.float32)
    with torch.no_grad():
        return torch.cat([generator.map(part.to(device())) for part in torch.from_numpy(z).split(2000)])


def limit_of(images: np.ndarray, drawn: np.ndarray) -> float:
    """The error (`errors`) from which a face counts as not reached: that at which somebody else is drawn.

    ``images`` and ``drawn``: faces of different people and their reconstructions, (N, 3, S, S). It is the quantile
    `OTHERS` of the errors between a face and the reconstructions of the others.
    """
    others = [errors(images, np.roll(drawn, shift, axis=0)) for shift in range(1, len(images))]
    return float(np.quantile(np.concatenate(others), OTHERS))


def identity_distances(images: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """The distance of dlib's descriptors of aligned faces and their reconstructions, (N,). No loss has it."""
    vectors = [np.stack([_descriptor(picture) for picture in pixels(part, 256)]) for part in (images, drawn)]
    return np.linalg.norm(vectors[0] - vectors[1], axis=1)


def _descriptor(picture: np.ndarray) -> np.ndarray:
    import dlib

    box = dlib.rectangle(*(round(edge * len(picture)) for edge in FACE_BOX))
    chip = dlib.get_face_chip(picture, dlib_models.landmark_predictor()(picture, box), CHIP, PADDING)
    return np.array(dlib_models.face_recognizer().compute_face_descriptor(chip))
