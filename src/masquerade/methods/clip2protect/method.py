"""CLIP2Protect: the code of a face is searched so that recognisers see a target person and a text sees its make-up."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from masquerade.core import discovery, seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.core.suggestions import nearest
from masquerade.methods import Capabilities, Method, Resources, _gallery

Weight = Annotated[float, Field(ge=0)]


class CLIP2Protect(Method):
    """Inverts a face with a generator of its own and moves its fine layers towards a text and another identity.

    Shamshad, Naseer, Nandakumar 2023, CLIP2Protect: Protecting Facial Privacy using Text-Guided Makeup via Adversarial
    Latent Search, CVPR (arXiv:2306.10008). The published code has no licence and a patent application names the method
    (US20260154453A1): this is written from the equations. docs/clip2protect.md lists what differs.
    """

    title = "CLIP2Protect"
    paper = "Shamshad et al. 2023, CLIP2Protect, CVPR (arXiv:2306.10008)"
    capabilities = Capabilities(latents=True, gallery=True, poisons=True, deterministic=False)
    needs = ("generator", "inversion", "semantics", "identity")

    class Params(Settings):
        targets: Annotated[int, Field(ge=1)]
        """Target people, drawn from the gallery; each picture gets one of them (4: published)."""
        tuning_steps: Annotated[int, Field(ge=0)]
        """Updates of the generator of a face (150: published)."""
        tuning_rate: Annotated[float, Field(gt=0)]
        """Learning rate of Adam, for these (0.0005: published)."""
        search_steps: Annotated[int, Field(ge=1)]
        """Updates of the code (50: published)."""
        search_rate: Annotated[float, Field(gt=0)]
        """Learning rate of Adam, for these (0.01: published)."""
        first_layer: Annotated[int, Field(ge=0, le=17)]
        """The first style layer that moves, of 18 (8: published)."""
        adversarial: Weight
        """Weight of the identity loss (0.7: published)."""
        text: Weight
        """Weight of the text loss (0.3: published)."""
        latent: Weight
        """Weight of the squared distance to the first code (0.01: published)."""
        temperature: Annotated[float, Field(gt=0)]
        """tau of the text loss (0.1: published)."""
        source: str
        """The text that describes the picture before ("face": published)."""
        templates: Annotated[list[str], Field(min_length=1)]
        """Sentences, $ stands for a text (79 templates: published)."""

    class Variant(Settings):
        goal: Literal["dodge", "impersonate"]
        """dodge: towards the target and away from the person; impersonate: towards the target alone."""
        prompt: str
        """The make-up in words ("red lipstick": the default of the published program)."""

    params: Params
    variant: Variant

    def __init__(self, params: Params, variant: Variant, resources: Resources):
        from masquerade.methods._latent.codes import Codes
        from masquerade.methods._latent.space import LatentSpace
        from masquerade.methods.clip2protect.search import Search

        super().__init__(params, variant, resources)
        space = LatentSpace(resources.backbones)
        check_words([params.source, variant.prompt, *params.templates], space.semantics.tokenizer)
        identity = discovery.load("backbones", "identity").load(resources.backbones["identity"])
        self._codes = Codes(space, resources.latents)
        self._search = Search(space, identity, params, variant)
        self._gallery, self._rows = _gallery.of(resources)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """One face after the other, each with its own generator: a result does not depend on the faces before it.

        Raises PictureError if a picture does not have the generator's size, or if its inversion diverged.
        """
        codes, _ = self._codes.of(faces)
        targets = _gallery.pictures(self._gallery, self._rows, self._targets(faces, seed), faces.images)
        rows = zip(faces.images, codes, targets, strict=True)
        return np.stack([self._search.protected(image, code, target) for image, code, target in rows])

    def _targets(self, faces: Faces, seed: int) -> np.ndarray:
        """The rows of the gallery with the targets of the faces, int (N,)."""
        known = seeding.generator(seed, "clip2protect").choice(len(self._rows), self.params.targets)
        return known[[seeding.generator(seed, "clip2protect", name).integers(len(known)) for name in faces.ids]]

    def statement(self) -> dict[str, object]:
        return {
            "goal": self.variant.goal,
            "prompt": self.variant.prompt,
            "surrogates": "identity",
            "measured": "evasion: these pictures are compared with clear ones",
        }


def check_words(sentences: Sequence[str], tokenizer: object) -> None:
    """Raises ParameterError, with the nearest known words, if the text-image model does not know a word.

    A tokenizer of word pieces, such as CLIP's, knows all words.
    """
    from masquerade.backbones.semantics.network import Words, words_of

    if not isinstance(tokenizer, Words):
        return
    words = sorted({word for sentence in sentences for word in words_of(sentence.replace("$", " "))})
    unknown = [word for word in words if word not in tokenizer.ids]
    if unknown:
        hints = " ".join(f"'{word}': {nearest(word, list(tokenizer.ids))}" for word in unknown)
        raise ParameterError(
            f"clip2protect: the text-image model learnt no caption with the words {', '.join(unknown)}. {hints} Change "
            "the prompt, the source or the templates."
        )
