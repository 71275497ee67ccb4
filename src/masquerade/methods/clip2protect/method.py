"""CLIP2Protect: the code of a face is searched so that recognizers see a target person and a text sees its make-up."""

from collections.abc import Sequence

import numpy as np

from masquerade.backbones import load_backbone
from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.methods import Capabilities, Method, Resources, _gallery
from masquerade.methods._batches import fill_batches
from masquerade.methods.clip2protect import CLIP2ProtectSettings, CLIP2ProtectVariant


class CLIP2Protect(Method):
    """Inverts a face with a generator of its own and moves its fine layers towards a text and another identity.

    Shamshad, Naseer, Nandakumar 2023, CLIP2Protect: Protecting Facial Privacy using Text-Guided Makeup via Adversarial
    Latent Search, CVPR (arXiv:2306.10008). The published code has no license and a patent application names the method
    (US20260154453A1): this is written from the equations. docs/other_methods.md lists what differs.
    """

    title = "CLIP2Protect"
    paper = "Shamshad et al. 2023, CLIP2Protect, CVPR (arXiv:2306.10008)"
    capabilities = Capabilities(latents=True, gallery=True, poisons=True, deterministic=False)
    needs = ("generator", "inversion", "semantics", "identity")

    Params = CLIP2ProtectSettings
    Variant = CLIP2ProtectVariant
    params: CLIP2ProtectSettings
    variant: CLIP2ProtectVariant

    def __init__(self, params: CLIP2ProtectSettings, variant: CLIP2ProtectVariant, resources: Resources):
        from masquerade.backbones.semantics import network
        from masquerade.methods.clip2protect.search import Search
        from masquerade.methods.latent.codes import Codes
        from masquerade.methods.latent.space import LatentSpace

        super().__init__(params, variant, resources)
        space = LatentSpace(resources.backbones)
        network.refuse_unknown([params.source, variant.prompt, *params.templates], space.semantics.tokenizer)
        self._codes = Codes(space, resources.latents)
        self._search = Search(space, load_backbone("identity", resources.backbones), params, variant)
        self._gallery, self._rows = _gallery.open_gallery(resources)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """``params.batch`` faces side by side, each with its own generator.

        Raises PictureError if an image does not have the generator's size, or if its inversion diverged.
        """
        codes = self._codes.w_plus(faces)
        targets = _gallery.load_images(self._gallery, self._rows, self._targets(faces, seed), faces.images)
        parts = [
            self._search.protect(faces.images[rows], codes[rows], targets[rows])
            for rows in fill_batches(len(faces), self.params.batch)
        ]
        return np.concatenate(parts)[: len(faces)]

    def _targets(self, faces: Faces, seed: int) -> np.ndarray:
        """The rows of the gallery with the targets of the faces, int (N,)."""
        target_rows = seeding.make_generator(seed, "clip2protect").choice(len(self._rows), self.params.targets)
        return target_rows[
            [seeding.make_generator(seed, "clip2protect", name).integers(len(target_rows)) for name in faces.ids]
        ]

    def statement(self) -> dict[str, object]:
        return {"goal": self.variant.goal, "prompt": self.variant.prompt, "surrogates": "identity"}
