"""Strands: what they are, how they are carried to an image, lit and drawn."""

from dataclasses import dataclass

import numpy as np

from drawnpeople import strand_kernels as kernels


@dataclass(frozen=True)
class Strands:
    """Strands on the template. Hairs of a clump share a guide, towards which they converge."""

    kind: str  # hair, brow, beard, lash
    label: int  # parsing class where they cover more than half; -1: they leave the mask as it is
    points: np.ndarray  # (g, k, 3): the guides
    normals: np.ndarray  # (g, k, 3): away from the skin
    roots: tuple | None  # of the guides, (triangles (g,), barycentric (g, 3)): they follow the skin with the expression
    parent: np.ndarray  # (s,) int32: guide of every strand
    offset: (
        np.ndarray
    )  # (s, 5): root along and across the guide, height above it, and how far the tip strays across and up; metres
    reach: np.ndarray  # (s,): where the strand ends on its guide, 0 to 1
    tone: np.ndarray  # (s,): share of the light that its depth in the hair leaves
    color: np.ndarray  # (s, 3)
    width: float  # of a strand, metres
    clump: float  # 0: strands stay parallel to their guide; 1: they meet at its tip
    wave: tuple[float, float]  # radius and length of a wave or curl, metres
    phase: np.ndarray  # (s,): of the wave, radians
    shine: float
    root_dark: float  # share of the light that the roots lack

    @property
    def count(self) -> int:
        return len(self.parent)


def carry(strands: Strands, head) -> np.ndarray:
    """All strands in the world of an image, (s, k, 3)."""
    guides = head.carry(strands.points, strands.roots)
    return kernels.spread(
        np.ascontiguousarray(guides, np.float32), rotate(strands, head), strands.parent, strands.offset, strands.reach,
        (np.float32(strands.clump), np.float32(strands.wave[0]), np.float32(strands.wave[1])), strands.phase,
    )  # fmt: skip


def rotate(strands: Strands, head) -> np.ndarray:
    """The normals of the guides in the world of an image."""
    return kernels.rotate(np.ascontiguousarray(strands.normals), np.asarray(head.turn, np.float32))


def shade_strands(strands: Strands, carried: np.ndarray, head, light) -> np.ndarray:
    """Colors (s, k, 3) of carried strands in linear light: Kajiya and Kay (1989) with two highlights."""
    return kernels.shade(
        carried, rotate(strands, head), (strands.parent, strands.tone, strands.color),
        (light.project(carried), light.maps, light.rows), (np.float32(strands.shine), np.float32(strands.root_dark)),
        strands.kind == "hair",
    )  # fmt: skip


BIAS = {"hair": 0.0015, "brow": 0.004, "beard": 0.004, "lash": 0.003}
"""Metres by which a strand may be under the skin and is still drawn."""
COVERED = {"hair": 0.5, "brow": 0.3, "beard": 0.5, "lash": 0.5}
"""Share of a sample that strands cover where they give it their label."""


def lay(canvas, strands: Strands, projected: np.ndarray, colors: np.ndarray, metres: float) -> np.ndarray:
    """Draw carried strands from the back to the front.

    ``projected`` (s, k, 3): samples right and down, and depth; ``colors`` (s, k, 3); ``metres``: size of a sample.
    Changes the image, depth and label of the canvas, and returns how far the strands cover each sample (n, n), 0 to 1.
    """
    cover = np.zeros(canvas.depth.shape, np.float32)
    kernels.paint(
        projected, colors, kernels.from_back(projected), (canvas.image, canvas.depth, cover),
        np.float32(strands.width / metres), np.float32(BIAS[strands.kind]), strands.kind == "hair",
    )  # fmt: skip
    if strands.label >= 0:
        canvas.label[cover > COVERED[strands.kind]] = strands.label
    return cover
