"""Images made worse as photographs are: compression, blur, grain, light, and a face not quite in its place."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from masquerade.networks import deterministic
from masquerade.training.batches import build_maps

BLUR = 1.3  # largest deviation of the blur, in pixels of the encoder's input
GRAIN = 0.08  # largest deviation of the grain, in [-1, 1]
QUALITY = (20.0, 95.0)  # of JPEG
SHIFT, TURN, ZOOM = 0.02, 4.0, 0.04  # as a share of the side, in degrees, as a share
LIGHT, COLOR = 0.25, 0.08  # largest exponent of the gamma, largest change of a color channel
SHARE = 0.6  # of the images that have a given fault
YCBCR = ((0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))  # ITU-T T.871
LUMINANCE = (
    (16, 11, 10, 16, 24, 40, 51, 61), (12, 12, 14, 19, 26, 58, 60, 55), (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62), (18, 22, 37, 56, 68, 109, 103, 77), (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101), (72, 92, 95, 98, 112, 100, 103, 99),
)  # fmt: skip
CHROMINANCE = ((17, 18, 24, 47), (18, 21, 26, 66), (24, 26, 56, 99), (47, 66, 99, 99))  # the rest is 99
"""Steps of quantization of JPEG at quality 50: ITU-T T.81, tables K.1 and K.2."""


def degrade(images: Tensor, draw: np.random.Generator) -> Tensor:
    """Images (N, 3, H, W) in [-1, 1] with the faults of photographs, each image with its own.

    What the faults hide is still in the image's code: blur, grain, compression, and a small shift, turn and zoom.
    """
    count = len(images)

    def some(most: float, least: float = 0.0) -> np.ndarray:
        """A strength for each image; 0 for those without the fault."""
        return draw.uniform(least, most, count) * (draw.random(count) < SHARE)

    moved_images = move_images(images, some(SHIFT, -SHIFT), some(SHIFT, -SHIFT), some(TURN, -TURN), some(ZOOM, -ZOOM))
    soft = blur(moved_images, some(BLUR))
    noise = torch.from_numpy(draw.standard_normal(tuple(images.shape), dtype=np.float32)).to(images)
    grainy = (soft + noise * _expand(some(GRAIN), images)).clamp(-1, 1)
    compressed = compress(grainy, draw.uniform(*QUALITY, count))
    return torch.where(_expand((draw.random(count) < SHARE).astype(np.float64), images) > 0, compressed, grainy)


def relight(images: Tensor, draw: np.random.Generator) -> Tensor:
    """Images (N, 3, H, W) in [-1, 1] in another light: a gamma, and a gain of each color.

    The light is part of what a code says, so a target must have it too.
    """
    count = len(images)
    gamma = _expand(np.exp(draw.uniform(-LIGHT, LIGHT, count)), images)
    gain = torch.from_numpy(1 + draw.uniform(-COLOR, COLOR, (count, 3, 1, 1))).to(images)
    return (((images + 1) / 2).clamp(1e-4, 1) ** gamma * gain).clamp(0, 1) * 2 - 1


def move_images(images: Tensor, right: np.ndarray, down: np.ndarray, turn: np.ndarray, zoom: np.ndarray) -> Tensor:
    """Images moved by shares of their side, turned by degrees, and enlarged by a share; edges are mirrored."""
    maps = build_maps(np.radians(turn), 1 / (1 + zoom), -2 * np.stack([right, down], axis=1)).to(images)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def blur(images: Tensor, deviations: np.ndarray) -> Tensor:
    """Each image after a Gaussian blur of its own deviation in pixels; 0: as it is."""
    count, channels, height = images.shape[:3]
    reach = math.ceil(2 * BLUR)
    places = torch.arange(-reach, reach + 1).to(images)
    kernels = torch.exp(-0.5 * (places / _expand(deviations, images).clamp(min=1e-2)[:, 0, 0]) ** 2)
    kernels = (kernels / kernels.sum(1, keepdim=True)).repeat_interleave(channels, 0)
    flat = deterministic.reflect(images, reach).view(1, count * channels, height + 2 * reach, -1)
    flat = functional.conv2d(flat, kernels[:, None, :, None], groups=count * channels)
    return functional.conv2d(flat, kernels[:, None, None, :], groups=count * channels).view(images.shape)


def compress(images: Tensor, quality: np.ndarray) -> Tensor:
    """Images (N, 3, H, W) in [-1, 1], H and W multiples of 16, as JPEG of its own quality (1 to 100) shows each.

    Cosine transform of blocks of 8 x 8, quantization, colors at half the resolution (ITU-T T.81; scaling of the tables
    as in libjpeg). The lossless part of the format is left out.
    """
    scale = np.where(quality < 50, 50 / quality, 2 - quality / 50)
    matrix = torch.tensor(YCBCR).to(images)
    planes = torch.einsum("ij,njhw->nihw", matrix, images) * 127.5  # of gray 127.5
    coarse = torch.full((8, 8), 99.0)
    coarse[:4, :4] = torch.tensor(CHROMINANCE, dtype=torch.float32)
    table = torch.tensor(LUMINANCE, dtype=torch.float32).to(images)
    light = _quantize(planes[:, :1] - 0.5, table, scale) + 0.5  # the standard subtracts 128
    colors = _quantize(functional.avg_pool2d(planes[:, 1:], 2), coarse.to(images), scale)
    planes = torch.cat([light, functional.interpolate(colors, scale_factor=2, mode="nearest")], 1) / 127.5
    return torch.einsum("ij,njhw->nihw", torch.linalg.inv(matrix.cpu()).to(images), planes).clamp(-1, 1)


def _quantize(planes: Tensor, table: Tensor, scale: np.ndarray) -> Tensor:
    """Planes (N, C, H, W) after the quantization of their blocks by ``table`` times the ``scale`` of each image."""
    count, channels, height, width = planes.shape
    steps = (table * torch.from_numpy(scale).to(planes)[:, None, None]).round().clamp(1, 255)[:, None, None, None]
    frequency, place = np.mgrid[:8, :8]
    cosines = np.cos((2 * place + 1) * frequency * np.pi / 16) * np.where(frequency == 0, np.sqrt(1 / 8), 0.5)
    transform = torch.from_numpy(cosines).to(planes)
    blocks = planes.view(count, channels, height // 8, 8, width // 8, 8).transpose(3, 4)
    blocks = transform @ blocks @ transform.T
    blocks = transform.T @ ((blocks / steps).round() * steps) @ transform
    return blocks.transpose(3, 4).reshape(planes.shape)


def _expand(values: np.ndarray, images: Tensor) -> Tensor:
    """A number for each image, as a tensor (N, 1, 1, 1)."""
    return torch.from_numpy(values).to(images)[:, None, None, None]
