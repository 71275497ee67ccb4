"""A multi-label classifier of faces: weights of ImageNet, one logit for each attribute, trained with a focal loss.

The first blocks may stay frozen. Their output for a picture is then computed once. See docs/attributes.md.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.core import seeding
from masquerade.networks import efficientnet_lite_internals, mobilenet_v2, torchvision_internals
from masquerade.networks.inputs import device, place, to_tensor
from masquerade.params.protocols import AttributeSettings

Architecture = Literal["mobilenet_v2", "efficientnet_lite0"]
GAMMA = 2.0  # of the focal loss: Lin et al. 2017, section 4.1 (its best)
FROZEN_BATCH = 16  # pictures in a batch of the frozen blocks


class Classifier:
    """Pictures uint8 (N, S, S, 3) -> probabilities (N, A) of ``attributes``.

    The first ``settings.small_scale.frozen_blocks`` blocks of the network are not trained. If these are all blocks,
    only the last layer is trained.
    """

    def __init__(self, architecture: Architecture, attributes: Sequence[str], settings: AttributeSettings, seed: int):
        self.attributes, self.settings, self.seed = list(attributes), settings, seed
        torch.manual_seed(seeding.derive_seed(seed, "classifier"))
        blocks, (self._mean, self._std), width = ARCHITECTURES[architecture]()
        kept = min(settings.small_scale.frozen_blocks, len(blocks))
        self._frozen = place(nn.Sequential(*blocks[:kept])).eval()
        head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(width, len(attributes))
        self._trained = place(nn.Sequential(*blocks[kept:], *head)).requires_grad_(True)

    def features(self, pictures: np.ndarray) -> Tensor:
        """The output of the frozen blocks, (N, C, H, W), on the CPU, because that of a whole dataset fills a GPU.

        It is the same for all classifiers with the same architecture and settings.
        """
        starts = range(0, len(pictures), FROZEN_BATCH)
        with torch.inference_mode():
            parts = [self._frozen_output(pictures[start : start + FROZEN_BATCH]) for start in starts]
        return torch.cat(parts).clone()

    def _frozen_output(self, pictures: np.ndarray) -> Tensor:
        images = pictures.transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1.0
        return self._frozen(to_tensor(images, self.settings.size, self._mean, self._std).to(device())).cpu()

    def fit(self, features: Tensor, mirrored: Tensor, labels: np.ndarray) -> list[float]:
        """Train on the `features` of pictures and of their mirror images, with labels bool (N, A).

        Returns the mean loss of each epoch.
        """
        settings, truth = self.settings, torch.from_numpy(labels.astype(np.float32))
        optimizer = torch.optim.Adam(self._trained.parameters(), lr=settings.learning_rate)
        steps = settings.epochs * -(-len(features) // settings.batch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        self._trained.train()
        curve = []
        for epoch in range(settings.epochs):
            draw = seeding.make_generator(self.seed, "epoch", epoch)
            order, turned = draw.permutation(len(features)), draw.random(len(features)) < 0.5
            losses = []
            for rows in np.array_split(order, -(-len(order) // settings.batch)):
                chosen = torch.from_numpy(rows)
                pick = torch.from_numpy(turned[rows])[:, None, None, None]
                batch = torch.where(pick, mirrored[chosen], features[chosen])
                loss = focal_loss(self._trained(batch.to(device())), truth[chosen].to(device()))
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
            curve.append(float(np.mean(losses)))
        return curve

    def predict(self, features: Tensor) -> np.ndarray:
        """Probabilities float32 (N, A)."""
        self._trained.eval()
        with torch.inference_mode():
            parts = [self._trained(part.to(device())).sigmoid().cpu() for part in features.split(64)]
        return torch.cat(parts).numpy()


def focal_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """FL(p) = -(1 - p_t)^gamma log p_t (Lin et al. 2017, Eq. 4), the mean over pictures and attributes."""
    torchvision_internals.ensure()
    from torchvision.ops import sigmoid_focal_loss

    return sigmoid_focal_loss(logits, labels, alpha=-1, gamma=GAMMA, reduction="mean")  # alpha -1: no class weights


def _mobilenet_v2():
    """Sandler et al. 2018: 19 blocks."""
    net: Any = mobilenet_v2.network()
    return list(net.features), (mobilenet_v2.MEAN, mobilenet_v2.STD), 1280


def _efficientnet_lite0():
    """Tan and Le 2019: the stem, 16 blocks and the head."""
    blocks = efficientnet_lite_internals.list_blocks(efficientnet_lite_internals.network(0))
    return blocks, (efficientnet_lite_internals.MEAN, efficientnet_lite_internals.STD), 1280


ARCHITECTURES = {"mobilenet_v2": _mobilenet_v2, "efficientnet_lite0": _efficientnet_lite0}
