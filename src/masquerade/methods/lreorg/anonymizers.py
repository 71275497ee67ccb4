"""Replacements of a key feature: LReOrg's anonymizers (section 3.3), and two others for comparison.

They use the key features of generated faces, never those of another real person. A feature is float32
(N, layers, width). The features of generated faces are (M, width), equal for every style layer.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np

from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.methods._privacy import ExponentialMechanism, LaplaceMechanism

DIAMETER = 2.0
"""Diameter of the unit sphere: the largest difference of two distances from one point, so it holds for every face."""

_UNTIL = (cv2.TERM_CRITERIA_MAX_ITER + cv2.TERM_CRITERIA_EPS, 300, 0.0)
"""k-means ends when no center moves any more, or after this number of steps."""


def unit_directions(features: np.ndarray) -> np.ndarray:
    """Features (N, ...) -> unit vectors, float64 (N, D). Groups are compared by direction."""
    flat = np.asarray(features, dtype=np.float64).reshape(len(features), -1)
    return flat / np.linalg.norm(flat, axis=1, keepdims=True)


class Groups:
    """G of section 3.3: the key features of generated faces in ``count`` clusters (k-means on their directions).

    Raises ParameterError if there are fewer faces than groups.
    """

    def __init__(self, features: np.ndarray, count: int):
        if len(features) < count:
            raise ParameterError(f"{len(features)} generated faces cannot make {count} groups. Lower `groups`.")
        self.features = features
        unit, labels = unit_directions(features), np.zeros((len(features), 1), dtype=np.int32)
        # In single precision, as OpenCV computes: the directions differ little, hence without their mean.
        points = (unit - unit.mean(0)).astype(np.float32)
        cv2.setRNGSeed(0)
        cv2.kmeans(points, count, labels, _UNTIL, 1, cv2.KMEANS_PP_CENTERS)
        self.labels, self.count = labels[:, 0], count

    @cached_property
    def averages(self) -> np.ndarray:
        """The average feature of each group, (groups, width)."""
        return np.stack([self.features[self.labels == group].mean(0) for group in range(self.count)])

    def distances(self, features: np.ndarray) -> np.ndarray:
        """Euclidean distances (N, groups), 0 .. 2, of the directions of features (N, layers, width) and averages."""
        layers = features.shape[1]
        averages = np.repeat(self.averages[:, None], layers, axis=1)
        return np.linalg.norm(unit_directions(features)[:, None] - unit_directions(averages)[None], axis=2)

    def members(self, group: int) -> np.ndarray:
        """The rows of the features in a group."""
        return np.flatnonzero(self.labels == group)


@dataclass(frozen=True)
class GroupAnonymizer:
    """GIA: the exponential mechanism chooses a group, then a member is drawn at random (section 3.3).

    The score of a group is u_j = -distance. Only groups with a rank by distance from ``nearest`` to ``farthest`` can be
    chosen.
    """

    groups: Groups
    mechanism: ExponentialMechanism
    nearest: int
    """a: the smallest rank; 1 is the nearest group."""
    farthest: int
    """b: the largest rank."""

    def __post_init__(self):
        if not 1 <= self.nearest <= self.farthest <= self.groups.count:
            raise ParameterError(
                f"nearest and farthest are {self.nearest} and {self.farthest}. They must be in ascending order, from "
                f"1 to the number of groups, {self.groups.count}. Change them or `groups`."
            )

    def anonymize(self, features: np.ndarray, names: Sequence[str], seed: int) -> np.ndarray:
        """Features of generated faces in place of ``features`` (N, layers, width), drawn by name and seed."""
        distances, members_chosen = self.groups.distances(features), []
        for row, name in zip(distances, names, strict=True):
            ranked = np.argsort(row, kind="stable")[self.nearest - 1 : self.farthest]
            group = ranked[self.mechanism.choose(-row[ranked], seed, name)]
            members = self.groups.members(group)
            if self.mechanism.sampler == "opendp":
                members_chosen.append(members[secrets.randbelow(len(members))])
            else:
                members_chosen.append(seeding.make_generator(seed, "member", name).choice(members))
        return _repeat_for_layers(self.groups.features[members_chosen], features)

    def statement(self) -> dict[str, object]:
        return {
            "mechanism": "exponential",
            "epsilon": self.mechanism.epsilon,
            "sensitivity": self.mechanism.sensitivity,
            "sensitivity_kind": "bound: distances of unit vectors",
            "sampler": self.mechanism.sampler,
            "groups": self.groups.count,
            "ranks": f"{self.nearest}-{self.farthest}",
            "guarantee": self._guarantee(),
        }

    def _guarantee(self) -> str:
        if self.mechanism.sampler == "seeded":
            return "None: seeded choices, for reproducible experiments; whoever knows the seed knows the choice."
        claim = f"The choice of the group is {self.mechanism.epsilon:g}-locally differentially private (pure epsilon)"
        if (self.nearest, self.farthest) != (1, self.groups.count):
            claim += (
                f" between faces that have the same groups at ranks {self.nearest} to {self.farthest}, and between no "
                "others: a group that one face may be given and the other may not, tells them apart"
            )
        return (
            f"{claim}. The residual feature and the recovered attributes are released without noise, so the image as "
            "a whole is not differentially private: what they tell of the person is not covered."
        )


@dataclass(frozen=True)
class FarthestGroupAnonymizer:
    """k-anonymity as in the paper's comparison (section 4.3): the average of the farthest group."""

    groups: Groups

    def anonymize(self, features: np.ndarray, names: Sequence[str], seed: int) -> np.ndarray:
        return _repeat_for_layers(self.groups.averages[self.groups.distances(features).argmax(1)], features)

    def statement(self) -> dict[str, object]:
        return {"mechanism": "farthest group", "groups": self.groups.count}


