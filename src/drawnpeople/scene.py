"""Shapes in space, seen through a lens that is focused on the face: what the places are built from."""

import math

import numpy as np

from drawnpeople.kernels import kernel
from drawnpeople.scene_kernels import defocus, paint
from drawnpeople.shot import Shot

FACE = 0.25  # metres across the image at the face
RIM = 10  # pixels around a drawn place, so that blur at the border sees what is outside

PALETTES = {
    "wall": "e8e4dc ded6c8 ceccc6 c4baa8 bac2c4 acb2a8 a09282 d6c8b0 969ea4 787a7a b29c8a 5c6268",
    "backdrop": "e2e2e0 b4b4b2 808080 5a5b5d 3a3a3c 222224 968a7a 706254 545c68 687684 5c6054 b0a494",
    "wood": "966c46 704c30 543826 b0885e 3c2a20 c4a47c",
    "dark": "1e1c1c 2c2826 34363a 24282e 3c322c",
    "cloth": "d6cec0 beb2a0 969692 78685c 68747a e2ded6",
    "print": "966046 5c707c c4ac7e 54604c cec6b6 46464e a04a3a",
    "book": "782c26 263450 cec4ac 3e4e3a 2c2a2c 967648 603c2c b0a088 545c64 dcd6cc 1e3842 864a30 bc3e30 425a70",
    "facade": "b0a08c 967662 8c8882 c4baaa 76584a 707072 a4988c cec8be",
    "leaf": "46582a 3a4c28 5c6c34 2e3e24 6c783e 4e5c38 787c46",
    "autumn": "966e34 aa7c36 80542c 6c6834 8c5c3a",
    "bark": "54463a 423830 685c50",
    "stone": "96928a 7e7a74 aaa49a 686664",
    "car": "282a2e a0a4a8 d2d2d0 5a5e64 622e2a 364050 464a48",
    "people": "32343c 60544c 848280 3c4654 783e38 242428 aaa092",
    "lamp": "ffd696 ffe2b2 fff0d6 ffc478 ecf2ff ffce8c",
    "signal": "ff4632 ff503c ffaa50 78ebaa 96beff ffe2b2",
}
"""sRGB colors of materials, as hexadecimal numbers; large surfaces are muted."""

LINEAR = {
    name: np.array([[(int(code[k : k + 2], 16) / 255.0) ** 2.2 for k in (0, 2, 4)] for code in codes.split()])
    for name, codes in PALETTES.items()
}

Amount = np.ndarray | float
"""A number for each shape, or one for all."""
SKY_BLUE, SKY_WHITE, LIGHT_WARM = np.array([0.50, 0.68, 1.0]), np.array([0.94, 0.98, 1.0]), np.array([1.0, 0.82, 0.58])


