"""What takes the place of a key feature: LReOrg's anonymizers (section 3.3), and two that it is compared with.

All of them draw on the key features of faces of nobody, never on those of a real person. A feature is float32
(N, layers, width); those of the drawn faces are (M, width), the same for every style layer.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.methods._privacy import ExponentialMechanism, LaplaceMechanism

DIAMETER = 2.0
"""Of the unit sphere: no two distances from one point of it differ by more, whoever's faces they are."""


def directions(features: np.ndarray) -> np.ndarray:
    """(N, ...) -> unit vectors float64 (N, D): a feature's place among the groups is that of its direction."""
    flat = np.asarray(features, dtype=np.float64).reshape(len(features), -1)
    return flat / np.linalg.norm(flat, axis=1, keepdims=True)


class Groups:
    """The key features of drawn faces in ``count`` clusters (k-means on their directions). G of section 3.3.

    Raises ParameterError where there are fewer faces than groups.
    """

    def __init__(self, features: np.ndarray, count: int):
        from sklearn.cluster import KMeans

        if len(features) < count:
            raise ParameterError(f"{len(features)} drawn faces cannot make {count} groups: lower `groups`.")
        self.features = features
        self.labels = KMeans(count, n_init=1, random_state=0).fit_predict(directions(features))
        self.count = len(np.unique(self.labels))

    @cached_property
    def averages(self) -> np.ndarray:
        """The average feature of each group, (groups, width)."""
        return np.stack([self.features[self.labels == group].mean(0) for group in range(self.count)])

    def distances(self, features: np.ndarray) -> np.ndarray:
        """Euclidean distances (N, groups), 0 .. 2, of the directions of features (N, layers, width) and averages."""
        layers = features.shape[1]
        averages = np.repeat(self.averages[:, None], layers, axis=1)
        return np.linalg.norm(directions(features)[:, None] - directions(averages)[None], axis=2)

    def members(self, group: int) -> np.ndarray:
        """Rows of the features."""
        return np.flatnonzero(self.labels == group)


@dataclass(frozen=True)
class GroupAnonymizer:
    """GIA: a group by the exponential mechanism, then a random member of it (section 3.3).

    The nearer a group, the better it scores: u_j = -distance. Only groups whose rank by distance, 1 the nearest, is
    ``nearest`` .. ``farthest`` may be chosen (a and b).
    """

    groups: Groups
    mechanism: ExponentialMechanism
    nearest: int
    farthest: int

    def __post_init__(self):
        if not 1 <= self.nearest <= self.farthest <= self.groups.count:
            raise ParameterError(
                f"groups of rank {self.nearest} to {self.farthest} were asked for; there are 1 to {self.groups.count}."
            )

    def anonymize(self, features: np.ndarray, names: Sequence[str], seed: int) -> np.ndarray:
        """Features of drawn faces in the place of ``features`` (N, layers, width), by each one's name and the seed."""
        distances, chosen = self.groups.distances(features), []
        for row, name in zip(distances, names, strict=True):
            ranked = np.argsort(row, kind="stable")[self.nearest - 1 : self.farthest]
            group = ranked[self.mechanism.choose(-row[ranked], seed, name)]
            members = self.groups.members(group)
            if self.mechanism.sampler == "opendp":
                chosen.append(members[secrets.randbelow(len(members))])
            else:
                chosen.append(seeding.generator(seed, "member", name).choice(members))
        return _for_layers(self.groups.features[chosen], features)

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
            f"{claim}. The residual feature and the recovered attributes are released without noise, so the picture as "
            "a whole is not differentially private: what they tell of the person is not covered."
        )


@dataclass(frozen=True)
class FarthestGroupAnonymizer:
    """k-anonymity as the paper compares it (section 4.3): the average of the farthest group, for everybody near it."""

    groups: Groups

    def anonymize(self, features: np.ndarray, names: Sequence[str], seed: int) -> np.ndarray:
        return _for_layers(self.groups.averages[self.groups.distances(features).argmax(1)], features)

    def statement(self) -> dict[str, object]:
        return {"mechanism": "farthest group", "groups": self.groups.count}


@dataclass(frozen=True)
class LaplaceAnonymizer:
    """IdentityDP's mechanism on the key feature (section 4.1): its direction with Laplace noise, at a usual length."""

    mechanism: LaplaceMechanism
    length: float
    """Of a key feature of one style layer: the mean of drawn faces."""

    def anonymize(self, features: np.ndarray, names: Sequence[str], seed: int) -> np.ndarray:
        noised = np.stack(
            [self.mechanism.perturb(row, seed, name) for row, name in zip(directions(features), names, strict=True)]
        )
        return (noised * self.length * np.sqrt(features.shape[1])).reshape(features.shape).astype(np.float32)

    def statement(self) -> dict[str, object]:
        return {"mechanism": "laplace", **self.mechanism.statement()}


@dataclass(frozen=True)
class FarthestContentAnonymizer:
    """KAA: the average key feature of the sub-category that is farthest (section 3.3). ``averages`` (C, width)."""

    averages: np.ndarray

    def anonymize(self, features: np.ndarray, names: Sequence[str], seed: int) -> np.ndarray:
        apart = np.linalg.norm(features[:, None] - self.averages[None, :, None], axis=(2, 3))
        return _for_layers(self.averages[apart.argmax(1)], features)

    @classmethod
    def of(cls, features: np.ndarray, shares: np.ndarray) -> "FarthestContentAnonymizer":
        """From key features (M, width) of drawn faces and how likely each content is of each, (M, C), 0 .. 1.

        A face counts for a sub-category as much as it is likely to belong to it.
        """
        return cls((shares.T @ features / shares.sum(0)[:, None]).astype(np.float32))


def _for_layers(chosen: np.ndarray, features: np.ndarray) -> np.ndarray:
    """(N, width) for every style layer of ``features``."""
    return np.broadcast_to(chosen[:, None], features.shape).astype(np.float32)