@dataclass(frozen=True)
class LaplaceAnonymizer:
    """IdentityDP's mechanism on the key feature (section 4.1): Laplace noise on its direction, then the mean length.

    IdentityDP perturbs one identity vector of a face. So the mean over the style layers is perturbed, once, and all
    layers get the result.
    """

    mechanism: LaplaceMechanism
    length: float
    """Mean length of the key feature of one style layer, over generated faces."""

    def anonymize(self, features: np.ndarray, names: Sequence[str], seed: int) -> np.ndarray:
        means = unit_directions(features.mean(axis=1))
        vectors = np.stack([self.mechanism.perturb(row, seed, name) for row, name in zip(means, names, strict=True)])
        return _repeat_for_layers((vectors * self.length).astype(np.float32), features)

    def statement(self) -> dict[str, object]:
        return {"mechanism": "laplace", **self.mechanism.statement()}


@dataclass(frozen=True)
class FarthestContentAnonymizer:
    """KAA: the average key feature of the farthest sub-category (section 3.3). ``averages``: (C, width)."""

    averages: np.ndarray

    def anonymize(self, features: np.ndarray, names: Sequence[str], seed: int) -> np.ndarray:
        distances = np.linalg.norm(features[:, None] - self.averages[None, :, None], axis=(2, 3))
        return _repeat_for_layers(self.averages[distances.argmax(1)], features)

    @classmethod
    def from_faces(cls, features: np.ndarray, shares: np.ndarray) -> "FarthestContentAnonymizer":
        """From the key features (M, width) of generated faces and the probabilities of their contents, (M, C).

        The average of a sub-category weights each face by its probability.
        """
        return cls((shares.T @ features / shares.sum(0)[:, None]).astype(np.float32))


def _repeat_for_layers(vectors: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Features (N, width), repeated for every style layer of ``features``: float32 (N, layers, width)."""
    return np.broadcast_to(vectors[:, None], features.shape).astype(np.float32)
