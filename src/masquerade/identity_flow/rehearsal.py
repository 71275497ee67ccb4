"""What the flow learns before it sees pictures: the losses of phase II on identity vectors alone (ours).

An update on pictures costs seven times what one on identity vectors costs, and most of what the flow must learn (other
identities under other secrets, and the way back) can be said in vectors. A vector that is seen in an anonymized face is
here the one that it was drawn from, as far as faces vary in its direction, with a share of somebody else's added; and
where the flow sends identities, there should be identities that faces can have.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from masquerade import seeding
from masquerade.backbones._reconstruction import energy_distance
from masquerade.identity_flow import losses
from masquerade.identity_flow.network import Transform, drawn_secrets
from masquerade.identity_flow.phases import Phase, pairs
from masquerade.identity_flow.settings import IdentityFlowSettings
from masquerade.identity_flow.world import Known, World
from masquerade.optimisers import Optimisers


class Rehearsal(Phase):
    """T and C on identity vectors (M, 512) of the training pictures; the terms are those of Eq. 22 but L_Img."""

    name = "rehearsal"

    def __init__(self, settings: IdentityFlowSettings, world: World, known: Known, seed: int, transform: Transform):
        super().__init__(settings, world, known, seed)
        asked = settings.rehearsal
        self.steps, self.transform = asked.steps, transform
        self.modules = {"transform": transform}
        self.optimisers = Optimisers(self.modules, asked.learning_rate, settings.betas)
        self.visible = visible(known.identity, asked.floor).to(world.device)

    def step(self, step: int) -> dict[str, float]:
        asked, transform = self.settings.rehearsal, self.transform
        draw = seeding.generator(self.seed, "rehearsal", step)
        identity = self.identities(pairs(draw, len(self.known), asked.batch))
        first, second = drawn_secrets(self.world.generator, draw, asked.batch)
        hidden = torch.cat([transform(identity, first), transform(identity, second)])
        drawn = normalize(hidden @ self.visible)
        others = self.identities(draw.integers(0, len(self.known), len(drawn)))
        corrected = transform.compensation(normalize(drawn + asked.noise * others))
        mine = corrected[: len(first)]
        back = transform.inverse(mine, first), transform.inverse(mine, second)
        values = {
            "anonymity": losses.anonymity(drawn, torch.cat([identity, identity])),
            "recovery": losses.recovery(*back, identity),
            "spread": energy_distance(hidden, others),
        }
        if self.settings.compensation:
            values["compensation"] = losses.compensation(corrected, hidden)
        if self.settings.diversity_loss:
            values["diversity"] = losses.diversity(*drawn.chunk(2))
        total = sum(asked.spread * value if name == "spread" else value for name, value in values.items())
        self.optimisers.descend(total, self.rate(step))
        return {f"rehearsal/{name}": value.item() for name, value in (values | {"total": total}).items()}

    def identities(self, rows: np.ndarray) -> Tensor:
        return self.known.identity[torch.from_numpy(rows)].to(self.world.device)


def visible(identity: Tensor, floor: float) -> Tensor:
    """What pictures show of an identity vector, (D, D): each principal direction of ``identity`` (M, D) by v / (v + f).

    v: its mean square; f: ``floor`` of the largest one. No face tells apart what no faces differ in.
    """
    moments = identity.double().cpu().T @ identity.double().cpu() / len(identity)
    values, directions = torch.linalg.eigh(moments)
    values = values.clamp(min=0)
    return (directions * (values / (values + floor * values.max())) @ directions.T).float()
