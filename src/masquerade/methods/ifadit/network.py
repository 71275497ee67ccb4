"""The networks that iFADIT (Yuan et al. 2025) trains.

Phase I trains the disentangler, E_Attr and M (Eq. 1 and 2). Phase II trains the transform: the flow T (Eq. 3-8), and
the identity compensation layer C (Eq. 10). The flow is made of affine coupling blocks (RealNVP, Dinh et al. 2017) with
a secret. A block changes one half of a vector at a time, by a scale and a shift that depend on the other half and on
the secret. So with the same secret the change can be undone exactly, whatever the networks inside compute.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.inversion.inverter import KINDS, Inverter
from masquerade.methods.ifadit import IfaditSettings
from masquerade.networks import deterministic
from masquerade.networks.identity_mapping import IdentityMapping
from masquerade.networks.stylegan2 import Generator
from masquerade.networks.w_space import LinearCodes, choose_linear_side

IDENTITY = 512
"""Width of an identity vector: section 3.2."""
FLOW_SLOPE = 0.01  # of the leaky rectifiers in the flow
COMPENSATION_SLOPE = 0.2  # of those in C: the published code


def build_subnetwork(inputs: int, outputs: int, hidden: Sequence[int], start: float) -> nn.Sequential:
    """omega, phi, rho or eta: (N, half + secret) -> (N, half). Every layer is initialized to keep the variance.

    The last layer is multiplied by ``start``, so that a block starts near a plain scaling.
    """
    widths = [inputs, *hidden, outputs]
    linear = [nn.Linear(inputs_of_layer, outputs_of_layer) for inputs_of_layer, outputs_of_layer in pairwise(widths)]
    for layer in linear:
        nn.init.kaiming_normal_(layer.weight, a=FLOW_SLOPE)
        nn.init.zeros_(layer.bias)
    with torch.no_grad():
        linear[-1].weight.mul_(start)
    rectified = [part for layer in linear[:-1] for part in (layer, nn.LeakyReLU(FLOW_SLOPE))]
    return nn.Sequential(*rectified, linear[-1])


class SecureCouplingBlock(nn.Module):
    """One SACB: the halves (N, half) of a vector and the secret vector (N, secret) -> both halves, changed.

    ``limit``: the constant of a(x) = limit * sigmoid(x), so that every scale is in (1, e^limit). ``reach`` (2, half):
    factors of the shifts eta and phi of the first and the second half; ones: as in Eq. 5 and 6.
    """

    reach: Tensor

    def __init__(self, half: int, secret: int, hidden: Sequence[int], limit: float = 1.0, start: float = 1.0):
        super().__init__()
        self.limit = limit
        # omega and phi change the second half, rho and eta the first
        self.omega, self.phi, self.rho, self.eta = (
            build_subnetwork(half + secret, half, hidden, start) for _ in range(4)
        )
        self.register_buffer("reach", torch.ones(2, half))

    def forward(self, first: Tensor, second: Tensor, secret: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. 5 and 6."""
        inputs = torch.cat([first, secret], dim=1)
        second = second * torch.exp(self._bound(self.omega(inputs))) + self.reach[1] * self.phi(inputs)  # Eq. 5
        inputs = torch.cat([second, secret], dim=1)
        first = first * torch.exp(self._bound(self.rho(inputs))) + self.reach[0] * self.eta(inputs)  # Eq. 6
        return first, second

    def inverse(self, first: Tensor, second: Tensor, secret: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. 7 and 8: the inverse of `forward` with the same secret."""
        inputs = torch.cat([second, secret], dim=1)
        first = (first - self.reach[0] * self.eta(inputs)) * torch.exp(-self._bound(self.rho(inputs)))  # Eq. 7
        inputs = torch.cat([first, secret], dim=1)
        second = (second - self.reach[1] * self.phi(inputs)) * torch.exp(-self._bound(self.omega(inputs)))  # Eq. 8
        return first, second

    def _bound(self, x: Tensor) -> Tensor:
        """a of Eq. 5-8."""
        return self.limit * torch.sigmoid(x)


class SecureFlow(nn.Module):
    """T of Eq. 3: (N, width) and secret vectors (N, secret) -> (N, width); ``inverse`` is its exact inverse.

    ``width`` is even. Inside, vectors are scaled by sqrt(width), so that the coordinates of a unit vector are about 1,
    like those of the secret.
    """

    def __init__(
        self,
        width: int,
        secret: int,
        blocks: int = 4,
        hidden: Sequence[int] = (256, 128, 128, 256),
        limit: float = 1.0,
        start: float = 1.0,
    ):
        super().__init__()
        if width % 2:
            raise ValueError(f"the width is {width}; it must be even")
        self.gain = math.sqrt(width)
        self.blocks = nn.ModuleList(
            SecureCouplingBlock(width // 2, secret, hidden, limit, start) for _ in range(blocks)
        )

    def set_reach(self, reach: Tensor) -> None:
        """Set the relative factors of the shifts to ``reach`` (width,), with a mean square of 1."""
        reach = reach / reach.square().mean().sqrt()
        for block in self.blocks:
            assert isinstance(block, SecureCouplingBlock)
            block.reach.copy_(reach.view(2, -1))

    def forward(self, vectors: Tensor, secret: Tensor) -> Tensor:
        first, second = (vectors * self.gain).chunk(2, dim=1)
        for block in self.blocks:
            first, second = block(first, second, secret)
        return torch.cat([first, second], dim=1) / self.gain

    def inverse(self, vectors: Tensor, secret: Tensor) -> Tensor:
        first, second = (vectors * self.gain).chunk(2, dim=1)
        for block in reversed(self.blocks):
            assert isinstance(block, SecureCouplingBlock)
            first, second = block.inverse(first, second, secret)
        return torch.cat([first, second], dim=1) / self.gain


class IdentityCompensation(nn.Module):
    """C of Eq. 10: the identity vector measured in an anonymized face -> the one that the face was generated from.

    (N, D) -> (N, D), by an MLP of four layers. With ``residual`` the MLP starts at 0 and is added to its input.
    """

    def __init__(self, width: int, hidden: Sequence[int], residual: bool):
        super().__init__()
        self.gain, self.residual = math.sqrt(width), residual
        widths = [width, *hidden, width]
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.LeakyReLU(COMPENSATION_SLOPE)]
        self.layers = nn.Sequential(*layers[:-1])
        last = self.layers[-1]
        assert isinstance(last, nn.Linear)
        if residual:
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
            return
        for layer in layers[:-1:2]:
            assert isinstance(layer, nn.Linear)
            nn.init.kaiming_normal_(layer.weight, a=COMPENSATION_SLOPE)
            nn.init.zeros_(layer.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        corrected = self.layers(vectors * self.gain) / self.gain
        return vectors + corrected if self.residual else corrected


class Span(nn.Module):
    """Unit identity vectors (N, W) -> their coordinates in the span of ``basis`` (D, W), scaled to length 1 (N, D).

    The identities of people fill few of ArcFace's 512 dimensions, and a face shows nothing of a change in the others.
    The basis is orthonormal; it starts with the first axes, until `fit`.
    """

    basis: Tensor

    def __init__(self, settings: IfaditSettings, identity_width: int = IDENTITY):
        super().__init__()
        self.register_buffer("basis", torch.eye(settings.small_scale.span or identity_width, identity_width))

    def fit(self, vectors: Tensor) -> Tensor:
        """Set ``basis`` to the directions with the most energy in unit vectors (M, W). Returns their coordinates."""
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

    def __init__(
        self, settings: IfaditSettings, mean: Tensor, inversion: Inverter | None = None, identity_width: int = IDENTITY
    ):
        super().__init__()
        layers, style = mean.shape
        chosen, small = settings.encoder, settings.small_scale
        self.encoder: Any = None
        self._frozen = (inversion,)  # a tuple, so that PyTorch does not count it among the modules that learn
        if chosen.kind != "inversion":
            self.encoder = KINDS[chosen.kind](layers, chosen.input_size, style, chosen.widths, chosen.units)
        self.unit = small.span > 0
        width, shared = small.span or identity_width, not small.mapping_per_layer
        self.mapping = IdentityMapping(layers, width, style, settings.mapping, shared)
        self.register_buffer("latent_avg", mean.clone())
        self.linear = LinearCodes(choose_linear_side(layers), style) if small.linear else None

    def attributes(self, images: Tensor) -> Tensor:
        """a = E_Attr(X): images (N, 3, H, W) of any size -> (N, layers, style)."""
        if self.encoder is None:
            (inversion,) = self._frozen
            assert inversion is not None
            return inversion(images) - self.latent_avg
        start = 0.0 if self.linear is None else self.linear(images)[:, None] - self.latent_avg
        size = self.encoder.size
        if images.shape[-2:] != (size, size):
            images = deterministic.resize(images, (size, size))
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

    def __init__(self, settings: IfaditSettings, style: int, identity_width: int = IDENTITY):
        super().__init__()
        flow, small = settings.flow, settings.small_scale
        width = small.span or identity_width
        self.flow = SecureFlow(width, style, flow.blocks, flow.hidden, flow.limit, small.flow_start)
        self.gain = small.flow_secret
        self.register_buffer("rotation", torch.eye(width))
        self.compensation = (
            IdentityCompensation(width, settings.compensation_widths, small.residual_compensation)
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


def map_secrets(generator: Generator, pseudorandom: Tensor) -> Tensor:
    """k of Eq. 4: bytes, uint8 (N, style), scaled to [-1, 1] -> the result of the generator's mapping network."""
    with torch.no_grad():
        return generator.map(pseudorandom.float() / 127.5 - 1.0)


def draw_secrets(generator: Generator, draw: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
    """Two secret vectors for each pair of a batch, s_k and s_l of Eq. 17: (count, style) each, equal in each pair.

    The bytes are random: the bytes of a key derivation function cannot be distinguished from random ones.
    """
    pseudorandom = draw.integers(0, 256, (2, count // 2, generator.style_width), dtype=np.uint8)
    first, second = (
        map_secrets(generator, torch.from_numpy(part).to(generator.latent_avg.device)).repeat_interleave(2, dim=0)
        for part in pseudorandom
    )
    return first, second
