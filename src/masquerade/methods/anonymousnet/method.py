"""AnonymousNet: attributes of a face are estimated, chosen anew, drawn into the image, and the image perturbed."""

from collections.abc import Sequence

import numpy as np

from masquerade.core import seeding
from masquerade.core.images import Faces, check_size
from masquerade.core.settings import Settings, Share
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods.anonymousnet import (
    AnonymousNetSettings,
)
from masquerade.training.settings import TrainingJob

BATCH = 32  # images at a time


class AnonymousNet(Method):
    """Draws attributes that follow the distribution of a population, and adds a perturbation against recognizers.

    Li, Lin 2019, AnonymousNet: Natural Face De-Identification with Measurable Privacy, CVPR Workshops
    (arXiv:1904.12620). No code was published. Stage III is StarGAN (Choi et al. 2018); stages I, II and IV are
    reconstructed, as docs/other_methods.md says.
    """

    title = "AnonymousNet"
    paper = "Li, Lin 2019, AnonymousNet, CVPR Workshops (arXiv:1904.12620)"
    capabilities = Capabilities(trains=True, deterministic=False)
    needs = ("identity",)
    architecture = (
        "selected",
        "estimator.input_size",
        "estimator.widths",
        "generator",
        "small_scale.reach",
        "small_scale.scaled",
    )

    Params = AnonymousNetSettings

    class Variant(Settings):
        closeness: Share
        """t of t-closeness: the share of the faces that keep their own attributes; the others get those of a random
        person of the training. The distribution of the attributes is then at most t from that of the population, in
        total variation."""
        perturbation: bool
        """Whether stage IV is added, which perturbs the image against recognizers."""

    params: AnonymousNetSettings
    variant: Variant

    def __init__(self, params: AnonymousNetSettings, variant: Variant, resources: Resources):
        from masquerade.methods.anonymousnet import training
        from masquerade.networks.inputs import place
        from masquerade.training.checkpoints import Saved

        super().__init__(params, variant, resources)
        saved = Saved(self.checkpoint)
        self._size, self._chosen = saved.metadata["size"], training.select_columns(params)
        self._estimator = place(saved.frozen("estimator", training.build_estimator(params)))
        self._network = place(saved.frozen("network", training.build_generator(params)))
        self._population = saved.tensors["population"]

    @classmethod
    def train(cls, params: AnonymousNetSettings, job: TrainingJob) -> None:
        from masquerade.methods.anonymousnet import training

        training.train(params, job)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Stages I to IV. Raises PictureError if the images do not have the size of the training images."""
        import torch

        from masquerade.networks.inputs import apply_in_batches

        check_size(faces.images, self._size)
        labels = apply_in_batches(self._estimator, BATCH, faces.images)[:, self._chosen] > 0
        target_labels = torch.from_numpy(self.choose_labels(labels.numpy(), faces.ids, seed)).float()
        images = apply_in_batches(self._network, BATCH, faces.images, target_labels)
        if self.variant.perturbation:
            images = (images + self._population["perturbation"]).clamp(-1, 1)
        return images.numpy()

    def choose_labels(self, labels: np.ndarray, names: Sequence[str], seed: int) -> np.ndarray:
        """Stage II: the labels to draw, bool (N, selected), from the estimated ones and the ids of the images."""
        label_sets, counts = (self._population[name].numpy() for name in ("labels", "counts"))
        target_labels = labels.copy()
        for row, name in enumerate(names):
            draw = seeding.make_generator(seed, "anonymousnet", name)
            if draw.random() >= self.variant.closeness:
                target_labels[row] = label_sets[draw.choice(len(label_sets), p=counts / counts.sum())]
        return target_labels

    def statement(self) -> dict[str, object]:
        return {
            "closeness": self.variant.closeness,
            "closeness_of": f"total variation of the distribution of {', '.join(self.params.selected)} (t-closeness)",
        }
