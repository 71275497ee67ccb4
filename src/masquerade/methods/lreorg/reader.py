"""A network that predicts identity and features of a face from its code, for cheap updates without drawing."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.core import seeding
from masquerade.training.optimizers import Optimizers, cooldown_share

HIDDEN = 384  # width of its two inner layers
BATCH = 128  # faces in one update
RATE, COOLDOWN = 0.01, 0.5  # learning rate of Muon for the matrices, and the share of the updates over which it falls
OTHERS_RATE, BETAS = 0.1, (0.9, 0.99)  # learning rate of Adam for the biases, as a share of Muon's; betas of Adam


class Reader(nn.Module):
    """Codes (N, width) -> the unit identity vectors (N, D) and text-image features (N, E) of their pictures."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, codes: Tensor, identities: Tensor, features: Tensor):
        super().__init__()
        self.register_buffer("mean", codes.mean(0))
        self.register_buffer("deviation", (codes - codes.mean(0)).square().mean().sqrt())
        self.widths = (identities.shape[1], features.shape[1])
        self.layers = nn.Sequential(
            nn.Linear(codes.shape[1], HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU(),
            nn.Linear(HIDDEN, sum(self.widths)),
        )  # fmt: skip

    def forward(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        identities, features = self.layers((codes - self.mean) / self.deviation).split(self.widths, dim=1)
        return functional.normalize(identities), features


def train(codes: Tensor, identities: Tensor, features: Tensor, steps: int, seed: int) -> Reader:
    """A reader, trained on faces with known codes (F, style), identities (F, D) and features (F, E)."""
    torch.manual_seed(seeding.derive_seed(seed, "reader"))
    reader = Reader(codes, identities, features).to(codes.device)
    optimizers = Optimizers({"reader": reader}, RATE, BETAS, (2,), OTHERS_RATE)
    spread = features.var()
    for step in range(steps):
        draw = seeding.make_generator(seed, "reader", step)
        rows = torch.from_numpy(draw.choice(len(codes), min(BATCH, len(codes)), replace=False))
        vectors, predicted = reader(codes[rows])
        loss = (1 - (vectors * identities[rows]).sum(1)).mean() + (predicted - features[rows]).square().mean() / spread
        optimizers.descend(loss, cooldown_share(step, steps, COOLDOWN))
    return reader.requires_grad_(False)


@torch.no_grad()
def agreement(reader: Reader, codes: Tensor, identities: Tensor, features: Tensor) -> dict[str, float]:
    """Mean cosines of the predictions and the known identities and features, -1 .. 1."""
    vectors, predicted = reader(codes)
    return {
        "identity": functional.cosine_similarity(vectors, identities).mean().item(),
        "features": functional.cosine_similarity(predicted, features).mean().item(),
    }
