"""The training of the kind ``mobile``, on drawn pairs and on images without codes, and how good an inversion is."""

import logging
import shutil
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from masquerade.backbones.inversion import InversionSettings, photographs
from masquerade.backbones.inversion.inverter import Inverter, compute_errors
from masquerade.core import seeding
from masquerade.core.annotations import FACE_BOX
from masquerade.core.errors import CheckpointError
from masquerade.networks import deterministic, dlib_models, lpips
from masquerade.networks.inputs import device, to_pixels
from masquerade.networks.mobile_stylegan import MobileStyleGAN
from masquerade.training import checkpoints, precision
from masquerade.training.batches import mirror, to_images
from masquerade.training.optimizers import Optimizers, compute_warmup_cosine, weigh_losses

MEAN_OF = 10_000  # draws of W: Karras et al. 2019, appendix B
OTHERS = 0.01  # share of the distances to reconstructions of other faces that count as reached
CHIP, PADDING = 150, 0.25  # of dlib's recognizer


class MobileTask:
    """Updates of the encoder.

    Each step has drawn pairs: the image is made worse as photographs are, its code stays. Every
    ``pairs.pictures_every`` steps it also has images of the faces, in another light: what the generator draws of the
    code of the worse image must be the image.
    """

    own_precision = True

    def __init__(self, params: InversionSettings, inverter: Inverter, generator: MobileStyleGAN, pictures: Tensor,
                 state: Path, seed: int):  # fmt: skip
        self.params, self.inverter, self.generator, self.pictures = params, inverter, generator, pictures
        self.seed, self.device = seed, inverter.latent_avg.device
        inverter.encoder.start_from_imagenet()
        w = draw_w(generator, seed)
        inverter.encoder.principal.measure(w)
        self.modules: dict[str, nn.Module] = {"inverter": inverter.train()}
        self.optimizers = {"inverter": Optimizers({"inverter": inverter}, params.learning_rate, (0.9, 0.99))}
        assert params.pairs is not None
        self.own, folder = params.pairs, state.with_suffix(".pairs")
        self.pairs = Pairs(generator, self.own.count, inverter.encoder.size, folder, seed)
        self.error = StyleErrors(generator, w)
        knob = "backbones.inversion.weights.lpips"
        self.lpips = lpips.load_loss(self.device, knob) if params.weights.lpips else None

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name and their weighted sum, "total"."""
        params = self.params
        draw = seeding.make_generator(self.seed, "inversion", step)
        images, true_codes = self.pairs.batch(draw, self.own.batch)
        with precision.use_bfloat16(self.device, params.mixed):
            codes = self.inverter(photographs.degrade(images, draw)).float()
        values = {"codes": self.error(codes, true_codes).mean()}
        # a step with images draws them, and takes much longer
        if (params.weights.pixels or params.weights.lpips) and step % self.own.pictures_every == 0:
            values |= self._picture_losses(draw)
        total = weigh_losses(values, params.loss_weights)
        self.optimizers["inverter"].descend(total, compute_warmup_cosine(step, params.steps), clip=1.0)
        return {name: value.item() for name, value in (values | {"total": total}).items()}

    def _picture_losses(self, draw: np.random.Generator) -> dict[str, Tensor]:
        rows = torch.from_numpy(draw.integers(0, len(self.pictures), self.params.batch))
        images = to_images(self.pictures[rows].to(self.device))
        mirrored = torch.from_numpy(draw.random(len(images)) < 0.5).to(self.device)
        images = photographs.relight(mirror(images, mirrored), draw)
        side = self.inverter.encoder.size
        small = deterministic.average(images, (side, side))
        with precision.use_bfloat16(self.device, self.params.mixed):
            codes = self.inverter(photographs.degrade(small, draw)).float()
            generated = self.generator.synthesize(codes)
            values = {"pixels": (generated - images).square().mean()}
            if self.lpips is not None:
                values["lpips"] = self.lpips(generated, images).float().mean()
        return values


def draw_w(generator: MobileStyleGAN, seed: int) -> Tensor:
    """Codes of random faces, (MEAN_OF, style)."""
    z = seeding.make_generator(seed, "principal").standard_normal((MEAN_OF, generator.style_width), dtype=np.float32)
    with torch.no_grad():
        return torch.cat([generator.map(part.to(device())) for part in torch.from_numpy(z).split(2000)])


def measure_limit(images: np.ndarray, reconstructions: np.ndarray) -> float:
    """The error (`compute_errors`) from which a face counts as not reached: that at which somebody else is drawn.

    ``images``: faces of different people, (N, 3, S, S), and ``reconstructions`` of them. It is the quantile
    `OTHERS` of the errors between a face and the reconstructions of the others.
    """
    shifted = (np.roll(reconstructions, shift, axis=0) for shift in range(1, len(images)))
    errors_of_others = np.concatenate([compute_errors(images, others) for others in shifted])
    return float(np.quantile(errors_of_others, OTHERS))


def compute_identity_distances(images: np.ndarray, reconstructions: np.ndarray) -> np.ndarray:
    """The distance of dlib's descriptors of aligned faces and their reconstructions, (N,). No loss has it."""
    vectors = [np.stack([_describe(picture) for picture in to_pixels(part, 256)]) for part in (images, reconstructions)]
    return np.linalg.norm(vectors[0] - vectors[1], axis=1)


