"""What iFADIT trains, assembled: the disentangler (phase I) and the transform (phase II)."""

import copy
import logging

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones._inversion import KINDS, Inverter, start_from
from masquerade.errors import ParameterError
from masquerade.identity_flow.settings import IdentityFlowSettings
from masquerade.networks.all_in_one import AllInOneFlow
from masquerade.networks.coupling import SecureFlow
from masquerade.networks.identity_mapping import IdentityCompensation, IdentityMapping

logger = logging.getLogger(__name__)

FLOWS = {"coupling": SecureFlow, "all_in_one": AllInOneFlow}
IDENTITY = 512
"""Numbers of an identity vector: section 3.2."""


class Disentangler(nn.Module):
    """E_Attr and M (Eq. 1 and 2). ``mean``: (layers, style), the mean code, which attributes and W+ are relative to."""

    def __init__(self, settings: IdentityFlowSettings, mean: Tensor):
        super().__init__()
        layers, style = mean.shape
        asked = settings.encoder
        self.encoder = KINDS[asked.kind](layers, asked.input_size, style, asked.widths, asked.units)
        self.mapping = IdentityMapping(layers, IDENTITY, style, settings.mapping)
        self.register_buffer("latent_avg", mean.clone())

    def attributes(self, images: Tensor) -> Tensor:
        """a = E_Attr(X): pictures (N, 3, H, W), any size -> (N, layers, style)."""
        size = self.encoder.size
        if images.shape[-2:] != (size, size):
            images = functional.interpolate(
                images, size=(size, size), mode="bilinear", align_corners=False, antialias=True
            )
        return self.encoder(images)

    def codes(self, identity: Tensor, attributes: Tensor) -> Tensor:
        """w = M(z, a), Eq. 2: (N, 512) and (N, layers, style) -> W+ (N, layers, style)."""
        return self.latent_avg + self.mapping(identity, attributes)


class Transform(nn.Module):
    """T and C (Eq. 3 and 10): identity vectors (N, 512) and secret vectors (N, style) -> identity vectors.

    The flow works in the coordinates of a fixed rotation, which is none until `align`.
    """

    def __init__(self, settings: IdentityFlowSettings, style: int):
        super().__init__()
        flow = settings.flow
        self.flow = FLOWS[flow.kind](IDENTITY, style, flow.blocks, flow.hidden, flow.limit, flow.start)
        self.gain = flow.secret
        self.register_buffer("rotation", torch.eye(IDENTITY))
        self.compensation = (
            IdentityCompensation(IDENTITY, settings.compensation_widths) if settings.compensation else nn.Identity()
        )

    def align(self, vectors: Tensor) -> None:
        """Let the flow work along the principal directions of identity vectors (M, 512), with shifts as they vary.

        Identities vary in few of 512 directions, and what a flow adds in the others no face can show. The directions go
        to both halves in turn.
        """
        moments = vectors.double().cpu().T @ vectors.double().cpu() / len(vectors)
        values, directions = torch.linalg.eigh(moments)  # rising
        order = torch.arange(IDENTITY).flip(0).view(-1, 2).T.flatten()
        self.rotation.copy_(directions[:, order])
        self.flow.set_reach(values[order].clamp(min=0).sqrt().to(self.rotation))

    def forward(self, identity: Tensor, secret: Tensor) -> Tensor:
        """T(z, k)."""
        return self.flow(identity @ self.rotation, self.gain * secret) @ self.rotation.T

    def inverse(self, identity: Tensor, secret: Tensor) -> Tensor:
        """T^-1(z, k)."""
        return self.flow.inverse(identity @ self.rotation, self.gain * secret) @ self.rotation.T


def started(settings: IdentityFlowSettings, mean: Tensor, identity: nn.Module, inverter: Inverter) -> Disentangler:
    """A disentangler that starts as ``settings.encoder.start`` says. Raises ParameterError where it cannot."""
    disentangler = Disentangler(settings, mean)
    if settings.encoder.start == "identity":
        start_from(identity, disentangler.encoder)
        return disentangler
    given, own = inverter.encoder.state_dict(), disentangler.encoder.state_dict()
    if type(inverter.encoder) is not type(disentangler.encoder) or {k: v.shape for k, v in given.items()} != {
        k: v.shape for k, v in own.items()
    }:
        raise ParameterError(
            "params.yaml: methods.ifadit.params.encoder.start is 'inversion', and kind, input_size, widths and units "
            "are not those of backbones.inversion: copy them from there, or set start to 'identity'."
        )
    disentangler.encoder.load_state_dict(copy.deepcopy(given))
    try:
        disentangler.mapping.start_at_attributes()
    except ValueError as error:
        raise ParameterError(f"params.yaml: methods.ifadit.params.mapping: {error}.") from error
    return disentangler


def secret_vectors(generator: nn.Module, pseudorandom: Tensor) -> Tensor:
    """k of Eq. 4: bytes, uint8 (N, style), as floats in [-1, 1] through the generator's mapping network."""
    with torch.no_grad():
        return generator.map(pseudorandom.float() / 127.5 - 1.0)


def drawn_secrets(generator: nn.Module, draw: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
    """Two secret vectors for each pair of a batch, s_k and s_l of Eq. 17: (count, style) each, rows 2 p, 2 p + 1 alike.

    The bytes that a key derivation function gives cannot be told from random ones: so here they are drawn.
    """
    drawn = draw.integers(0, 256, (2, count // 2, generator.style_width), dtype=np.uint8)
    first, second = (
        secret_vectors(generator, torch.from_numpy(part).to(generator.latent_avg.device)).repeat_interleave(2, dim=0)
        for part in drawn
    )
    return first, second