class Scene:
    """Shapes in metres: x to the right, y away from the camera, z up; the face is at (0, distance, 0)."""

    def __init__(self, shot: Shot, rng: np.random.Generator):
        self.rng = rng
        self.distance = float(np.clip(shot.distance, 0.6, 6.0))
        self.key = _mean_tint(shot.key)
        self.sky = _mean_tint(shot.sky)
        self.lens = self.one(0.005, 0.019)  # radius of the opening, metres
        self.side = 1.0 if shot.light[0] > 0 else -1.0
        self.single: list[tuple] = []
        self.blocks: list[np.ndarray] = []
        self.layers: list[tuple[np.ndarray, float]] = []

    def one(self, low: float, high: float) -> float:
        return low + (high - low) * self.rng.random()

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, palette, spread: float = 0.10) -> np.ndarray:
        """One color of a palette of sRGB triples, in linear light, a little brighter or darker than there."""
        color = LINEAR[palette][int(self.rng.integers(len(LINEAR[palette])))]
        return color * (1.0 + spread * (2.0 * self.rng.random() - 1.0))

    def some(self, low: float, high: float, count: int) -> np.ndarray:
        return low + (high - low) * self.rng.random(count)

    def picks(self, palette, count: int, spread: float = 0.10) -> np.ndarray:
        """Several colors of a palette, (count, 3)."""
        colors = LINEAR[palette][self.rng.integers(len(LINEAR[palette]), size=count)]
        return colors * (1.0 + spread * (2.0 * self.rng.random((count, 1)) - 1.0))

    def quad(self, corners, near, far=None, alpha=1.0, soft=0.5) -> None:
        """A flat quadrilateral: color ``near`` at the edge of its first two corners, ``far`` at the opposite edge."""
        far = near if far is None else far
        (ax, ay, az), (bx, by, bz), (cx, cy, cz), (dx, dy, dz) = corners
        self.single.append((0.0, ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz, *near, *far, alpha, soft))

    def quads(self, corners: np.ndarray, near, far, alpha=1.0, soft=0.5) -> None:
        """Many quadrilaterals with corners (k, 4, 3)."""
        block = np.empty((len(corners), 21), np.float32)
        block[:, 0], block[:, 1:13] = 0.0, corners.reshape(-1, 12)
        self._many(block, near, far, alpha, soft)

    def panel(self, box, y, top, bottom=None, alpha=1.0, soft=0.5) -> None:
        """An upright rectangle (left, right, lower, upper) that faces the camera at depth ``y``."""
        x0, x1, z0, z1 = box
        self.quad(((x0, y, z1), (x1, y, z1), (x1, y, z0), (x0, y, z0)), top, bottom, alpha, soft)

    def panels(self, x0, x1, z0, z1, y, top, bottom) -> None:
        """Many upright rectangles: arrays (k,)."""
        y = np.broadcast_to(y, x0.shape)
        corners = np.stack([x0, y, z1, x1, y, z1, x1, y, z0, x0, y, z0], 1).reshape(-1, 4, 3)
        self.quads(corners, top, bottom)

    def ball(self, center, radii, top, bottom=None, alpha=1.0, soft=0.5) -> None:
        """An ellipse that faces the camera; ``soft`` is the width of its edge in hundredths of the image."""
        (x, y, z), (wide, high) = center, radii
        bottom = top if bottom is None else bottom
        self.single.append((1.0, x, y, z, wide, high, 0, 0, 0, 0, 0, 0, 0, *top, *bottom, alpha, soft))

    def balls(
        self, center, radii, top, bottom, alpha: np.ndarray | float = 1.0, soft: np.ndarray | float = 0.5
    ) -> None:
        """Many ellipses: x, y, z and both radii are arrays (k,) or numbers, colors (k, 3) or (3,)."""
        (x, y, z), (wide, high) = center, radii
        block = np.zeros((len(x), 21), np.float32)
        block[:, 0], block[:, 1], block[:, 2], block[:, 3], block[:, 4], block[:, 5] = 1.0, x, y, z, wide, high
        self._many(block, top, bottom, alpha, soft)

    def leaves(self, x, y, z, size, color) -> None:
        """Many pointed leaves in any direction."""
        k = len(x)
        c, d = self.some(-1, 1, k), self.some(-1, 1, k)
        length = size / np.sqrt(c * c + d * d + 1e-3)
        c, d, slim = c * length, d * length, self.some(0.3, 0.6, k)
        y = np.broadcast_to(y, x.shape)
        corners = [x - c, y, z - d, x - d * slim, y, z + c * slim, x + c, y, z + d, x + d * slim, y, z - c * slim]
        self.quads(np.stack(corners, 1).reshape(-1, 4, 3), color * 0.8, color * 1.2, 0.95)

    def _many(self, block, near, far, alpha, soft) -> None:
        self._flush()
        block[:, 13:16], block[:, 16:19], block[:, 19], block[:, 20] = near, far, alpha, soft
        self.blocks.append(block)

    def _flush(self) -> None:
        if self.single:
            self.blocks.append(np.array(self.single, np.float32))
            self.single = []

    def shoot(self, depth: float) -> None:
        """Ends a layer: what was drawn since the last one lies about ``depth`` metres from the camera."""
        self._flush()
        if self.blocks:
            self.layers.append((np.concatenate(self.blocks), depth))
        self.blocks = []

    def develop(self, grid: int) -> np.ndarray:
        """The image of all layers, the farthest first, each blurred by the disc of the lens, with a rim."""
        side = grid + 2 * RIM
        focal, pixel = np.float32(self.distance / FACE * grid), np.float32(grid / 96)
        picture = np.zeros((side, side, 3), np.float32)
        for k, (shapes, depth) in enumerate(self.layers):
            layer = np.zeros((side, side, 4), np.float32)
            paint(layer, shapes, focal, pixel)
            radius = self.lens * abs(depth - self.distance) / depth / FACE * grid
            radius = np.float32(min(max(radius, 0.008 * grid), RIM - 1.0))
            if k == 0:
                picture = defocus(np.ascontiguousarray(layer[..., :3]), radius)
            else:
                layer = defocus(layer, radius)
                picture = picture * (np.float32(1.0) - layer[..., 3:]) + layer[..., :3]
        return np.ascontiguousarray(picture)


