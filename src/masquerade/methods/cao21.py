"""Cao et al. 2021: a password and a privacy level rotate the identity vector of a face, and rotate it back.

The rotation (sections 4.3 and 4.4) is computed in float64, because near 90 degrees the way back divides by a small
cosine. docs/cao21.md derives the formulas.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from masquerade.backbones import load_backbone
from masquerade.core import seeding
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import Faces
from masquerade.core.keys import Digits, stack_per_key
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods._batches import Remembered
from masquerade.methods._disentanglement import DisentanglementSettings
from masquerade.methods.latent import IdentityVariant
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from torch import Tensor


PASSWORD = Digits(6)  # section 5.1
SAMPLE_LEVEL = 9  # for the last column of the sample images
LEVELS = range(10)
NEAREST, FARTHEST = math.radians(30), math.radians(150)  # range of the angle between a face and a reference


def angle(level: int) -> float:
    """theta = g(d) in radians: 70 + 5 d degrees for d < 4, 70 + 5 (d + 1) from 4 on, so never 90 (section 5.1).

    Raises ValueError for another level.
    """
    if level not in LEVELS:
        raise ValueError(f"a privacy level is one of {LEVELS.start} to {LEVELS.stop - 1}, not {level}")
    return math.radians(70 + 5 * (level if level < 4 else level + 1))


def rotate(identity: np.ndarray, reference: np.ndarray, theta: np.ndarray | float) -> np.ndarray:
    """M(z_id, p, d), Eq. 13: unit vectors (N, D), reference (D,) or (N, D), theta a number or (N, 1) -> (N, D).

    The results are shorter than 1, as z_90 is (Eq. 14 does not bring it to length 1).
    """
    z_90 = reference - (identity * reference).sum(axis=1, keepdims=True) * identity  # Eq. 14
    return identity * np.cos(theta) + z_90 * np.sin(theta)  # Eq. 13


def rotate_back(rotated: np.ndarray, reference: np.ndarray, theta: np.ndarray | float) -> np.ndarray:
    """M^-1(z_new, p, d), Eq. 16: the input of `rotate` from its result, whose length matters: (N, D) -> (N, D)."""
    cosine, sine = np.cos(theta), np.sin(theta)
    rest = rotated - reference * sine
    along = (cosine**2 - (rest * rotated).sum(axis=1, keepdims=True)) / (sine * cosine)  # Eq. 17: A = z_id . f(p)
    return rest / (cosine - along * sine)  # Eq. 16


def restore_length(direction: np.ndarray, reference: np.ndarray, theta: float, usual: float) -> np.ndarray:
    """A direction, unit (N, D), with the length that `rotate` gives: z_new as an image shows it.

    A recognizer gives directions only, but Eq. 17 needs the length. The length follows from alpha, the angle between
    the face and its reference, unit (N, D). The angle between the direction and the reference is
    alpha - atan2(sin theta sin alpha, cos theta), which rises with alpha. The side of the reference is not known, so
    two values of alpha fit; the one nearer to ``usual`` (radians) is taken.
    """
    offset = np.arccos(np.clip((direction * reference).sum(axis=1), -1, 1))
    candidates = np.stack([_solve_alpha(offset, theta), _solve_alpha(-offset, theta)])
    alpha = np.take_along_axis(candidates, np.abs(candidates - usual).argmin(axis=0)[None], axis=0)[0]
    return direction * np.hypot(np.cos(theta), np.sin(theta) * np.sin(alpha))[:, None]


def _solve_alpha(offset: np.ndarray, theta: float) -> np.ndarray:
    """The angle between face and reference, (N,), if the rotated face is at ``offset`` from it; by bisection."""
    low, high = np.full(offset.shape, NEAREST), np.full(offset.shape, FARTHEST)
    for _ in range(60):
        middle = (low + high) / 2
        below = middle - np.arctan2(np.sin(theta) * np.sin(middle), np.cos(theta)) < offset
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


class Origin:
    """The point around which identities are rotated (ours): 0, as published, or the mean of people.

    ``people``: unit vectors (M, D), whose mean is the origin and whose root mean square distance from it the radius;
    None: the origin is 0 and the radius 1, so that both functions return their input.
    """

    def __init__(self, people: np.ndarray | None = None):
        self._center, self._radius = 0.0, 1.0
        if people is not None:
            self._center = people.mean(axis=0)
            self._radius = float(np.sqrt(np.square(people - self._center).sum(axis=1).mean()))

    def find_directions(self, vectors: np.ndarray) -> np.ndarray:
        """Unit vectors (N, D) -> unit directions from the origin, at which the radius meets the ray of each vector."""
        along = (vectors * self._center).sum(axis=1, keepdims=True)
        apart = np.square(along) - np.square(self._center).sum() + self._radius**2
        return normalize((along + np.sqrt(apart.clip(min=0))) * vectors - self._center)

    def find_vectors(self, directions: np.ndarray) -> np.ndarray:
        """The inverse: unit directions (N, D) -> unit vectors."""
        return normalize(self._center + self._radius * directions)


class References:
    """f(p): a reference identity for each password, the mean of ``combined`` people of a library (section 4.1).

    ``library``: unit vectors (M, D), one a person. Passwords 0 .. ``passwords`` - 1 have different sets of people: a
    one-to-one map shuffles the password among all C(M, combined) sets. The map multiplies by a number that has no
    common divisor with the number of sets. Raises ValueError if there are fewer sets than passwords.
    """

    def __init__(self, library: np.ndarray, combined: int, passwords: int):
        self.library, self.combined = np.asarray(library, dtype=np.float64), combined
        self.sets = math.comb(len(library), combined)
        if self.sets < passwords:
            raise ValueError(
                f"{len(library)} people give {self.sets} different sets of {combined}, fewer than {passwords} passwords"
            )
        self._stride = int.from_bytes(hashlib.sha512(b"masquerade reference identities").digest(), "big") % self.sets
        while math.gcd(self._stride, self.sets) != 1:
            self._stride += 1

    def choose_people(self, password: int) -> list[int]:
        """The rows of the library whose mean is the password's reference, ascending: the set of its rank."""
        rank, people, first = password * self._stride % self.sets, [], 0
        for left in range(self.combined, 0, -1):
            # `starting` sets begin with this person; skip them if the rank is behind them
            while rank >= (starting := math.comb(len(self.library) - first - 1, left - 1)):
                rank -= starting
                first += 1
            people.append(first)
            first += 1
        return people

    def average(self, password: int) -> np.ndarray:
        """z_r = f(p), unit (D,)."""
        mean = self.library[self.choose_people(password)].mean(axis=0)
        return mean / np.linalg.norm(mean)

    def mean_angle(self) -> float:
        """The mean angle, radians, between a person of the library and a reference, over the first 64 passwords."""
        cosines = self.library @ np.stack([self.average(password) for password in range(64)]).T
        return float(np.arccos(np.clip(cosines, -1, 1)).mean())


