"""Face detectors, with the landmarks that some of them give."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masquerade import assets
from masquerade.assets.packaged import packaged
from masquerade.core.errors import CheckpointError
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.judges._loading import BatchedJudge
from masquerade.networks.inputs import device, place, to_pixels

HAAR_SIDE = 96
HAAR_LEAST = 3 * HAAR_SIDE // 8  # side of the smallest face: the face in an aligned crop fills more than half of it
SCALE_STEP, NEIGHBORS = 1.1, 3  # OpenCV's defaults


class Haar(Judge):
    """Detection of a frontal face: the largest box of the cascade.

    Preprocessing: 8-bit gray (ITU-R 601 luma) at 96 x 96, histogram equalized as in OpenCV's own example.
    ``box``: left, top, right, bottom in pixels of the input image, NaN if nothing is detected.
    """

    name = "haar"
    title = "OpenCV Haar"
    source = "Viola and Jones 2001; haarcascade_frontalface_default.xml (Lienhart 2002) in opencv-python-headless 4"
    engine = "opencv"
    packages = ("opencv-python-headless",)
    quantities = {"detected": (), "box": (4,)}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        import cv2.data

        path = Path(cv2.data.haarcascades, "haarcascade_frontalface_default.xml")
        if not path.is_file():
            raise CheckpointError(f"{path.name} is missing: install opencv-python-headless 4 (version 5 ships none).")
        self._cascade = cv2.CascadeClassifier(str(path))

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        import cv2

        boxes = np.full((len(images), 4), np.nan, dtype=np.float32)
        for row, picture in enumerate(to_pixels(images, HAAR_SIDE)):
            gray = cv2.equalizeHist(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY))
            faces = self._cascade.detectMultiScale(gray, SCALE_STEP, NEIGHBORS, minSize=(HAAR_LEAST, HAAR_LEAST))
            if len(faces):
                x, y, width, height = max(faces, key=lambda box: box[2] * box[3])
                boxes[row] = np.array([x, y, x + width, y + height]) * (images.shape[-1] / HAAR_SIDE)
        return {"detected": np.isfinite(boxes[:, 0]), "box": boxes}


MTCNN_SIDE = 128  # pixels; the input of the last network is 48 x 48
MTCNN_LEAST = 3 * MTCNN_SIDE // 8  # side of the smallest face: the face in an aligned crop fills more than half of it
THRESHOLDS = (0.6, 0.7, 0.7)  # of the three networks, as published
FACTOR = 0.709  # from one size of the image to the next, as published


class Mtcnn(BatchedJudge):
    """The largest face that all three networks accept.

    Preprocessing: 8-bit RGB at 128 x 128; the cascade of the package scales it to (x - 127.5) / 128.
    ``box``: left, top, right, bottom; ``points``: x, y of left eye, right eye, nose, left and right mouth corner (left
    and right of the image); both in pixels of the input image. ``probability``: of the last network. If nothing is
    detected, it is 0, and box and points are NaN.
    """

    name = "mtcnn"
    title = "MTCNN"
    source = "Zhang et al. 2016, arXiv:1604.02878; weights of facenet-pytorch (MIT)"
    packages = ("facenet-pytorch", "torch")
    quantities = {"detected": (), "box": (4,), "points": (10,), "probability": ()}
    at_once = 16
    """More images take longer, where freed memory goes back to the kernel."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        files = [
            packaged("facenet_pytorch", "data", f"{name}.pt", install="facenet-pytorch")
            for name in ("pnet", "rnet", "onet")
        ]
        from masquerade.networks import torchvision_internals

        torchvision_internals.ensure()
        import torch
        from facenet_pytorch.models import mtcnn

        from masquerade.training import weight_files

        self._networks = [
            place(weight_files.load_file(network(pretrained=False), path).to(memory_format=torch.channels_last))
            for network, path in zip((mtcnn.PNet, mtcnn.RNet, mtcnn.ONet), files, strict=True)
        ]

    def _detect(self, pictures: np.ndarray, least: int) -> tuple:
        """Boxes and points of each image, uint8 (N, H, W, 3); ``least``: side of the smallest face in pixels."""
        import torch
        from facenet_pytorch.models.utils.detect_face import detect_face

        with torch.inference_mode():
            return detect_face(pictures, least, *self._networks, THRESHOLDS, FACTOR, device())

    def faces(self, photograph: np.ndarray, least: int, probability: float) -> np.ndarray:
        """Boxes of all faces in a photograph, uint8 (H, W, 3): float32 (N, 4) of left, top, right, bottom in pixels.

        ``least``: side of the smallest face in pixels. ``probability``: the least that the last network must give.
        """
        boxes = np.asarray(self._detect(photograph[None], least)[0][0], dtype=np.float32).reshape(-1, 5)
        return boxes[boxes[:, 4] >= probability, :4]

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        boxes, points = self._detect(np.stack(to_pixels(images, MTCNN_SIDE)), MTCNN_LEAST)
        quantities = {
            "detected": np.zeros(len(images), dtype=bool),
            "box": np.full((len(images), 4), np.nan, dtype=np.float32),
            "points": np.full((len(images), 10), np.nan, dtype=np.float32),
            "probability": np.zeros(len(images), dtype=np.float32),
        }
        scale = images.shape[-1] / MTCNN_SIDE
        for row, (candidates, five) in enumerate(zip(boxes, points, strict=True)):
            if len(candidates):
                edges = np.asarray(candidates, dtype=np.float32)
                best = int(np.argmax((edges[:, 2] - edges[:, 0]) * (edges[:, 3] - edges[:, 1])))
                quantities["detected"][row] = True
                quantities["box"][row] = edges[best, :4] * scale
                quantities["points"][row] = np.asarray(five[best], dtype=np.float32).reshape(-1) * scale
                quantities["probability"][row] = edges[best, 4]
        return quantities


