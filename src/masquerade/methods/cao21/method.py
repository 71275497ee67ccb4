"""Cao et al.: a password and a level rotate the identity vector, and rotate it back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from masquerade.backbones import loaded
from masquerade.core import seeding
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import Faces
from masquerade.core.keys import Digits, stack_per_key
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods._disentanglement.settings import DisentanglementSettings, latent_stand_in, needed
from masquerade.methods._memory import Remembered
from masquerade.methods.cao21 import rotation
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from torch import Tensor

PASSWORD = Digits(6)  # section 5.1
SAMPLE_LEVEL = 9  # for the last column of the sample pictures


class Cao21(Method):
    """Rotates the identity vector of a face towards a reference identity: the password sets it, the level the angle.

    Cao, Liu, Wen, Xie, Song 2021, Personalized and Invertible Face De-identification by Disentangled Identity
    Information Manipulation, ICCV. The networks are those of IdentityDP's Stage I (methods/_disentanglement/), the
    identity modification module is methods/cao21/rotation.py. docs/cao21.md lists what the paper leaves open and how
    its formulas are read.
    """

    title = "Cao et al."
    paper = "Cao et al. 2021, Personalized and Invertible Face De-identification, ICCV"
    capabilities = Capabilities(trains=True, keys=PASSWORD, invertible=True, saves=True, latents=True)
    needs = ("identity",)
    kin = "identitydp"
    architecture = ("encoder_widths", "generator_widths", "span", "latent")

    class Params(DisentanglementSettings):
        combined: Annotated[int, Field(ge=2)]
        """k: training identities whose mean is a reference identity (10: section 5.1)."""

    class Variant(Settings):
        level: Annotated[int, Field(ge=0, le=9)] | Literal["random"]
        """d, the privacy level (0 to 9: section 5.1); ``random``: another for each face, which has no recovery."""

    params: Params
    variant: Variant

    def __init__(self, params: Params, variant: Variant, resources: Resources):
        from masquerade.methods._disentanglement.frozen import FrozenStageOne

        super().__init__(params, variant, resources)
        self._networks = networks = FrozenStageOne(params, resources)
        self._space = networks.space
        self._read = Remembered(lambda images: (networks.identities(images), networks.attributes(images)))
        if "references" not in self._networks.rest:
            raise CheckpointError(f"{self.checkpoint} holds no library of reference identities. Train it again.")
        library = self._networks.rest["references"]["identities"].numpy()
        self._references = rotation.References(library, params.combined, PASSWORD.count)
        self._usual = self._references.usual_angle()

    @classmethod
    def needed(cls, params: Params) -> tuple[str, ...]:
        return needed(params)

    @classmethod
    def latent_stand_in(cls, params: Params) -> str:
        return latent_stand_in(params)

    @classmethod
    def train(cls, params: Params, job: TrainingJob) -> None:
        """Raises ParameterError if there are too few training identities for one reference a password."""
        from masquerade.methods._disentanglement import training
        from masquerade.methods._disentanglement.network import size_of
        from masquerade.methods.latent.codes import Table

        frozen = {role: loaded(role, job.backbones) for role in needed(params)}
        identity = frozen["identity"]
        library = training.people(job, identity, size_of(params, frozen))
        try:
            references = rotation.References(library.numpy(), params.combined, PASSWORD.count)
        except ValueError as error:
            raise ParameterError(
                f"methods.cao21.params.combined: {error}. Change it, or train on more people."
            ) from error

        def rotated(vectors: np.ndarray) -> np.ndarray:
            return unit(rotation.rotate(vectors, references.of(0), rotation.angle(SAMPLE_LEVEL)))

        training.train(params, job, frozen, rotated, {"references": Table({"identities": library})})

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """F(X, p, d) = G(M(z_id, p, d), z_attr), Eq. 15."""
        rotated, maps = self.save(faces, seed, keys)
        return self._networks.fuse(unit(rotated), maps, faces.ids)

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """Eq. 16-18, from the picture alone. Raises ParameterError for the variant whose level is random."""
        return self._recovered(images, keys, self._level())

    def recover_nearly(self, images: np.ndarray, keys: Sequence[bytes], number: int = 0) -> dict[str, np.ndarray]:
        """As the base class, and for ``number`` 0 with the right password and the next level."""
        nearly = super().recover_nearly(images, keys, number)
        if number:
            return nearly
        level = self._level()
        other = level + 1 if level + 1 in rotation.LEVELS else level - 1
        return nearly | {"level": self._recovered(images, keys, other)}

    def save(self, faces: Faces, seed: int, keys: Sequence[bytes] | None) -> "tuple[np.ndarray, list[Tensor]]":
        """z_new (N, D) with the length that Eq. 13 gives, and the attribute maps."""
        identities, maps = self._separated(faces)
        rotated = rotation.rotate(identities.astype(np.float64), self._referred(keys), self._angles(faces, seed))
        return rotated, maps

    def recover_saved(self, saved: "tuple[np.ndarray, list[Tensor]]", keys: Sequence[bytes] | None) -> np.ndarray:
        rotated, maps = saved
        theta = rotation.angle(self._level())
        return self._networks.fuse(unit(rotation.rotate_back(rotated, self._referred(keys), theta)), maps)

    def statement(self) -> dict[str, object]:
        level = self.variant.level
        return {"level": level} if level == "random" else {"level": level, "degrees": 70 + 5 * (level + (level > 3))}

    def _separated(self, faces: Faces) -> "tuple[np.ndarray, list[Tensor]]":
        """z_id and z_attr of clear faces, whose latent codes the pipeline may have."""
        if self._networks.space is None:
            return self._read(faces.images)
        return self._networks.identities(faces.images), self._networks.attributes_of(faces)

    def _recovered(self, images: np.ndarray, keys: Sequence[bytes] | None, level: int) -> np.ndarray:
        theta, reference = rotation.angle(level), self._referred(keys)
        identities, maps = self._read(images)
        rotated = rotation.lengthened(identities.astype(np.float64), reference, theta, self._usual)
        identity = unit(rotation.rotate_back(rotated, reference, theta))
        return self._networks.fuse(identity, maps)  # Eq. 18

    def _referred(self, keys: Sequence[bytes] | None) -> np.ndarray:
        """f(p) of each password, unit (N, D)."""
        return stack_per_key(keys, lambda key: self._references.of(int(key)))

    def _level(self) -> int:
        if self.variant.level == "random":
            raise ParameterError(
                "cao21: a variant with a random level cannot be recovered. Name a variant with a level of 0 to 9."
            )
        return self.variant.level

    def _angles(self, faces: Faces, seed: int) -> np.ndarray:
        """theta of each face in radians, (N, 1)."""
        level = self.variant.level
        draws = [seeding.make_generator(seed, "level", name).integers(len(rotation.LEVELS)) for name in faces.ids]
        levels = draws if level == "random" else [level] * len(faces)
        return np.array([[rotation.angle(int(one))] for one in levels])


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows (N, D) scaled to length 1, as the generator was trained."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