class Cao21(Method):
    """Rotates the identity vector of a face towards a reference identity: the password sets it, the level the angle.

    Cao, Liu, Wen, Xie, Song 2021, Personalized and Invertible Face De-identification by Disentangled Identity
    Information Manipulation, ICCV. The networks are those of IdentityDP's Stage I (methods/_disentanglement/), the
    identity modification module is `rotate`. docs/cao21.md lists what the paper leaves open and how
    its formulas are read.
    """

    title = "Cao et al."
    paper = "Cao et al. 2021, Personalized and Invertible Face De-identification, ICCV"
    capabilities = Capabilities(trains=True, keys=PASSWORD, invertible=True, saves=True, latents=True)
    needs = ("identity",)
    shares_training_with = "identitydp"
    architecture = ("encoder_widths", "generator_widths", "small_scale.span", "small_scale.latent_hidden")

    class Params(DisentanglementSettings):
        combined: Annotated[int, Field(ge=2)]
        """k, the number of training people whose mean embedding is one reference identity (10: section 5.1)."""

    class Variant(IdentityVariant):
        level: Annotated[int, Field(ge=0, le=9)] | Literal["random"]
        """The privacy level d (0 to 9: section 5.1), or ``random`` for another level for each face, which cannot be
        recovered."""
        references: Literal["means", "centered"] = "means"
        """What the rotation turns: identity vectors, towards the mean of k people (means: section 4.1), or their
        directions from the mean of all training people (centered, ours). Vectors that have much in common give
        references that are alike, and wrong passwords then give related faces."""

    params: Params
    variant: Variant

    def __init__(self, params: Params, variant: Variant, resources: Resources):
        from masquerade.methods._disentanglement.network import FrozenStageOne

        super().__init__(params, variant, resources)
        self._networks = networks = FrozenStageOne(params, resources, variant.identity_steps)
        self._space = networks.space
        self._read = Remembered(lambda images: (networks.identities(images), networks.attributes(images)))
        if "references" not in self._networks.rest:
            raise CheckpointError(f"{self.checkpoint} holds no library of reference identities. Train it again.")
        library = self._networks.rest["references"]["identities"].numpy()
        self._origin = Origin(library.astype(np.float64) if variant.references == "centered" else None)
        self._references = References(self._origin.find_directions(library), params.combined, PASSWORD.count)
        self._mean_angle = self._references.mean_angle()

    @classmethod
    def list_backbones(cls, params: Params) -> tuple[str, ...]:
        return params.backbones

    @classmethod
    def latent_stand_in(cls, params: Params) -> str:
        return params.latent_stand_in

    @classmethod
    def train(cls, params: Params, job: TrainingJob) -> None:
        """Raises ParameterError if there are too few training identities for one reference a password."""
        from masquerade.methods._disentanglement import training
        from masquerade.methods.latent.codes import Table

        frozen = {role: load_backbone(role, job.backbones) for role in params.backbones}
        identity = frozen["identity"]
        library = training.average_identities(job, identity, training.image_size(params, frozen))
        try:
            references = References(library.numpy(), params.combined, PASSWORD.count)
        except ValueError as error:
            raise ParameterError(
                f"methods.cao21.params.combined: {error}. Change it, or train on more people."
            ) from error

        def rotate_by_sample_key(vectors: np.ndarray) -> np.ndarray:
            return normalize(rotate(vectors, references.average(0), angle(SAMPLE_LEVEL)))

        training.train(params, job, frozen, rotate_by_sample_key, {"references": Table({"identities": library})})

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """F(X, p, d) = G(M(z_id, p, d), z_attr), Eq. 15."""
        rotated, maps = self.save(faces, seed, keys)
        return self._networks.fuse(self._origin.find_vectors(normalize(rotated)), maps, faces.ids)

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """Eq. 16-18, from the image alone. Raises ParameterError for the variant whose level is random."""
        return self._recover(images, keys, self._fixed_level())

    def try_near_keys(self, images: np.ndarray, keys: Sequence[bytes], number: int = 0) -> dict[str, np.ndarray]:
        """As the base class, and for ``number`` 0 with the right password and the next level."""
        nearly = super().try_near_keys(images, keys, number)
        if number:
            return nearly
        level = self._fixed_level()
        other_level = level + 1 if level + 1 in LEVELS else level - 1
        return nearly | {"level": self._recover(images, keys, other_level)}

    def save(self, faces: Faces, seed: int, keys: Sequence[bytes] | None) -> "tuple[np.ndarray, list[Tensor]]":
        """z_new (N, D) with the length that Eq. 13 gives, and the attribute maps."""
        identities, maps = self._separate(faces)
        directions = self._origin.find_directions(identities.astype(np.float64))
        rotated = rotate(directions, self._reference_vectors(keys), self._choose_angles(faces, seed))
        return rotated, maps

    def recover_saved(self, saved: "tuple[np.ndarray, list[Tensor]]", keys: Sequence[bytes] | None) -> np.ndarray:
        rotated, maps = saved
        theta = angle(self._fixed_level())
        identity = normalize(rotate_back(rotated, self._reference_vectors(keys), theta))
        return self._networks.fuse(self._origin.find_vectors(identity), maps)

    def statement(self) -> dict[str, object]:
        level = self.variant.level
        return {"level": level} if level == "random" else {"level": level, "degrees": 70 + 5 * (level + (level > 3))}

    def _separate(self, faces: Faces) -> "tuple[np.ndarray, list[Tensor]]":
        """z_id and z_attr of original faces, whose latent codes the pipeline may have."""
        if self._networks.space is None:
            return self._read(faces.images)
        return self._networks.identities(faces.images), self._networks.attributes_of(faces)

    def _recover(self, images: np.ndarray, keys: Sequence[bytes] | None, level: int) -> np.ndarray:
        theta, reference = angle(level), self._reference_vectors(keys)
        identities, maps = self._read(images)
        directions = self._origin.find_directions(identities.astype(np.float64))
        rotated = restore_length(directions, reference, theta, self._mean_angle)
        identity = normalize(rotate_back(rotated, reference, theta))
        return self._networks.fuse(self._origin.find_vectors(identity), maps)  # Eq. 18

    def _reference_vectors(self, keys: Sequence[bytes] | None) -> np.ndarray:
        """f(p) of each password, unit (N, D)."""
        return stack_per_key(keys, lambda key: self._references.average(int(key)))

    def _fixed_level(self) -> int:
        if self.variant.level == "random":
            raise ParameterError(
                "cao21: a variant with a random level cannot be recovered. Name a variant with a level of 0 to 9."
            )
        return self.variant.level

    def _choose_angles(self, faces: Faces, seed: int) -> np.ndarray:
        """theta of each face in radians, (N, 1)."""
        level = self.variant.level
        draws = [seeding.make_generator(seed, "level", name).integers(len(LEVELS)) for name in faces.ids]
        levels = draws if level == "random" else [level] * len(faces)
        return np.array([[angle(int(level_of_face))] for level_of_face in levels])


def normalize(vectors: np.ndarray) -> np.ndarray:
    """Rows (N, D) scaled to length 1, as the generator was trained."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
