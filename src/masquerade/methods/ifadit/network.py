"""The networks that iFADIT trains: the disentangler (phase I) and the transform (phase II)."""

import copy
import logging
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.inversion.inverter import KINDS, Inverter, start_from
from masquerade.core.errors import ParameterError
from masquerade.methods.ifadit.settings import IfaditSettings
from masquerade.networks import deterministic
from masquerade.networks.coupling import SecureFlow
from masquerade.networks.identity_mapping import IdentityCompensation, IdentityMapping
from masquerade.networks.linear_codes import LinearCodes, linear_side
from masquerade.networks.stylegan2 import Generator

logger = logging.getLogger(__name__)

IDENTITY = 512
"""Width of an identity vector: section 3.2."""


class Span(nn.Module):
    """Unit identity vectors (N, 512) -> their coordinates in the span of ``basis`` (D, 512), scaled to length 1 (N, D).

    The identities of people fill few of 512 dimensions, and a face shows nothing of a change in the others. The basis
    is orthonormal; it starts with the first axes, until `fit`.
    """

    basis: Tensor

    def __init__(self, settings: IfaditSettings):
        super().__init__()
        self.register_buffer("basis", torch.eye(settings.span or IDENTITY, IDENTITY))

    def fit(self, vectors: Tensor) -> Tensor:
        """Set ``basis`` to the directions with the most energy in unit vectors (M, 512). Returns their coordinates."""
        directions = torch.linalg.eigh(vectors.double().mT @ vectors.double())[1]  # of rising energy
        rows = directions[:, -len(self.basis) :].mT
        largest = rows.gather(1, rows.abs().argmax(dim=1, keepdim=True))
        self.basis.copy_(rows * largest.sign())  # a direction has two signs, and processors differ in which they find
        return self(vectors)

    def forward(self, vectors: Tensor) -> Tensor:
        return functional.normalize(vectors @ self.basis.mT)


class Disentangler(nn.Module):
    """E_Attr and M (Eq. 1 and 2). ``mean``: the mean code (layers, style), which is the origin of attributes and W+.

    ``inversion``: the frozen inversion, which is E_Attr if ``encoder.kind`` is inversion. It is not part of the state.
    """

    latent_avg: Tensor

    def __init__(self, settings: IfaditSettings, mean: Tensor, inversion: Inverter | None = None):
        super().__init__()
        layers, style = mean.shape
        chosen, width = settings.encoder, settings.span or IDENTITY
        self.encoder: Any = None
        self._frozen = (inversion,)  # a tuple, so that PyTorch does not count it among the modules that learn
        if chosen.kind != "inversion":
            self.encoder = KINDS[chosen.kind](layers, chosen.input_size, style, chosen.widths, chosen.units)
        self.unit = settings.span > 0
        self.mapping = IdentityMapping(layers, width, style, settings.mapping, settings.mapping_shared)
        self.register_buffer("latent_avg", mean.clone())
        self.linear = LinearCodes(linear_side(layers), style) if chosen.linear else None

    def attributes(self, images: Tensor) -> Tensor:
        """a = E_Attr(X): pictures (N, 3, H, W) of any size -> (N, layers, style)."""
        if self.encoder is None:
            (inversion,) = self._frozen
            assert inversion is not None
            return inversion(images) - self.latent_avg
        start = 0.0 if self.linear is None else self.linear(images)[:, None] - self.latent_avg
        size = self.encoder.size
        if images.shape[-2:] != (size, size):
            images = deterministic.resized(images, (size, size))
        return start + self.encoder(images)

    def codes(self, identity: Tensor, attributes: Tensor) -> Tensor:
        """w = M(z, a), Eq. 2: (N, D) and (N, layers, style) -> W+ (N, layers, style).

        With a span, M gets the direction of z alone: a face shows no length, and a wrong key gives long vectors.
        """
        identity = functional.normalize(identity) if self.unit else identity
        return self.latent_avg + self.mapping(identity, attributes)


