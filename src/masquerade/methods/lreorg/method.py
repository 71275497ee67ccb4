"""LReOrg: keywords decide what of a face is hidden and what is kept."""

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from masquerade.core.errors import ParameterError
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources, _privacy
from masquerade.methods.lreorg.settings import IDENTITY, Keyword, Keywords, ReorganizationSettings
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from torch import Tensor

    from masquerade.methods.lreorg import anonymizers


DRAWS = (1, 2, 3)
"""Seeds of further draws, for a picture of how diverse they are (Figure 6)."""


class LReOrg(Method):
    """Takes the code of a face apart by keywords, changes the features to hide, and fuses back those to keep.

    Latent Representation Reorganization for Face Privacy Protection (anonymous, ACM MM 2024 submission). The network:
    `masquerade.networks.cdfnet`; its training and the anonymizers: `masquerade.latent_reorganization`. What the paper
    leaves open, and what its privacy does not cover: docs/lreorg.md.
    """

    title = "LReOrg"
    paper = "anonymous 2024, Latent Representation Reorganization for Face Privacy Protection (ACM MM submission)"
    capabilities = Capabilities(
        trains=True, attribute_selective=True, differentially_private=True, saves=True, fakes=True, latents=True,
        deterministic=False,
    )  # fmt: skip
    needs = ("generator", "inversion", "semantics", "identity")

    class Params(ReorganizationSettings):
        pass

    class Variant(Settings):
        hide: list[str]
        """K_1: keywords whose features are anonymized, one after the other (identity alone: section 4.1)."""
        keep: list[str]
        """K_2: keywords whose features are then brought back, one after the other (the rest: section 4.1)."""
        further: Keywords
        """Keywords that the network was not trained on, for ``hide`` and ``keep``."""
        identity: Literal["group", "laplace", "farthest"]
        """How it is hidden: GIA (section 3.3), IdentityDP's noise (section 4.1), or k-anonymity (section 4.3)."""
        groups: Annotated[int, Field(ge=2)]
        """m, clusters of drawn faces (the paper does not say)."""
        nearest: Annotated[int, Field(ge=1)]
        """a: the nearest group that may be chosen, by rank (the paper does not say)."""
        farthest: Annotated[int, Field(ge=1)]
        """b: the farthest one (the paper does not say)."""
        epsilon: Annotated[float, Field(gt=0)]
        """Privacy budget of the choice of a group, or of the noise (the paper does not say)."""
        sampler: _privacy.Sampler
        """``seeded``: repeatable, claims nothing; ``opendp``: vetted, for real photographs, not repeatable."""

        @model_validator(mode="after")
        def _told_apart(self) -> Self:
            both = [name for name in self.hide if name in self.keep]
            if both:
                raise ValueError(f"{', '.join(both)} cannot be hidden and kept at once")
            if not self.hide:
                raise ValueError("hide must name a keyword, or the face stays as it is")
            twice = sorted({name for name in [*self.hide, *self.keep] if (self.hide + self.keep).count(name) > 1})
            if twice:
                raise ValueError(f"{', '.join(twice)} is named twice")
            return self

    params: Params
    variant: Variant

    def __init__(self, params: Params, variant: Variant, resources: Resources):
        """Raises ParameterError for a keyword that nobody defined, or that cannot be hidden for want of contents."""
        from masquerade.methods._latent import fakes
        from masquerade.methods._latent.codes import Codes
        from masquerade.methods._latent.space import LatentSpace
        from masquerade.methods.lreorg import training
        from masquerade.methods.lreorg.keywords import Vocabulary

        super().__init__(params, variant, resources)
        self._keywords = known(params.keywords, variant)
        self._space = LatentSpace({name: path for name, path in resources.backbones.items() if name != IDENTITY})
        self._codes = Codes(self._space, resources.latents)
        assert resources.checkpoint is not None
        self._network = training.load(params, resources.checkpoint, resources.backbones, self._space)
        self._words = Vocabulary(self._space.semantics, self._keywords)
        assert resources.fakes is not None
        self._fakes = fakes.load(resources.fakes, self._space)

    @classmethod
    def train(cls, params: Params, job: TrainingJob) -> None:
        from masquerade.methods.lreorg import training

        training.train(params, job)

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        """Raises PictureError where a picture is not of the generator's size, or its inversion diverged."""
        return self._drawn(self._recovered(self._hidden(faces, seed), faces))

    def save(self, faces: Faces, seed: int, key: bytes | None) -> dict[str, "Tensor"]:
        """The anonymized code, and the original key features of what was hidden: whoever has these can undo it."""
        original, _ = self._codes.of(faces)
        features = {name: self._apart(original, name)[0] for name in self.variant.hide}
        return {"code": self._recovered(self._hidden(faces, seed), faces), **features}

    def recover_saved(self, saved: dict[str, "Tensor"], key: bytes | None) -> np.ndarray:
        """The hidden features fused back, the last one first."""
        code = saved["code"]
        for name in reversed(self.variant.hide):
            code = self._with(saved[name], code, name)
        return self._drawn(code)

    def views(self, faces: Faces) -> dict[str, np.ndarray]:
        """``draw.<n>``: other draws of the hidden identity; ``plus.<keyword>``: before the next one is brought back.

        Of the variants that keep something; the others are steps on its way.
        """
        if not self.variant.keep:
            return {}
        found = {f"draw.{number}": self.anonymize(faces, number) for number in DRAWS}
        code = self._hidden(faces, 0)
        original, _ = self._codes.of(faces)
        for name in self.variant.keep[:-1]:
            code = self._with(self._apart(original, name)[0], code, name)
            found[f"plus.{name}"] = self._drawn(code)
        return found

    def statement(self) -> dict[str, object]:
        variant = self.variant
        told: dict[str, object] = {
            "hidden": ", ".join(variant.hide),
            "kept": ", ".join(variant.keep) or "nothing by keyword",
        }
        if IDENTITY in variant.hide:
            told |= self._anonymizers[IDENTITY].statement()
        else:
            told["guarantee"] = "None: the identity is not hidden, and attributes are changed without any randomness."
        return told

    def features(self, faces: Faces) -> dict[str, np.ndarray]:
        """Key features of every keyword, and the ``codes`` that they are part of: float32 (N, layers * width)."""
        codes, _ = self._codes.of(faces)
        found = {name: self._apart(codes, name)[0] for name in self._keywords}
        return {name: part.flatten(1).numpy() for name, part in (found | {"codes": codes}).items()}

    def _hidden(self, faces: Faces, seed: int) -> "Tensor":
        """Anonymous reorganization (section 3.1): W+ (N, layers, style) with the features of K_1 anonymized."""
        import torch

        code, _ = self._codes.of(faces)
        for name in self.variant.hide:
            key, residual = self._apart(code, name)
            changed = self._anonymizers[name].anonymize(key.numpy(), list(faces.ids), seed)
            code = self._fused(torch.from_numpy(changed), residual, name)
        return code

    def _recovered(self, code: "Tensor", faces: Faces) -> "Tensor":
        """Recovery reorganization (section 3.1): the features of K_2 as they are in the original code."""
        original, _ = self._codes.of(faces)
        for name in self.variant.keep:
            code = self._with(self._apart(original, name)[0], code, name)
        return code

    def _with(self, key: "Tensor", code: "Tensor", name: str) -> "Tensor":
        """A code with another key feature of a keyword."""
        return self._fused(key, self._apart(code, name)[1], name)

    def _apart(self, code: "Tensor", name: str) -> tuple["Tensor", "Tensor"]:
        """Key and residual features of codes (N, ..., style), of their shape, on the CPU."""
        import torch

        with torch.inference_mode():
            condition = self._words.condition(name, len(code))
            key, residual = self._network.disentangle(code.to(self._space.device), condition)
            return key.cpu(), residual.cpu()

    def _fused(self, key: "Tensor", residual: "Tensor", name: str) -> "Tensor":
        import torch

        with torch.inference_mode():
            device, condition = self._space.device, self._words.condition(name, len(key))
            return self._network.fuse(key.to(device), residual.to(device), condition)[1].cpu()

    @cached_property
    def _anonymizers(self) -> "dict[str, anonymizers.GroupAnonymizer]":
        """keyword -> what changes its feature, from the key features of drawn faces."""
        return {
            name: self._anonymizer(name, self._apart(self._fakes.codes, name)[0].numpy()) for name in self.variant.hide
        }

    def _anonymizer(self, name: str, features: np.ndarray) -> Any:
        from masquerade.methods.lreorg import anonymizers

        variant = self.variant
        if name != IDENTITY:
            shares = self._words.log_shares(name, self._fakes.features.to(self._space.device)).exp()
            return anonymizers.FarthestContentAnonymizer.of(features, shares.cpu().numpy())
        if variant.identity == "laplace":
            dimensions = features.shape[1] * self._space.generator.layers
            mechanism = _privacy.LaplaceMechanism(
                variant.epsilon, _privacy.sensitivity_bound(dimensions), "bound", variant.sampler, "residual features"
            )
            return anonymizers.LaplaceAnonymizer(mechanism, float(np.linalg.norm(features, axis=1).mean()))
        groups = anonymizers.Groups(features, variant.groups)
        if variant.identity == "farthest":
            return anonymizers.FarthestGroupAnonymizer(groups)
        mechanism = _privacy.ExponentialMechanism(variant.epsilon, anonymizers.DIAMETER, variant.sampler)
        return anonymizers.GroupAnonymizer(groups, mechanism, variant.nearest, variant.farthest)

    def _drawn(self, codes: "Tensor") -> np.ndarray:
        return self._space.draw(codes).numpy()


def known(trained: dict[str, Keyword], variant: "LReOrg.Variant") -> dict[str, Keyword]:
    """All keywords: those trained on, and the further ones of a variant.

    Raises ParameterError where one is defined twice, one is asked for that is not defined, or one is to be hidden that
    has no contents to choose another from.
    """
    twice = sorted(trained.keys() & variant.further.keys())
    if twice:
        raise ParameterError(f"further: {', '.join(twice)} is a keyword that the network was trained on already.")
    every = trained | variant.further
    missing = [name for name in [*variant.hide, *variant.keep] if name not in every]
    if missing:
        raise ParameterError(
            f"There is no keyword {', '.join(missing)}. There are: {', '.join(every)}. Others can be defined in "
            "params.yaml, as `further` of a variant of lreorg; the network need not be trained again."
        )
    bare = [name for name in variant.hide if name != IDENTITY and not every[name].contents]
    if bare:
        raise ParameterError(f"{', '.join(bare)} cannot be hidden: a keyword needs contents to choose another from.")
    return every
