"""The networks of LReOrg: the disentanglement-fusion network (section 3.2, Eq. 1-4), its keywords, and a reader.

One stack of blocks works in two directions. Forwards it disentangles a latent code into a key feature, which the
keyword names, and a residual feature. Backwards it fuses two such features into a code. Each direction is the exact
inverse of the other, whatever the linear and the dense blocks compute. The reader predicts identity and features of a
face from its code, so that small scales can train without drawing images (ours).
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.semantics.network import SemanticEncoder
from masquerade.core import seeding
from masquerade.methods.lreorg import Keyword
from masquerade.training.optimizers import Optimizers, compute_cooldown

SLOPE = 0.2  # of the leaky rectifiers, as in the dense blocks of Wang et al. 2018 (ESRGAN)
START = 0.1  # initial size of a block's last layer, relative to the size that keeps the variance
DENSE_LAYERS = 5  # of a dense block: Wang et al. 2018 and HiNet

READER_HIDDEN = 384  # width of the two inner layers of the reader
READER_BATCH = 128  # faces in one update of it
READER_RATE, READER_COOLDOWN = 0.01, 0.5  # rate of Muon for its matrices; share of the updates in which it falls
READER_OTHERS_RATE, READER_BETAS = 0.1, (0.9, 0.99)  # Adam for its biases: rate as a share of Muon's, and betas


class LinearBlock(nn.Module):
    """phi(a, b) = FC(concat(FC(a), FC(b))): (..., width) and a condition (..., condition) -> (..., width)."""

    def __init__(self, width: int, condition: int, hidden: int):
        super().__init__()
        self.of_feature, self.of_condition = nn.Linear(width, hidden), nn.Linear(condition, hidden)
        self.out = nn.Linear(2 * hidden, width)
        _start_small(self.out)

    def forward(self, feature: Tensor, condition: Tensor) -> Tensor:
        both = torch.cat([self.of_feature(feature), self.of_condition(condition)], dim=-1)
        return self.out(functional.leaky_relu(both, SLOPE))


class DenseBlock(nn.Module):
    """psi: (..., width) -> (..., width); the input of each layer is that of the block and all earlier outputs."""

    def __init__(self, width: int, growth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width + number * growth, growth) for number in range(DENSE_LAYERS - 1))
        self.out = nn.Linear(width + (DENSE_LAYERS - 1) * growth, width)
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            nn.init.kaiming_normal_(layer.weight, a=SLOPE)
            nn.init.zeros_(layer.bias)
        _start_small(self.out)

    def forward(self, feature: Tensor) -> Tensor:
        for layer in self.layers:
            feature = torch.cat([feature, functional.leaky_relu(layer(feature), SLOPE)], dim=-1)
        return self.out(feature)


class DisentanglementBlock(nn.Module):
    """One CDB: a pair of (..., width) and a condition -> a pair. ``inverse`` is the CFB, with the same weights."""

    def __init__(self, width: int, condition: int, hidden: int, growth: int, limit: float):
        super().__init__()
        self.limit = limit
        self.phi_1, self.phi_2, self.phi_3 = (LinearBlock(width, condition, hidden) for _ in range(3))
        self.psi_1, self.psi_2, self.psi_3 = (DenseBlock(width, growth) for _ in range(3))

    def forward(self, first: Tensor, second: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        first = first + self.phi_1(second, condition)  # Eq. 1, forward condition block
        second = second * torch.exp(self._bound(self.phi_2(first, condition))) + self.phi_3(first, condition)
        first = first + self.psi_1(second)  # Eq. 2, disentangle block
        second = second * torch.exp(self._bound(self.psi_2(first))) + self.psi_3(first)
        return first, second

    def inverse(self, first: Tensor, second: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        second = (second - self.psi_3(first)) * torch.exp(-self._bound(self.psi_2(first)))  # Eq. 3, fusion block
        first = first - self.psi_1(second)
        # Eq. 4, backward condition block: phi_2 and phi_3 have the inputs of Eq. 1 (docs/lreorg.md)
        second = (second - self.phi_3(first, condition)) * torch.exp(-self._bound(self.phi_2(first, condition)))
        first = first - self.phi_1(second, condition)
        return first, second

    def _bound(self, x: Tensor) -> Tensor:
        """sigma of Eq. 1-4: between -limit and limit, 0 at 0 (HiNet, Jing et al. 2021)."""
        return self.limit * (2 * torch.sigmoid(x) - 1)


class CDFNet(nn.Module):
    """Codes (N, ..., width) with conditions (N, condition) <-> key and residual features of the same shape.

    A code of several style layers is disentangled layer by layer. Codes are standardized by ``mean`` and ``deviation``
    of the latent space on the way in, and the reverse on the way out.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, width: int, condition: int, blocks: int, hidden: int, growth: int, limit: float = 2.0):
        super().__init__()
        self.blocks = nn.ModuleList(
            DisentanglementBlock(width, condition, hidden, growth, limit) for _ in range(blocks)
        )
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(()))

    def disentangle(self, codes: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """The key feature f and the residual feature r of codes s: the forward process, from the pair (0, s)."""
        second = (codes - self.mean) / self.deviation
        first, condition = torch.zeros_like(second), _repeat_condition(condition, codes.shape)
        for block in self.blocks:
            first, second = block(first, second, condition)
        return first, second

    def fuse(self, key: Tensor, residual: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """(delta r, s) by the backward process. The information loss delta r is 0 if both features are of one code."""
        first, second, condition = key, residual, _repeat_condition(condition, key.shape)
        for block in reversed(self.blocks):
            assert isinstance(block, DisentanglementBlock)
            first, second = block.inverse(first, second, condition)
        return first, second * self.deviation + self.mean


def _repeat_condition(condition: Tensor, shape: Sequence[int]) -> Tensor:
    """(N, condition) for every style layer of codes of ``shape``."""
    between = len(shape) - 2
    return condition.view(len(condition), *[1] * between, -1).expand(*shape[:-1], -1)


def _start_small(layer: nn.Linear) -> None:
    """Initialize the last layer of a block so that the block changes little at first.

    HiNet starts with no change at all. Here that would stop every gradient, because the first of the pair is 0.
    """
    nn.init.kaiming_normal_(layer.weight, a=SLOPE)
    nn.init.zeros_(layer.bias)
    with torch.no_grad():
        layer.weight.mul_(START)


class Vocabulary:
    """``conditions``: keyword -> the condition (D,) of the network. ``contents``: keyword -> features (C, D) of t_ij.

    A condition has length sqrt(D), so that its numbers are about 1, as those of standardized codes. The features of
    contents have length 1. Both are on the encoder's device. Raises CheckpointError if the text-image model has no text
    encoder.
    """

    @torch.no_grad()
    def __init__(self, encoder: SemanticEncoder, keywords: Mapping[str, Keyword]):
        texts = {name: encoder.text([keyword.condition])[0] for name, keyword in keywords.items()}  # unit vectors (D,)
        self.conditions = {name: text * len(text) ** 0.5 for name, text in texts.items()}
        self.contents = {
            name: encoder.text(keyword.sentences) for name, keyword in keywords.items() if keyword.contents
        }
        self._scale = encoder.network.logit_scale.exp()

    def condition(self, keyword: str, count: int) -> Tensor:
        """(count, D): the condition of the keyword, once for each image."""
        return self.conditions[keyword].expand(count, -1)

    def log_probabilities(self, keyword: str, features: Tensor) -> Tensor:
        """log D(I, t_ij) of Eq. 10: features (N, D) of images -> log probabilities of the contents, (N, C).

        The softmax over contents of the cosines, at the temperature of the model, as CLIP classifies.
        """
        cosines = functional.normalize(features, dim=-1) @ self.contents[keyword].T
        return (self._scale * cosines).log_softmax(-1)


class Reader(nn.Module):
    """Codes (N, width) -> the unit identity vectors (N, D) and text-image features (N, E) of their images."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, codes: Tensor, identities: Tensor, features: Tensor):
        super().__init__()
        self.register_buffer("mean", codes.mean(0))
        self.register_buffer("deviation", (codes - codes.mean(0)).square().mean().sqrt())
        self.widths = (identities.shape[1], features.shape[1])
        self.layers = nn.Sequential(
            nn.Linear(codes.shape[1], READER_HIDDEN), nn.GELU(), nn.Linear(READER_HIDDEN, READER_HIDDEN), nn.GELU(),
            nn.Linear(READER_HIDDEN, sum(self.widths)),
        )  # fmt: skip

    def forward(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        identities, features = self.layers((codes - self.mean) / self.deviation).split(self.widths, dim=1)
        return functional.normalize(identities), features


def train_reader(codes: Tensor, identities: Tensor, features: Tensor, steps: int, seed: int) -> Reader:
    """A reader, trained on faces with known codes (F, style), identities (F, D) and features (F, E)."""
    torch.manual_seed(seeding.derive_seed(seed, "reader"))
    reader = Reader(codes, identities, features).to(codes.device)
    optimizers = Optimizers({"reader": reader}, READER_RATE, READER_BETAS, (2,), READER_OTHERS_RATE)
    spread = features.var()
    for step in range(steps):
        draw = seeding.make_generator(seed, "reader", step)
        rows = torch.from_numpy(draw.choice(len(codes), min(READER_BATCH, len(codes)), replace=False))
        vectors, predicted = reader(codes[rows])
        loss = (1 - (vectors * identities[rows]).sum(1)).mean() + (predicted - features[rows]).square().mean() / spread
        optimizers.descend(loss, compute_cooldown(step, steps, READER_COOLDOWN))
    return reader.requires_grad_(False)
