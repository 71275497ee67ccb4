"""RiDDLE: a transformer encrypts the code of a face with a password, and decrypts it with the same password."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from masquerade.core.errors import ParameterError
from masquerade.core.images import Faces
from masquerade.core.keys import Secret, stack_per_key
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods.riddle import RiddleSettings, RiddleVariant, derive_password
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from torch import Tensor

    from masquerade.methods.latent.descriptions import CodeDescriptions

FACES = 32  # in a batch of the network


class Riddle(Method):
    """Inverts a face, encrypts its W+ under the mapped password, and draws it. The same network decrypts.

    Li, Wang, Zhao, Dong, Tan 2023, RiDDLE: Reversible and Diversified De-identification with Latent Encryptor, CVPR
    (arXiv:2303.05171). Recovery from the image encodes the image again. Recovery from the saved code does not; the
    paper measures this one. docs/fit_and_riddle.md lists what the paper leaves open.
    """

    title = "RiDDLE"
    paper = "Li et al. 2023, CVPR (arXiv:2303.05171)"
    capabilities = Capabilities(trains=True, keys=Secret(), invertible=True, saves=True, latents=True, describes=True)
    needs = ("generator", "inversion", "semantics", "identity")
    losses = ("vgg16", "alexnet")  # LPIPS of the five images, by one of both (``perceptual``)
    architecture = ("groups", "width", "heads", "hidden", "small_scale.visible")

    Params, Variant = RiddleSettings, RiddleVariant
    params: RiddleSettings
    variant: RiddleVariant

    def __init__(self, params: RiddleSettings, variant: Settings, resources: Resources):
        from masquerade.methods._batches import Remembered
        from masquerade.methods.latent.codes import Codes
        from masquerade.methods.latent.space import LatentSpace
        from masquerade.methods.riddle import training

        super().__init__(params, variant, resources)
        for name, value in (("search", self.variant.search), ("correction_steps", self.variant.correction_steps)):
            if value and not params.small_scale.visible:
                raise ParameterError(
                    f"params.yaml: methods.riddle.variants sets `{name}`, which works in the directions of "
                    "methods.riddle.params.small_scale.visible, and that is 0. Leave it out, or train with some."
                )
        self._space = LatentSpace(resources.backbones)
        self._codes = Codes(self._space, resources.latents)
        self._network = training.load(params, self.checkpoint, resources.backbones, self._space)
        # the codes of the last images are kept: an attacker tries many keys on the same ones
        self._reduced, self._read = Remembered(self._search, kept=8), Remembered(self._search, kept=8)

    @classmethod
    def train(cls, params: RiddleSettings, job: TrainingJob) -> None:
        from masquerade.methods.riddle import training

        training.train(params, job)

    @classmethod
    def list_loss_files(cls, params: RiddleSettings) -> tuple[str, ...]:
        from masquerade.networks.lpips import ASSETS

        return (ASSETS[params.small_scale.perceptual],) if params.losses.lpips else ()

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if an image does not have the generator's size, or if its inversion diverged."""
        return self._space.draw(self._encrypt(faces, keys), faces.ids).numpy()

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """Encodes, decrypts and draws. Raises PictureError for images of another size."""
        space = self._space
        codes = self._read(images, space.encode(images)) if self.variant.search else space.invert(images)
        return self._draw(self._decrypt(codes, keys))

    def save(self, faces: Faces, seed: int, keys: Sequence[bytes] | None) -> np.ndarray:
        """The encrypted W+, float32 (N, layers, style)."""
        return self._encrypt(faces, keys).numpy()

    def recover_saved(self, saved: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        import torch

        return self._draw(self._decrypt(torch.from_numpy(saved), keys))

    def describe(self, faces: Faces) -> list[bytes]:
        """The inverted code of the original."""
        return self._descriptions.write(self._codes.w_plus(faces))

    def draw_described(self, descriptions: Sequence[bytes]) -> np.ndarray:
        return self._draw(self._descriptions.read(descriptions))

    @cached_property
    def _descriptions(self) -> "CodeDescriptions":
        from masquerade.methods.latent.descriptions import CodeDescriptions

        return CodeDescriptions(self._space)

    def statement(self) -> dict[str, object]:
        return {"style_layers": "-".join(map(str, self._network.sizes)), "password": "HKDF-SHA256 -> z -> W"}

    def _encrypt(self, faces: Faces, keys: Sequence[bytes] | None) -> "Tensor":
        codes = self._codes.w_plus(faces)
        return self._transform(self._reduced(faces.images, codes) if self.variant.search else codes, keys)

    def _decrypt(self, codes: "Tensor", keys: Sequence[bytes] | None) -> "Tensor":
        from masquerade.networks.inputs import apply_in_batches

        decrypted, steps = self._transform(codes, keys), self.variant.correction_steps
        if not steps:
            return decrypted
        correct = partial(self._network.correct, steps=steps)
        return apply_in_batches(correct, FACES, decrypted, codes, self._find_passwords(keys))

    def _transform(self, codes: "Tensor", keys: Sequence[bytes] | None) -> "Tensor":
        """Codes (N, layers, style) after the network: codes of faces are encrypted, encrypted codes are decrypted."""
        from masquerade.networks.inputs import apply_in_batches

        return apply_in_batches(self._network, FACES, codes, self._find_passwords(keys))

    def _find_passwords(self, keys: Sequence[bytes] | None) -> "Tensor":
        """The password of each face in W, (N, style)."""
        from masquerade.networks.inputs import apply_in_batches

        generator = self._space.generator
        z = stack_per_key(keys, lambda key: derive_password(key, generator.style_width))
        return apply_in_batches(generator.map, len(z), z)

    def _search(self, images: np.ndarray, start: "Tensor") -> "Tensor":
        """The codes (N, layers, style) in the visible directions whose images are nearest to images (N, 3, S, S)."""
        from masquerade.methods.latent.space import BATCH
        from masquerade.networks.inputs import apply_in_batches

        visible, generator, settings = self._network.visible, self._space.generator, self.variant.search
        assert visible is not None
        assert settings is not None

        def read(images: "Tensor", start: "Tensor") -> "Tensor":
            return visible.read(images, start, generator, settings)

        return apply_in_batches(read, BATCH, images, start)

    def _draw(self, codes: "Tensor") -> np.ndarray:
        return self._space.draw(codes).numpy()
