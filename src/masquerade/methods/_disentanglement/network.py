"""Stage I's networks: IdentityDP (Wen et al. 2022), Eq. 8, 9 and Figure 3; Cao et al. 2021 have the same.

The attribute encoder g is a U-Net whose decoder maps are the attributes of a face. The fusion generator h draws a face
from these maps and an identity vector, by Adaptive Attentional Denormalization (AAD). Both are those of FaceShifter (Li
et al. 2019, arXiv:1912.13457, section 3.1). The frozen identity encoder is not among them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize

from masquerade.backbones import load_backbone
from masquerade.core.errors import ParameterError
from masquerade.core.images import Faces, check_size
from masquerade.methods import Resources
from masquerade.methods._disentanglement import DisentanglementSettings
from masquerade.methods.latent.codes import Codes
from masquerade.methods.latent.identities import approach_identity
from masquerade.methods.latent.space import LatentSpace
from masquerade.networks.identity_mapping import IdentityMapping
from masquerade.networks.inputs import AT_ONCE, apply_in_batches, place
from masquerade.networks.w_space import PNSpace
from masquerade.training.checkpoints import Saved

SLOPE = 0.1  # of every LeakyReLU: IdentityDP, Figure 3


class AttributeEncoder(nn.Module):
    """r_att(X) = {r_att^1(X), ..., r_att^n(X)}, n = len(widths) + 1, from the coarsest map to the finest (Eq. 8).

    ``widths``: channels after each stride-2 convolution of the encoder. The published network has
    (32, 64, 128, 256, 512, 1024, 1024), which gives n = 8 maps of 2 x 2 to 256 x 256 for images of 256 x 256 pixels.

    Input (N, 3, S, S) in [-1, 1], S a multiple of ``2 ** len(widths)``. Output: n maps; map k (from 0) is
    (N, channels[k], s * 2 ** k, s * 2 ** k) with s = S / 2 ** len(widths).
    """

    def __init__(self, widths: Sequence[int]):
        super().__init__()
        into = [3, *widths[:-1]]
        self.down = nn.ModuleList(
            _with_norm(nn.Conv2d(a, b, 4, 2, 1, bias=False), b) for a, b in zip(into, widths, strict=True)
        )
        # The decoder mirrors the encoder: it changes each map to the width of its skip connection and stacks both.
        beside = list(widths[-2::-1])
        deep = [widths[-1], *(2 * width for width in beside[:-1])]
        self.up = nn.ModuleList(
            _with_norm(nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), b) for a, b in zip(deep, beside, strict=True)
        )
        # (1024, 2048, 1024, 512, 256, 128, 64, 64) as published: of the n maps, coarsest first
        self.channels = (widths[-1], *(2 * width for width in beside), 2 * beside[-1])

    def forward(self, images: Tensor) -> list[Tensor]:
        skips, features = [], images
        for down in self.down:
            features = down(features)
            skips.append(features)
        maps = [skips.pop()]
        for up in self.up:
            maps.append(torch.cat([up(maps[-1]), skips.pop()], dim=1))
        # The finest map has no skip connection: it is the enlarged previous map (FaceShifter). Corners are aligned, as
        # in `FusionGenerator`.
        return [*maps, interpolate(maps[-1], scale_factor=2, mode="bilinear", align_corners=True)]


def _with_norm(convolution: nn.Module, width: int) -> nn.Sequential:
    return nn.Sequential(convolution, nn.BatchNorm2d(width), nn.LeakyReLU(SLOPE))


class AAD(nn.Module):
    """One AAD layer: at each position an attention mask chooses between identity and attributes.

        h' = InstanceNorm(h)
        A  = gamma_att(z_att) * h' + beta_att(z_att)      per position
        I  = gamma_id(z_id)  * h' + beta_id(z_id)         per channel
        M  = sigmoid(conv(h'))                            (N, 1, H, W)
        out = (1 - M) * A + M * I

    Input h (N, C, H, W), z_att (N, C_att, H, W), z_id (N, D). Output (N, C, H, W).
    """

    def __init__(self, width: int, attribute_width: int, identity_width: int):
        super().__init__()
        self.norm = nn.InstanceNorm2d(width, affine=False)
        self.attribute = nn.Conv2d(attribute_width, 2 * width, 1)  # gamma_att, beta_att
        self.identity = nn.Linear(identity_width, 2 * width)  # gamma_id, beta_id
        self.mask = nn.Conv2d(width, 1, 1)

    def forward(self, features: Tensor, attributes: Tensor, identity: Tensor) -> Tensor:
        normed = self.norm(features)
        scale_a, shift_a = self.attribute(attributes).chunk(2, dim=1)
        scale_i, shift_i = self.identity(identity)[:, :, None, None].chunk(2, dim=1)
        mask = torch.sigmoid(self.mask(normed))
        # (1 - M) A + M I, combined so that the normed features are multiplied once
        scale = torch.lerp(scale_a, scale_i.expand_as(scale_a), mask)
        shift = torch.lerp(shift_a, shift_i.expand_as(shift_a), mask)
        return torch.addcmul(shift, scale, normed)


class AADBlock(nn.Module):
    """AAD ResBlk (c_in, c_out), Figure 3: twice (AAD, ReLU, 3 x 3 convolution); a third time if channels change."""

    def __init__(self, into: int, out: int, attribute_width: int, identity_width: int):
        super().__init__()

        def unit(width: int) -> nn.ModuleDict:
            convolution = nn.Conv2d(into, width, 3, 1, 1, bias=False)
            return nn.ModuleDict({"aad": AAD(into, attribute_width, identity_width), "convolution": convolution})

        self.main = nn.ModuleList([unit(into), unit(out)])
        self.skip = unit(out) if into != out else None

    def forward(self, features: Tensor, attributes: Tensor, identity: Tensor) -> Tensor:
        def apply(unit: nn.Module, inner: Tensor) -> Tensor:
            assert isinstance(unit, nn.ModuleDict)
            return unit["convolution"](torch.relu(unit["aad"](inner, attributes, identity)))

        main = apply(self.main[1], apply(self.main[0], features))
        return main + (features if self.skip is None else apply(self.skip, features))


class FusionGenerator(nn.Module):
    """X = h(r_id, r_att), Eq. 9: n AAD residual blocks, one for each attribute map; the size doubles between blocks.

    ``widths``: input channels of the n blocks; the published network has (1024, 1024, 1024, 1024, 512, 256, 128, 64).
    The first features, 2 x 2, are computed from the identity vector alone. The enlargement between blocks aligns the
    corners, as both public re-implementations of FaceShifter do (docs/identitydp.md).

    Input: identity (N, D) unit vectors; n maps, coarsest first, (N, attribute_widths[k], s, s) with s = 2 ** (k + 1).
    Output (N, 3, 2 ** n, 2 ** n) in (-1, 1).
    """

    def __init__(self, widths: Sequence[int], attribute_widths: Sequence[int], identity_width: int):
        super().__init__()
        self.start = nn.ConvTranspose2d(identity_width, widths[0], 2)
        self.blocks = nn.ModuleList(
            AADBlock(into, out, attribute_width, identity_width)
            for into, out, attribute_width in zip(widths, [*widths[1:], 3], attribute_widths, strict=True)
        )

    def forward(self, identity: Tensor, attributes: Sequence[Tensor]) -> Tensor:
        features = self.start(identity[:, :, None, None])  # (N, widths[0], 2, 2)
        for level, (block, maps) in enumerate(zip(self.blocks, attributes, strict=True)):
            if level:
                features = interpolate(features, scale_factor=2, mode="bilinear", align_corners=True)
            features = block(features, maps, identity)
        return torch.tanh(features)


class StageOne(nn.Module):
    """g (Eq. 8) and h (Eq. 9) of IdentityDP: ``attributes`` and `fuse`, which the classes below define.

    Images (N, 3, ``size``, ``size``) in [-1, 1]; identity vectors (N, ``identity_width``), unit. ``basis`` (span,
    ``identity_width``): orthonormal rows, which `fit_span` sets (docs/identitydp.md).
    """

    basis: Tensor
    attributes: Callable[[Tensor], list[Tensor]]

    def __init__(self, settings: DisentanglementSettings, size: int, identity_width: int):
        super().__init__()
        self.size, self.identity_width = size, identity_width
        span = settings.small_scale.span
        self.register_buffer("basis", torch.eye(span or identity_width, identity_width), persistent=span > 0)

    def forward(self, identity: Tensor, images: Tensor) -> Tensor:
        """The image with the attributes of ``images`` and an ``identity``: X^ = h(r_id, g(X)) (Eq. 13)."""
        return self.fuse(identity, self.attributes(images))

    def fuse(self, identity: Tensor, maps: Sequence[Tensor]) -> Tensor:
        """X^ = h(r_id, r_att), Eq. 9."""
        raise NotImplementedError

    def project(self, identity: Tensor) -> Tensor:
        """Identity vectors (N, D) -> their parts in the span of ``basis``, scaled to length 1."""
        return normalize(identity @ self.basis.mT @ self.basis) if len(self.basis) < self.identity_width else identity

    @torch.no_grad()
    def fit_span(self, identities: Tensor) -> None:
        """Set ``basis`` to the directions with the most energy in ``identities`` (M, D), unit vectors of people."""
        _, directions = torch.linalg.eigh(identities.mT @ identities)  # ascending
        self.basis.copy_(directions[:, -len(self.basis) :].mT)


class Disentanglement(StageOne):
    """The networks of the paper, with the widths of ``settings``."""

    def __init__(self, settings: DisentanglementSettings, identity_width: int = 512):
        super().__init__(settings, settings.size, identity_width)
        self.attributes = AttributeEncoder(settings.encoder_widths)
        self.fusion = FusionGenerator(settings.generator_widths, self.attributes.channels, identity_width)

    def fuse(self, identity: Tensor, maps: Sequence[Tensor]) -> Tensor:
        return self.fusion(self.project(identity), maps)


class LatentDisentanglement(StageOne):
    """Frozen ``inverter`` and ``generator`` with a mapping M between them, which alone learns (ours).

    r_att is the W+ that the encoder of the inversion gives, one map (N, layers, style) without the mean of W. h draws
    M(r_id, r_att), and M starts at r_att. Raises ParameterError if it has too few hidden units for that.
    """

    def __init__(self, settings: DisentanglementSettings, generator: Any, inverter: Any, identity_width: int = 512):
        super().__init__(settings, generator.size, identity_width)
        self._frozen = (generator, inverter)  # a tuple, so that PyTorch does not count them among what learns
        hidden, style = settings.small_scale.latent_hidden, generator.style_width
        self.mapping = IdentityMapping(generator.layers, len(self.basis), style, hidden, shared=True)
        try:
            self.mapping.start_at_attributes()
        except ValueError as error:
            raise ParameterError(f"params.yaml: small_scale.latent_hidden of identitydp and cao21: {error}.") from error

    def attributes(self, images: Tensor) -> list[Tensor]:
        generator, inverter = self._frozen
        return [inverter(images) - generator.latent_avg]

    def fuse(self, identity: Tensor, maps: Sequence[Tensor]) -> Tensor:
        generator, _ = self._frozen
        return generator.synthesize(self.map_code(identity, maps))

    def map_code(self, identity: Tensor, maps: Sequence[Tensor]) -> Tensor:
        """The W+ (N, layers, style) that `fuse` draws."""
        generator, _ = self._frozen
        return generator.latent_avg + self.mapping(normalize(identity @ self.basis.mT), maps[0])


def build(settings: DisentanglementSettings, frozen: Mapping[str, Any], identity_width: int = 512) -> StageOne:
    """The network of ``settings``. ``frozen``: role -> network; a latent one takes generator and inversion."""
    if settings.is_latent:
        return LatentDisentanglement(settings, frozen["generator"], frozen["inversion"], identity_width)
    return Disentanglement(settings, identity_width)


class FrozenStageOne:
    """Identity encoder, attribute encoder and generator of a checkpoint. ``rest``: its further tensors, by part.

    ``identity_steps``: those of `approach_identity`, which a latent space alone can take.

    ``space``: the latent space of a generator in which Stage I works, or None. Raises CheckpointError if it was trained
    with other backbones, or does not fit ``settings``, and ParameterError for steps without a latent space.
    """

    def __init__(self, settings: DisentanglementSettings, resources: Resources, identity_steps: int):
        if identity_steps and not settings.is_latent:
            raise ParameterError(
                f"identity_steps is {identity_steps}, but the published generator has no latent codes to optimize. Set "
                "it to 0, or small_scale.latent_hidden to the number of hidden units of the latent stand-in."
            )
        self._batch = settings.batch  # a batch of the training fits into memory
        self._identity_steps = identity_steps
        backbones = resources.backbones
        self._identity = load_backbone("identity", backbones)
        self.space, frozen = None, {}
        if settings.is_latent:
            self.space = LatentSpace(backbones)
            self._codes = Codes(self.space, resources.latents)
            frozen = {"generator": self.space.generator, "inversion": self.space.inverter}
        assert resources.checkpoint is not None
        saved = Saved(resources.checkpoint, backbones, settings.backbones)
        self.network = place(saved.frozen("network", build(settings, frozen, self._identity.width)))
        self.rest = saved.tensors

    def identities(self, images: np.ndarray) -> np.ndarray:
        """r_id (Eq. 7): images (N, 3, S, S) -> unit vectors, float32 (N, D).

        Raises PictureError if S is not the size of the network.
        """
        check_size(images, self.network.size)
        return apply_in_batches(self._identity, self._batch, images).numpy()

    def attributes(self, images: np.ndarray) -> list[Tensor]:
        """Images (N, 3, S, S) -> attribute maps, coarse to fine, (N, C_k, S_k, S_k), on the CPU. Raises as above.

        In a latent space: one map, the refined code of the inversion (N, layers, style).
        """
        check_size(images, self.network.size)
        if self.space is not None:
            return self._subtract_mean(self.space.invert(images))
        return apply_in_batches(self.network.attributes, self._batch, images)

    def attributes_of(self, faces: Faces) -> list[Tensor]:
        """`attributes` of faces whose codes the pipeline may have. Also raises PictureError for a missed inversion."""
        if self.space is not None:
            return self._subtract_mean(self._codes.w_plus(faces))
        return self.attributes(faces.images)

    def _subtract_mean(self, codes: Tensor) -> list[Tensor]:
        assert self.space is not None
        return [codes - self.space.generator.latent_avg.cpu()]

    def fuse(self, vectors: np.ndarray, maps: Sequence[Tensor], names: Sequence[str] = ()) -> np.ndarray:
        """Identity vectors (N, D) and attribute maps -> images, float32 (N, 3, S, S) in [-1, 1].

        ``names``: of the faces, for images at the full size of the generator (`LatentSpace.enlarge`).
        """
        identity = np.asarray(vectors, dtype=np.float32)
        network = self.network
        if isinstance(network, LatentDisentanglement):
            assert self.space is not None
            codes = apply_in_batches(lambda vector, *maps: network.map_code(vector, maps), self._batch, identity, *maps)
            if self._identity_steps:
                codes = apply_in_batches(self._approach, AT_ONCE, codes, identity, *maps)
            return self.space.draw(codes, names).numpy()  # (N, layers, style) -> (N, 3, S, S)
        return apply_in_batches(lambda vector, *maps: network.fuse(vector, maps), self._batch, identity, *maps).numpy()

    def _approach(self, codes: Tensor, identity: Tensor, attributes: Tensor) -> Tensor:
        assert self.space is not None
        basis, generator = self.network.basis, self.space.generator

        def recognize(images: Tensor) -> Tensor:
            return normalize(self._identity(images.clamp(-1, 1)) @ basis.mT)

        target = normalize(identity @ basis.mT)
        looks = generator.synthesize(generator.latent_avg + attributes)
        return approach_identity(codes, target, looks, generator, self._codes_of_w, recognize, self._identity_steps)

    @cached_property
    def _codes_of_w(self) -> PNSpace:
        assert self.space is not None
        return PNSpace.of(self.space.generator)
