"""The networks of the package face-alignment: S3FD finds faces, FAN finds their 68 landmarks."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

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
    """8-bit images (N, 3, H, W), BGR in [0, 255] -> (boxes (N, A, 4), scores (N, A)) of all A anchors.

    A box is left, top, right, bottom in pixels; the first pixel of an image extends from 0 to 1. A score is the
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
            boxes.append(decode_boxes(getattr(self, f"{layer}_mbox_loc")(features), stride=4 * 2**number))
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


def decode_boxes(offsets: Tensor, stride: int) -> Tensor:
    """Offsets (N, 4, h, w) from the anchors of a detection layer -> boxes (N, h w, 4) in pixels."""
    _, _, height, width = offsets.shape
    x = (torch.arange(width, device=offsets.device) + 0.5) * stride
    y = (torch.arange(height, device=offsets.device) + 0.5) * stride
    center = torch.stack(torch.meshgrid(x, y, indexing="xy")).flatten(1).T  # (h w, 2), row by row
    moved, grown = offsets.flatten(2).transpose(1, 2).split(2, dim=2)
    side = 4 * stride
    center, half = center + moved * VARIANCES[0] * side, 0.5 * side * (grown * VARIANCES[1]).exp()
    return torch.cat([center - half, center + half], dim=2)


POINTS, WIDTH, DEPTH = 68, 256, 4


class ConvBlock(nn.Module):
    """Three 3 x 3 convolutions in a row with 1/2, 1/4 and 1/4 of the channels, concatenated, and a shortcut."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        half, quarter = outputs // 2, outputs // 4
        self.bn1, self.conv1 = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, half, 3, padding=1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(half), nn.Conv2d(half, quarter, 3, padding=1, bias=False)
        self.bn3, self.conv3 = nn.BatchNorm2d(quarter), nn.Conv2d(quarter, quarter, 3, padding=1, bias=False)
        self.downsample = None
        if inputs != outputs:
            self.downsample = nn.Sequential(
                nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, outputs, 1, bias=False)
            )

    def forward(self, x: Tensor) -> Tensor:
        first = self.conv1(self.bn1(x).relu())
        second = self.conv2(self.bn2(first).relu())
        third = self.conv3(self.bn3(second).relu())
        shortcut = x if self.downsample is None else self.downsample(x)
        return torch.cat([first, second, third], dim=1) + shortcut


class Hourglass(nn.Module):
    """Reduces features to a sixteenth of their size and enlarges them again, with a skip branch at each size."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.depth = depth
        for level in range(depth, 0, -1):
            for name in ("b1", "b2", *(["b2_plus"] if level == 1 else []), "b3"):
                self.add_module(f"{name}_{level}", ConvBlock(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return self._at(self.depth, x)

    def _at(self, level: int, x: Tensor) -> Tensor:
        def block(name: str, features: Tensor) -> Tensor:
            return getattr(self, f"{name}_{level}")(features)

        low = block("b2", functional.avg_pool2d(x, 2))
        low = block("b2_plus", low) if level == 1 else self._at(level - 1, low)
        return block("b1", x) + functional.interpolate(block("b3", low), scale_factor=2, mode="nearest")


class FAN(nn.Module):
    """Faces (N, 3, 256, 256), RGB in [0, 1] -> heat maps (N, 68, 64, 64) of the last hourglass, iBUG order."""

    def __init__(self, modules: int = 4):
        super().__init__()
        self.count = modules
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64)
        self.conv2, self.conv3, self.conv4 = ConvBlock(64, 128), ConvBlock(128, 128), ConvBlock(128, WIDTH)
        for number in range(modules):
            self.add_module(f"m{number}", Hourglass(WIDTH, DEPTH))
            self.add_module(f"top_m_{number}", ConvBlock(WIDTH, WIDTH))
            self.add_module(f"conv_last{number}", nn.Conv2d(WIDTH, WIDTH, 1))
            self.add_module(f"bn_end{number}", nn.BatchNorm2d(WIDTH))
            self.add_module(f"l{number}", nn.Conv2d(WIDTH, POINTS, 1))
            if number < modules - 1:
                self.add_module(f"bl{number}", nn.Conv2d(WIDTH, WIDTH, 1))
                self.add_module(f"al{number}", nn.Conv2d(POINTS, WIDTH, 1))

    def forward(self, images: Tensor) -> Tensor:
        x = functional.avg_pool2d(self.conv2(self.bn1(self.conv1(images)).relu()), 2)
        x = maps = self.conv4(self.conv3(x))
        for number in range(self.count):
            part: dict[str, Any] = {name: getattr(self, f"{name}{number}", None)
                    for name in ("m", "top_m_", "conv_last", "bn_end", "l", "bl", "al")}  # fmt: skip
            features = part["bn_end"](part["conv_last"](part["top_m_"](part["m"](x)))).relu()
            maps = part["l"](features)
            if part["bl"] is not None:
                x = x + part["bl"](features) + part["al"](maps)
        return maps


def find_peaks(maps: Tensor) -> Tensor:
    """Heat maps (N, P, S, S) -> x, y (N, P, 2) of their maxima as shares of the side.

    A maximum that is not at the edge is moved by a quarter of a cell towards its higher neighbor, in x and in y (Bulat
    and Tzimiropoulos 2017, published code).
    """
    side = maps.shape[2]
    best = maps.flatten(2).argmax(2)
    x, y = best % side, best // side
    inside = (x > 0) & (x < side - 1) & (y > 0) & (y < side - 1)

    def at(row: Tensor, column: Tensor) -> Tensor:
        position = row.clamp(0, side - 1) * side + column.clamp(0, side - 1)
        return maps.flatten(2).gather(2, position[..., None])[..., 0]

    slope = torch.stack([at(y, x + 1) - at(y, x - 1), at(y + 1, x) - at(y - 1, x)], dim=-1)
    cell = torch.stack([x, y], dim=-1) + 0.5
    return (cell + 0.25 * slope.sign() * inside[..., None]) / side
