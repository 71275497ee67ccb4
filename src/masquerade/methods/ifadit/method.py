"""iFADIT: an invertible flow changes the identity vector under a secret, and a frozen generator draws the face."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from masquerade.core.images import Faces, check_size, to_float, to_uint8
from masquerade.core.keys import Secret, expand, stack_per_key
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods._batches import Remembered
from masquerade.methods.ifadit import IfaditSettings
from masquerade.methods.latent import IdentityVariant
from masquerade.networks.inputs import AT_ONCE
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from torch import Tensor

    from masquerade.methods.latent.descriptions import CodeDescriptions
    from masquerade.networks.w_space import PNSpace

BATCH = 32  # images that are encoded or drawn at a time
SMALL_ARCHITECTURE = (
    "encoder_start", "linear", "span", "mapping_per_layer", "flow_start", "flow_secret", "flow_aligned",
    "residual_compensation", "refined",
)  # fmt: skip
"""The part of ``small_scale`` on which tensors and their use depend."""


@dataclass(frozen=True)
class Saved:
    """The representation to keep beside anonymized faces: z" and a of Eq. 9, and the images, for their background.

    ``identity`` float32 (N, D), ``attributes`` (N, layers, style), ``images`` uint8 (N, S, S, 3).
    """

    identity: np.ndarray
    attributes: np.ndarray
    images: np.ndarray


class Ifadit(Method):
    """Separates identity and attributes of a face, and changes the identity by a flow with a secret.

    Yuan, Liang, Li, Wu, Wang, Gao 2025, iFADIT: Invertible Face Anonymization via Disentangled Identity Transform
    (arXiv:2501.04390). The inverse of the flow recovers the identity with the same secret. docs/ifadit.md lists what
    the paper leaves open.
    """

    title = "iFADIT"
    paper = "Yuan et al. 2025, iFADIT (arXiv:2501.04390)"
    capabilities = Capabilities(trains=True, keys=Secret(), invertible=True, saves=True, pastes=True, describes=True)
    needs = ("generator", "identity", "parsing", "landmarks", "inversion")
    losses = ("alexnet",)  # LPIPS, Eq. 20
    architecture = (
        *("encoder", "mapping", "flow", "compensation_widths", "compensation", "region"),
        *(f"small_scale.{name}" for name in SMALL_ARCHITECTURE),
    )

    Params = IfaditSettings
    params: IfaditSettings
    Variant = IdentityVariant
    variant: IdentityVariant

    def __init__(self, params: IfaditSettings, variant: IdentityVariant, resources: Resources):
        from masquerade.methods.ifadit.frozen import FrozenNetworks, list_tied_backbones
        from masquerade.methods.ifadit.network import Disentangler, Span, Transform
        from masquerade.networks.inputs import place
        from masquerade.training.checkpoints import Saved

        super().__init__(params, variant, resources)
        tied = list_tied_backbones(params)
        self._networks = FrozenNetworks(resources.backbones, tied, params.region)
        saved = Saved(self.checkpoint, resources.backbones, tied)
        width = self._networks.identity.width
        disentangler = Disentangler(params, self._networks.mean.cpu(), self._networks.inversion, width)
        self._disentangler = place(saved.frozen("disentangler", disentangler))
        transform = Transform(params, self._networks.generator.style_width, width)
        self._transform = place(saved.frozen("transform", transform))
        if params.small_scale.span:
            self._networks.use_span(saved.frozen("span", Span(params, width)))
        self._read = Remembered(self._encode, kept=2)  # the anonymized images and the originals
        self._backbones = resources.backbones

    @classmethod
    def train(cls, params: IfaditSettings, job: TrainingJob) -> None:
        from masquerade.methods.ifadit import training

        training.train(params, job)

    @classmethod
    def list_loss_files(cls, params: IfaditSettings) -> tuple[str, ...]:
        return cls.losses if params.lpips else ()

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Eq. 9, then Eq. 11 with the background of the faces. Raises PictureError for images of another size."""
        identity, attributes, mask = self._read(faces.images)
        return self._draw_refined(self._transform_identity(identity, keys), attributes, faces.images, mask)

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """Eq. 10, then Eq. 11 with the background of the anonymized images."""
        return self.recover_onto(images, keys, images)

    def recover_onto(self, images: np.ndarray, keys: Sequence[bytes] | None, originals: np.ndarray) -> np.ndarray:
        """Eq. 10, then Eq. 11 with background and mask of the original images, as in the published evaluation."""
        identity, attributes, _ = self._read(images)
        transform = self._transform
        recovered = self._apply_secrets(lambda z, k: transform.inverse(transform.compensation(z), k), identity, keys)
        return self._draw_refined(recovered, attributes, originals, self._read(originals)[2])

    def save(self, faces: Faces, seed: int, keys: Sequence[bytes] | None) -> Saved:
        identity, attributes, _ = self._read(faces.images)
        return Saved(self._transform_identity(identity, keys), attributes, to_uint8(self.anonymize(faces, seed, keys)))

    def recover_saved(self, saved: Saved, keys: Sequence[bytes] | None) -> np.ndarray:
        """Eq. 10 from the saved vectors, without a second encoding and without compensation."""
        images = to_float(saved.images)
        recovered = self._apply_secrets(self._transform.inverse, saved.identity, keys)
        return self._draw_refined(recovered, saved.attributes, images, self._read(images)[2])

    def describe(self, faces: Faces) -> list[bytes]:
        """The inverted code of the original, which the flow does not need. Raises PictureError if none reaches it."""
        from masquerade.methods.latent.codes import Codes

        return self._descriptions.write(Codes(self._descriptions.space).w_plus(faces))

    def draw_described(self, descriptions: Sequence[bytes]) -> np.ndarray:
        return self._descriptions.space.draw(self._descriptions.read(descriptions)).numpy()

    @cached_property
    def _descriptions(self) -> "CodeDescriptions":
        from masquerade.methods.latent.descriptions import CodeDescriptions
        from masquerade.methods.latent.space import LatentSpace

        return CodeDescriptions(LatentSpace({name: self._backbones[name] for name in ("generator", "inversion")}))

    def views(self, faces: Faces) -> dict[str, np.ndarray]:
        """Figure 7: drawn from identity and attributes, and with one of them set to zero. Not refined."""

        def part(identity: "Tensor", attributes: "Tensor") -> tuple["Tensor", ...]:
            return (
                self._draw(identity, attributes),
                self._draw(identity * 0, attributes),
                self._draw(identity, attributes * 0),
            )

        images = self._apply(part, *self._read(faces.images)[:2])
        return dict(zip(("reconstructed", "de_identity", "de_attributes"), images, strict=True))

    def _encode(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What does not depend on a key: E_ID(X) and E_Attr(X), and the mask of Eq. 11."""

        def part(images: "Tensor") -> tuple["Tensor", ...]:
            return self._networks.identity(images), self._disentangler.attributes(images), self._networks.mask(images)

        return self._apply(part, images)

    def _transform_identity(self, identity: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """T(E_ID(X), s): Eq. 9."""
        return self._apply_secrets(self._transform, identity, keys)

    def _draw_refined(
        self, identity: np.ndarray, attributes: np.ndarray, background: np.ndarray, mask: np.ndarray
    ) -> np.ndarray:
        """G(M(z, a)) on a background: Eq. 11."""
        from masquerade.methods.ifadit.losses import refine

        def paste(generated: "Tensor", background: "Tensor", mask: "Tensor") -> "Tensor":
            if self.params.small_scale.overlap:
                mask = mask.minimum(self._networks.mask(generated))
            return refine(generated, background, mask).clamp(-1, 1)

        def part(identity: "Tensor", attributes: "Tensor", background: "Tensor", mask: "Tensor") -> "Tensor":
            codes = self._disentangler.codes(identity, attributes)
            if self.variant.identity_steps:
                codes = self._approach(
                    codes, identity, background, lambda generated: paste(generated, background, mask)
                )
            return paste(self._networks.generator.synthesize(codes).clamp(-1, 1), background, mask)

        batch = AT_ONCE if self.variant.identity_steps else BATCH
        return self._apply(part, identity, attributes, background, mask, batch=batch)

    def _approach(
        self, codes: "Tensor", identity: "Tensor", background: "Tensor", paste: "Callable[[Tensor], Tensor]"
    ) -> "Tensor":
        """The codes of M, brought to the ``identity`` and the colors of ``background``: `approach_identity`."""
        from torch.nn.functional import normalize

        from masquerade.methods.latent.identities import approach_identity

        networks = self._networks
        return approach_identity(
            codes, normalize(identity), background, networks.generator, self._codes_of_w,
            lambda drawn: networks.identity(paste(drawn)), self.variant.identity_steps,
        )  # fmt: skip

    @cached_property
    def _codes_of_w(self) -> "PNSpace":
        from masquerade.networks.w_space import PNSpace

        return PNSpace.of(self._networks.generator)

    def _draw(self, identity: "Tensor", attributes: "Tensor") -> "Tensor":
        """G(M(z, a)), in [-1, 1]."""
        return self._networks.generator.synthesize(self._disentangler.codes(identity, attributes)).clamp(-1, 1)

    def _apply_secrets(self, function: Callable, vectors: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """``function`` of vectors (N, D) and of KeyGen(s), Eq. 4: the secret vectors (N, style) of the keys.

        HKDF derives bytes from a key. Scaled to [-1, 1], the mapping network of the generator maps them.
        """
        from masquerade.methods.ifadit.network import map_secrets

        generator = self._networks.generator
        width = generator.style_width
        derived = stack_per_key(keys, lambda key: np.frombuffer(expand(key, width, "ifadit"), dtype=np.uint8))
        return self._apply(lambda part, rows: function(part, map_secrets(generator, rows)), vectors, derived)

    def _apply(self, function: Callable, *rows: np.ndarray, batch: int = BATCH) -> Any:
        """The joined results of ``function`` on parts of arrays with one row a face. PictureError for another size."""
        from masquerade.networks.inputs import apply_in_batches

        for array in rows:
            if array.ndim == 4:
                check_size(array, self._networks.generator.size, "this generator draws")
        results = apply_in_batches(function, batch, *rows)
        return tuple(part.numpy() for part in results) if isinstance(results, list) else results.numpy()
