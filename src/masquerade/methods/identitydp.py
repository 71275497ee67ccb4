"""IdentityDP: Laplace noise on a disentangled identity vector."""

from collections.abc import Iterable
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade import discovery, privacy
from masquerade.disentanglement.settings import DisentanglementSettings
from masquerade.errors import ProtocolError
from masquerade.images import Faces
from masquerade.methods import Capabilities, Method, Resources, TrainingJob
from masquerade.settings import Settings

SAMPLE_EPSILON = 6.0  # of the last column of the sample pictures: section V.D


class IdentityDP(Method):
    """Takes a face apart into identity and attributes, adds Laplace noise to the identity, and fuses both again.

    Wen, Liu, Ding, Xie, Song 2022, IdentityDP: Differential Private Identification Protection for Face Images,
    Neurocomputing 501 (doi:10.1016/j.neucom.2022.06.039). Stage I: `masquerade.disentanglement`; Stage II:
    `masquerade.privacy`; Stage III: the frozen generator of Stage I with the noised vector (Eq. 13). What the paper
    leaves open, and what its guarantee does not cover: docs/identitydp.md.
    """

    title = "IdentityDP"
    paper = "Wen et al. 2022, IdentityDP, Neurocomputing (doi:10.1016/j.neucom.2022.06.039)"
    capabilities = Capabilities(trains=True, differentially_private=True, deterministic=False)
    needs = ("identity",)

    class Params(DisentanglementSettings):
        pass

    class Variant(Settings):
        epsilon: Annotated[float, Field(gt=0)]
        """Privacy budget of one released picture (6 and 0.57: section V.D; swept from 1.1 to 800 in Figures 4-6)."""
        sensitivity: privacy.Sensitivity
        """``measured``: the largest L1 distance in the set that is anonymized (section V.D); ``bound``: 2 sqrt(512)."""
        sampler: privacy.Sampler
        """``seeded``: repeatable, claims nothing; ``opendp``: vetted noise for real photographs, not repeatable."""

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        from masquerade.disentanglement.frozen import Frozen

        super().__init__(params, variant, resources)
        self._networks = Frozen(params, resources.checkpoint, resources.backbones["identity"])
        self._mechanism: privacy.LaplaceMechanism | None = None
        if variant.sensitivity == "bound":
            self._calibrate(privacy.sensitivity_bound(self._networks.network.identity_width))

    @classmethod
    def train(cls, params: Settings, job: TrainingJob) -> None:
        from masquerade.disentanglement import task

        identity = discovery.load("backbones", "identity").load(job.backbones["identity"])

        def noised(vectors: np.ndarray) -> np.ndarray:
            bound = privacy.sensitivity_bound(vectors.shape[1])
            mechanism = privacy.LaplaceMechanism(SAMPLE_EPSILON, bound, "bound", "seeded")
            return np.stack([mechanism.perturb(row, job.seed, str(name)) for name, row in enumerate(vectors)])

        task.train(params, job, identity, noised)

    def observe(self, batches: Iterable[Faces]) -> None:
        """Measure the sensitivity on the whole set (Eq. 12), where the variant asks for that."""
        if self.variant.sensitivity == "measured":
            vectors = [self._networks.identities(faces.images) for faces in batches]
            self._calibrate(privacy.measured_sensitivity(np.concatenate(vectors)))

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        """X~ = h(M(X), g(X)), Eq. 13. Raises PictureError where the pictures are not of the network's size."""
        vectors = zip(self._networks.identities(faces.images), faces.ids, strict=True)
        noised = np.stack([self.mechanism.perturb(vector, seed, name) for vector, name in vectors])
        return self._networks.fuse(noised, self._networks.attributes(faces.images))

    @property
    def mechanism(self) -> privacy.LaplaceMechanism:
        """Stage II. Raises ProtocolError where its sensitivity is still to be measured."""
        if self._mechanism is None:
            raise ProtocolError("identitydp with sensitivity: measured must `observe` the set before it anonymizes it.")
        return self._mechanism

    def statement(self) -> dict[str, object]:
        return self.mechanism.statement()

    def _calibrate(self, sensitivity: float) -> None:
        variant = self.variant
        self._mechanism = privacy.LaplaceMechanism(variant.epsilon, sensitivity, variant.sensitivity, variant.sampler)