def _describe(picture: np.ndarray) -> np.ndarray:
    import dlib

    box = dlib.rectangle(*(round(edge * len(picture)) for edge in FACE_BOX))
    chip = dlib.get_face_chip(picture, dlib_models.load_landmark_predictor()(picture, box), CHIP, PADDING)
    return np.array(dlib_models.load_face_recognizer().compute_face_descriptor(chip))


logger = logging.getLogger(__name__)

PSI = (0.5, 1.0)  # truncation of the codes
CROSSED, MIXED = 0.25, 0.45  # shares of codes with the later layers of another face, and with each layer between two
FARTHEST = 0.7  # of the way to the other face
CHUNK = 200  # images in a file


def draw_codes(generator: MobileStyleGAN, draw: np.random.Generator, count: int) -> Tensor:
    """W+ (count, layers, style) of faces that do not exist. In three quarters the layers differ, as in photographs."""
    layers, device = generator.layers, generator.latent_avg.device
    psi = torch.from_numpy(draw.uniform(*PSI, (count, 1)).astype(np.float32)).to(device)
    z = torch.from_numpy(draw.standard_normal((2, count, generator.style_width), dtype=np.float32)).to(device)
    kind, first = draw.random(count)[:, None], draw.integers(1, layers, count)[:, None]
    crossed = (kind < CROSSED) & (np.arange(layers) >= first)
    between = (kind >= CROSSED) & (kind < CROSSED + MIXED)
    share = np.where(between, draw.uniform(0, FARTHEST, (count, layers)), crossed).astype(np.float32)
    with torch.no_grad():
        w, other_w = (generator.latent_avg + psi * (generator.map(part) - generator.latent_avg) for part in z)
    return w[:, None] + torch.from_numpy(share).to(device)[..., None] * (other_w - w)[:, None]


class Pairs:
    """``count`` drawn images, uint8 (count, 3, side, side), and their codes, both from ``seed``.

    Drawing takes most of the time of a training on pairs, so it happens once: `draw` keeps the images in files of
    `CHUNK` images in ``folder``, from which an interrupted training goes on, until `discard`.
    """

    def __init__(self, generator: MobileStyleGAN, count: int, side: int, folder: Path, seed: int):
        self.generator, self.folder, self.seed, self.side = generator, folder, seed, side
        starts = tqdm(range(0, count, CHUNK), desc="drawing pairs", mininterval=5)
        chunks = [self._chunk(start, min(CHUNK, count - start)) for start in starts]
        self.pictures, self.codes = (torch.cat(parts) for parts in zip(*chunks, strict=True))

    def batch(self, draw: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
        """Images (count, 3, side, side) in [-1, 1] and their codes, drawn with repetition."""
        device = self.generator.latent_avg.device
        rows = torch.from_numpy(draw.integers(0, len(self.pictures), count))
        return self.pictures[rows].to(device).float() / 127.5 - 1, self.codes[rows].to(device)

    def discard(self) -> None:
        """Delete the files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _chunk(self, start: int, count: int) -> tuple[Tensor, Tensor]:
        codes = draw_codes(self.generator, seeding.make_generator(self.seed, "pairs", start), count)
        file = self.folder / f"{start:06d}_{count}_{self.seed}_{self.side}.safetensors"
        try:
            return checkpoints.load_checkpoint(file)[0]["pairs"]["pictures"], codes.cpu()
        except CheckpointError:  # not drawn yet
            pictures = torch.cat([self._drawn(part) for part in codes.split(self.generator.at_once)])
            self.folder.mkdir(parents=True, exist_ok=True)
            module = nn.Module()
            module.register_buffer("pictures", pictures)
            checkpoints.save_checkpoint(file, {"pairs": module}, {})
            return pictures, codes.cpu()

    def _drawn(self, codes: Tensor) -> Tensor:
        with torch.no_grad():
            images = self.generator.synthesize(codes).clamp(-1, 1)
        images = deterministic.average(images, (self.side, self.side))
        return ((images + 1) * 127.5).round().byte().cpu().contiguous()


class StyleErrors:
    """The squared error of codes (N, layers, style), measured on the styles that they give to the generator's layers.

    A code acts by affine maps alone, one or two a layer. Each of their outputs is divided by its deviation over random
    faces, so that each layer weighs the same: e = mean over layers l of  mean over outputs k of
    (a_lk . (w - w'))^2 / var(a_lk . w).  A guess of the mean code has an error of about 1 for faces without truncation.
    """

    def __init__(self, generator: MobileStyleGAN, w: Tensor):
        """``w``: codes of random faces (M, style), of which the deviations are taken."""
        self.maps = []
        with torch.no_grad():
            for layer in range(generator.layers):
                weights = torch.cat([affine.weight for affine in generator.affine_maps(layer)])
                self.maps.append(weights.T / ((w @ weights.T).std(0) * len(weights) ** 0.5))

    def __call__(self, codes: Tensor, true_codes: Tensor) -> Tensor:
        """The error of each face, (N,)."""
        triples = zip(codes.unbind(1), true_codes.unbind(1), self.maps, strict=True)
        errors = [((code - true_code) @ maps).square().sum(1) for code, true_code, maps in triples]
        return torch.stack(errors, 1).mean(1)
