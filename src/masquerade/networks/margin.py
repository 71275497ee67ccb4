"""The additive angular margin of ArcFace (Deng et al. 2019, Eq. 3)."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class ArcMargin(nn.Module):
    """Logits s * cos(theta_j), and s * cos(theta_y + m) for the true class y; theta_j is the angle to class center j.

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
        return margin_logits(cosine, labels, self.scale, self.margin)


def margin_logits(cosine: Tensor, labels: Tensor, scale: float, margin: float) -> Tensor:
    """Cosines of embeddings and class centers (N, classes), labels (N,) -> ArcFace's logits (N, classes)."""
    true = cosine.gather(1, labels[:, None]).clamp(-1 + 1e-7, 1 - 1e-7)
    angle, added = true.acos(), torch.tensor(margin)
    shifted = torch.where(angle < torch.pi - added, (angle + added).cos(), true - added * added.sin())
    return scale * cosine.scatter(1, labels[:, None], shifted)
