"""FALCO: a face of nobody, optimised in the generator's latent space to keep the attributes of somebody."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from masquerade import discovery, repeated, seeding
from masquerade.images import Faces
from masquerade.methods import Capabilities, Method, Resources
from masquerade.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor

PUBLISHED_LAYERS = (
    18  # style layers of the paper's generator, 1024 pixels: what `first_layer` and `last_layer` count in
)


class Falco(Method):
    """Pairs a face with its nearest fake, mixes their codes, and optimises the middle layers of the mixture.

    Barattin, Tzelepis, Patras, Sebe 2023, Attribute-preserving Face Dataset Anonymization via Latent Code
    Optimization, CVPR (arXiv:2303.11296). Pictures are optimised side by side: each has its own code, the losses are
    summed over the batch, and Adam's state is element-wise, so that a face's result is that of a batch of one.
    What the paper leaves open: docs/falco.md.
    """

    title = "FALCO"
    paper = "Barattin et al. 2023, CVPR (arXiv:2303.11296)"
    capabilities = Capabilities(fakes=True, latents=True)
    needs = ("generator", "inversion", "semantics", "identity")

    class Params(Settings):
        first_layer: Annotated[int, Field(ge=0, le=17)]
        """The first style layer that is optimised, of 18 (3: section 3.2); smaller generators: docs/falco.md."""
        last_layer: Annotated[int, Field(ge=0, le=17)]
        """The last one, of 18 (7: section 3.2); layers before and after are those of the inversion."""
        steps: Annotated[int, Field(ge=1)]
        """Updates of a code (50: published code)."""
        learning_rate: Annotated[float, Field(gt=0)]
        """Of Adam (0.01: published code)."""
        milestones: tuple[Annotated[float, Field(gt=0, le=1)], ...]
        """Shares of the steps after which the learning rate falls (0.75, 0.9: published code)."""
        decay: Annotated[float, Field(gt=0, le=1)]
        """What it is multiplied with there (0.8: published code)."""
        tokens: Literal["patches", "all"]
        """What Eq. 3 compares: the patches of the text-image model (section 3.3), or its class token as well (published
        code)."""
        batch: Annotated[int, Field(ge=0)]
        """Pictures side by side; 0: what the free memory of the GPU holds."""

    class Variant(Settings):
        margin: Annotated[float, Field(ge=-1, le=1)]
        """m: the cosine of identity vectors that is aimed at (0 and 0.9: section 4.3)."""
        identity: Annotated[float, Field(ge=0)]
        """lambda_id, weight of Eq. 2 (10: published code)."""
        attributes: Annotated[float, Field(ge=0)]
        """lambda_att, weight of Eq. 3 (0.1: published code)."""
        start: Literal["nearest", "random"]
        """Where the optimised layers start: the nearest fake (section 3.2), or any fake."""

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        from masquerade.latent import fakes
        from masquerade.latent.codes import Codes
        from masquerade.latent.world import World

        super().__init__(params, variant, resources)
        self._world = World(resources.backbones)
        self._codes = Codes(self._world, resources.latents)
        self._fakes = fakes.load(resources.fakes, self._world)
        self._identity = (
            discovery.load("backbones", "identity").load(resources.backbones["identity"]).to(self._world.device)
        )
        self._layers = scaled(params.first_layer, params.last_layer, self._world.generator.layers)

    def observe(self, batches: Iterable[Faces]) -> None:
        """Raises ParameterError unless there are more fakes than faces (section 3.2)."""
        self._fakes.check_more_than(sum(len(faces) for faces in batches))

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        """Raises PictureError where a picture is not of the generator's size, or its inversion diverged."""
        import torch

        codes, features = self._codes.of(faces)
        start = self._fakes.codes[torch.from_numpy(self._chosen(faces, features))]
        images, size = torch.from_numpy(faces.images), self._batch(len(faces))
        parts = zip(images.split(size), codes.split(size), start.split(size), strict=True)
        return self._world.draw(torch.cat([self._optimised(*part) for part in parts])).numpy()

    def statement(self) -> dict[str, object]:
        first, *_, last = [*self._layers, self._layers[-1]]
        return {
            "fakes": len(self._fakes),
            "optimised_layers": f"{first}-{last} of {self._world.generator.layers}",
            "steps": self.params.steps,
        }

    def _chosen(self, faces: Faces, features: "Tensor") -> np.ndarray:
        """Which fake each face starts from, rows of the fakes (Eq. 1)."""
        from masquerade.latent.pairing import nearest

        if self.variant.start == "nearest":
            return nearest(features.numpy(), self._fakes.features.numpy())
        draws = [seeding.generator(0, "falco", name).integers(len(self._fakes)) for name in faces.ids]
        return np.array(draws, dtype=np.int64)

    def _optimised(self, images: "Tensor", inverted: "Tensor", fake: "Tensor") -> "Tensor":
        """Section 3.3: pictures (N, 3, S, S), their W+ and the W of their fakes -> W+ of the anonymized faces."""
        import torch

        world, params = self._world, self.params
        images, inverted, fake = (part.to(world.device) for part in (images, inverted, fake))
        with torch.no_grad():
            identity = self._identity(images)
            tokens = self._tokens(images) if self.variant.attributes else None
        # Section 3.2: the middle layers start from the fake, the others are those of the real face and stay so.
        free = fake[:, None].repeat(1, len(self._layers), 1).requires_grad_(True)
        optimiser = torch.optim.Adam([free], lr=params.learning_rate)
        milestones = [int(share * params.steps) for share in params.milestones]
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones, params.decay)
        for _ in repeated.rounds(params.steps):
            made = world.generator.synthesize(self._mixed(inverted, free))
            loss = self.variant.identity * identity_loss(self._identity(made), identity, self.variant.margin)
            if tokens is not None:
                loss = loss + self.variant.attributes * attribute_loss(self._tokens(made), tokens)
            (free.grad,) = torch.autograd.grad(loss.sum(), free)
            optimiser.step()
            schedule.step()
        return torch.stack(self._mixed(inverted, free.detach()), dim=1).cpu()

    def _tokens(self, images: "Tensor") -> "Tensor":
        """What the attribute loss compares of pictures (N, 3, S, S): tokens (N, T, W)."""
        tokens = self._world.semantics.tokens(images)
        return tokens if self.params.tokens == "all" else tokens[:, 1:]

    def _mixed(self, inverted: "Tensor", free: "Tensor") -> "list[Tensor]":
        """The codes (N, D) of all layers: those in the middle are free."""
        first, after = self._layers[0], self._layers[-1] + 1
        return [*inverted[:, :first].unbind(1), *free.unbind(1), *inverted[:, after:].unbind(1)]

    def _batch(self, count: int) -> int:
        """Pictures side by side: as asked for, or as many as the free memory holds, measured on one and two."""
        if self.params.batch or self._world.device.type == "cpu":
            return self.params.batch or count
        return min(count, self._fitting())

    def _fitting(self) -> int:
        """How many pictures fit into 80 % of the GPU's free memory."""
        import torch

        generator, used = self._world.generator, []
        for count in (1, 2):
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            codes = generator.latent_avg.repeat(count, generator.layers, 1).requires_grad_(True)
            made = generator.synthesize(codes)
            (self._identity(made).sum() + self._world.semantics.tokens(made).sum()).backward()
            used.append(torch.cuda.max_memory_allocated() - before)
        free, _ = torch.cuda.mem_get_info()
        return max(1, int(0.8 * free / max(1, used[1] - used[0])))


def scaled(first: int, last: int, layers: int) -> range:
    """The layers of a generator with ``layers`` style layers that stand where ``first`` to ``last`` of 18 stand."""
    share = layers / PUBLISHED_LAYERS
    start = round(first * share)
    return range(start, max(start + 1, -int(-(last + 1) * share // 1)))


def identity_loss(made: "Tensor", real: "Tensor", margin: float) -> "Tensor":
    """Eq. 2: |cos(E(x_A), E(x_R)) - m| of unit identity vectors (N, D) twice -> (N,)."""
    return ((made * real).sum(dim=1) - margin).abs()


def attribute_loss(made: "Tensor", real: "Tensor") -> "Tensor":
    """Eq. 3: L1 distance of tokens (N, T, W) twice -> (N,): the mean over a token, summed over tokens as published.

    The printed sum is W times that: with lambda_att / W (0.1 / 768) it is the very same loss.
    """
    return (made - real).abs().mean(dim=2).sum(dim=1)
