"""The surfaces that the camera sees, gathered sample by sample."""

import numpy as np

FAR = -160.0  # depth of what is behind everything, mm


class Scene:
    """The surfaces seen at n x n camera points, gathered from back to front."""

    def __init__(self, u: np.ndarray, v: np.ndarray, pixel: float):
        self.u, self.v, self.pixel, self.shape = u, v, pixel, u.shape
        self.depth = np.full(u.shape, FAR, np.float32)
        self.colour = np.zeros((*u.shape, 3), np.float32)
        self.gloss = np.zeros(u.shape, np.float32)
        self.glow = np.zeros(u.shape, np.float32)
        self.skin = np.zeros(u.shape, np.float32)  # 1 where light goes under the surface
        self.solid = np.zeros(u.shape, bool)
        self.label = np.zeros(u.shape, np.uint8)

    def put(self, at, depth, colour, gloss, label, skin: float, glow=0.0) -> None:
        """Place surface points at flat indices ``at`` where they are nearer than what is there."""
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
