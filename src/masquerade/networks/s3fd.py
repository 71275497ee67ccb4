"""S3FD: a single-shot detector for faces of many sizes, on VGG-16 (Zhang et al. 2017, arXiv:1708.05237).

The names and shapes of the tensors are those of ``s3fd-619a316812.pth``, so that its weights load strictly.
"""

import torch
from torch import Tensor, nn

VGG = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and convolutions of the five stages of VGG-16."""
DETECTION = {"conv3_3_norm": 256, "conv4_3_norm": 512, "conv5_3_norm": 512, "fc7": 1024, "conv6_2": 512, "conv7_2": 256}
"""Detection layers and their channels, at strides 4, 8, ... 128; an anchor is four strides wide (section 3.1)."""
BACKGROUNDS = 3
"""Number of background scores of the finest layer; the largest is used (max-out background label: section 3.3)."""
VARIANCES = (0.1, 0.2)
"""Factors of the offsets of a box's center and size (as in SSD and in the published code)."""
MEAN = (104.0, 117.0, 123.0)
"""Mean of the 8-bit values: blue, green, red."""


class L2Norm(nn.Module):
    """Scales the channels of each position to unit length, then by a learned factor (Liu et al. 2016, ParseNet)."""

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        return x / (x.square().sum(dim=1, keepdim=True).sqrt() + 1e-10) * self.weight[:, None, None]


class S3FD(nn.Module):
    """8-bit pictures (N, 3, H, W), BGR in [0, 255] -> (boxes (N, A, 4), scores (N, A)) of all A anchors.

    A box is left, top, right, bottom in pixels; the first pixel of a picture extends from 0 to 1. A score is the
    probability of a face.
    """

    def __init__(self):
        super().__init__()
        inputs = 3
        for stage, (outputs, count) in enumerate(VGG, start=1):
            for number in range(1, count + 1):
                self.add_module(f"conv{stage}_{number}", nn.Conv2d(inputs, outputs, 3, padding=1))
                inputs = outputs
        self.fc6, self.fc7 = nn.Conv2d(512, 1024, 3, padding=3), nn.Conv2d(1024, 1024, 1)
        self.conv6_1, self.conv6_2 = nn.Conv2d(1024, 256, 1), nn.Conv2d(256, 512, 3, 2, 1)
        self.conv7_1, self.conv7_2 = nn.Conv2d(512, 128, 1), nn.Conv2d(128, 256, 3, 2, 1)
        for number, (layer, channels) in enumerate(DETECTION.items()):
            if layer.endswith("norm"):
                self.add_module(layer, L2Norm(channels))
            scores = BACKGROUNDS + 1 if number == 0 else 2
            self.add_module(f"{layer}_mbox_conf", nn.Conv2d(channels, scores, 3, padding=1))
            self.add_module(f"{layer}_mbox_loc", nn.Conv2d(channels, 4, 3, padding=1))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        boxes, scores = [], []
        for number, (layer, features) in enumerate(self.features(images).items()):
            score = getattr(self, f"{layer}_mbox_conf")(features)
            score = torch.cat([score[:, :-1].amax(dim=1, keepdim=True), score[:, -1:]], dim=1)
            scores.append(score.softmax(dim=1)[:, 1].flatten(1))
            boxes.append(decoded(getattr(self, f"{layer}_mbox_loc")(features), stride=4 * 2**number))
        return torch.cat(boxes, dim=1), torch.cat(scores, dim=1)

    def features(self, images: Tensor) -> dict[str, Tensor]:
        """Detection layer -> its input."""
        x = images - images.new_tensor(MEAN)[:, None, None]
        inputs = {}
        for stage, (_, count) in enumerate(VGG, start=1):
            for number in range(1, count + 1):
                x = getattr(self, f"conv{stage}_{number}")(x).relu()
            if stage > 2:
                inputs[f"conv{stage}_3_norm"] = getattr(self, f"conv{stage}_3_norm")(x)
            x = nn.functional.max_pool2d(x, 2)
        for layer in ("fc6", "fc7", "conv6_1", "conv6_2", "conv7_1", "conv7_2"):
            x = getattr(self, layer)(x).relu()
            if layer in DETECTION:
                inputs[layer] = x
        return inputs


def decoded(offsets: Tensor, stride: int) -> Tensor:
    """Offsets (N, 4, h, w) from the anchors of a detection layer -> boxes (N, h w, 4) in pixels."""
    _, _, height, width = offsets.shape
    x = (torch.arange(width, device=offsets.device) + 0.5) * stride
    y = (torch.arange(height, device=offsets.device) + 0.5) * stride
    center = torch.stack(torch.meshgrid(x, y, indexing="xy")).flatten(1).T  # (h w, 2), row by row
    moved, grown = offsets.flatten(2).transpose(1, 2).split(2, dim=2)
    side = 4 * stride
    center, half = center + moved * VARIANCES[0] * side, 0.5 * side * (grown * VARIANCES[1]).exp()
    return torch.cat([center - half, center + half], dim=2)
