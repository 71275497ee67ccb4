"""IdentityDP: Laplace noise on a disentangled identity vector."""

from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import PositiveFloat

from masquerade.backbones import load_backbone
from masquerade.core.errors import ProtocolError
from masquerade.core.images import Faces
from masquerade.methods import Capabilities, Method, Resources, _privacy
from masquerade.methods._disentanglement import DisentanglementSettings
from masquerade.methods.latent import IdentityVariant
from masquerade.training.settings import TrainingJob

SAMPLE_EPSILON = 6.0  # for the last column of the sample images: section V.D


class IdentityDP(Method):
    """Separates identity and attributes of a face, adds Laplace noise to the identity, and fuses both again.

    Wen, Liu, Ding, Xie, Song 2022, IdentityDP: Differential Private Identification Protection for Face Images,
    Neurocomputing 501 (doi:10.1016/j.neucom.2022.06.039). Stage I: methods/_disentanglement/. Stage II:
    methods/_privacy.py. Stage III: the frozen generator of Stage I with the noised vector (Eq. 13). docs/identitydp.md
    lists what the paper leaves open and what its guarantee does not cover.
    """

    title = "IdentityDP"
    paper = "Wen et al. 2022, IdentityDP, Neurocomputing (doi:10.1016/j.neucom.2022.06.039)"
    capabilities = Capabilities(trains=True, differentially_private=True, latents=True, deterministic=False)
    needs = ("identity",)
    architecture = ("encoder_widths", "generator_widths", "small_scale.span", "small_scale.latent_hidden")

    Params = DisentanglementSettings

    class Variant(IdentityVariant):
        epsilon: PositiveFloat
        """The privacy budget epsilon of one released image (6 and 0.57: section V.D; from 1.1 to 800 in Figures 4-6).
        Smaller values add more noise."""
        sensitivity: _privacy.Sensitivity
        """The sensitivity of the Laplace mechanism: ``measured`` takes the largest L1 distance in the set that is
        anonymized (section V.D), and ``bound`` takes 2 sqrt(512), which holds for every face."""
        sampler: _privacy.Sampler
        """The source of the noise: ``seeded`` is repeatable and gives no guarantee; ``opendp`` is a vetted
        implementation for real photographs and is not repeatable."""

    params: DisentanglementSettings
    variant: Variant

    def __init__(self, params: DisentanglementSettings, variant: Variant, resources: Resources):
        from masquerade.methods._disentanglement.network import FrozenStageOne

        super().__init__(params, variant, resources)
        self._networks = FrozenStageOne(params, resources, variant.identity_steps)
        self._space = self._networks.space
        self._mechanism: _privacy.LaplaceMechanism | None = None
        if variant.sensitivity == "bound":
            self._calibrate(_privacy.sensitivity_bound(self._networks.network.identity_width))

    @classmethod
    def list_backbones(cls, params: DisentanglementSettings) -> tuple[str, ...]:
        return params.backbones

    @classmethod
    def latent_stand_in(cls, params: DisentanglementSettings) -> str:
        return params.latent_stand_in

    @classmethod
    def train(cls, params: DisentanglementSettings, job: TrainingJob) -> None:
        from masquerade.methods._disentanglement import training

        def add_noise(vectors: np.ndarray) -> np.ndarray:
            bound = _privacy.sensitivity_bound(vectors.shape[1])
            mechanism = _privacy.LaplaceMechanism(SAMPLE_EPSILON, bound, "bound", "seeded")
            return np.stack([mechanism.perturb(row, job.seed, str(name)) for name, row in enumerate(vectors)])

        training.train(params, job, {role: load_backbone(role, job.backbones) for role in params.backbones}, add_noise)

    @property
    def observes(self) -> bool:
        return self.variant.sensitivity == "measured"

    def observe(self, batches: Iterable[Faces]) -> None:
        """Measure the sensitivity on the whole set (Eq. 12), if ``variant.sensitivity`` is measured."""
        if self.observes:
            vectors = [self._networks.identities(faces.images) for faces in batches]
            self._calibrate(_privacy.measure_sensitivity(np.concatenate(vectors)))

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """X~ = h(M(X), g(X)), Eq. 13. Raises PictureError if the images do not have the size of the network."""
        identities = zip(self._networks.identities(faces.images), faces.ids, strict=True)
        vectors = np.stack([self.mechanism.perturb(vector, seed, name) for vector, name in identities])  # (N, D)
        return self._networks.fuse(vectors, self._networks.attributes_of(faces), faces.ids)

    @property
    def mechanism(self) -> _privacy.LaplaceMechanism:
        """Stage II. Raises ProtocolError if its sensitivity is not measured yet."""
        if self._mechanism is None:
            raise ProtocolError(
                "identitydp with sensitivity: measured has no sensitivity yet. Call `observe` before `anonymize`."
            )
        return self._mechanism

    def statement(self) -> dict[str, object]:
        return self.mechanism.statement()

    def _calibrate(self, sensitivity: float) -> None:
        variant = self.variant
        self._mechanism = _privacy.LaplaceMechanism(variant.epsilon, sensitivity, variant.sensitivity, variant.sampler)
