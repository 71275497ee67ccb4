"""The additive angular margin of ArcFace (Deng et al. 2019, Eq. 3)."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class ArcMargin(nn.Module):
    """Logits s * cos(theta_j), and s * cos(theta_y + m) for the true class y; theta_j is the angle to class centre j.

    Beyond theta_y = pi - m the cosine would rise again. There the logit is cos(theta_y) - m sin(m), as in the authors'
    code, and falls further.
    """

    def __init__(self, embedding: int, classes: int, scale: float, margin: float):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, embedding))
        nn.init.xavier_uniform_(self.weight)
        self.scale, self.margin = scale, margin

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """(N, embedding), (N,) -> logits (N, classes)."""
        cosine = functional.linear(functional.normalize(embeddings), functional.normalize(self.weight))
        true = cosine.gather(1, labels[:, None]).clamp(-1 + 1e-7, 1 - 1e-7)
        angle, margin = true.acos(), torch.tensor(self.margin)
        shifted = torch.where(angle < torch.pi - margin, (angle + margin).cos(), true - margin * margin.sin())
        return self.scale * cosine.scatter(1, labels[:, None], shifted)
