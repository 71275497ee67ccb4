"""S3FD and FAN-4: the detector and the 68 landmarks of the library face-alignment."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masquerade import assets
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.inputs import device, piecewise, pixels, place

SIDE = 256
THRESHOLD = 0.5  # probability of a detection: the default of the library
REFERENCE, UNIT, LIFT = 195.0, 200.0, 0.12
"""FAN's input is the square around a box. Its side is 200 / 195 of width plus height; it is shifted up by 12 % of the
height."""


class FaceAlignment(Judge):
    """The most probable face of S3FD, and the landmarks that FAN-4 predicts in it.

    Preprocessing: 8-bit RGB at 256 x 256. The input of the detector is BGR minus (104, 117, 123). The input of FAN is
    the square around the box, black outside the picture, at 256 x 256 in [0, 1]. ``box``: left, top, right, bottom;
    ``landmarks``: x0, y0, x1, ... in iBUG order; both in pixels of the input picture, and NaN if nothing is detected
    (``probability`` <= 0.5). The library truncates coordinates to whole pixels; here they are not truncated. FAN runs
    without the second pass on the mirrored picture, as in versions of the library before 1.5.
    """

    title = "face-alignment (S3FD, FAN-4)"
    source = "Zhang et al. 2017, arXiv:1708.05237; Bulat and Tzimiropoulos 2017, arXiv:1703.07332; face-alignment"
    packages = ("torch", "opencv-python-headless")
    assets = ("s3fd", "fan4")
    quantities = {"detected": (), "box": (4,), "landmarks": (136,), "probability": ()}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        from masquerade.networks.face_alignment import FAN, S3FD
        from masquerade.training import weight_files

        networks = {"s3fd": S3FD, "fan4": FAN}
        files = {role: assets.checked(role) for role in self.assets}
        self._detector, self._landmarks = (
            place(weight_files.load(networks[role](), weight_files.tensors(weight_files.read(path), path), path))
            for role, path in files.items()
        )

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        return piecewise(self._measure, images)

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        pictures = np.stack(pixels(images, SIDE))
        batch = torch.from_numpy(np.ascontiguousarray(pictures[..., ::-1].transpose(0, 3, 1, 2))).float().to(device())
        boxes, scores = self._detector(batch)
        best = scores.argmax(dim=1)
        rows = torch.arange(len(best), device=best.device)
        boxes, probability = boxes[rows, best].cpu().numpy(), scores[rows, best].cpu().numpy()
        detected = probability > THRESHOLD
        landmarks = np.full((len(images), 136), np.nan, dtype=np.float32)
        scale = images.shape[-1] / SIDE
        if detected.any():
            points = self._points(pictures[detected], boxes[detected])
            landmarks[detected] = (points * scale - 0.5).reshape(-1, 136)  # the center of pixel 0 is at 0
        boxes[~detected] = np.nan
        return {"detected": detected, "box": boxes * scale, "landmarks": landmarks, "probability": probability}

    def _points(self, pictures: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """uint8 RGB (M, S, S, 3) and boxes (M, 4) -> landmarks (M, 68, 2) in pixels; the first pixel spans 0 to 1."""
        import torch

        from masquerade.networks.face_alignment import peaks

        squares = np.stack([square(box) for box in boxes])
        faces = np.stack([cut_out(*pair) for pair in zip(pictures, squares, strict=True)])
        batch = torch.from_numpy(faces.transpose(0, 3, 1, 2).astype(np.float32) / 255.0).to(device())
        return squares[:, None, :2] + peaks(self._landmarks(batch)).cpu().numpy() * squares[:, None, 2:]


def square(box: np.ndarray) -> np.ndarray:
    """The square of FAN's input around a box: left, top and side, in pixels."""
    left, top, right, bottom = box
    side = UNIT / REFERENCE * (right - left + bottom - top)
    middle = np.array([(left + right) / 2, (top + bottom) / 2 - LIFT * (bottom - top)])
    return np.array([*(middle - side / 2), side], dtype=np.float32)


def cut_out(picture: np.ndarray, square: np.ndarray) -> np.ndarray:
    """The square of a picture, uint8 (S, S, 3), at 256 x 256, by bilinear interpolation; black outside the picture."""
    import cv2

    left, top, side = map(float, square)
    step = side / SIDE
    back = np.array([[step, 0, left + step / 2 - 0.5], [0, step, top + step / 2 - 0.5]])  # of pixel centers
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(picture, back, (SIDE, SIDE), flags=flags, borderMode=cv2.BORDER_CONSTANT, borderValue=0)
