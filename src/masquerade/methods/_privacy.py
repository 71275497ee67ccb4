"""Mechanisms of differential privacy: Laplace noise on identity vectors, and the random choice of a group.

Laplace noise is IdentityDP's mechanism (Wen et al. 2022, Definition 3, Eq. 10-12). The choice of a group is LReOrg's
(section 3.3); it is the exponential mechanism of McSherry and Talwar 2007.

There are two samplers. ``seeded`` makes an experiment repeatable and protects no one: anyone with the seed can remove
the noise, and floating-point Laplace noise leaks (Mironov 2012, On Significance of the Least Significant Bits).
``opendp`` is OpenDP's vetted sampler for photographs of real people; no seed repeats it.
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from masquerade.core import seeding
from masquerade.core.errors import ParameterError

if TYPE_CHECKING:
    from opendp.mod import Measurement

Sensitivity = Literal["measured", "bound"]
Sampler = Literal["seeded", "opendp"]
BLOCK = 512  # vectors compared at a time: a block of distances is 2 MiB


def measure_sensitivity(vectors: np.ndarray) -> float:
    """Delta f = max ||r_id(X) - r_id(X')||_1 over all pairs of the rows of ``vectors`` (N, D): Eq. 12, exact.

    It depends on the data: a face outside the set may be farther away. Raises ParameterError if no two rows differ.
    """
    from scipy.spatial.distance import cdist

    blocks = [vectors[start : start + BLOCK] for start in range(0, len(vectors), BLOCK)]
    largest = max((cdist(a, b, "cityblock").max() for row, a in enumerate(blocks) for b in blocks[row:]), default=0.0)
    if not largest > 0:
        raise ParameterError(
            "sensitivity: measured is the largest distance between two different faces of the set, but this set has "
            "no two. Give more faces, or use the bound that holds for every face (sensitivity: bound)."
        )
    return float(largest)


def sensitivity_bound(dimensions: int) -> float:
    """2 sqrt(D): the largest L1 distance between two unit vectors of D dimensions, so it holds for every face.

    ||u - v||_1 <= sqrt(D) ||u - v||_2 (Cauchy-Schwarz) and ||u - v||_2 <= 2.
    """
    return 2 * sqrt(dimensions)


@dataclass(frozen=True)
class LaplaceMechanism:
    """M(X) = r_id(X) + Lap(Delta f / epsilon) in each coordinate, Eq. 11, then scaled to unit length.

    The scaling is post-processing (Property 2) and costs no privacy. The fusion generator is trained on unit vectors.
    """

    epsilon: float
    sensitivity: float
    """Delta f of Eq. 12."""
    kind: Sensitivity
    """How the sensitivity was found."""
    sampler: Sampler
    rest: str = "attribute maps"
    """The other parts of an image, which the noise does not cover."""
    measured_on: str = "faces of this set"
    """The faces of a measured sensitivity."""

    @property
    def scale(self) -> float:
        """b = Delta f / epsilon. The noise of a coordinate has the standard deviation sqrt(2) b."""
        return self.sensitivity / self.epsilon

    def perturb(self, vector: np.ndarray, seed: int, name: str) -> np.ndarray:
        """A vector (D,), scaled to unit length, with noise: unit vector (D,), float64.

        ``seeded`` noise depends on ``seed`` and the image's ``name``, and epsilon only scales it. So a sweep over
        epsilon changes the strength of the noise alone. ``opendp`` ignores both.
        """
        clean = normalize(vector)
        if self.sampler == "opendp":
            noisy = np.asarray(self.measurement(clean.tolist()))
        else:
            noisy = clean + seeding.make_generator(seed, "laplace", name).laplace(scale=self.scale, size=clean.shape)
        return normalize(noisy)

    @cached_property
    def measurement(self) -> "Measurement":
        """OpenDP's Laplace measurement for this sensitivity. Its ``map(sensitivity)`` is at most epsilon."""
        # opendp.prelude would also import scikit-learn, which takes a second
        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_laplace
        from opendp.metrics import l1_distance
        from opendp.mod import binary_search_chain, enable_features

        enable_features("contrib")
        space = vector_domain(atom_domain(T=float, nan=False)), l1_distance(T=float)
        return binary_search_chain(
            lambda scale: make_laplace(*space, scale=scale), d_in=self.sensitivity, d_out=self.epsilon, T=float
        )

    def statement(self) -> dict[str, object]:
        """Epsilon, sensitivity, sampler and guarantee, for tables and runs."""
        return {
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "sensitivity_kind": self.kind,
            "laplace_scale": self.scale,
            "sampler": self.sampler,
            "guarantee": self._guarantee(),
        }

    def _guarantee(self) -> str:
        if self.sampler == "seeded":
            claim = (
                "None: seeded floating-point noise, for reproducible experiments; whoever knows the seed can remove it."
            )
        elif self.kind == "measured":
            claim = (
                f"The released identity vector is {self.epsilon:g}-differentially private among the {self.measured_on} "
                "only: the sensitivity was measured on them, was itself not protected, and does not bound other faces."
            )
        else:
            claim = (
                f"The released identity vector of one image is {self.epsilon:g}-locally differentially private for "
                "any face (pure epsilon, OpenDP); k releases of one face cost k times epsilon."
            )
        return claim + (
            f" The {self.rest} are released without noise, so the image as a whole is not differentially private: "
            "what they tell of the person is not covered."
        )


@dataclass(frozen=True)
class ExponentialMechanism:
    """Chooses j with P(j) proportional to exp(epsilon u_j / (2 Delta u)) (McSherry and Talwar 2007, Definition 2).

    u_j are scores; higher is better. The choice is the largest score after Gumbel noise is added, which has exactly
    these probabilities.
    """

    epsilon: float
    sensitivity: float
    """Delta u: the largest difference of one score between any two faces."""
    sampler: Sampler

    @property
    def scale(self) -> float:
        """2 Delta u / epsilon: the scale of the Gumbel noise."""
        return 2 * self.sensitivity / self.epsilon

    def choose(self, scores: np.ndarray, seed: int, name: str) -> int:
        """An index of ``scores`` (J,). ``seeded`` choices depend on ``seed`` and ``name``; ``opendp`` ignores both."""
        scores = np.asarray(scores, dtype=np.float64)
        if self.sampler == "opendp":
            return int(self.measurement(scores.tolist()))
        noise = seeding.make_generator(seed, "exponential", name).gumbel(scale=self.scale, size=len(scores))
        return int(np.argmax(scores + noise))

    @cached_property
    def measurement(self) -> "Measurement":
        """OpenDP's report-noisy-max with Gumbel noise. It is the exponential mechanism, which is epsilon-private.

        OpenDP states its privacy as concentrated privacy: rho = epsilon^2 / 8 for ``sensitivity``.
        """
        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_noisy_max
        from opendp.measures import zero_concentrated_divergence
        from opendp.metrics import linf_distance
        from opendp.mod import enable_features

        enable_features("contrib")
        space = vector_domain(atom_domain(T=float, nan=False)), linf_distance(T=float)
        return make_noisy_max(*space, zero_concentrated_divergence(), scale=self.scale)


def normalize(vector: np.ndarray) -> np.ndarray:
    """A vector (D,) scaled to length 1, float64."""
    vector = np.asarray(vector, dtype=np.float64)
    return vector / np.linalg.norm(vector)
