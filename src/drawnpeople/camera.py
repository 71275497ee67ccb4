"""The camera: perspective, and the crop of FFHQ around eyes and mouth."""

import math

import numpy as np

from drawnpeople.kernels import kernel


class Camera:
    """A pinhole camera that looks along +y, and the square of the image that is cut out.

    The image has ``n`` samples a side; sample centers are whole numbers, x to the right, y down. ``metres`` is the
    width of a sample at the face.
    """

    def __init__(self, n: int, eye: np.ndarray, distance: float, corners: np.ndarray, roll: float, shift, zoom: float):
        """``eye`` (3,): place of the camera. ``distance``: of the face from it, metres.

        ``corners`` (4, 3): left eye, right eye, left and right corner of the mouth, as the image shows them. The crop
        is that of FFHQ (Karras et al. 2019, appendix A) for them, turned by ``roll`` degrees, moved by ``shift``
        (right, down, in sides) and ``zoom`` times as large.
        """
        self.n, self.eye, self.distance = n, eye.astype(np.float32), distance
        flat = self._flat(corners).astype(np.float64)
        eyes, mouth = (flat[0] + flat[1]) / 2, (flat[2] + flat[3]) / 2
        across, down = flat[1] - flat[0], mouth - eyes
        axis = across + np.array([down[1], -down[0]])
        axis = axis / math.hypot(*axis)
        half = max(math.hypot(*across) * 2.0, math.hypot(*down) * 1.8)
        center = eyes + 0.1 * down
        cos, sin = math.cos(math.radians(roll)), math.sin(math.radians(roll))
        # A crop that turns to the left shows a head that leans to the right.
        right = np.array([cos * axis[0] + sin * axis[1], cos * axis[1] - sin * axis[0]])
        below = np.array([-right[1], right[0]])
        half *= zoom
        center = center + 2 * half * (shift[0] * right + shift[1] * below)
        scale = n / (2 * half)
        self.metres = distance / scale
        turn = np.stack([right, below]) * scale
        offset = np.array([(n - 1) / 2, (n - 1) / 2]) - [(row * center).sum() for row in turn]
        self._turn, self._offset = turn.astype(np.float32), offset.astype(np.float32)
        self._back = (np.stack([right, below], 1) / scale).astype(np.float32)
        self._center = center.astype(np.float32)

    def _flat(self, points: np.ndarray) -> np.ndarray:
        """Perspective: right and down at a distance of one metre."""
        depth = points[..., 1] - self.eye[1]
        return np.stack([(points[..., 0] - self.eye[0]) / depth, (self.eye[2] - points[..., 2]) / depth], -1)

    def project(self, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) of the world to x, y in samples and the depth in metres, which is larger further away."""
        flat = np.ascontiguousarray(points, np.float32).reshape(-1, 3)
        return _project(flat, self.eye, self._turn, self._offset).reshape(points.shape)

    def direction(self, right: float, down: float) -> np.ndarray:
        """A direction of the upright image in samples, (2,): the crop may be turned."""
        return self._turn[:, 0] * np.float32(right) + self._turn[:, 1] * np.float32(down)

    def place(self, x: np.ndarray, y: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Points (..., 3) of the world that `project` sends to x, y in samples and ``depth`` in metres."""
        middle = np.float32((self.n - 1) / 2)
        (a, b), (c, d) = self._back
        x, y = np.asarray(x, np.float32) - middle, np.asarray(y, np.float32) - middle
        u, v = a * x + b * y + self._center[0], c * x + d * y + self._center[1]
        depth = np.asarray(depth, np.float32)
        return np.stack([u * depth + self.eye[0], depth + self.eye[1], self.eye[2] - v * depth], -1)


@kernel
def _project(points, eye, turn, offset):
    out = np.empty(points.shape, np.float32)
    for i in range(len(points)):
        depth = points[i, 1] - eye[1]
        u, v = (points[i, 0] - eye[0]) / depth, (eye[2] - points[i, 2]) / depth
        for k in range(2):
            out[i, k] = turn[k, 0] * u + turn[k, 1] * v + offset[k]
        out[i, 2] = depth
    return out
