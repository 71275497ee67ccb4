"""iFADIT: an identity vector changed by an invertible flow under a secret, in the space of a frozen generator."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from masquerade.errors import CheckpointError, PictureError
from masquerade.identity_flow.settings import IdentityFlowSettings
from masquerade.images import Faces, to_float, to_uint8
from masquerade.keys import Secret, expanded
from masquerade.methods import Capabilities, Method, Resources, TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor

BATCH = 32  # pictures that are encoded or drawn at a time


@dataclass(frozen=True)
class Saved:
    """What can be kept beside anonymized faces: z" and a of Eq. 9, and the pictures, for their background.

    ``identity`` float32 (N, 512), ``attributes`` (N, layers, style), ``pictures`` uint8 (N, S, S, 3).
    """

    identity: np.ndarray
    attributes: np.ndarray
    pictures: np.ndarray


class Ifadit(Method):
    """Takes a face apart into identity and attributes, sends the identity through a flow that a secret steers.

    Yuan, Liang, Li, Wu, Wang, Gao 2025, iFADIT: Invertible Face Anonymization via Disentangled Identity Transform
    (arXiv:2501.04390). The same flow backwards, with the same secret, brings the identity back. The parts and their
    training: `masquerade.identity_flow`; what the paper leaves open: docs/ifadit.md.
    """

    title = "iFADIT"
    paper = "Yuan et al. 2025, iFADIT (arXiv:2501.04390)"
    capabilities = Capabilities(trains=True, keys=Secret(), invertible=True, saves=True, pastes=True)
    needs = ("generator", "identity", "parsing", "landmarks", "inversion")

    class Params(IdentityFlowSettings):
        pass

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        from masquerade import lineage, training
        from masquerade.identity_flow.network import Disentangler, Transform
        from masquerade.identity_flow.world import TIED, World

        super().__init__(params, variant, resources)
        self._world = World(resources.backbones, TIED, params.region)
        tensors, facts = training.load_checkpoint(resources.checkpoint)
        for name in TIED:
            if facts.get(name) != lineage.md5(resources.backbones[name]):
                raise CheckpointError(
                    f"{resources.checkpoint} was trained with another backbone '{name}' than "
                    f"{resources.backbones[name]}: train it again, or bring back the one that it was trained with."
                )
        parts = Disentangler(params, self._world.mean.cpu()), Transform(params, self._world.generator.style_width)
        for name, part in zip(("disentangler", "transform"), parts, strict=True):
            training.load_into(part, tensors.get(name, {}), resources.checkpoint)
        self._disentangler, self._transform = (
            part.eval().requires_grad_(False).to(self._world.device) for part in parts
        )

    @classmethod
    def train(cls, params: Settings, job: TrainingJob) -> None:
        from masquerade.identity_flow import task

        task.train(params, job)

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        """Eq. 9, then Eq. 11 with the background of the faces. Raises PictureError for pictures of another size."""

        def part(images: "Tensor") -> "Tensor":
            hidden, attributes = self._hidden(images, key)
            return self._refined(self._draw(hidden, attributes), images)

        return self._each(part, faces.images)

    def recover(self, images: np.ndarray, key: bytes | None) -> np.ndarray:
        """Eq. 10, then Eq. 11 with the background of the anonymized pictures."""
        return self._each(lambda part: self._refined(self._back(part, key), part), images)

    def recover_onto(self, images: np.ndarray, key: bytes, originals: np.ndarray) -> np.ndarray:
        """Eq. 10, then Eq. 11 with background and mask of the original pictures, as the published evaluation did."""
        return self._each(lambda part, original: self._refined(self._back(part, key), original), images, originals)

    def save(self, faces: Faces, seed: int, key: bytes) -> Saved:
        identity, attributes = self._each(lambda images: self._hidden(images, key), faces.images)
        return Saved(identity, attributes, to_uint8(self.anonymize(faces, seed, key)))

    def recover_saved(self, saved: Saved, key: bytes) -> np.ndarray:
        """Eq. 10 from the vectors themselves: nothing is encoded again, and nothing compensated."""

        def part(hidden: "Tensor", attributes: "Tensor", pictures: "Tensor") -> "Tensor":
            identity = self._transform.inverse(hidden, self._secret(key, len(hidden)))
            return self._refined(self._draw(identity, attributes), pictures)

        return self._each(part, saved.identity, saved.attributes, to_float(saved.pictures))

    def views(self, faces: Faces) -> dict[str, np.ndarray]:
        """Figure 7: reconstructed from identity and attributes, and with one of them set to zero; not refined."""

        def part(images: "Tensor") -> tuple["Tensor", ...]:
            identity, attributes = self._world.identity(images), self._disentangler.attributes(images)
            return (
                self._draw(identity, attributes),
                self._draw(identity * 0, attributes),
                self._draw(identity, attributes * 0),
            )

        return dict(zip(("reconstructed", "de_identity", "de_attributes"), self._each(part, faces.images), strict=True))

    def _hidden(self, images: "Tensor", key: bytes) -> tuple["Tensor", "Tensor"]:
        """Identity under the secret, T(E_ID(X), s), and attributes E_Attr(X): Eq. 9."""
        identity = self._transform(self._world.identity(images), self._secret(key, len(images)))
        return identity, self._disentangler.attributes(images)

    def _back(self, images: "Tensor", key: bytes) -> "Tensor":
        """Eq. 10, before the background is refined."""
        corrected = self._transform.compensation(self._world.identity(images))
        identity = self._transform.inverse(corrected, self._secret(key, len(images)))
        return self._draw(identity, self._disentangler.attributes(images))

    def _draw(self, identity: "Tensor", attributes: "Tensor") -> "Tensor":
        """G(M(z, a)), in [-1, 1]."""
        return self._world.generator.synthesize(self._disentangler.codes(identity, attributes)).clamp(-1, 1)

    def _refined(self, made: "Tensor", background: "Tensor") -> "Tensor":
        """Eq. 11, with the mask of the picture whose background is taken."""
        from masquerade.identity_flow.refinement import refine

        return refine(made, background, self._world.mask(background)).clamp(-1, 1)

    def _secret(self, key: bytes, count: int) -> "Tensor":
        """KeyGen(s) of Eq. 4, (count, style): HKDF, [-1, 1], the generator's mapping network."""
        import torch

        from masquerade.identity_flow.network import secret_vectors

        generator = self._world.generator
        drawn = bytearray(expanded(key, generator.style_width, "ifadit"))
        pseudorandom = torch.frombuffer(drawn, dtype=torch.uint8).to(self._world.device)
        return secret_vectors(generator, pseudorandom[None]).expand(count, -1)

    def _each(self, function, *batch: np.ndarray):
        """``function`` of parts of arrays with a row a face, joined; PictureError for another size."""
        import torch

        size = self._world.generator.size
        for array in batch:
            if array.ndim == 4 and array.shape[-2:] != (size, size):
                height, width = array.shape[-2:]
                raise PictureError(f"is {width} x {height} pixels; this generator draws {size} x {size}")
        found = []
        with torch.inference_mode():
            for start in range(0, len(batch[0]), BATCH):
                part = (torch.from_numpy(array[start : start + BATCH]).to(self._world.device) for array in batch)
                found.append(function(*part))
            if isinstance(found[0], tuple):
                return tuple(torch.cat(parts).cpu().numpy() for parts in zip(*found, strict=True))
            return torch.cat(found).cpu().numpy()
