"""LReOrg: keywords decide which features of a face are hidden and which are kept."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources, _privacy
from masquerade.methods.lreorg import IDENTITY, Keyword, Keywords, LReOrgSettings
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from torch import Tensor

    from masquerade.methods.lreorg import anonymizers


DRAWS = (1, 2, 3)
"""Numbers of further draws of the hidden identity (Figure 6). Each has a seed of its own, which no experiment has."""


class LReOrg(Method):
    """Separates the code of a face by keywords, changes the features to hide, and restores the features to keep.

    Latent Representation Reorganization for Face Privacy Protection (anonymous, ACM MM 2024 submission). docs/lreorg.md
    lists what the paper leaves open and what its privacy does not cover.
    """

    title = "LReOrg"
    paper = "anonymous 2024, Latent Representation Reorganization for Face Privacy Protection (ACM MM submission)"
    capabilities = Capabilities(
        trains=True, attribute_selective=True, differentially_private=True, saves=True, fakes=True, latents=True,
        deterministic=False,
    )  # fmt: skip
    needs = ("generator", "inversion", "semantics", "identity")
    architecture = ("keywords", "blocks", "hidden", "growth", "limit")

    Params = LReOrgSettings

    class Variant(Settings):
        hide: list[str]
        """K_1, the keywords whose features are anonymized, in this order (identity alone: section 4.1)."""
        keep: list[str]
        """K_2, the keywords whose features are then restored, in this order (all others: section 4.1)."""
        further: Keywords
        """Keywords that the network was not trained on, for use in ``hide`` and ``keep``."""
        identity: Literal["group", "laplace", "farthest"]
        """How the identity is hidden: group is the paper's GIA (section 3.3), laplace is IdentityDP's noise (4.1), and
        farthest is k-anonymity (4.3)."""
        groups: Annotated[int, Field(ge=2)]
        """m, the number of groups into which the generated faces are divided (the paper gives none)."""
        nearest: PositiveInt
        """a, the rank of the nearest group that may be chosen (the paper gives none)."""
        farthest: PositiveInt
        """b, the rank of the farthest group that may be chosen (the paper gives none)."""
        epsilon: PositiveFloat
        """The privacy budget of the choice of a group, or of the noise (the paper gives none)."""
        sensitivity: _privacy.Sensitivity
        """The sensitivity of the Laplace noise: ``measured`` on the identity features of generated faces, or the
        ``bound`` that holds for every face."""
        sampler: _privacy.Sampler
        """The source of the randomness: ``seeded`` is repeatable and gives no guarantee; ``opendp`` is a vetted
        implementation for real photographs and is not repeatable."""

        @model_validator(mode="after")
        def _different_keywords(self) -> Self:
            names = self.hide + self.keep
            if not self.hide:
                raise ValueError("hide must name a keyword, because else the face does not change")
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{', '.join(twice)} is named twice; name it once, as hidden or as kept")
            return self

    params: LReOrgSettings
    variant: Variant

    def __init__(self, params: LReOrgSettings, variant: Variant, resources: Resources):
        """Raises ParameterError for a keyword that is not defined, or that has no contents and is to be hidden."""
        from masquerade.methods.latent import fakes
        from masquerade.methods.latent.codes import Codes
        from masquerade.methods.latent.space import LatentSpace
        from masquerade.methods.lreorg import training
        from masquerade.methods.lreorg.network import Vocabulary

        super().__init__(params, variant, resources)
        self._keywords = collect_keywords(params.keywords, variant)
        self._space = LatentSpace(resources.backbones)
        self._codes = Codes(self._space, resources.latents)
        self._network = training.load_network(params, self.checkpoint, resources.backbones, self._space)
        self._words = Vocabulary(self._space.semantics, self._keywords)
        assert resources.fakes is not None
        self._fakes = fakes.load_fakes(resources.fakes, self._space)

    @classmethod
    def train(cls, params: LReOrgSettings, job: TrainingJob) -> None:
        from masquerade.methods.lreorg import training

        training.train(params, job)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if an image does not have the generator's size, or if its inversion diverged."""
        return self._space.draw(self._restore(self._hide(faces, seed), faces), faces.ids).numpy()

    def save(self, faces: Faces, seed: int, keys: Sequence[bytes] | None) -> dict[str, "Tensor"]:
        """The anonymized code, and the original key features of the hidden keywords, which undo the anonymization."""
        original = self._codes.w_plus(faces)
        features = {name: self._separate(original, name)[0] for name in self.variant.hide}
        return {"code": self._restore(self._hide(faces, seed), faces), **features}

    def recover_saved(self, saved: dict[str, "Tensor"], keys: Sequence[bytes] | None) -> np.ndarray:
        """The face with the hidden features restored, the last one first."""
        code = saved["code"]
        for name in reversed(self.variant.hide):
            code = self._replace_key(saved[name], code, name)
        return self._draw_images(code)

    def views(self, faces: Faces) -> dict[str, np.ndarray]:
        """``draw.<n>``: other draws of the hidden identity. ``plus.<keyword>``: the face once this keyword is restored.

        Empty for a variant that keeps nothing. Without draws if the identity is not hidden: nothing else is random.
        """
        if not self.variant.keep:
            return {}
        images = {}
        if IDENTITY in self.variant.hide:
            for number in DRAWS:
                images[f"draw.{number}"] = self.anonymize(faces, seeding.derive_seed(number, "lreorg", "draw"))
        code = self._hide(faces, 0)
        original = self._codes.w_plus(faces)
        for name in self.variant.keep[:-1]:
            code = self._replace_key(self._separate(original, name)[0], code, name)
            images[f"plus.{name}"] = self._draw_images(code)
        return images

    def statement(self) -> dict[str, object]:
        variant = self.variant
        facts: dict[str, object] = {
            "hidden": ", ".join(variant.hide),
            "kept": ", ".join(variant.keep) or "nothing by keyword",
        }
        if IDENTITY in variant.hide:
            facts |= self._anonymizers[IDENTITY].statement()
        else:
            facts["guarantee"] = "None: the identity is not hidden, and attributes are changed without any randomness."
        return facts

    def features(self, faces: Faces) -> dict[str, np.ndarray]:
        """The key feature of every keyword, and the ``codes`` that contain them: float32 (N, layers * width)."""
        codes = self._codes.w_plus(faces)
        keys = {name: self._separate(codes, name)[0] for name in self._keywords}
        return {name: part.flatten(1).numpy() for name, part in (keys | {"codes": codes}).items()}

    def _hide(self, faces: Faces, seed: int) -> "Tensor":
        """Anonymous reorganization (section 3.1): W+ (N, layers, style) with the features of K_1 anonymized."""
        import torch

        code = self._codes.w_plus(faces)
        for name in self.variant.hide:
            key, residual = self._separate(code, name)
            changed = self._anonymizers[name].anonymize(key.numpy(), list(faces.ids), seed)
            code = self._fuse(torch.from_numpy(changed), residual, name)
        return code

    def _restore(self, code: "Tensor", faces: Faces) -> "Tensor":
        """Recovery reorganization (section 3.1): W+ with the features of K_2 from the original code."""
        original = self._codes.w_plus(faces)
        for name in self.variant.keep:
            code = self._replace_key(self._separate(original, name)[0], code, name)
        return code

    def _replace_key(self, key: "Tensor", code: "Tensor", name: str) -> "Tensor":
        """A code with another key feature for a keyword."""
        return self._fuse(key, self._separate(code, name)[1], name)

    def _separate(self, code: "Tensor", name: str) -> tuple["Tensor", "Tensor"]:
        """Key and residual features of codes (N, ..., style), of their shape, on the CPU."""
        import torch

        with torch.inference_mode():
            condition = self._words.condition(name, len(code))
            key, residual = self._network.disentangle(code.to(self._space.device), condition)
            return key.cpu(), residual.cpu()

    def _fuse(self, key: "Tensor", residual: "Tensor", name: str) -> "Tensor":
        import torch

        with torch.inference_mode():
            device, condition = self._space.device, self._words.condition(name, len(key))
            return self._network.fuse(key.to(device), residual.to(device), condition)[1].cpu()

    @cached_property
    def _anonymizers(self) -> "dict[str, anonymizers.GroupAnonymizer]":
        """Keyword -> the anonymizer of its feature, from the key features of generated faces."""
        return {
            name: self._build_anonymizer(name, self._separate(self._fakes.codes, name)[0].numpy())
            for name in self.variant.hide
        }

    def _build_anonymizer(self, name: str, features: np.ndarray) -> Any:
        from masquerade.methods.lreorg import anonymizers

        variant = self.variant
        if name != IDENTITY:
            shares = self._words.log_probabilities(name, self._fakes.features.to(self._space.device)).exp()
            return anonymizers.FarthestContentAnonymizer.from_faces(features, shares.cpu().numpy())
        if variant.identity == "laplace":
            sensitivity = _privacy.sensitivity_bound(features.shape[1])
            if variant.sensitivity == "measured":
                sensitivity = _privacy.measure_sensitivity(anonymizers.unit_directions(features))
            mechanism = _privacy.LaplaceMechanism(
                variant.epsilon, sensitivity, variant.sensitivity, variant.sampler,
                rest="residual features", measured_on="generated faces",
            )  # fmt: skip
            return anonymizers.LaplaceAnonymizer(mechanism, float(np.linalg.norm(features, axis=1).mean()))
        groups = anonymizers.Groups(features, variant.groups)
        if variant.identity == "farthest":
            return anonymizers.FarthestGroupAnonymizer(groups)
        mechanism = _privacy.ExponentialMechanism(variant.epsilon, anonymizers.DIAMETER, variant.sampler)
        return anonymizers.GroupAnonymizer(groups, mechanism, variant.nearest, variant.farthest)

    def _draw_images(self, codes: "Tensor") -> np.ndarray:
        return self._space.draw(codes).numpy()


def collect_keywords(trained: dict[str, Keyword], variant: "LReOrg.Variant") -> dict[str, Keyword]:
    """All keywords: those trained on, and the further ones of a variant.

    Raises ParameterError if a keyword is defined twice, is named but not defined, or is to be hidden but has no
    contents.
    """
    twice = sorted(trained.keys() & variant.further.keys())
    if twice:
        raise ParameterError(f"further: {', '.join(twice)} is already a keyword of the training. Give it another name.")
    every = trained | variant.further
    missing = [name for name in [*variant.hide, *variant.keep] if name not in every]
    if missing:
        raise ParameterError(
            f"There is no keyword {', '.join(missing)}. There are: {', '.join(every)}. Define others in "
            "params.yaml, as `further` of a variant of lreorg; this needs no new training."
        )
    bare = [name for name in variant.hide if name != IDENTITY and not every[name].contents]
    if bare:
        raise ParameterError(f"{', '.join(bare)} cannot be hidden. A hidden keyword needs contents: add some.")
    return every
