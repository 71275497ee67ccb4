"""Cao et al.: a password and a level turn the identity vector, and turn it back."""

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from masquerade import discovery, rotation, seeding
from masquerade.disentanglement.settings import DisentanglementSettings
from masquerade.errors import CheckpointError, ParameterError
from masquerade.images import Faces
from masquerade.keys import Digits
from masquerade.methods import Capabilities, Method, Resources, TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor

PASSWORD = Digits(6)  # section 5.1
SAMPLE_LEVEL = 9  # of the last column of the sample pictures


class Cao21(Method):
    """Turns a face's identity vector towards a reference identity that the password names, by an angle of the level.

    Cao, Liu, Wen, Xie, Song 2021, Personalized and Invertible Face De-identification by Disentangled Identity
    Information Manipulation, ICCV. The networks are those of IdentityDP's Stage I (`masquerade.disentanglement`), the
    identity modification module is `masquerade.rotation`. What the paper leaves open, and where its formulas need a
    reading: docs/cao21.md.
    """

    title = "Cao et al."
    paper = "Cao et al. 2021, Personalized and Invertible Face De-identification, ICCV"
    capabilities = Capabilities(trains=True, keys=PASSWORD, invertible=True, saves=True)
    needs = ("identity",)
    kin = "identitydp"

    class Params(DisentanglementSettings):
        combined: Annotated[int, Field(ge=2)]
        """k: training identities that are averaged to a reference identity (10: section 5.1)."""

    class Variant(Settings):
        level: Annotated[int, Field(ge=0, le=9)] | Literal["random"]
        """d, the privacy level (0 to 9: section 5.1); ``random``: another for each face, which nobody can take back."""

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        from masquerade.disentanglement.frozen import Frozen

        super().__init__(params, variant, resources)
        self._networks = Frozen(params, resources.checkpoint, resources.backbones["identity"])
        if "references" not in self._networks.rest:
            raise CheckpointError(f"{resources.checkpoint} holds no library of reference identities: train it again.")
        library = self._networks.rest["references"]["identities"].numpy()
        self._references = rotation.References(library, params.combined, PASSWORD.count)
        self._usual = self._references.usual_angle()

    @classmethod
    def train(cls, params: Settings, job: TrainingJob) -> None:
        """Raises ParameterError where there are too few training identities for a reference a password."""
        from masquerade.disentanglement import task
        from masquerade.latent.store import Table

        identity = discovery.load("backbones", "identity").load(job.backbones["identity"])
        library = task.people(job.faces, identity, params.size)
        try:
            references = rotation.References(library.numpy(), params.combined, PASSWORD.count)
        except ValueError as error:
            raise ParameterError(f"methods.cao21.params.combined: {error}.") from error

        def turned(vectors: np.ndarray) -> np.ndarray:
            return unit(rotation.rotate(vectors, references.of(0), rotation.angle(SAMPLE_LEVEL)))

        task.train(params, job, identity, turned, {"references": Table({"identities": library})})

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        """F(X, p, d) = G(M(z_id, p, d), z_attr), Eq. 15."""
        rotated, maps = self.save(faces, seed, key)
        return self._networks.fuse(unit(rotated), maps)

    def recover(self, images: np.ndarray, key: bytes | None) -> np.ndarray:
        """Eq. 16-18, from the picture alone. Raises ParameterError for the variant whose level is random."""
        return self._recovered(images, key, self._level())

    def recover_nearly(self, images: np.ndarray, key: bytes) -> dict[str, np.ndarray]:
        """One digit off, and the right password with the level beside the right one."""
        level = self._level()
        beside = level + 1 if level + 1 in rotation.LEVELS else level - 1
        return super().recover_nearly(images, key) | {"level": self._recovered(images, key, beside)}

    def save(self, faces: Faces, seed: int, key: bytes) -> "tuple[np.ndarray, list[Tensor]]":
        """z_new (N, D), as long as Eq. 13 makes it, and the attribute maps."""
        identity = self._networks.identities(faces.images).astype(np.float64)
        rotated = rotation.rotate(identity, self._reference(key), self._angles(faces, seed))
        return rotated, self._networks.attributes(faces.images)

    def recover_saved(self, saved: "tuple[np.ndarray, list[Tensor]]", key: bytes) -> np.ndarray:
        rotated, maps = saved
        theta = rotation.angle(self._level())
        return self._networks.fuse(unit(rotation.rotate_back(rotated, self._reference(key), theta)), maps)

    def statement(self) -> dict[str, object]:
        level = self.variant.level
        return {"level": level} if level == "random" else {"level": level, "degrees": 70 + 5 * (level + (level > 3))}

    def _recovered(self, images: np.ndarray, key: bytes, level: int) -> np.ndarray:
        theta, reference = rotation.angle(level), self._reference(key)
        seen = self._networks.identities(images).astype(np.float64)
        rotated = rotation.lengthened(seen, reference, theta, self._usual)
        identity = unit(rotation.rotate_back(rotated, reference, theta))
        return self._networks.fuse(identity, self._networks.attributes(images))  # Eq. 18

    def _reference(self, key: bytes) -> np.ndarray:
        return self._references.of(int(key))

    def _level(self) -> int:
        if self.variant.level == "random":
            raise ParameterError(
                "cao21: nothing can be recovered where the level is random; name the variant of a level."
            )
        return self.variant.level

    def _angles(self, faces: Faces, seed: int) -> np.ndarray:
        """theta of each face, (N, 1)."""
        level = self.variant.level
        draws = [seeding.generator(seed, "level", name).integers(len(rotation.LEVELS)) for name in faces.ids]
        levels = draws if level == "random" else [level] * len(faces)
        return np.array([[rotation.angle(int(of))] for of in levels])


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows (N, D) brought to length 1, which is all that the generator was trained on."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
