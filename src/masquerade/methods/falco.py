"""FALCO: a generated face, optimized in the latent space to keep the attributes of the original."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from masquerade.backbones import load_backbone
from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.settings import Settings, SmallScale
from masquerade.methods import Capabilities, Method, Resources
from masquerade.training.settings import Arithmetic

if TYPE_CHECKING:
    from torch import Tensor

MILESTONES, DECAY = (0.75, 0.9), 0.8
"""Shares of the steps after which the learning rate falls, and its factor at each: the published code."""
STRANGERS = 64
"""Fakes with which a face is compared for the margin ``strangers``."""


class FalcoSmallScale(SmallScale):
    """How FALCO differs from the paper at small scales (docs/falco.md)."""

    fake_weight: NonNegativeFloat = 0.0
    """Weight of the mean squared distance between the optimized latent codes and that of the fake, in the P_N space of
    the fakes; 0 leaves it out. It keeps the latent codes where the generator gives good images."""
    batch: NonNegativeInt = 0
    """Number of images that are optimized together; 0 takes as many as the memory of the GPU holds
    (`compute.deterministic`)."""


class Falco(Method):
    """Pairs a face with its nearest fake, mixes their codes, and optimizes the middle layers of the mixture.

    Barattin, Tzelepis, Patras, Sebe 2023, Attribute-preserving Face Dataset Anonymization via Latent Code
    Optimization, CVPR (arXiv:2303.11296). Several images are optimized together: each has its own code, the losses
    are summed over the batch, and Adam's state is element-wise. So the result of a face is that of a batch of one.
    docs/falco.md lists what the paper leaves open.
    """

    title = "FALCO"
    paper = "Barattin et al. 2023, CVPR (arXiv:2303.11296)"
    capabilities = Capabilities(fakes=True, latents=True)
    needs = ("generator", "inversion", "semantics", "identity")

    class Params(Settings):
        first_layer: Annotated[int, Field(ge=0, le=17)]
        """The first of the style layers that are optimized, of 18 (3: section 3.2); docs/falco.md says which one it is
        in a smaller generator."""
        last_layer: Annotated[int, Field(ge=0, le=17)]
        """The last of the style layers that are optimized, of 18 (7: section 3.2). The layers before and after keep the
        latent codes of the inversion."""
        steps: PositiveInt
        """Number of updates of a latent code (50: published code)."""
        learning_rate: PositiveFloat
        """Learning rate of Adam (0.01: published code)."""
        tokens: Literal["patches", "all"]
        """The tokens of the text-image model that Eq. 3 compares: its patches (section 3.3), or its class token as well
        (published code)."""
        small_scale: FalcoSmallScale = FalcoSmallScale()
        """How FALCO differs from the paper at a small scale."""
        arithmetic: Arithmetic | None = None
        """How the optimization computes (`training.settings`). The final images are always generated in 32 bits."""

    class Variant(Settings):
        margin: Annotated[float, Field(ge=-1, le=1)] | Literal["strangers"]
        """m, the cosine of the identity embeddings of the original and of the anonymized face that the optimization
        aims at (0 and 0.9: section 4.3), or ``strangers`` (ours) for the median cosine of the original and of the first
        64 fakes, who are other people."""
        identity: NonNegativeFloat
        """lambda_id, the weight of the identity loss, Eq. 2 (10: published code)."""
        attributes: NonNegativeFloat
        """lambda_att, the weight of the attribute loss, Eq. 3 (0.1: published code)."""
        start: Literal["nearest", "random"]
        """The fake whose latent codes the optimized layers start from: the nearest one (section 3.2), or a random
        one."""
        optimization: bool = True
        """Whether the codes are optimized. Without it the result is the start: the middle layers of the fake, and the
        other layers of the original (a control, ours)."""

    params: Params
    variant: Variant

    def __init__(self, params: Params, variant: Variant, resources: Resources):
        from masquerade.methods.latent import fakes
        from masquerade.methods.latent.codes import Codes
        from masquerade.methods.latent.space import LatentSpace
        from masquerade.networks.inputs import prepare_gradients
        from masquerade.networks.w_space import PNSpace
        from masquerade.training import precision

        super().__init__(params, variant, resources)
        self._space = LatentSpace(resources.backbones)
        self._codes = Codes(self._space, resources.latents)
        assert resources.fakes is not None
        self._fakes = fakes.load_fakes(resources.fakes, self._space)
        self._normal = PNSpace(self._fakes.codes.to(self._space.device)) if params.small_scale.fake_weight else None
        self._identity = prepare_gradients(load_backbone("identity", resources.backbones))
        prepare_gradients(self._space.semantics.network.visual)
        arithmetic = params.arithmetic
        device = self._space.device
        if device.type == "cpu" or (arithmetic and arithmetic.channels_last and not precision.is_exact(device)):
            self._space.generator.quicken()  # in 32 bits a GPU is quicker without
        self._layers = self._space.generator.published_layers(params.first_layer, params.last_layer)

    def observe(self, batches: Iterable[Faces]) -> None:
        """Raises ParameterError unless there are more fakes than faces (section 3.2)."""
        self._fakes.check_more_than(sum(len(faces) for faces in batches))

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if an image does not have the generator's size, or if its inversion diverged."""
        return self._anonymize(faces, 0)

    def resample(self, faces: Faces, number: int) -> np.ndarray | None:
        """From the next nearest fake (ours)."""
        has_another = self.variant.start == "nearest" and number < len(self._fakes)
        return self._anonymize(faces, number) if has_another else None

    def _anonymize(self, faces: Faces, number: int) -> np.ndarray:
        """``number``: of the nearest fakes, from 0."""
        import torch

        codes, features = self._codes.of(faces)
        start = self._fakes.codes[self._choose_fakes(faces, features, number)]
        if not self.variant.optimization:
            return self._space.draw(self._stack_codes(codes, self._spread(start)), faces.ids).numpy()
        images, size = torch.from_numpy(faces.images), self._optimization_batch(len(faces))
        parts = zip(images.split(size), codes.split(size), start.split(size), strict=True)
        return self._space.draw(torch.cat([self._optimize(*part) for part in parts]), faces.ids).numpy()

    def statement(self) -> dict[str, object]:
        from masquerade.training import precision

        arithmetic = self.params.arithmetic
        precise = {"precision": precision.find_precision(arithmetic, self._space.device)} if arithmetic else {}
        return {
            "fakes": len(self._fakes),
            "optimized_layers": f"{self._layers[0]}-{self._layers[-1]} of {self._space.generator.layers}",
            "steps": self.params.steps if self.variant.optimization else 0,
            **precise,
        }

    def _choose_fakes(self, faces: Faces, features: "Tensor", number: int) -> "Tensor":
        """The fake from which each face starts: rows of the fakes, int64 (N,) (Eq. 1; ``number``: the next ones)."""
        import torch

        from masquerade.methods.latent.fakes import find_nearest

        if self.variant.start == "nearest":
            return find_nearest(features, self._fakes.features, number)
        draws = [seeding.make_generator(0, "falco", name).integers(len(self._fakes)) for name in faces.ids]
        return torch.tensor(draws, dtype=torch.int64)

    def _optimize(self, images: "Tensor", inverted: "Tensor", fake: "Tensor") -> "Tensor":
        """Section 3.3: images (N, 3, S, S), their W+ and the W of their fakes -> anonymized W+ (N, layers, style)."""
        import torch

        from masquerade.training import precision

        space, params = self._space, self.params
        images, inverted, fake = (part.to(space.device) for part in (images, inverted, fake))
        # Section 3.2: the middle layers start from the fake. The others are those of the real face and do not change.
        free = self._spread(fake).requires_grad_(True)
        fused = True if free.device.type == "cuda" else None  # one kernel for a step
        optimizer = torch.optim.Adam([free], lr=params.learning_rate, fused=fused)
        milestones = [int(share * params.steps) for share in MILESTONES]
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones, DECAY)
        with precision.use_tf32(params.arithmetic, space.device, frozen=True):
            with torch.no_grad(), self._lower_precision():
                identity, tokens = self._encode_images(images)
                begun = space.generator.begin(self._mix_codes(inverted, free), self._layers[0])
            margin = self._choose_margins(identity)
            for _ in range(params.steps):
                with self._lower_precision():
                    vectors, drawn_tokens = self._encode_codes(inverted, free, begun)
                loss = self.variant.identity * identity_loss(vectors, identity, margin)
                if self.variant.attributes:
                    loss = loss + self.variant.attributes * attribute_loss(drawn_tokens, tokens)
                if self._normal is not None:
                    distance = self._normal(free) - self._normal(fake[:, None])
                    loss = loss + params.small_scale.fake_weight * distance.square().mean(dim=(1, 2))
                (free.grad,) = torch.autograd.grad(loss.sum(), free)
                optimizer.step()
                schedule.step()
        return self._stack_codes(inverted, free.detach()).cpu()

    def _lower_precision(self) -> AbstractContextManager:
        """A block of forward passes in the precision of the optimization. What it returns has 32 bits."""
        from masquerade.training import precision

        arithmetic = self.params.arithmetic
        return precision.use_bfloat16(self._space.device, bool(arithmetic and arithmetic.reduced), frozen=True)

    def _encode_codes(self, inverted: "Tensor", free: "Tensor", begun: Any) -> "tuple[Tensor, Tensor]":
        """`_encode_images` of the images of the codes. ``begun``: of the layers before the free ones."""
        return self._encode_images(self._space.generator.synthesize(self._mix_codes(inverted, free), begun=begun))

    def _encode_images(self, images: "Tensor") -> "tuple[Tensor, Tensor]":
        """Identity vectors (N, D) of images (N, 3, S, S), and the tokens of the attribute loss (N, T, W), if any."""
        vectors = self._identity(images).float()
        if not self.variant.attributes:
            return vectors, vectors
        first = 1 if self.params.tokens == "patches" else 0  # the class token is the first one
        return vectors, self._space.semantics.tokens(images)[:, first:].float()

    def _choose_margins(self, identity: "Tensor") -> "float | Tensor":
        """m: one for all faces, or that of each face (N,), from their identity vectors (N, D)."""
        if self.variant.margin != "strangers":
            return self.variant.margin
        return (identity @ self._strangers.T).quantile(0.5, dim=1)

    @cached_property
    def _strangers(self) -> "Tensor":
        """The identity vectors of the first fakes, (STRANGERS, D)."""
        from masquerade.methods.latent.space import BATCH
        from masquerade.networks.inputs import apply_in_batches

        space = self._space
        images = space.draw(space.generator.broadcast(self._fakes.codes[:STRANGERS]))
        return apply_in_batches(self._identity, BATCH, images).to(space.device)

    def _spread(self, fake: "Tensor") -> "Tensor":
        """The W of fakes (N, style) for each optimized layer, (N, layers, style)."""
        return fake[:, None].repeat(1, len(self._layers), 1)

    def _stack_codes(self, inverted: "Tensor", free: "Tensor") -> "Tensor":
        """`_mix_codes` as W+ (N, layers, style)."""
        import torch

        return torch.stack(self._mix_codes(inverted, free), dim=1)

    def _mix_codes(self, inverted: "Tensor", free: "Tensor") -> "list[Tensor]":
        """The codes (N, D) of all layers: the free codes in the middle, the inverted ones around them."""
        first, after = self._layers[0], self._layers[-1] + 1
        return [*inverted[:, :first].unbind(1), *free.unbind(1), *inverted[:, after:].unbind(1)]

    def choose_batch_size(self, usual: int) -> int:
        """As many as the GPU holds, so that its batches are full over all images of a set."""
        if self.params.small_scale.batch or self._space.device.type == "cpu":
            return usual
        return max(usual, self._largest_batch)

    def _optimization_batch(self, count: int) -> int:
        """How many of ``count`` images are optimized together: ``small_scale.batch``, or equal parts that fit a GPU."""
        if self.params.small_scale.batch or self._space.device.type == "cpu":
            return self.params.small_scale.batch or count
        return ceil(count / ceil(count / self._largest_batch))

    @cached_property
    def _largest_batch(self) -> int:
        """How many images fit into 80 % of the GPU's free memory, measured with one and with two images.

        In a deterministic process, into 40 % of all of its memory: the number changes the last bits of a result, so it
        must not depend on other jobs.
        """
        import torch

        generator, memory = self._space.generator, []
        for count in (1, 2):
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            inverted = generator.latent_avg.repeat(count, generator.layers, 1)
            free = inverted[:, self._layers[0] : self._layers[-1] + 1].clone().requires_grad_(True)
            with self._lower_precision():
                vectors, tokens = self._encode_codes(inverted, free, None)
            (vectors.sum() + tokens.sum()).backward()
            memory.append(torch.cuda.max_memory_allocated() - before)
        unused, total = torch.cuda.mem_get_info()
        room = 0.4 * total if torch.are_deterministic_algorithms_enabled() else 0.8 * unused
        return max(1, int(room / max(1, memory[1] - memory[0])))


def identity_loss(generated: "Tensor", real: "Tensor", margin: "float | Tensor") -> "Tensor":
    """Eq. 2: |cos(E(x_A), E(x_R)) - m|; unit identity vectors (N, D) twice, m a number or (N,) -> (N,)."""
    return ((generated * real).sum(dim=1) - margin).abs()


def attribute_loss(generated: "Tensor", real: "Tensor") -> "Tensor":
    """Eq. 3: L1 distance; tokens (N, T, W) twice -> (N,). Mean over W, then sum over T, as in the published code.

    The sum that the paper prints is W times as large. It gives the same loss with lambda_att / W (0.1 / 768).
    """
    return (generated - real).abs().mean(dim=2).sum(dim=1)
