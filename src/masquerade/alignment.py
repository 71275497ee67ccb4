"""How recognisers want a face cut out, each way defined once: ArcFace's 112 and FaceNet's 160 pixels.

The archives hold FFHQ's crop (faces/_alignment.py, Karras et al. 2018, appendix C). What a network wants of it is its
own preprocessing: from 68 landmarks or a box that a detector found by the functions here, or, where the published
codes do without a detector, by the fixed window of `aligned_window`.
"""

import numpy as np

ARCFACE_SIDE = 112
ARCFACE_POINTS = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]]
)
"""Where eyes, tip of the nose and corners of the mouth come to lie in 112 x 112 pixels: x, y, left in the picture first
(insightface, python-package/insightface/utils/face_align.py, ``arcface_dst``)."""

FACENET_SIDE, FACENET_MARGIN = 160, 32
"""Of pictures that FaceNet is tested with (davidsandberg/facenet, wiki, Validate on LFW: image_size 160, margin 32)."""

WINDOW = (35, 223, 32, 220)
"""Rows and columns, of 256, of an FFHQ crop that the published codes give to ArcFace's networks (pixel2style2pixel,
criteria/id_loss.py; encoder4editing and FALCO after it)."""


def five_points(landmarks: np.ndarray) -> np.ndarray:
    """68 points (..., 68, 2) in iBUG's order -> eyes, tip of the nose, corners of the mouth (..., 5, 2).

    An eye is the mean of its six points. NaN where they are not known.
    """
    eyes = [landmarks[..., 36:42, :].mean(axis=-2), landmarks[..., 42:48, :].mean(axis=-2)]
    return np.stack([*eyes, *(landmarks[..., point, :] for point in (30, 48, 54))], axis=-2)


def similarity(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The rotation, scale and shift that bring points (N, 2) nearest to ``target`` (N, 2): float64 (2, 3).

    Least squares, without a reflection (Umeyama 1991, Eq. 40 to 43). Raises ValueError where the points fall together.
    """
    from skimage.transform import SimilarityTransform

    known = np.isfinite(source).all() and np.isfinite(target).all()
    found = SimilarityTransform.from_estimate(source, target) if known else None
    if not found or not np.isfinite(found.params).all():
        raise ValueError("points that fall together, or are not known, have no similarity")
    return found.params[:2]


def arcface(picture: np.ndarray, points: np.ndarray, side: int = ARCFACE_SIDE) -> np.ndarray:
    """The face with these `five_points`, as ArcFace's networks want it: uint8 (H, W, 3) -> (side, side, 3).

    Bilinear, black beyond the picture's edge (insightface, face_align.py, ``norm_crop``). Raises ValueError where the
    points fall together or are not known.
    """
    import cv2

    affine = similarity(np.asarray(points, np.float64), ARCFACE_POINTS * (side / ARCFACE_SIDE))
    return cv2.warpAffine(picture, affine, (side, side), flags=cv2.INTER_LINEAR, borderValue=0)


def facenet(picture: np.ndarray, box: np.ndarray, side: int = FACENET_SIDE, margin: int = FACENET_MARGIN) -> np.ndarray:
    """The face in a detector's ``box`` (left, top, right, bottom), with a margin: uint8 (H, W, 3) -> (side, side, 3).

    ``margin``: pixels of the result, half on each side; cut at the picture's edge, stretched to a square, by area
    (facenet-pytorch, models/utils/detect_face.py, ``extract_face``; the TensorFlow code takes pixels of the picture).
    Raises ValueError for a box outside of the picture.
    """
    import cv2

    left, top, right, bottom = (float(edge) for edge in box)
    beside, above = (length * margin / (side - margin) / 2.0 for length in (right - left, bottom - top))
    rows = slice(int(max(top - above, 0)), int(min(bottom + above, picture.shape[0])))
    columns = slice(int(max(left - beside, 0)), int(min(right + beside, picture.shape[1])))
    cut = picture[rows, columns]
    if not cut.size:
        raise ValueError(f"the box {[left, top, right, bottom]} holds nothing of the picture")
    return cv2.resize(cut, (side, side), interpolation=cv2.INTER_AREA)


def aligned_window(side: int) -> tuple[slice, slice]:
    """Rows and columns of an FFHQ crop of ``side`` pixels that ArcFace's networks see in the published codes.

    Those bring a picture to 256 pixels first, where the window is exact. Raises ValueError for a side in which its
    edges are no whole pixels.
    """
    if side % 256:
        raise ValueError(f"the window is defined at 256 pixels and at multiples of it, not at {side}: resize first")
    top, bottom, left, right = (edge * (side // 256) for edge in WINDOW)
    return slice(top, bottom), slice(left, right)
