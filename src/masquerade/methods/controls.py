"""The control methods: no anonymizers, but floors and ceilings of the metrics (as in openproblems.bio).

The original, a black region, another person's image, a random generated face, and the face after inversion.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources, _gallery, _region


class Original(Method):
    """Returns the original: the row ``Original`` of IdentityDP's Table III.

    Control method, as in openproblems.bio. No other method may return the original.
    """

    name = "original"
    title = "Original"
    paper = "Wen et al. 2022, IdentityDP (doi:10.1016/j.neucom.2022.06.039), Table III"
    capabilities = Capabilities(control=True)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        return faces.images.copy()


class Blackout(Method):
    """Fills the face region with black: the "trivial solution" of Newton, Sweeney, Malin 2005 (abstract).

    Control method: the floor of face detection, and the ceiling of the privacy that hiding the region can give.
    """

    name = "blackout"
    title = "Blackout"
    paper = "Newton, Sweeney, Malin 2005, Preserving Privacy by De-identifying Face Images, IEEE TKDE 17(2)"
    capabilities = Capabilities(control=True, landmarks=True, sees_face=False)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        return _region.edit(faces, lambda region, name: np.full_like(region, -1.0))


class RandomIdentity(Method):
    """Returns an image of another person, drawn from the gallery by seed and face. It uses nothing of the original.

    Control method: its identity distance is that of two strangers, and its Frechet distance is that of two sets of real
    faces. An anonymizer need not be better in either (compare the swaps of CIAGAN, Maximov et al. 2020).
    """

    name = "random_identity"
    title = "Random identity"
    paper = "Maximov, Elezi, Leal-Taixe 2020, CIAGAN (arXiv:2005.09544): identity swapping without a network"
    capabilities = Capabilities(control=True, gallery=True, deterministic=False)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        archive, rows = _gallery.open_gallery(self.resources)
        people = rows["identity"].to_numpy()
        rows_shown = []
        for name, person in zip(faces.ids, faces.index["identity"], strict=True):
            others = np.flatnonzero(
                (people != person) | (people == "")
            )  # a face of the methods' people is also in the gallery
            rows_shown.append(others[seeding.make_generator(seed, "random_identity", name).integers(len(others))])
        return _gallery.load_images(archive, rows, np.array(rows_shown), like=faces.images)


class RandomGenerated(Method):
    """Returns a random face of the generator, truncated as the fakes are.

    Control method: the row "Randomly generated" of Barattin et al. 2023, Table 1.
    """

    name = "random_generated"
    title = "Randomly generated"
    paper = "control: a random face of the generator"
    capabilities = Capabilities(control=True, deterministic=False)
    needs = ("generator",)

    class Params(Settings):
        psi: Annotated[float, Field(gt=0, le=1)]
        """Truncation psi of the generated faces (0.7, as the fakes of Barattin et al. 2023, published code)."""

    params: Params

    def __init__(self, params: Params, variant: Settings, resources: Resources):
        from masquerade.methods.latent.space import LatentSpace

        super().__init__(params, variant, resources)
        self._space = LatentSpace(resources.backbones)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if the images do not have the generator's size."""
        import torch

        generator = self._space.generator
        self._space.check_size(faces.images)
        draws = [seeding.make_generator(seed, "random_generated", name) for name in faces.ids]
        z = np.stack([draw.standard_normal(generator.style_width, dtype=np.float32) for draw in draws])
        with torch.no_grad():
            w = generator.truncate(generator.map(torch.from_numpy(z).to(self._space.device)), self.params.psi)
        return self._space.draw(generator.broadcast(w), faces.ids).numpy()


class Inverted(Method):
    """Inverts a face and draws its code again. Control method: the cost of the latent space without anonymization."""

    name = "inverted"
    title = "Inversion"
    paper = "control: encoded by the inversion and drawn again, not anonymized"
    capabilities = Capabilities(control=True, latents=True)
    needs = ("generator", "inversion", "semantics")

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        from masquerade.methods.latent.codes import Codes
        from masquerade.methods.latent.space import LatentSpace

        super().__init__(params, variant, resources)
        self._space = LatentSpace(resources.backbones)
        self._codes = Codes(self._space, resources.latents)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if an image does not have the generator's size, or if its inversion diverged."""
        codes = self._codes.w_plus(faces)
        return self._space.draw(codes, faces.ids).numpy()
