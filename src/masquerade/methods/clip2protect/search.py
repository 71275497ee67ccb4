"""The two stages of CLIP2Protect on several faces side by side (Shamshad et al. 2023, section 3)."""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import normalize

from masquerade.core.errors import ParameterError
from masquerade.methods.clip2protect import CLIP2ProtectSettings, CLIP2ProtectVariant
from masquerade.methods.latent.space import LatentSpace
from masquerade.networks.inputs import prepare_gradients
from masquerade.networks.stylegan2 import PUBLISHED_LAYERS, Activation, ConstantInput, Generator, NoiseInjection, ToRGB
from masquerade.networks.stylegan2_layers import ModulatedConv2d

LEADING = {
    ConstantInput: ("input", (1, 1, 1)),
    NoiseInjection: ("weight", (1, 1, 1)),
    Activation: ("bias", (1,)),
    ToRGB: ("bias", (1, 1, 1)),
}
"""The parameters outside of convolutions, and the dimensions that follow that of the images."""


class SquareSums(torch.autograd.Function):
    """The sum of the squares of each kernel: (..., k, k) -> (...). PyTorch's own gradient passes the kernels thrice."""

    @staticmethod
    def forward(ctx: Any, kernels: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(kernels)
        return kernels.square().sum(dim=(-2, -1))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (kernels,) = ctx.saved_tensors
        return 2 * gradient[..., None, None] * kernels


class OwnConv2d(nn.Module):
    """`ModulatedConv2d` with a kernel and a modulation for each of ``count`` images: one grouped convolution.

    The factor of the equalized learning rate scales the style, which is smaller than the kernels.
    """

    def __init__(self, shared: ModulatedConv2d, count: int):
        super().__init__()
        self.up, self.demodulate, self.padding = shared.up, shared.demodulate, shared.padding
        kernels = shared.weight.transpose(1, 2) if self.up else shared.weight  # up: (N, inputs, outputs, 3, 3)
        self.weight = nn.Parameter(kernels.detach().repeat(count, 1, 1, 1, 1))
        self.matrix = nn.Parameter(shared.modulation.weight.detach().repeat(count, 1, 1))
        self.bias = nn.Parameter(shared.modulation.bias.detach().repeat(count, 1))
        self.scale, self.code_scale, self.rate = shared.scale, shared.modulation.scale, shared.modulation.rate
        if self.up:
            self.blur = shared.blur

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        """As `ModulatedConv2d.forward`."""
        x, demodulation = self.modulated(x, code)
        return x if demodulation is None else x * demodulation

    def modulated(self, x: Tensor, code: Tensor) -> tuple[Tensor, Tensor | None]:
        """As `ModulatedConv2d.modulated`."""
        style = torch.bmm(self.matrix, code[:, :, None] * self.code_scale)[:, :, 0] + self.bias * self.rate
        style = style * self.scale
        x, kernels = x * style[:, :, None, None], self.weight.flatten(0, 1)  # Eq. 1
        grouped, count = x.flatten(0, 1)[None], len(x)
        if self.up:
            grouped = functional.conv_transpose2d(grouped, kernels, stride=2, groups=count)
            x = self.blur(grouped[0].unflatten(0, (count, -1)))
        else:
            grouped = functional.conv2d(grouped, kernels, padding=self.padding, groups=count)
            x = grouped[0].unflatten(0, (count, -1))
        if not self.demodulate:
            return x, None
        squares = SquareSums.apply(self.weight)
        power = torch.bmm(squares.mT if self.up else squares, style.square()[:, :, None])
        return x, torch.rsqrt(power + 1e-8)[..., None]  # Eq. 3


def own_generators(generator: Generator, count: int) -> Generator:
    """A copy that draws image n of ``count`` with weights of its own, which are at first those of ``generator``.

    Its mapping network is that of ``generator``. All other parameters have a leading dimension of images.
    """
    copies = copy.deepcopy(generator)
    for parent in list(copies.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, ModulatedConv2d):
                setattr(parent, name, OwnConv2d(layer, count))
        if type(parent) in LEADING:
            name, ones = LEADING[type(parent)]
            value = getattr(parent, name).detach()
            setattr(parent, name, nn.Parameter(value.repeat(count, *ones)))
    return copies


class Search:
    """The frozen networks, and the texts as directions in the space of the text-image model."""

    def __init__(self, space: LatentSpace, identity: Any, params: CLIP2ProtectSettings, variant: CLIP2ProtectVariant):
        self.space, self.params, self.variant = space, params, variant
        if not isinstance(space.generator, Generator):
            raise ParameterError(
                "methods.clip2protect tunes a StyleGAN2, and this scale's generator is another network. Take a scale "
                "with a StyleGAN2 (backbones.generator), or leave the method out."
            )
        self.identity = prepare_gradients(identity).to(space.device)
        prepare_gradients(space.semantics.network.visual)
        self.first = round(params.first_layer * space.generator.layers / PUBLISHED_LAYERS)
        with torch.no_grad():
            prompt_features, source_features = (
                space.semantics.text([template.replace("$", text) for template in params.templates])
                for text in (variant.prompt, params.source)
            )
        self.wanted, self.source = prompt_features, source_features

    def protect(self, images: np.ndarray, codes: Tensor, targets: np.ndarray) -> np.ndarray:
        """Images (N, 3, S, S), their W+ (N, L, D) and the images of the targets -> protected, in [-1, 1].

        The losses are sums over the faces, and Adam's state is element-wise: each face is searched by itself.
        """
        where = self.space.device
        clear, goal = (torch.from_numpy(pictures).to(where) for pictures in (images, targets))
        start = codes.to(where)
        return self._search_codes(self._tune_generator(clear, start), clear, start, goal).clamp(-1, 1).cpu().numpy()

    def _tune_generator(self, clear: Tensor, start: Tensor) -> Generator:
        """Stage 1: a generator of each face, trained to draw it from its code (pivotal tuning, Roich et al. 2022)."""
        generator = own_generators(self.space.generator, len(clear)).requires_grad_(True)
        rate, fused = self.params.tuning_rate, start.device.type == "cpu"  # one pass over the weights
        optimizer = torch.optim.Adam(generator.parameters(), lr=rate, fused=fused)
        for _ in range(self.params.tuning_steps):
            error = generator.synthesize(start) - clear
            parts = [error, error.diff(dim=2), error.diff(dim=3)]  # pixels and edges
            optimizer.zero_grad(set_to_none=True)
            torch.stack([part.abs().mean(dim=(1, 2, 3)).sum() for part in parts]).sum().backward()
            optimizer.step()
        return generator.requires_grad_(False)

    def _search_codes(self, generator: Generator, clear: Tensor, start: Tensor, goal: Tensor) -> Tensor:
        """Stage 2: the images after the search of the fine layers of the codes."""
        params, semantics = self.params, self.space.semantics
        coarse, first = start[:, : self.first].unbind(1), start[:, self.first :]
        with torch.no_grad():
            identity, target_identity = self.identity(clear), self.identity(goal)
            described = normalize(semantics.cls(clear), dim=-1)
            begun = generator.begin(start, self.first)
        fine = first.clone().requires_grad_(True)
        optimizer = torch.optim.Adam([fine], lr=params.search_rate)
        for _ in range(params.search_steps):
            images = generator.synthesize([*coarse, *fine.unbind(1)], begun=begun)
            loss = params.adversarial * self._identity_loss(self.identity(images), identity, target_identity)
            loss = loss + params.text * self._text_loss(normalize(semantics.cls(images), dim=-1), described)
            loss = loss + params.latent * (fine - first).square().sum(dim=(1, 2))
            (fine.grad,) = torch.autograd.grad(loss.sum(), fine)
            optimizer.step()
        with torch.no_grad():
            return generator.synthesize([*coarse, *fine.unbind(1)], begun=begun)

    def _identity_loss(self, vectors: Tensor, original: Tensor, target: Tensor) -> Tensor:
        """1 - cos to the target; to dodge, minus 1 - cos to the person, too. Unit vectors (N, D) -> (N,)."""
        loss = 1 - (vectors * target).sum(dim=1)
        return loss - (1 - (vectors * original).sum(dim=1)) if self.variant.goal == "dodge" else loss

    def _text_loss(self, features: Tensor, described: Tensor) -> Tensor:
        """InfoNCE of directions: that of the image towards that of the text, away from that of the source text.

        Positives: from the source text to the prompt, and from the image to the prompt; negatives: from the image
        to the source text, one a template. Features (N, D) twice -> (N,).
        """
        query = normalize(features - described, dim=-1, eps=1e-6)
        between = (self.wanted - self.source).mean(dim=0).expand_as(described)
        positives = torch.stack([between, self.wanted.mean(dim=0) - described], dim=1)
        negatives = self.source - described[:, None]
        near, far = (
            (normalize(of, dim=-1) @ query[:, :, None]).squeeze(2) / self.params.temperature
            for of in (positives, negatives)
        )
        every = torch.cat([near[:, :, None], far[:, None].expand(-1, near.shape[1], -1)], dim=2)
        return (torch.logsumexp(every, dim=2) - near).mean(dim=1)