FAN_SIDE = 256
THRESHOLD = 0.5  # probability of a detection: the default of the library
REFERENCE, UNIT, LIFT = 195.0, 200.0, 0.12
"""FAN's input is the square around a box. Its side is 200 / 195 of width plus height; it is shifted up by 12 % of the
height."""


class FaceAlignment(BatchedJudge):
    """The most probable face of S3FD, and the landmarks that FAN-4 predicts in it.

    Preprocessing: 8-bit RGB at 256 x 256. The input of the detector is BGR minus (104, 117, 123). The input of FAN is
    the square around the box, black outside the image, at 256 x 256 in [0, 1]. ``box``: left, top, right, bottom;
    ``landmarks``: x0, y0, x1, ... in iBUG order; both in pixels of the input image, and NaN if nothing is detected
    (``probability`` <= 0.5). The library truncates coordinates to whole pixels; here they are not truncated. FAN runs
    without the second pass on the mirrored image, as in versions of the library before 1.5.
    """

    name = "face_alignment"
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
        files = {role: assets.check_asset(role) for role in self.assets}
        self._detector, self._landmarks = (
            place(weight_files.load_file(networks[role](), path)) for role, path in files.items()
        )

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        pictures = np.stack(to_pixels(images, FAN_SIDE))
        batch = torch.from_numpy(np.ascontiguousarray(pictures[..., ::-1].transpose(0, 3, 1, 2))).float().to(device())
        boxes, scores = self._detector(batch)
        best = scores.argmax(dim=1)
        rows = torch.arange(len(best), device=best.device)
        boxes, probability = boxes[rows, best].cpu().numpy(), scores[rows, best].cpu().numpy()
        detected = probability > THRESHOLD
        landmarks = np.full((len(images), 136), np.nan, dtype=np.float32)
        scale = images.shape[-1] / FAN_SIDE
        if detected.any():
            points = self._points(pictures[detected], boxes[detected])
            landmarks[detected] = (points * scale - 0.5).reshape(-1, 136)  # the center of pixel 0 is at 0
        boxes[~detected] = np.nan
        return {"detected": detected, "box": boxes * scale, "landmarks": landmarks, "probability": probability}

    def _points(self, pictures: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """uint8 RGB (M, S, S, 3) and boxes (M, 4) -> landmarks (M, 68, 2) in pixels; the first pixel spans 0 to 1."""
        import torch

        from masquerade.networks.face_alignment import find_peaks

        squares = np.stack([square(box) for box in boxes])
        faces = np.stack([cut_out(*pair) for pair in zip(pictures, squares, strict=True)])
        batch = torch.from_numpy(faces.transpose(0, 3, 1, 2).astype(np.float32) / 255.0).to(device())
        return squares[:, None, :2] + find_peaks(self._landmarks(batch)).cpu().numpy() * squares[:, None, 2:]


def square(box: np.ndarray) -> np.ndarray:
    """The square of FAN's input around a box: left, top and side, in pixels."""
    left, top, right, bottom = box
    side = UNIT / REFERENCE * (right - left + bottom - top)
    middle = np.array([(left + right) / 2, (top + bottom) / 2 - LIFT * (bottom - top)])
    return np.array([*(middle - side / 2), side], dtype=np.float32)


def cut_out(picture: np.ndarray, square: np.ndarray) -> np.ndarray:
    """The square of an image, uint8 (S, S, 3), at 256 x 256, by bilinear interpolation; black outside the image."""
    import cv2

    left, top, side = map(float, square)
    step = side / FAN_SIDE
    back = np.array([[step, 0, left + step / 2 - 0.5], [0, step, top + step / 2 - 0.5]])  # of pixel centers
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(
        picture, back, (FAN_SIDE, FAN_SIDE), flags=flags, borderMode=cv2.BORDER_CONSTANT, borderValue=0
    )
