"""The surfaces that are visible to the camera, one value a sample."""

import numpy as np

FAR = -160.0  # depth of an empty sample, mm


class Scene:
    """The visible surfaces at n x n camera points: depth, colour, gloss, glow, skin, label."""

    def __init__(self, u: np.ndarray, v: np.ndarray, pixel: float):
        self.u, self.v, self.pixel, self.shape = u, v, pixel, u.shape
        self.depth = np.full(u.shape, FAR, np.float32)
        self.colour = np.zeros((*u.shape, 3), np.float32)
        self.gloss = np.zeros(u.shape, np.float32)
        self.glow = np.zeros(u.shape, np.float32)
        self.skin = np.zeros(u.shape, np.float32)  # share of the light that scatters below the surface, as in skin
        self.solid = np.zeros(u.shape, bool)
        self.label = np.zeros(u.shape, np.uint8)

    def put(self, at, depth, colour, gloss, label, skin: float, glow: np.ndarray | float = 0.0) -> None:
        """Put surface points at the flat indices ``at``, as far as they are nearer than the surfaces in the scene."""
        nearer = depth > self.depth.ravel()[at]
        at = at[nearer]

        def pick(value):
            return value[nearer] if np.ndim(value) else value

        self.depth.ravel()[at] = pick(depth)
        self.colour.reshape(-1, 3)[at] = colour[nearer] if np.ndim(colour) > 1 else colour
        self.gloss.ravel()[at] = pick(gloss)
        self.glow.ravel()[at] = pick(glow)
        self.label.ravel()[at] = pick(label)
        self.skin.ravel()[at] = skin
        self.solid.ravel()[at] = True
