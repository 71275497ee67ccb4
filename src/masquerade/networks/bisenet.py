"""BiSeNet: face parsing by a context path, attention and fusion (Yu et al. 2018, arXiv:1808.00897).

As published for faces (zllrunning/face-parsing.PyTorch): the context path is a ResNet-18, and its features at one
eighth of the image replace the paper's spatial path. The names and shapes of the tensors are those of
``79999_iter.pth`` (cp.resnet, cp.arm16, ..., ffm, conv_out, conv_out16, conv_out32), so that its weights load strictly.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate


class ConvBNReLU(nn.Module):
    """Convolution without bias, batch normalization, ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(self.conv(x)).relu()


class BasicBlock(nn.Module):
    """The residual block of ResNet-18 (He et al. 2016, Figure 2); the first convolution has the ``stride``."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if inputs != outputs or stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        return (shortcut + self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))).relu()


class ResNet18(nn.Module):
    """Images (N, 3, H, W) -> features at 1/stride, 1/(2 stride) and 1/(4 stride) of H and W."""

    def __init__(self, width: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if stride == 8 else nn.Identity()
        self.layer1 = _build_layer(width, width, 1)
        self.layer2 = _build_layer(width, 2 * width, 1 if stride == 2 else 2)
        self.layer3 = _build_layer(2 * width, 4 * width, 2)
        self.layer4 = _build_layer(4 * width, 8 * width, 2)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        fine = self.layer2(self.layer1(self.maxpool(self.bn1(self.conv1(images)).relu())))
        middle = self.layer3(fine)
        return fine, middle, self.layer4(middle)


class AttentionRefinement(nn.Module):
    """Scales channels by weights computed from the means of all channels (Yu et al. 2018, section 3.2, Figure 2b)."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.conv = ConvBNReLU(inputs, outputs)
        self.conv_atten = nn.Conv2d(outputs, outputs, 1, bias=False)
        self.bn_atten = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        features = self.conv(x)
        return features * self.bn_atten(self.conv_atten(features.mean((2, 3), keepdim=True))).sigmoid()


class ContextPath(nn.Module):
    """Images -> (features at 1/8, context at 1/8, context at 1/16 of the size); the sizes are the published ones."""

    def __init__(self, width: int, stride: int):
        super().__init__()
        self.resnet = ResNet18(width, stride)
        self.arm16 = AttentionRefinement(4 * width, 2 * width)
        self.arm32 = AttentionRefinement(8 * width, 2 * width)
        self.conv_head32 = ConvBNReLU(2 * width, 2 * width)
        self.conv_head16 = ConvBNReLU(2 * width, 2 * width)
        self.conv_avg = ConvBNReLU(8 * width, 2 * width, kernel=1)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # at 1/8, 1/16 and 1/32 of the size: (N, 2 width, h, w), (N, 4 width, h / 2, w / 2), (N, 8 width, h / 4, w / 4)
        feat8, feat16, feat32 = self.resnet(images)
        average = self.conv_avg(feat32.mean((2, 3), keepdim=True))  # (N, 2 width, 1, 1)
        up16 = self.conv_head32(interpolate(self.arm32(feat32) + average, feat16.shape[2:], mode="nearest"))
        up8 = self.conv_head16(interpolate(self.arm16(feat16) + up16, feat8.shape[2:], mode="nearest"))
        return feat8, up8, up16


class FeatureFusion(nn.Module):
    """Stacks spatial and context features and weights each channel (Yu et al. 2018, section 3.3, Figure 2c)."""

    def __init__(self, channels: int):
        super().__init__()
        self.convblk = ConvBNReLU(channels, channels, kernel=1)
        self.conv1 = nn.Conv2d(channels, channels // 4, 1, bias=False)
        self.conv2 = nn.Conv2d(channels // 4, channels, 1, bias=False)

    def forward(self, spatial: Tensor, context: Tensor) -> Tensor:
        features = self.convblk(torch.cat([spatial, context], dim=1))
        weight = self.conv2(self.conv1(features.mean((2, 3), keepdim=True)).relu()).sigmoid()
        return features + features * weight


class Output(nn.Module):
    """Features -> one map for each class."""

    def __init__(self, inputs: int, middle: int, classes: int):
        super().__init__()
        self.conv = ConvBNReLU(inputs, middle)
        self.conv_out = nn.Conv2d(middle, classes, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv_out(self.conv(x))


class BiSeNet(nn.Module):
    """Normalized images (N, 3, H, W) -> three logits (N, classes, H, W).

    The first is the result. The other two, from 1/8 and 1/16 of the context path, have a loss in training too (Yu et
    al. 2018, Eq. 2). ``width``: channels of the stem (64: ResNet-18). ``stride``: input pixels per position of the
    finest features, 2, 4 or 8; with 4 the max pooling does not halve, with 2 neither does layer2, which suits small
    images.
    """

    def __init__(self, classes: int = 19, width: int = 64, stride: int = 8):
        super().__init__()
        self.cp = ContextPath(width, stride)
        self.ffm = FeatureFusion(4 * width)
        self.conv_out = Output(4 * width, 4 * width, classes)
        self.conv_out16 = Output(2 * width, width, classes)
        self.conv_out32 = Output(2 * width, width, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, a=1)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        feat8, up8, up16 = self.cp(images)
        map8, map16, map32 = self.conv_out(self.ffm(feat8, up8)), self.conv_out16(up8), self.conv_out32(up16)
        return _enlarge(map8, images), _enlarge(map16, images), _enlarge(map32, images)

    def answer(self, images: Tensor) -> Tensor:
        """The first of the three logits only."""
        feat8, up8, _ = self.cp(images)
        return _enlarge(self.conv_out(self.ffm(feat8, up8)), images)


def _enlarge(maps: Tensor, images: Tensor) -> Tensor:
    """``maps`` at the size of ``images``, in channels-last order: on a CPU an eighth of the time."""
    maps = maps.contiguous(memory_format=torch.channels_last)
    return interpolate(maps, images.shape[2:], mode="bilinear", align_corners=True)


def _build_layer(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1))