class Transform(nn.Module):
    """T and C (Eq. 3 and 10): identity vectors (N, D) and secret vectors (N, style) -> identity vectors.

    The flow works in rotated coordinates. The rotation is fixed, and it is the identity until `align`.
    """

    rotation: Tensor

    def __init__(self, settings: IfaditSettings, style: int):
        super().__init__()
        flow, width = settings.flow, settings.span or IDENTITY
        self.flow = SecureFlow(width, style, flow.blocks, flow.hidden, flow.limit, flow.start)
        self.gain = flow.secret
        self.register_buffer("rotation", torch.eye(width))
        self.compensation = (
            IdentityCompensation(width, settings.compensation_widths, settings.compensation_form)
            if settings.compensation
            else nn.Identity()
        )

    def align(self, vectors: Tensor) -> None:
        """Rotate the flow to the principal directions of identity vectors (M, D), and scale its shifts to them.

        Identities vary in few directions, and a face cannot show what the flow adds in the others. The
        directions go to both halves of the flow in turn.
        """
        moments = vectors.double().cpu().T @ vectors.double().cpu() / len(vectors)
        values, directions = torch.linalg.eigh(moments)  # rising
        order = torch.arange(len(values)).flip(0).view(-1, 2).T.flatten()
        self.rotation.copy_(directions[:, order])
        self.flow.set_reach(values[order].clamp(min=0).sqrt().to(self.rotation))

    def forward(self, identity: Tensor, secret: Tensor) -> Tensor:
        """T(z, k)."""
        return self.flow(identity @ self.rotation, self.gain * secret) @ self.rotation.T

    def inverse(self, identity: Tensor, secret: Tensor) -> Tensor:
        """T^-1(z, k)."""
        return self.flow.inverse(identity @ self.rotation, self.gain * secret) @ self.rotation.T


def started(settings: IfaditSettings, mean: Tensor, identity: nn.Module, inverter: Inverter) -> Disentangler:
    """A disentangler with the start ``settings.encoder.start``. Raises ParameterError if the encoders do not fit."""
    disentangler = Disentangler(settings, mean, inverter)
    if settings.encoder.kind == "inversion":
        _start_at_attributes(disentangler)
        return disentangler
    if settings.encoder.linear != (inverter.linear is not None and settings.encoder.start == "inversion"):
        raise ParameterError(
            "params.yaml: methods.ifadit.params.encoder.linear must be that of backbones.inversion if encoder.start is "
            "'inversion', and false if it is 'identity'."
        )
    if settings.encoder.start == "identity":
        start_from(identity, disentangler.encoder)
        return disentangler
    source, target = inverter.encoder.state_dict(), disentangler.encoder.state_dict()
    if type(inverter.encoder) is not type(disentangler.encoder) or {k: v.shape for k, v in source.items()} != {
        k: v.shape for k, v in target.items()
    }:
        raise ParameterError(
            "params.yaml: methods.ifadit.params.encoder.start is 'inversion', but kind, input_size, widths and units "
            "are not those of backbones.inversion. Copy them from there, or set start to 'identity'."
        )
    disentangler.encoder.load_state_dict(copy.deepcopy(source))
    if disentangler.linear is not None and inverter.linear is not None:
        disentangler.linear.load_state_dict(inverter.linear.state_dict())
    _start_at_attributes(disentangler)
    return disentangler


def _start_at_attributes(disentangler: Disentangler) -> None:
    try:
        disentangler.mapping.start_at_attributes()
    except ValueError as error:
        raise ParameterError(f"params.yaml: methods.ifadit.params.mapping: {error}.") from error


def secret_vectors(generator: Generator, pseudorandom: Tensor) -> Tensor:
    """k of Eq. 4: bytes, uint8 (N, style), scaled to [-1, 1] -> the result of the generator's mapping network."""
    with torch.no_grad():
        return generator.map(pseudorandom.float() / 127.5 - 1.0)


def drawn_secrets(generator: Generator, draw: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
    """Two secret vectors for each pair of a batch, s_k and s_l of Eq. 17: (count, style) each, equal in each pair.

    The bytes are random: the bytes of a key derivation function cannot be distinguished from random ones.
    """
    drawn = draw.integers(0, 256, (2, count // 2, generator.style_width), dtype=np.uint8)
    first, second = (
        secret_vectors(generator, torch.from_numpy(part).to(generator.latent_avg.device)).repeat_interleave(2, dim=0)
        for part in drawn
    )
    return first, second