def _mean_tint(light: np.ndarray) -> np.ndarray:
    """A light with half of its tint: a camera balances the white of a place."""
    light = np.asarray(light, np.float32).astype(np.float64)
    return 0.5 * light + 0.5 * (light[0] + light[1] + light[2]) / 3.0


class Wall:
    """An upright plane at an angle to the image, addressed by (along, up) in metres."""

    def __init__(self, scene: Scene, origin, angle: float):
        self.scene, self.origin = scene, origin
        self.cos, self.sin = math.cos(angle), math.sin(angle)

    def at(self, along: float, up: float, out: float = 0.0):
        x, y = self.origin
        return x + along * self.cos + out * self.sin, max(y + along * self.sin - out * self.cos, 0.25), up

    def patch(self, box, top, bottom=None, alpha=1.0, soft=0.5, out=0.0) -> None:
        """A rectangle (left, right, lower, upper) on the wall."""
        a0, a1, z0, z1 = box
        corners = (self.at(a0, z1, out), self.at(a1, z1, out), self.at(a1, z0, out), self.at(a0, z0, out))
        self.scene.quad(corners, top, bottom, alpha, soft)

    def strips(self, a0, a1, z0, z1, start, end) -> None:
        """Many rectangles whose colors run from their left to their right edges: arrays (k,) or numbers."""
        a0, a1, z0, z1 = np.broadcast_arrays(a0, a1, z0, z1)
        (x, y), c, d = self.origin, self.cos, self.sin
        u0, v0, u1, v1 = x + a0 * c, np.maximum(y + a0 * d, 0.25), x + a1 * c, np.maximum(y + a1 * d, 0.25)
        corners = np.stack([u0, v0, z0, u0, v0, z1, u1, v1, z1, u1, v1, z0], 1)
        self.scene.quads(corners.reshape(-1, 4, 3), start, end)

    def shade(self, a0, a1, z0, z1, start, end, alpha=1.0) -> None:
        """A rectangle whose color runs from its left to its right edge."""
        corners = (self.at(a0, z0), self.at(a0, z1), self.at(a1, z1), self.at(a1, z0))
        self.scene.quad(corners, start, end, alpha)


def enlarge(picture: np.ndarray, n: int) -> np.ndarray:
    """The middle of a drawn place, without its rim, as (n, n, 3) by cubic splines."""
    side = picture.shape[0] - 2 * RIM
    at = (np.arange(n) + 0.5) * (side / n) - 0.5 + RIM
    first = np.floor(at)
    t = (at - first)[:, None]
    weights = np.concatenate([(1 - t) ** 3, 3 * t**3 - 6 * t * t + 4, 3 * (1 + t - t * t) * t + 1, t * t * t], 1) / 6
    return _resample(picture, first.astype(np.int64) - 1, weights.astype(np.float32))


@kernel
def _resample(picture, first, weights):
    n, m = len(first), picture.shape[1]
    rows = np.empty((n, m, 3), np.float32)
    for y in range(n):
        for x in range(m):
            for c in range(3):
                v = np.float32(0.0)
                for k in range(4):
                    v += weights[y, k] * picture[first[y] + k, x, c]
                rows[y, x, c] = v
    out = np.empty((n, n, 3), np.float32)
    for y in range(n):
        for x in range(n):
            w0, w1, w2, w3 = weights[x, 0], weights[x, 1], weights[x, 2], weights[x, 3]
            i = first[x]
            for c in range(3):
                out[y, x, c] = (
                    w0 * rows[y, i, c] + w1 * rows[y, i + 1, c] + w2 * rows[y, i + 2, c] + w3 * rows[y, i + 3, c]
                )
    return out
