"""Training of the flow before phase II: its losses on identity vectors alone, without pictures (ours).

An update on pictures costs seven times as much as one on identity vectors. The flow can learn most of its task (other
identities under other secrets, and the way back) from vectors. In place of the vector of an anonymized face, this
phase takes the vector of the flow, reduced to the directions in which faces vary, plus a share of another person's
vector. A further loss keeps the vectors of the flow among those that faces can have.
"""

from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from masquerade.backbones.generator.reconstruction import energy_distance
from masquerade.core import seeding
from masquerade.methods.ifadit import losses
from masquerade.methods.ifadit.frozen import FrozenNetworks, TrainingPictures
from masquerade.methods.ifadit.network import Transform, drawn_secrets
from masquerade.methods.ifadit.phases import Phase, pairs
from masquerade.methods.ifadit.settings import IfaditSettings
from masquerade.training.optimizers import Optimizers


class Rehearsal(Phase):
    """T and C on identity vectors (M, D) of the training pictures, by the terms of Eq. 22 except L_Img."""

    name = "rehearsal"

    def __init__(
        self,
        settings: IfaditSettings,
        networks: FrozenNetworks,
        known: TrainingPictures,
        seed: int,
        transform: Transform,
    ):
        super().__init__(settings, networks, known, seed)
        chosen = settings.rehearsal
        self.steps, self.transform = chosen.steps, transform
        self.modules = {"transform": transform}
        self.optimizers = {"all": Optimizers(self.modules, chosen.learning_rate, settings.betas)}
        self.visible = visible(known.identity, chosen.floor).to(networks.device)

    def step(self, step: int) -> dict[str, float]:
        chosen, transform = self.settings.rehearsal, self.transform
        draw = seeding.make_generator(self.seed, "rehearsal", step)
        identity = self.identities(pairs(draw, len(self.known), chosen.batch))
        first, second = drawn_secrets(self.networks.generator, draw, chosen.batch)
        hidden = torch.cat([transform(identity, first), transform(identity, second)])
        drawn = normalize(hidden @ self.visible)
        others = self.identities(draw.integers(0, len(self.known), len(drawn)))
        corrected = transform.compensation(normalize(drawn + chosen.noise * others))
        under_first = corrected[: len(first)]
        back = transform.inverse(under_first, first), transform.inverse(under_first, second)
        values = {
            "anonymity": losses.anonymity(drawn, torch.cat([identity, identity])),
            "recovery": losses.recovery(*back, identity),
            "spread": energy_distance(hidden, others),
        }
        if self.settings.compensation:
            values["compensation"] = losses.compensation(corrected, hidden)
        if self.settings.diversity_loss:
            values["diversity"] = losses.diversity(*drawn.chunk(2))
        weighted = (chosen.spread * value if name == "spread" else value for name, value in values.items())
        total = cast("Tensor", sum(weighted))
        self.optimizers["all"].descend(total, self.rate(step))
        return {f"rehearsal/{name}": value.item() for name, value in (values | {"total": total}).items()}

    def identities(self, rows: np.ndarray) -> Tensor:
        """Identity vectors (N, D) of training pictures."""
        return self.known.identity[torch.from_numpy(rows)].to(self.networks.device)


def visible(identity: Tensor, floor: float) -> Tensor:
    """The map (D, D) from an identity vector to the part that pictures show.

    It scales each principal direction of ``identity`` (M, D) by v / (v + f). v: the mean square in that direction;
    f: ``floor`` of the largest v. Faces cannot show a direction in which they do not vary.
    """
    moments = identity.double().cpu().T @ identity.double().cpu() / len(identity)
    values, directions = torch.linalg.eigh(moments)
    values = values.clamp(min=0)
    return (directions * (values / (values + floor * values.max())) @ directions.T).float()
